//! What every check stands on: the binaries, and places of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::proc::{self, Scratch};
use crate::wire::{self, Server, Stdio2};

/// The binaries under test.
pub(crate) struct World {
    pub(crate) bins: PathBuf,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { bins: proc::build_binaries()? })
    }

    /// A fresh home and project.
    pub(crate) fn place(&self) -> Result<Place> {
        let scratch = Scratch::new("selftest")?;
        let (home, project) = (scratch.dir("home")?, scratch.dir("project")?);
        Ok(Place { _scratch: scratch, home, project, bins: self.bins.clone() })
    }
}

/// A home and a project that nobody else uses.
pub(crate) struct Place {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    bins: PathBuf,
    _scratch: Scratch,
}

impl Place {
    /// Writes the home's configuration.
    pub(crate) fn configure(&self, config: &str) -> Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = self.home.join("config.toml");
        let mut file =
            std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        std::io::Write::write_all(&mut file, config.as_bytes())?;
        Ok(())
    }

    /// The server's command in this place.
    pub(crate) fn command(&self) -> Command {
        wire::server_command(&self.bins, &self.home, &self.project)
    }

    /// Starts the server in this place.
    pub(crate) fn server(&self, kind: Stdio2) -> Result<Server> {
        Server::start(self.command(), kind)
    }
}

/// Whether any live process carries `CYBERINE_RUN=<run>` in its environment, and which.
pub(crate) fn marked(run: &str) -> Vec<u32> {
    let mark = format!("CYBERINE_RUN={run}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| carries(*pid, mark.as_bytes()))
        .collect()
}

fn carries(pid: u32, mark: &[u8]) -> bool {
    let environment =
        std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}
