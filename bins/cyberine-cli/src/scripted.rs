//! The scripted provider, started for as long as it is needed.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cyberine_app::{Environment, Exit, Problem};
use cyberine_process::{ChildEnvironment, Detach, Detached, detach};

/// The program's name.
const PROGRAM: &str = "cyberine-scripted-llm";

/// How long it may take to say where it listens.
const START: Duration = Duration::from_secs(20);

/// A running server that answers from a script.
pub(crate) struct Scripted {
    /// Where it listens, such as `http://127.0.0.1:41234`.
    pub(crate) base_url: String,
    /// The program, which also answers prompts on its standard input.
    pub(crate) program: PathBuf,
    /// It ends as soon as this is closed, so that it cannot outlive us however we end.
    _leash: PipeWriter,
    _child: Detached,
}

/// The program: the one named, else the one installed beside this one.
pub(crate) fn find(named: Option<PathBuf>, environment: &Environment) -> Result<Option<PathBuf>, Problem> {
    match named {
        Some(path) if !path.is_file() => {
            Err(Problem::new(Exit::Unavailable, format!("there is no program `{}`", path.display())))
        }
        Some(path) => Ok(path.canonicalize().ok().or(Some(path))),
        None => Ok(environment.sibling(PROGRAM).filter(|path| path.is_file())),
    }
}

/// Starts `program` on a free port with its built-in demo script.
pub(crate) async fn start(
    program: &Path,
    environment: &Environment,
    cwd: &Path,
) -> Result<Scripted, Problem> {
    let failed = |detail: String| {
        Problem::new(Exit::Unavailable, format!("`{}` did not start: {detail}", program.display()))
    };
    let (input, leash) = std::io::pipe().map_err(|error| failed(error.to_string()))?;
    let (said, log) = std::io::pipe().map_err(|error| failed(error.to_string()))?;
    let child = detach(Detach {
        program: program.into(),
        args: vec!["serve".into(), "--until-eof".into()],
        environment: ChildEnvironment::allowed(environment.variables()),
        cwd: cwd.to_owned(),
        stdin: OwnedFd::from(input),
        log: File::from(OwnedFd::from(log)),
        channel: None,
    });
    let child = child.map_err(|error| failed(cyberine_app::chain(&error)))?;
    let listening = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(said).lines().map_while(Result::ok);
        lines.into_iter().find(|line| line.starts_with("http://"))
    });
    match tokio::time::timeout(START, listening).await {
        Ok(Ok(Some(base_url))) => {
            Ok(Scripted { base_url, program: program.to_owned(), _leash: leash, _child: child })
        }
        _ => Err(failed("it did not say where it listens".to_owned())),
    }
}
