//! What the suite is run against, started when it is first needed.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::legs::Subject;
use crate::proc::{self, Scratch};
use crate::served::{FIXED, Served};
use crate::{bridge, wire};

const BUILD: Duration = Duration::from_secs(1500);

pub(super) struct Subjects {
    started: Vec<(Subject, Started)>,
}

/// Where a subject is, and what ends with it.
struct Started {
    address: String,
    _server: Option<Served>,
    _home: Option<Scratch>,
}

impl Subjects {
    /// `url`: a server that runs already, in the place of the fixture over HTTP.
    pub(super) fn new(url: Option<&str>) -> Self {
        Self { started: url.map(|url| (Subject::Http, at(url.to_owned()))).into_iter().collect() }
    }

    /// The URL of a server, or the command line of a client.
    pub(super) fn get(&mut self, subject: Subject) -> Result<String> {
        if let Some((_, started)) = self.started.iter().find(|(known, _)| *known == subject) {
            return Ok(started.address.clone());
        }
        let started = match subject {
            Subject::Http => {
                let mut command = Command::new(example("cyberine-http", "conformance_server")?);
                command.args(["--port", "0"]);
                served(command, None)?
            }
            Subject::Stdio => {
                let program = example("cyberine-http", "conformance_server")?;
                at(bridge::start(vec![program, "--stdio".to_owned()])?)
            }
            Subject::Client => at(example("cyberine-client", "conformance_client")?),
            Subject::Real => real()?,
        };
        let address = started.address.clone();
        self.started.push((subject, started));
        Ok(address)
    }
}

fn at(address: String) -> Started {
    Started { address, _server: None, _home: None }
}

fn served(command: Command, home: Option<Scratch>) -> Result<Started> {
    let server = Served::start(command)?;
    Ok(Started { address: server.url.clone(), _server: Some(server), _home: home })
}

/// The product's own server, with a home of its own.
fn real() -> Result<Started> {
    let bins = proc::build_binaries()?;
    let scratch = Scratch::new("conformance")?;
    let (home, project) = (scratch.dir("home")?, scratch.dir("project")?);
    wire::configure(&home, FIXED)?;
    let mut command = wire::command(&bins.join("cyberine-mcp"), &home, &project);
    command.args(["--http", "127.0.0.1:0"]);
    served(command, Some(scratch))
}

/// Builds an example and returns its path.
fn example(package: &str, name: &str) -> Result<String> {
    let mut build = proc::cargo();
    build.args(["build", "--quiet", "-p", package, "--example", name]);
    proc::run(&mut build, BUILD)?;
    Ok(proc::bin_dir()?.join("examples").join(name).to_string_lossy().into_owned())
}
