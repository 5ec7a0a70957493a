//! Which runs are this server's own.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Tells whether a run belongs to the project this server works for.
pub trait Project: Send + Sync {
    /// Whether `cwd`, the directory a run was admitted for, is this project's.
    fn owns(&self, cwd: &str) -> bool;

    /// What the project is called within its home, also after a restart.
    fn name(&self) -> &str;
}

/// A project that is a directory. It is recognised by what it is (device and inode), never by its
/// path: a path can be spelled in many ways and can come to name another directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryProject {
    path: String,
    device: u64,
    inode: u64,
}

impl DirectoryProject {
    /// The project in the directory `path`.
    ///
    /// # Errors
    /// Where `path` is not a directory that can be looked at. A symbolic link is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(path)?;
        if !metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "the project is not a directory"));
        }
        Ok(Self { path: path.to_string_lossy().into_owned(), device: metadata.dev(), inode: metadata.ino() })
    }
}

impl Project for DirectoryProject {
    fn owns(&self, cwd: &str) -> bool {
        Self::open(Path::new(cwd)).is_ok_and(|other| (other.device, other.inode) == (self.device, self.inode))
    }

    fn name(&self) -> &str {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_recognised_by_what_it_is() {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs, link) =
            (home.path().join("ours"), home.path().join("theirs"), home.path().join("link"));
        std::fs::create_dir(&ours).unwrap();
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        let project = DirectoryProject::open(&ours).unwrap();
        let owns = |path: &Path| project.owns(path.to_str().unwrap());
        assert!(owns(&ours) && owns(&theirs.join("../ours")));
        assert!(!owns(&theirs) && !owns(&link) && !owns(&home.path().join("gone")));

        // Another directory in its place is another project.
        std::fs::remove_dir(&ours).unwrap();
        std::os::unix::fs::symlink(&theirs, &ours).unwrap();
        assert!(!owns(&ours));
        assert!(DirectoryProject::open(&link).is_err());
    }
}
