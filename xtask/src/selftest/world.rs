//! What every check stands on: the binaries, and places of its own.

use std::path::PathBuf;
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
        wire::configure(&self.home, config)
    }

    /// The server's command in this place.
    pub(crate) fn command(&self) -> Command {
        self.program("cyberine-mcp")
    }

    /// The command of a program of ours in this place.
    pub(crate) fn program(&self, name: &str) -> Command {
        wire::command(&self.bins.join(name), &self.home, &self.project)
    }

    /// Starts the server in this place.
    pub(crate) fn server(&self, kind: Stdio2) -> Result<Server> {
        Server::start(self.command(), kind)
    }
}

/// The live processes that carry `CYBERINE_RUN=<run>` in their environment.
pub(crate) fn marked(run: &str) -> Vec<u32> {
    proc::carrying(format!("CYBERINE_RUN={run}").as_bytes())
}
