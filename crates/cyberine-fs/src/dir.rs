use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::FsError;

mod dated;
mod files;
mod open;

pub use dated::Dated;
pub use files::{Durability, Listing};
pub use open::{FileStatus, OpenFile};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which directory or file something is, whatever its path says: the device and the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The device of the file system.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// A handle on one directory. Every operation works relative to the directory that was opened,
/// so replacing its path (by a symbolic link, say) cannot lead writes elsewhere.
///
/// Calls block for as long as the disk takes; in async code run them in a blocking task. Clones
/// share the handle.
#[derive(Clone)]
pub struct PrivateDir {
    handle: Arc<File>,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens a directory of our own, such as a home, and creates it and its missing parents when
    /// it is not there. It has mode 0700 afterwards, whatever the umask; one of our own that others
    /// could only read is closed to them.
    ///
    /// # Errors
    ///
    /// Refuses a symbolic link as the last component, a directory of another user, and one that
    /// its group or others may write to.
    pub fn open_or_create(path: &Path) -> Result<Self, FsError> {
        let path = absolute(path)?;
        create(&path)?;
        let dir = Self::open(path)?;
        dir.check_private()?;
        if dir.metadata()?.mode() & 0o777 != 0o700 {
            dir.close_to_others()?;
        }
        Ok(dir)
    }

    /// Opens a directory of the user's, such as a project. It may belong to anyone and may be a
    /// symbolic link: what counts from here on is the directory that was opened.
    ///
    /// # Errors
    ///
    /// Fails when there is no directory at `path` or it may not be read.
    pub fn open_existing(path: &Path) -> Result<Self, FsError> {
        let path = absolute(path)?;
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => Ok(Self { handle: Arc::new(File::from(fd)), path }),
            Err(Errno::NOTDIR) => Err(FsError::WrongType { path, wanted: "directory" }),
            Err(errno) => Err(FsError::of("open", path, errno)),
        }
    }

    /// Opens the directory `name` inside this one, creating it with mode 0700 when it is not there.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::open_or_create`], except that an existing directory keeps its mode.
    pub fn subdir(&self, name: &str) -> Result<Self, FsError> {
        let path = self.checked(name)?;
        let born = match rustix::fs::mkdirat(self.handle(), name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(FsError::of("create", path, errno)),
        };
        if born {
            rustix::fs::chmodat(self.handle(), name, Mode::RWXU, AtFlags::empty())
                .map_err(|errno| FsError::of("set the mode of", path, errno))?;
            self.sync()?;
        }
        let dir = self.enter(name)?;
        dir.check_private().map(|()| dir)
    }

    /// Opens the directory `name` inside this one; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::subdir`].
    pub fn existing_subdir(&self, name: &str) -> Result<Option<Self>, FsError> {
        self.checked(name)?;
        match self.enter(name) {
            Ok(dir) => dir.check_private().map(|()| Some(dir)),
            Err(FsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Which directory this is: what decides whether two paths are one project.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn identity(&self) -> Result<Identity, FsError> {
        self.metadata().map(|metadata| Identity::of(&metadata))
    }

    /// The absolute path it was opened by, for messages and for libraries that insist on paths.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self) -> &File {
        &self.handle
    }

    /// The path of `name` in here, once the name is known to be one component.
    pub(crate) fn checked(&self, name: &str) -> Result<PathBuf, FsError> {
        match bad_name(name) {
            None => Ok(self.path.join(name)),
            Some(reason) => Err(FsError::BadName {
                path: self.path.clone(),
                name: name.chars().take(80).flat_map(char::escape_debug).collect(),
                reason,
            }),
        }
    }

    /// Makes the names in this directory survive a power cut.
    fn sync(&self) -> Result<(), FsError> {
        self.handle.sync_all().map_err(|source| FsError::NotSynced { path: self.path.clone(), source })
    }

    fn open(path: PathBuf) -> Result<Self, FsError> {
        match rustix::fs::open(&path, DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Self { handle: Arc::new(File::from(fd)), path }),
            Err(errno) => Err(not_entered(rustix::fs::CWD, &path, path.clone(), errno)),
        }
    }

    fn enter(&self, name: &str) -> Result<Self, FsError> {
        let path = self.path.join(name);
        match rustix::fs::openat(self.handle(), name, DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Self { handle: Arc::new(File::from(fd)), path }),
            Err(errno) => Err(not_entered(self.handle(), Path::new(name), path, errno)),
        }
    }

    fn metadata(&self) -> Result<Metadata, FsError> {
        self.handle.metadata().map_err(|error| FsError::of("read", &self.path, error))
    }

    fn check_private(&self) -> Result<(), FsError> {
        let metadata = self.metadata()?;
        check_owner(&self.path, &metadata)?;
        check_unshared(&self.path, &metadata)
    }

    fn close_to_others(&self) -> Result<(), FsError> {
        rustix::fs::fchmod(self.handle(), Mode::RWXU)
            .map_err(|errno| FsError::of("set the mode of", &self.path, errno))
    }
}

impl fmt::Debug for PrivateDir {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PrivateDir").field(&self.path).finish()
    }
}

pub(crate) fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), FsError> {
    let (owner, me) = (metadata.uid(), geteuid().as_raw());
    if owner == me {
        return Ok(());
    }
    Err(FsError::ForeignOwner { path: path.to_owned(), owner, me })
}

pub(crate) fn check_unshared(path: &Path, metadata: &Metadata) -> Result<(), FsError> {
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    Err(FsError::SharedWrite { path: path.to_owned(), mode })
}

/// The rule a name breaks, if any. A name is one path component of at most 255 bytes, the longest
/// that common file systems take.
fn bad_name(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("it names a directory"),
        _ if name.contains('/') => Some("it contains a slash"),
        _ if name.contains('\0') => Some("it contains a NUL"),
        _ if name.len() > 255 => Some("it is longer than 255 bytes"),
        _ => None,
    }
}

/// Absolute and without a trailing slash: `link/` would follow the link.
fn absolute(path: &Path) -> Result<PathBuf, FsError> {
    std::path::absolute(path)
        .map(|path| path.components().collect())
        .map_err(|error| FsError::of("find", path, error))
}

/// Creates the directory at `path`, and its missing parents, with mode 0700.
fn create(path: &Path) -> Result<(), FsError> {
    let failed = |error| FsError::of("create", path, error);
    let is_new = match make(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path.parent().ok_or_else(|| failed(error))?)?;
            make(path).map_err(failed)?
        }
        made => made.map_err(failed)?,
    };
    if is_new { sync_parent(path) } else { Ok(()) }
}

/// Makes one directory; says whether it is new.
fn make(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        // A umask can have taken even our own rights away, without which it could not be entered.
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn sync_parent(path: &Path) -> Result<(), FsError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    match File::open(parent) {
        Ok(handle) => {
            handle.sync_all().map_err(|source| FsError::NotSynced { path: parent.to_owned(), source })
        }
        // A directory one may create in but not read cannot be synced by its user either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(FsError::of("open", parent, error)),
    }
}

/// Why a directory could not be entered. With `O_DIRECTORY | O_NOFOLLOW` Linux answers `ENOTDIR`
/// for a symbolic link, other systems `ELOOP` or `EMLINK`, so the link is looked for.
fn not_entered(at: impl std::os::fd::AsFd, name: &Path, path: PathBuf, errno: Errno) -> FsError {
    if !matches!(errno, Errno::NOTDIR | Errno::LOOP | Errno::MLINK) {
        return FsError::of("open", path, errno);
    }
    let is_link = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    if is_link { FsError::Symlink { path } } else { FsError::WrongType { path, wanted: "directory" } }
}
