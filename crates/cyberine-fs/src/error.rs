use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why an operation on a private directory, a file in it or a lock was refused or failed. Every
/// variant names the path it is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// The name cannot be one file in one directory.
    #[error("`{name}` cannot be a name in `{}`: {reason}", .path.display())]
    BadName {
        /// The directory the name was meant for.
        path: PathBuf,
        /// The name, with control characters escaped.
        name: String,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// A symbolic link lies where a file or directory of ours should be.
    #[error("`{}` is a symbolic link; put the real thing in its place", .path.display())]
    Symlink {
        /// Where the link lies.
        path: PathBuf,
    },
    /// Something of another type lies where a file or directory of ours should be.
    #[error("`{}` is not a {wanted}; move it away", .path.display())]
    WrongType {
        /// Where it lies.
        path: PathBuf,
        /// What was expected there: `directory` or `regular file`.
        wanted: &'static str,
    },
    /// It belongs to another user.
    #[error("`{}` belongs to user {owner}, not to user {me}; take it over or choose another place", .path.display())]
    ForeignOwner {
        /// What belongs to another user.
        path: PathBuf,
        /// The owner's numeric id.
        owner: u32,
        /// Our own effective id.
        me: u32,
    },
    /// Its group or everyone may write to it.
    #[error("`{}` can be written by other users (mode {mode:04o}); run `chmod go-w` on it", .path.display())]
    SharedWrite {
        /// What can be written by others.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file has a second name somewhere.
    #[error("`{}` has {links} names (hard links); remove the others", .path.display())]
    HardLinked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// The file is larger than the reader allows.
    #[error("`{}` is larger than {limit} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size allowed, in bytes.
        limit: usize,
    },
    /// The file system, or the user's quota on it, is full. Nothing was changed.
    #[error("no space left to write `{}`; free some and try again", .path.display())]
    Full {
        /// What was being written.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The place cannot be written to. Nothing was changed.
    #[error("`{}` cannot be written to; choose a writable place", .path.display())]
    NotWritable {
        /// What was to be written.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The bytes were written, but the system could not say that they reached the disk. The call
    /// must not be acknowledged and must not be repeated as if nothing had happened: after such an
    /// error a second sync "succeeds" without the data.
    #[error("`{}` may not have reached the disk; check the disk before going on", .path.display())]
    NotSynced {
        /// What was being synced.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file system of the lock has no locks.
    #[error("the file system of `{}` has no locks; move the home to a local disk", .path.display())]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// An inherited descriptor is not the lock it was said to be.
    #[error("the descriptor handed over is not a held lock on `{}`", .path.display())]
    NotTheLock {
        /// The lock file it should have been.
        path: PathBuf,
    },
    /// Any other answer of the system.
    #[error("could not {action} `{}`", .path.display())]
    Io {
        /// What was attempted, as a verb: `open`, `read`, `rename`.
        action: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl FsError {
    /// The path the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::BadName { path, .. }
            | Self::Symlink { path }
            | Self::WrongType { path, .. }
            | Self::ForeignOwner { path, .. }
            | Self::SharedWrite { path, .. }
            | Self::HardLinked { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Full { path, .. }
            | Self::NotWritable { path, .. }
            | Self::NotSynced { path, .. }
            | Self::NoLocks { path, .. }
            | Self::NotTheLock { path }
            | Self::Io { path, .. } => path,
        }
    }

    /// Sorts the system's answer to `action` on `path` into the variants.
    pub(crate) fn of(action: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.into(), source.into());
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => Self::Full { path, source },
            Some(Errno::ROFS) => Self::NotWritable { path, source },
            Some(Errno::ACCESS | Errno::PERM) if action != "read" => Self::NotWritable { path, source },
            Some(Errno::LOOP) => Self::Symlink { path },
            _ => Self::Io { action, path, source },
        }
    }

    /// The answer to a lock call.
    pub(crate) fn of_lock(path: PathBuf, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Self::NoLocks { path, source },
            _ => Self::Io { action: "lock", path, source },
        }
    }
}
