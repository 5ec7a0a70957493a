//! Files with the time of their last writing: for readers who judge how fresh a file is.

use std::time::SystemTime;

use rustix::io::Errno;

use super::{Identity, PrivateDir};
use crate::FsError;

/// What a file held, and when that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Which file had the name.
    pub identity: Identity,
    /// When it was last written, by the file system's clock.
    pub modified: SystemTime,
}

impl PrivateDir {
    /// Reads as [`PrivateDir::read`] does, and tells when the file was written: of the very file
    /// that was read.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::read`].
    pub fn read_dated(&self, name: &str, max_bytes: usize) -> Result<Option<Dated>, FsError> {
        let Some((file, metadata)) = self.open_and_check(name)? else { return Ok(None) };
        let modified =
            metadata.modified().map_err(|error| FsError::of("read", self.path().join(name), error))?;
        let bytes = self.read_whole(name, &file, &metadata, max_bytes)?;
        Ok(Some(Dated { bytes, identity: Identity::of(&metadata), modified }))
    }

    /// Sets the time of the last writing of the file `name`, if it still is the file `identity`;
    /// says whether it was. A file that replaced it is left alone.
    ///
    /// # Errors
    ///
    /// As [`PrivateDir::read`], and where the time may not be set.
    pub fn set_modified(&self, name: &str, identity: Identity, at: SystemTime) -> Result<bool, FsError> {
        let Some(file) = self.open_to_read(name)? else { return Ok(false) };
        let failed = |error| FsError::of("set the time of", self.path().join(name), error);
        if Identity::of(&file.metadata().map_err(failed)?) != identity {
            return Ok(false);
        }
        file.set_modified(at).map_err(failed).map(|()| true)
    }

    /// What time it is for the file system: the time of a file written just now.
    ///
    /// # Errors
    ///
    /// Fails when the directory may not be changed.
    pub fn file_system_time(&self) -> Result<SystemTime, FsError> {
        let probe = self.write_probe()?;
        let now = self.written_at(&probe);
        self.remove(&probe)?;
        now.ok_or_else(|| FsError::of("read", self.path().join(probe), Errno::NOENT))
    }
}
