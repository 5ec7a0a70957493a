//! The presence directory. It is found anew each time: it may have been removed in between.

use std::path::PathBuf;

use cyberine_fs::{FsError, PrivateDir};

const BUS: &str = "bus";
const PRESENCE: &str = "presence";

#[derive(Debug)]
pub(super) struct Place {
    home: PathBuf,
}

impl Place {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// The directory, made where it is not there.
    pub(super) fn create(&self) -> Result<PrivateDir, FsError> {
        PrivateDir::open_or_create(&self.home)?.subdir(BUS)?.subdir(PRESENCE)
    }

    /// The directory; `None` where it is not there.
    pub(super) fn existing(&self) -> Result<Option<PrivateDir>, FsError> {
        let home = match PrivateDir::open_existing(&self.home) {
            Ok(home) => home,
            Err(FsError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(bus) = home.existing_subdir(BUS)? else { return Ok(None) };
        bus.existing_subdir(PRESENCE)
    }

    /// The directory for a beat: made again in a home that is there, while a home that was
    /// removed stays removed.
    pub(super) fn for_beat(&self) -> Result<PrivateDir, FsError> {
        PrivateDir::open_existing(&self.home)?.subdir(BUS)?.subdir(PRESENCE)
    }
}
