//! A host's file on the disk: read with care, replaced whole, with the old bytes beside it.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cyberine_fs::{Durability, PrivateDir};
use cyberine_types::Timestamp;

use crate::{FileError, Scope};

/// The largest file that is edited, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// How many entries of the file's directory are looked at for backups.
const MAX_NAMES: usize = 100_000;
/// How many backups are looked through.
const MAX_BACKUPS: usize = 100;

/// A host's file as it was read. A symbolic link is followed once, when the file is read: what is
/// written is its target, so that a dotfile manager's link stays one.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    real: PathBuf,
    text: Option<String>,
    mode: u32,
}

impl ConfigFile {
    /// Reads the file at `path`, which need not be there.
    ///
    /// # Errors
    ///
    /// [`FileError`]: a link to nothing, a file that is not a regular one of the user's with one
    /// name, may not be written, is larger than [`MAX_BYTES`] or no text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Io { action: "read", path: path.to_owned(), source };
        let absent = |real: PathBuf| Self { path: path.to_owned(), real, text: None, mode: 0 };
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(FileError::Dangling { path: path.to_owned() });
                }
                return Ok(absent(path.to_owned()));
            }
            Err(error) => return Err(failed(error)),
        };
        let (dir, name) = place(&real)?;
        let Some(bytes) = dir.read(&name, MAX_BYTES)? else { return Ok(absent(real)) };
        let mode = fs::metadata(&real).map_err(failed)?.mode() & 0o7777;
        if mode & 0o200 == 0 {
            return Err(FileError::ReadOnly { path: real });
        }
        let text = String::from_utf8(bytes).map_err(|_| FileError::NotText { path: real.clone() })?;
        Ok(Self { path: path.to_owned(), real, text: Some(text), mode })
    }

    /// Where the host looks for it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it lies: the target of the link, where there is one.
    #[must_use]
    pub fn real_path(&self) -> &Path {
        &self.real
    }

    /// What was read; `None` where there was no file.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The texts of the backups beside it, newest first.
    ///
    /// # Errors
    ///
    /// What reading the directory meets. A backup that cannot be read is left out.
    pub fn earlier(&self) -> Result<Vec<String>, FileError> {
        if self.text.is_none() {
            return Ok(Vec::new());
        }
        let (dir, name) = place(&self.real)?;
        let text = |backup: String| String::from_utf8(dir.read(&backup, MAX_BYTES).ok()??).ok();
        Ok(backups(&dir, &name)?.into_iter().filter_map(text).collect())
    }

    /// Writes `text`, with what was read kept beside it as `NAME.cyberine-TIME.bak` (mode 0600),
    /// and returns that backup's place where there was something to keep. The file keeps its
    /// mode; a new one is its user's alone, and a project's as the umask has it.
    ///
    /// # Errors
    ///
    /// [`FileError::Changed`] where the file is no longer what was read, and what writing meets;
    /// the file is then as it was.
    pub fn write(&self, text: &str, scope: Scope, now: Timestamp) -> Result<Option<PathBuf>, FileError> {
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        if self.text.is_none() {
            fs::create_dir_all(parent).map_err(|source| self.failed("make the directory of", source))?;
        }
        let (dir, name) = place(&self.real)?;
        let kept = match &self.text {
            Some(old) => Some(keep(&dir, &name, old, now)?),
            None => None,
        };
        let written = self.put(&dir, &name, text, scope);
        if let (Err(FileError::Changed { .. }), Some(backup)) = (&written, &kept) {
            // What it keeps was not replaced.
            dir.remove(backup)?;
        }
        written.map(|()| kept.map(|backup| parent.join(backup)))
    }

    /// Gives an earlier text back, and removes the backup that held it: nothing of the entry is
    /// left then. `None` removes the file.
    ///
    /// # Errors
    ///
    /// As [`ConfigFile::write`].
    pub fn give_back(&self, earlier: Option<&str>, scope: Scope) -> Result<(), FileError> {
        let (dir, name) = place(&self.real)?;
        let Some(text) = earlier else {
            self.check_unchanged(&dir, &name)?;
            dir.remove(&name)?;
            return self.sync();
        };
        self.put(&dir, &name, text, scope)?;
        for backup in backups(&dir, &name)? {
            if dir.read(&backup, MAX_BYTES).is_ok_and(|bytes| bytes.as_deref() == Some(text.as_bytes())) {
                dir.remove(&backup)?;
            }
        }
        Ok(())
    }

    fn put(&self, dir: &PrivateDir, name: &str, text: &str, scope: Scope) -> Result<(), FileError> {
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        let mut temporary = tempfile::Builder::new();
        let mode = match (&self.text, scope) {
            (Some(_), _) => self.mode,
            (None, Scope::User) => 0o600,
            (None, Scope::Project) => 0o666,
        };
        let mut file = temporary
            .prefix(".cyberine-")
            .permissions(Permissions::from_mode(if self.text.is_some() { 0o600 } else { mode }))
            .tempfile_in(parent)
            .map_err(|source| self.failed("write beside", source))?;
        file.write_all(text.as_bytes()).map_err(|source| self.failed("write", source))?;
        if self.text.is_some() {
            let permissions = Permissions::from_mode(mode);
            file.as_file()
                .set_permissions(permissions)
                .map_err(|source| self.failed("set the mode of", source))?;
        }
        file.as_file().sync_all().map_err(|source| self.failed("write", source))?;
        if self.text.is_some() {
            self.check_unchanged(dir, name)?;
            file.persist(&self.real).map_err(|error| self.failed("replace", error.error))?;
        } else {
            file.persist_noclobber(&self.real).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => FileError::Changed { path: self.real.clone() },
                _ => self.failed("create", error.error),
            })?;
        }
        self.sync()
    }

    /// The last look before the file is replaced.
    fn check_unchanged(&self, dir: &PrivateDir, name: &str) -> Result<(), FileError> {
        let now = dir.read(name, MAX_BYTES)?;
        if now.as_deref() == self.text.as_deref().map(str::as_bytes) {
            return Ok(());
        }
        Err(FileError::Changed { path: self.real.clone() })
    }

    fn sync(&self) -> Result<(), FileError> {
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| self.failed("sync the directory of", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> FileError {
        FileError::Io { action, path: self.real.clone(), source }
    }
}

/// The directory and the name of a file.
fn place(path: &Path) -> Result<(PrivateDir, String), FileError> {
    let not_text = || FileError::NotText { path: path.to_owned() };
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_text)?;
    let dir = PrivateDir::open_existing(path.parent().unwrap_or(Path::new("/")))?;
    Ok((dir, name.to_owned()))
}

/// Writes a backup under a name of its own.
fn keep(dir: &PrivateDir, name: &str, text: &str, now: Timestamp) -> Result<String, FileError> {
    let time: String = now.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let mut backup = format!("{name}.cyberine-{time}.bak");
    let mut number = 1;
    while dir.exists(&backup)? {
        number += 1;
        backup = format!("{name}.cyberine-{time}-{number}.bak");
    }
    dir.replace(&backup, text.as_bytes(), Durability::Durable)?;
    Ok(backup)
}

/// The backups of `name`, newest first.
fn backups(dir: &PrivateDir, name: &str) -> Result<Vec<String>, FileError> {
    let prefix = format!("{name}.cyberine-");
    let mut names = dir.list(MAX_NAMES)?.names;
    names.retain(|name| name.starts_with(&prefix) && name.ends_with(".bak"));
    names.sort_by(|a, b| b.cmp(a));
    names.truncate(MAX_BACKUPS);
    Ok(names)
}
