//! Files of a private directory that stay open: logs that are appended to and read at offsets.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::files::{SAFE, check_file, take_back};
use super::{Identity, PrivateDir};
use crate::FsError;

/// A file of a [`PrivateDir`] that was checked when it was opened: regular, ours, with one name.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    path: PathBuf,
}

/// What a name in a directory stands for at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// Which file it is.
    pub identity: Identity,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it has more names than one.
    pub is_linked: bool,
    /// The user it belongs to.
    pub owner: u32,
}

impl OpenFile {
    /// The path it was opened by, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it is, and how long.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn status(&self) -> Result<FileStatus, FsError> {
        let metadata = self.file.metadata().map_err(|error| FsError::of("read", &self.path, error))?;
        let (identity, length) = (Identity::of(&metadata), metadata.len());
        Ok(FileStatus { identity, length, is_linked: metadata.nlink() > 1, owner: metadata.uid() })
    }

    /// Reads up to `max_bytes` bytes from `offset` on and puts them behind what `into` holds;
    /// says how many. Fewer only at the end of the file.
    ///
    /// # Errors
    ///
    /// What reading meets; `into` then is as it was.
    pub fn read_at(&self, offset: u64, max_bytes: usize, into: &mut Vec<u8>) -> Result<usize, FsError> {
        let before = into.len();
        into.resize(before + max_bytes, 0);
        let mut filled = 0;
        while filled < max_bytes {
            match self.file.read_at(&mut into[before + filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    into.truncate(before);
                    return Err(FsError::of("read", &self.path, error));
                }
            }
        }
        into.truncate(before + filled);
        Ok(filled)
    }

    /// Appends `bytes` to the file, whose length is `length`, in one write. Where the system takes
    /// only a part of them and then fails, that part is taken back. Takes no lock and does not
    /// sync; only for files from [`PrivateDir::open_log`].
    ///
    /// # Errors
    ///
    /// What writing meets.
    pub fn append(&self, length: u64, bytes: &[u8]) -> Result<(), FsError> {
        (&self.file).write_all(bytes).map_err(|error| {
            take_back(&self.file, length, bytes);
            FsError::of("append to", &self.path, error)
        })
    }

    /// Takes the exclusive advisory lock on the file itself; `false` where someone holds it. It is
    /// held until [`OpenFile::unlock`] or the end of this.
    ///
    /// # Errors
    ///
    /// [`FsError::NoLocks`] on a file system without locks.
    pub fn try_lock(&self) -> Result<bool, FsError> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(FsError::of_lock(self.path.clone(), error)),
        }
    }

    /// Frees the lock on the file.
    ///
    /// # Errors
    ///
    /// Fails when the system refuses; the lock is then freed by closing.
    pub fn unlock(&self) -> Result<(), FsError> {
        self.file.unlock().map_err(|error| FsError::of_lock(self.path.clone(), error))
    }

    /// Waits until what was written has reached the disk.
    ///
    /// # Errors
    ///
    /// [`FsError::NotSynced`]: drop the handle then and never call this again on it.
    pub fn sync(&self) -> Result<(), FsError> {
        self.file.sync_data().map_err(|source| FsError::NotSynced { path: self.path.clone(), source })
    }
}

impl PrivateDir {
    /// Opens the file `name` for reading at offsets; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// Refuses anything but a regular file of ours with one name.
    pub fn open_file(&self, name: &str) -> Result<Option<OpenFile>, FsError> {
        let file = self.open_to_read(name)?;
        Ok(file.map(|file| OpenFile { file, path: self.path().join(name) }))
    }

    /// Opens the file `name` for reading and appending, creating it with mode 0600; says whether
    /// it is new. A new name is not synced: see [`PrivateDir::sync_names`].
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::append`].
    pub fn open_log(&self, name: &str) -> Result<(OpenFile, bool), FsError> {
        let path = self.checked(name)?;
        let (file, born) = self.open_to_write(name, &path, OFlags::RDWR | OFlags::APPEND)?;
        Ok((OpenFile { file, path }, born))
    }

    /// Writes `bytes` over those at `offset` of the file `name`, which are the same, and syncs
    /// it; says whether the file was there. After a sync that failed the system takes pages for
    /// clean that never reached the disk; this makes them dirty again, so that the answer can be
    /// believed.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::append`].
    pub fn restate(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<bool, FsError> {
        let path = self.checked(name)?;
        let file = match rustix::fs::openat(self.handle(), name, SAFE | OFlags::WRONLY, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(FsError::of("open", path, errno)),
        };
        check_file(&path, &file)?;
        file.write_all_at(bytes, offset).map_err(|error| FsError::of("write", &path, error))?;
        file.sync_data().map_err(|source| FsError::NotSynced { path, source })?;
        Ok(true)
    }

    /// What the name `name` stands for; `None` when there is no regular file of that name.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn status(&self, name: &str) -> Result<Option<FileStatus>, FsError> {
        let path = self.checked(name)?;
        match rustix::fs::statat(self.handle(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let identity = Identity { device: stat.st_dev, inode: stat.st_ino };
                let length = u64::try_from(stat.st_size).unwrap_or(0);
                let is_linked = stat.st_nlink > 1;
                Ok(Some(FileStatus { identity, length, is_linked, owner: stat.st_uid }))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::of("read", path, errno)),
        }
    }

    /// Whether the directory still is the one its path names: `false` once it was removed, moved
    /// away or replaced.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn is_in_place(&self) -> Result<bool, FsError> {
        match std::fs::symlink_metadata(self.path()) {
            Ok(metadata) => Ok(Identity::of(&metadata) == self.identity()?),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(false)
            }
            Err(error) => Err(FsError::of("read", self.path(), error)),
        }
    }

    /// Makes the names in the directory survive a power cut.
    ///
    /// # Errors
    ///
    /// [`FsError::NotSynced`].
    pub fn sync_names(&self) -> Result<(), FsError> {
        self.sync()
    }
}
