//! Which runs are this server's own.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cyberine_run_store::ProjectId;

/// The project this server works for. A run that was admitted for the same one is its own.
pub trait Project: Send + Sync {
    /// What the project is, also after a restart.
    fn id(&self) -> ProjectId;
}

/// A project that is a directory. It is recognised by what it is (device and inode), never by its
/// path: a path can be spelled in many ways and can come to name another directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryProject(ProjectId);

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
        Ok(Self(ProjectId { device: metadata.dev(), inode: metadata.ino() }))
    }
}

impl Project for DirectoryProject {
    fn id(&self) -> ProjectId {
        self.0
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
        let id = |path: &Path| DirectoryProject::open(path).unwrap().id();
        let project = id(&ours);
        assert_eq!(id(&theirs.join("../ours")), project);
        assert_ne!(id(&theirs), project);
        assert!(DirectoryProject::open(&link).is_err());
        assert!(DirectoryProject::open(&home.path().join("gone")).is_err());
    }
}
