//! A directory for the temporary files of one turn: what a program leaves there, such as a report
//! of a crash with the prompt in it, is nobody else's to read and does not outlive the turn.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use cyberine_process::ChildEnvironment;
use tempfile::TempDir;

/// Where programs look for a place for temporary files.
const VARIABLE: &str = "TMPDIR";

pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// A directory of mode 0700 that holds `files`, each of mode 0600.
    pub(crate) fn create(environment: &ChildEnvironment, files: Vec<(&str, String)>) -> io::Result<Self> {
        let parent = environment.get(VARIABLE).map_or_else(|| Path::new("/tmp"), Path::new);
        let private = Permissions::from_mode(0o700);
        let scratch =
            tempfile::Builder::new().prefix("cyberine-turn-").permissions(private).tempdir_in(parent)?;
        for (name, text) in files {
            let path = scratch.path().join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
        }
        Ok(Self(scratch))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// `environment` with this directory as the place for temporary files.
    pub(crate) fn named_in(&self, environment: ChildEnvironment) -> ChildEnvironment {
        environment.set(VARIABLE, self.0.path().as_os_str())
    }
}
