use std::fs::{File, TryLockError};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::dir::Identity;
use crate::{FsError, PrivateDir};

/// How long a lock that nobody holds, but that others keep asking about, is tried for before it
/// counts as taken. One look takes an instant, but a busy machine can stop the looker in it.
const PATIENCE: Duration = Duration::from_secs(2);

/// An exclusive advisory lock, held until the last descriptor of it is closed: by dropping this,
/// or by the end of the process. It belongs to the open file, not to the process, so it passes to
/// a child with the descriptor, and stays held while either side keeps it.
///
/// Removing the file of a held lock lets someone else lock a new file of that name. The holder is
/// whoever holds the file that has the name: an earlier one learns from [`LockFile::is_current`]
/// that it no longer is, and what it guards should carry a revision or an epoch besides.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    dir: PrivateDir,
    name: String,
}

impl LockFile {
    /// Where the lock file lies, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Whether the locked file still is the one of its name: `false` once it was removed or
    /// replaced, whereupon someone else may hold the lock of that name.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn is_current(&self) -> Result<bool, FsError> {
        self.dir.is_current(&self.name, &self.file)
    }

    /// Which file this is.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn identity(&self) -> Result<Identity, FsError> {
        identity_of(&self.file, &self.path())
    }

    /// Takes the descriptor out, still locked, to be handed to a child: as its standard input, say.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// A second descriptor of the same lock: the lock is free once both are closed.
    ///
    /// # Errors
    ///
    /// Fails when the process is out of descriptors.
    pub fn try_clone_file(&self) -> Result<File, FsError> {
        self.file.try_clone().map_err(|error| FsError::of("hand over", self.path(), error))
    }

    /// Frees the lock at once, also where another descriptor of it is still open: one that a child
    /// inherited in the instant before it started its program, for example.
    ///
    /// # Errors
    ///
    /// Fails when the system refuses; the lock is then freed by closing.
    pub fn release(self) -> Result<(), FsError> {
        self.file.unlock().map_err(|error| FsError::of_lock(self.path(), error))
    }

    /// Frees the lock as [`LockFile::release`] does, and keeps its file open to be locked again.
    ///
    /// # Errors
    ///
    /// As [`LockFile::release`].
    pub fn rest(self) -> Result<RestingLock, FsError> {
        let identity = self.identity()?;
        self.file.unlock().map_err(|error| FsError::of_lock(self.path(), error))?;
        Ok(RestingLock { lock: self, identity })
    }
}

/// The open file of a lock that is not held: for whoever takes the same lock again and again.
#[derive(Debug)]
pub struct RestingLock {
    lock: LockFile,
    identity: Identity,
}

impl RestingLock {
    /// Takes the lock again; `None` when someone holds it, or when the file no longer is the one
    /// of its name. [`PrivateDir::try_lock`] tells the two apart.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::try_lock`].
    pub fn try_lock(self) -> Result<Option<LockFile>, FsError> {
        match self.lock.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(FsError::of_lock(self.lock.path(), error)),
        }
        let named = self.lock.dir.status(&self.lock.name)?;
        let is_current = named.is_some_and(|named| named.identity == self.identity);
        Ok(is_current.then_some(self.lock))
    }
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl PrivateDir {
    /// Takes the exclusive lock on the file `name`, creating the file; `None` when someone holds
    /// it. Does not wait for a holder. Whoever finds that what was locked is no longer the file of that name,
    /// since it was removed in between, starts over.
    ///
    /// # Errors
    ///
    /// [`FsError::NoLocks`] on a file system without locks; otherwise as [`PrivateDir::append`].
    pub fn try_lock(&self, name: &str) -> Result<Option<LockFile>, FsError> {
        let path = self.checked(name)?;
        let until = Instant::now() + PATIENCE;
        let mut attempt = 0;
        while attempt == 0 || Instant::now() < until {
            attempt += 1;
            let (file, _) = self.open_to_write(name, &path, OFlags::RDWR)?;
            match attempt_lock(&file).map_err(|error| FsError::of_lock(path.clone(), error))? {
                Attempt::Held => return Ok(None),
                Attempt::Probed => std::thread::sleep(pause(attempt)),
                Attempt::Taken if self.is_current(name, &file)? => return Ok(Some(self.held(name, file))),
                Attempt::Taken => {}
            }
        }
        Ok(None)
    }

    /// Whether someone holds the lock on the file `name`.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::try_lock`].
    pub fn is_locked(&self, name: &str) -> Result<bool, FsError> {
        let path = self.checked(name)?;
        let Some(file) = self.open_to_read(name)? else { return Ok(false) };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(FsError::of_lock(path, error)),
        }
    }

    /// Takes over the lock on the file `name` from whoever started this process: `file` is the
    /// descriptor it handed down.
    ///
    /// # Errors
    ///
    /// [`FsError::NotTheLock`] when the descriptor is another file than the one of that name, or
    /// someone else holds the lock.
    pub fn take_over_lock(&self, name: &str, file: impl Into<OwnedFd>) -> Result<LockFile, FsError> {
        let path = self.checked(name)?;
        let file = File::from(file.into());
        if !self.is_current(name, &file)? {
            return Err(FsError::NotTheLock { path });
        }
        // Locking what this very open file holds already succeeds, and proves that it does.
        match file.try_lock() {
            Ok(()) => Ok(self.held(name, file)),
            Err(TryLockError::WouldBlock) => Err(FsError::NotTheLock { path }),
            Err(TryLockError::Error(error)) => Err(FsError::of_lock(path, error)),
        }
    }

    fn held(&self, name: &str, file: File) -> LockFile {
        LockFile { file, dir: self.clone(), name: name.to_owned() }
    }

    /// Whether `file` is the file that has the name `name` now.
    fn is_current(&self, name: &str, file: &File) -> Result<bool, FsError> {
        let path = self.checked(name)?;
        let Some(named) = self.open_to_read(name)? else { return Ok(false) };
        Ok(identity_of(&named, &path)? == identity_of(file, &path)?)
    }
}

enum Attempt {
    /// We hold it.
    Taken,
    /// Someone holds it exclusively.
    Held,
    /// Someone only asks whether it is held.
    Probed,
}

/// Tries for the lock once. [`PrivateDir::is_locked`] asks by a shared lock of an instant, which
/// must not pass for a holder: where a shared lock can be had beside it, nobody holds the lock.
fn attempt_lock(file: &File) -> std::io::Result<Attempt> {
    match file.try_lock() {
        Ok(()) => return Ok(Attempt::Taken),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| Attempt::Probed),
        Err(TryLockError::WouldBlock) => Ok(Attempt::Held),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A pause that differs between processes, so that two of them do not keep meeting.
fn pause(attempt: u32) -> Duration {
    let spread = u64::from(std::process::id().wrapping_mul(2_654_435_761).wrapping_add(attempt) % 97);
    Duration::from_micros(5 + spread * u64::from(attempt.min(10)))
}

fn identity_of(file: &File, path: &Path) -> Result<Identity, FsError> {
    file.metadata().map(|metadata| Identity::of(&metadata)).map_err(|error| FsError::of("read", path, error))
}
