//! A configuration file on disk: read whole, once, and only where nobody else could have
//! written it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

use crate::config::ConfigError;

/// No configuration is as long as this.
const LONGEST: u64 = 1 << 20;

/// A configuration file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    path: PathBuf,
    text: String,
}

impl ConfigSource {
    /// Reads the file; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be read, is no regular file, is longer than 1 MiB or not UTF-8, belongs to
    /// another user, or can be written by one.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let Some(bytes) = read_own(path)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|_| ConfigError::NotUtf8 { path: path.to_owned() })?;
        Ok(Some(Self { path: path.to_owned(), text }))
    }

    /// A configuration that is not on disk, for tests and previews.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of what it says, in hexadecimal: what `cyberine trust` remembers.
    #[must_use]
    pub fn digest(&self) -> String {
        Sha256::digest(self.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What a file holds that is obeyed; `None` where there is none.
///
/// # Errors
/// Where it cannot be read, is no regular file, is longer than 1 MiB, belongs to another user, or can be
/// written by one.
pub(crate) fn read_own(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let Some(file) = open(path).map_err(unreadable)? else { return Ok(None) };
    check(path, &file)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    Ok(Some(bytes))
}

/// Opens without waiting, so that a FIFO in the file's place cannot hold us.
fn open(path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
        Ok(descriptor) => Ok(Some(File::from(descriptor))),
        Err(rustix::io::Errno::NOENT) if path.is_symlink() => {
            Err(io::Error::other("it is a link to a file that is not there"))
        }
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Asks the open file, not the path, which may be another file by now.
fn check(path: &Path, file: &File) -> Result<(), ConfigError> {
    let path = path.to_owned();
    let facts = match file.metadata() {
        Ok(facts) => facts,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    if !facts.is_file() {
        return Err(ConfigError::NotAFile { path });
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(ConfigError::Foreign { path, owner: facts.uid() });
    }
    let mode = facts.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(ConfigError::WritableByOthers { path, mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_another_could_have_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cyberine.toml");
        assert_eq!(ConfigSource::read(&path).unwrap(), None);
        let link = directory.path().join("link.toml");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(matches!(ConfigSource::read(&link), Err(ConfigError::Unreadable { .. })));
        std::fs::write(&path, "[budget]\n").unwrap();
        for (mode, fine) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let read = ConfigSource::read(&path);
            assert_eq!(read.is_ok(), fine, "{mode:o}");
            if let Err(error) = read {
                assert!(error.to_string().contains("chmod go-w"), "{error}");
            }
        }
    }

    #[test]
    fn what_is_not_a_readable_text_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("directory")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::fs::write(at("bytes"), [b'#', 0xff]).unwrap();
        std::fs::write(at("long"), vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(matches!(ConfigSource::read(&at("directory")), Err(ConfigError::NotAFile { .. })));
        assert!(matches!(ConfigSource::read(&at("fifo")), Err(ConfigError::NotAFile { .. })));
        assert!(matches!(ConfigSource::read(&at("bytes")), Err(ConfigError::NotUtf8 { .. })));
        assert!(matches!(ConfigSource::read(&at("long")), Err(ConfigError::TooLong { .. })));
        assert!(matches!(ConfigSource::read(&at("bytes/x")), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn the_digest_is_that_of_every_byte() {
        let one = ConfigSource::of("a", "x");
        assert_eq!(one.digest(), "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
        assert_ne!(one.digest(), ConfigSource::of("a", "x\n").digest());
    }
}
