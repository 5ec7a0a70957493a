//! A directory, copied within bounds.

use std::fs;
use std::io;
use std::path::Path;

/// The most files and directories that are copied.
const MOST_ENTRIES: u64 = 20_000;
/// The most bytes that are copied.
const MOST_BYTES: u64 = 256 << 20;
/// What lies at the top of a project and is not part of what is tried.
const LEFT_OUT: [&str; 3] = [".git", ".local", "target"];

/// What has been copied so far.
#[derive(Default)]
struct Copied {
    entries: u64,
    bytes: u64,
}

/// Copies the directory `from` into `to`, which exists. Links and whatever is no file are left out,
/// and so are `.git`, `.local` and `target` at its top.
///
/// # Errors
/// Where there is more than 20,000 entries or 256 MiB of it, something cannot be read, or `stopped`
/// says so.
pub(super) fn tree(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("`copy` names `{}`: {error}", from.display()))
    };
    if !fs::metadata(from).map_err(named)?.is_dir() {
        return Err(named(io::Error::other("it is no directory")));
    }
    let mut copied = Copied::default();
    for entry in fs::read_dir(from).map_err(named)? {
        let entry = entry?;
        if LEFT_OUT.iter().all(|name| entry.file_name() != *name) {
            copied.entry(&entry, to, stopped).map_err(named)?;
        }
    }
    Ok(())
}

impl Copied {
    fn entry(&mut self, entry: &fs::DirEntry, to: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        self.entries += 1;
        if stopped() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "it was cancelled"));
        }
        if kind.is_dir() {
            fs::create_dir(&target)?;
            for inner in fs::read_dir(entry.path())? {
                self.entry(&inner?, &target, stopped)?;
            }
        } else if kind.is_file() {
            self.bytes = self.bytes.saturating_add(entry.metadata()?.len());
            self.check()?;
            fs::copy(entry.path(), &target)?;
        }
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        if self.entries > MOST_ENTRIES || self.bytes > MOST_BYTES {
            return Err(io::Error::other(format!(
                "it holds more than {MOST_ENTRIES} entries or {} MiB; name a smaller directory",
                MOST_BYTES >> 20
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_links_and_what_is_not_tried_are_left_out() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for directory in ["src/deep", ".git", "target"] {
            fs::create_dir_all(from.path().join(directory)).unwrap();
        }
        fs::write(from.path().join("src/deep/a.rs"), "a").unwrap();
        fs::write(from.path().join(".git/config"), "c").unwrap();
        std::os::unix::fs::symlink("/etc", from.path().join("out")).unwrap();
        tree(from.path(), to.path(), &|| false).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("src/deep/a.rs")).unwrap(), "a");
        for absent in [".git", "target", "out"] {
            assert!(!to.path().join(absent).exists(), "{absent}");
        }
    }

    #[test]
    fn what_is_no_directory_too_much_or_cancelled_is_an_error_that_says_so() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = tree(&from.path().join("none"), to.path(), &|| false).unwrap_err().to_string();
        assert!(error.starts_with("`copy` names `"), "{error}");
        fs::File::create(from.path().join("big")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = tree(from.path(), to.path(), &|| false).unwrap_err().to_string();
        assert!(error.contains("256 MiB; name a smaller directory"), "{error}");
        assert!(!to.path().join("big").exists());
        let error = tree(from.path(), to.path(), &|| true).unwrap_err().to_string();
        assert!(error.contains("it was cancelled"), "{error}");
    }
}
