//! Files of a private directory: read, replaced whole, appended to.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{PrivateDir, check_owner, check_unshared};
use crate::FsError;

/// How files of ours are opened: never through a link, never waiting for the other end of a FIFO,
/// never becoming a terminal of ours, never inherited.
pub(super) const SAFE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
const TEMP_PREFIX: &str = ".tmp-";

/// What a write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The death of the process, not a power cut.
    Fast,
    /// A power cut: the file is synced, and its directory where a name is new or was replaced.
    Durable,
}

/// The names in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Names in no particular order, without temporary files and without names that are not UTF-8.
    pub names: Vec<String>,
    /// Whether there were more names than the limit.
    pub truncated: bool,
}

impl PrivateDir {
    /// Replaces the file `name` whole, or creates it, with mode 0600. A reader sees the old bytes
    /// or the new ones and nothing between, also after a crash.
    ///
    /// # Errors
    ///
    /// After [`FsError::NotSynced`] either content may be there; after any other error the old one is.
    pub fn replace(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<(), FsError> {
        let path = self.checked(name)?;
        let temp = temp_name();
        let written = self.write_temp(&temp, &path, bytes, durability).and_then(|()| {
            rustix::fs::renameat(self.handle(), temp.as_str(), self.handle(), name)
                .map_err(|errno| FsError::of("replace", &path, errno))
        });
        if written.is_err() {
            // The error that matters is the first; a temporary file left behind is swept later.
            let _ = rustix::fs::unlinkat(self.handle(), temp.as_str(), AtFlags::empty());
            return written;
        }
        self.settle(durability)
    }

    /// Reads the file `name` whole; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// Refuses anything but a regular file of ours with one name and at most `max_bytes` bytes.
    pub fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, FsError> {
        let Some((file, metadata)) = self.open_and_check(name)? else { return Ok(None) };
        self.read_whole(name, &file, &metadata, max_bytes).map(Some)
    }

    /// Reads as [`PrivateDir::read`] does and refuses, too, a file that other users may write:
    /// for what is obeyed, such as configuration.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::read`], and [`FsError::SharedWrite`].
    pub fn read_unshared(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, FsError> {
        let Some((file, metadata)) = self.open_and_check(name)? else { return Ok(None) };
        check_unshared(&self.path().join(name), &metadata)?;
        self.read_whole(name, &file, &metadata, max_bytes).map(Some)
    }

    /// Reads at most `max_bytes` bytes of the file `name` from `offset` on, for following a file
    /// that grows; `None` when it is not there, empty at or beyond its end.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::read`], the size aside.
    pub fn read_from(&self, name: &str, offset: u64, max_bytes: usize) -> Result<Option<Vec<u8>>, FsError> {
        let Some(file) = self.open_to_read(name)? else { return Ok(None) };
        let failed = |error| FsError::of("read", self.path().join(name), error);
        let size = file.metadata().map_err(failed)?.len();
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(max_bytes)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        bytes.truncate(filled);
        Ok(Some(bytes))
    }

    /// Appends `bytes` to the file `name`, creating it with mode 0600. The bytes go down in one
    /// write; where the system takes only a part of them and then fails, that part is taken back.
    ///
    /// Takes no lock: two writers of one file need one from [`PrivateDir::try_lock`], held over
    /// the call. A `kill -9` can cut the last record, so records carry their own checksum.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::read`], the size aside, and what writing meets.
    pub fn append(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<(), FsError> {
        let path = self.checked(name)?;
        let (mut file, born) = self.open_to_write(name, &path, OFlags::WRONLY | OFlags::APPEND)?;
        let start = file.metadata().map_err(|error| FsError::of("append to", &path, error))?.len();
        if let Err(error) = file.write_all(bytes) {
            take_back(&file, start, bytes);
            return Err(FsError::of("append to", path, error));
        }
        if durability == Durability::Durable {
            file.sync_data().map_err(|source| FsError::NotSynced { path, source })?;
        }
        if born { self.settle(durability) } else { Ok(()) }
    }

    /// Writes one byte at the start of the file `name`, creating it with mode 0600: the cheapest
    /// change that wakes everyone who watches the directory.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::append`].
    pub fn touch(&self, name: &str) -> Result<(), FsError> {
        let path = self.checked(name)?;
        let (file, _) = self.open_to_write(name, &path, OFlags::WRONLY)?;
        file.write_all_at(b".", 0).map_err(|error| FsError::of("write", path, error))
    }

    /// Removes the file `name`; says whether it was there.
    ///
    /// # Errors
    ///
    /// Fails when the directory may not be changed.
    pub fn remove(&self, name: &str) -> Result<bool, FsError> {
        let path = self.checked(name)?;
        match rustix::fs::unlinkat(self.handle(), name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(FsError::of("remove", path, errno)),
        }
    }

    /// Whether there is a regular file `name`.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot say.
    pub fn exists(&self, name: &str) -> Result<bool, FsError> {
        let path = self.checked(name)?;
        match rustix::fs::statat(self.handle(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(FsError::of("read", path, errno)),
        }
    }

    /// Lists at most `limit` names of files and directories.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be read.
    pub fn list(&self, limit: usize) -> Result<Listing, FsError> {
        let failed = |errno| FsError::of("read", self.path(), errno);
        let mut listing = Listing { names: Vec::new(), truncated: false };
        for entry in rustix::fs::Dir::read_from(self.handle()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || name.starts_with(TEMP_PREFIX) {
                continue;
            }
            if listing.names.len() == limit {
                listing.truncated = true;
                break;
            }
            listing.names.push(name.to_owned());
        }
        Ok(listing)
    }

    /// Removes temporary files that a killed writer left behind and that were last written `age`
    /// ago or earlier, by the file system's own clock; says how many. An age of minutes leaves
    /// those of living writers alone.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be read or changed.
    pub fn sweep_temporary(&self, age: Duration) -> Result<usize, FsError> {
        let failed = |errno| FsError::of("read", self.path(), errno);
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Ok(name) = entry.file_name().to_str()
                && name.starts_with(TEMP_PREFIX)
            {
                found.push(name.to_owned());
            }
        }
        if found.is_empty() {
            return Ok(0);
        }
        let now = self.file_system_time()?;
        let is_old = |name: &str| {
            let written = self.written_at(name);
            written.is_some_and(|at| now.duration_since(at).is_ok_and(|since| since >= age))
        };
        let mut removed = 0;
        for name in found {
            removed += usize::from(is_old(&name) && self.remove(&name)?);
        }
        Ok(removed)
    }

    /// Writes a temporary file of no meaning; its name.
    pub(super) fn write_probe(&self) -> Result<String, FsError> {
        let probe = temp_name();
        self.write_temp(&probe, self.path(), b".", Durability::Fast).map(|()| probe)
    }

    pub(super) fn written_at(&self, name: &str) -> Option<SystemTime> {
        self.open_to_read(name).ok()??.metadata().ok()?.modified().ok()
    }

    /// Makes a new or replaced name survive a power cut where that was asked for.
    fn settle(&self, durability: Durability) -> Result<(), FsError> {
        match durability {
            Durability::Fast => Ok(()),
            Durability::Durable => self.sync(),
        }
    }

    fn write_temp(
        &self,
        temp: &str,
        path: &Path,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), FsError> {
        let failed = |error: io::Error| FsError::of("write", path, error);
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(self.handle(), temp, flags, OWNER_ONLY)
            .map_err(|errno| failed(errno.into()))?;
        rustix::fs::fchmod(&fd, OWNER_ONLY).map_err(|errno| failed(errno.into()))?;
        let mut file = File::from(fd);
        file.write_all(bytes).map_err(failed)?;
        if durability == Durability::Durable {
            file.sync_data().map_err(|source| FsError::NotSynced { path: path.to_owned(), source })?;
        }
        Ok(())
    }

    pub(crate) fn open_to_read(&self, name: &str) -> Result<Option<File>, FsError> {
        Ok(self.open_and_check(name)?.map(|(file, _)| file))
    }

    pub(super) fn open_and_check(&self, name: &str) -> Result<Option<(File, Metadata)>, FsError> {
        let path = self.checked(name)?;
        match rustix::fs::openat(self.handle(), name, SAFE | OFlags::RDONLY, Mode::empty()) {
            Ok(fd) => {
                let file = File::from(fd);
                let metadata = check_file(&path, &file)?;
                Ok(Some((file, metadata)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(not_opened(path.as_path(), errno)),
        }
    }

    /// Opens a file for writing, and says whether it is new. Whether a name is new decides whether
    /// the directory needs a sync.
    pub(crate) fn open_to_write(
        &self,
        name: &str,
        path: &Path,
        flags: OFlags,
    ) -> Result<(File, bool), FsError> {
        // Another process may create or remove the name between the two attempts: try again, for as
        // long as it takes a crowd that does nothing else, rather than trust either answer.
        for _ in 0..1_000 {
            match rustix::fs::openat(self.handle(), name, SAFE | flags, Mode::empty()) {
                Ok(fd) => {
                    let file = File::from(fd);
                    check_file(path, &file)?;
                    return Ok((file, false));
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(not_opened(path, errno)),
            }
            let create = SAFE | flags | OFlags::CREATE | OFlags::EXCL;
            match rustix::fs::openat(self.handle(), name, create, OWNER_ONLY) {
                Ok(fd) => {
                    rustix::fs::fchmod(&fd, OWNER_ONLY)
                        .map_err(|errno| FsError::of("create", path, errno))?;
                    return Ok((File::from(fd), true));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(FsError::of("create", path, errno)),
            }
        }
        Err(FsError::of("create", path, Errno::EXIST))
    }

    pub(super) fn read_whole(
        &self,
        name: &str,
        file: &File,
        metadata: &Metadata,
        max_bytes: usize,
    ) -> Result<Vec<u8>, FsError> {
        // Room for all of it and a little more: then one read takes it, and one finds its end.
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(max_bytes);
        let mut bytes = Vec::with_capacity(size.saturating_add(64));
        let limit = (max_bytes as u64).saturating_add(1);
        let path = || self.path().join(name);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| FsError::of("read", path(), error))?;
        if bytes.len() > max_bytes {
            return Err(FsError::TooLarge { path: path(), limit: max_bytes });
        }
        Ok(bytes)
    }
}

/// Refuses what is not a regular file of ours with one name. A file that was replaced a moment ago
/// has no name left and is fine: its bytes are whole.
pub(super) fn check_file(path: &Path, file: &File) -> Result<Metadata, FsError> {
    let metadata = file.metadata().map_err(|error| FsError::of("read", path, error))?;
    if !metadata.is_file() {
        return Err(FsError::WrongType { path: path.to_owned(), wanted: "regular file" });
    }
    check_owner(path, &metadata)?;
    if metadata.nlink() > 1 {
        return Err(FsError::HardLinked { path: path.to_owned(), links: metadata.nlink() });
    }
    Ok(metadata)
}

/// Why a file could not be opened. A FIFO without a reader answers `ENXIO` to a writer, and so
/// does a socket; a directory answers `EISDIR`.
fn not_opened(path: &Path, errno: Errno) -> FsError {
    match errno {
        Errno::NXIO | Errno::ISDIR | Errno::OPNOTSUPP => {
            FsError::WrongType { path: path.to_owned(), wanted: "regular file" }
        }
        Errno::MLINK => FsError::Symlink { path: path.to_owned() },
        _ => FsError::of("open", path, errno),
    }
}

/// Cuts off the part of `bytes` that an append left behind, but only where it is still the end of
/// the file: what someone wrote after it is not ours to cut.
pub(super) fn take_back(file: &File, start: u64, bytes: &[u8]) {
    let Ok(metadata) = file.metadata() else { return };
    let added = metadata.len().saturating_sub(start);
    if added > 0 && added < bytes.len() as u64 {
        // A reader finds a torn record by its checksum where even this fails.
        let _ = file.set_len(start);
    }
}

/// A name no other writer of this machine uses: the pid and a count.
fn temp_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{TEMP_PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
