//! What a program says of itself when it is asked for nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cyberine_process::{ChildEnvironment, Exit, Spawn};
use tokio::time::timeout;

use crate::child_provider::Program;
use crate::error::{TurnError, chain};
use crate::probe::{Login, Probe};
use crate::quote::Quoter;

/// How long a program may take for one answer.
const PATIENCE: Duration = Duration::from_secs(7);
/// How much of an answer is read.
const ANSWER_BYTES: usize = 64 << 10;

/// What may be asked of a program.
pub(crate) struct Questions {
    program: PathBuf,
    cwd: Option<PathBuf>,
    version: Option<&'static [&'static str]>,
    login: Option<&'static [&'static str]>,
}

impl Questions {
    pub(crate) fn of(program: &dyn Program) -> Self {
        let profile = program.profile();
        // A key that pays is used without a look at the login.
        let login = program.login_args().filter(|_| profile.key_env.is_none());
        Self {
            program: profile.program.unwrap_or_else(|| Path::new("")).to_owned(),
            cwd: profile.cwd.map(Path::to_owned),
            version: program.version_args(),
            login,
        }
    }
}

/// Asks a program for its version and its login. One that can be asked neither is only looked for.
pub(crate) async fn probe(questions: Questions, environment: ChildEnvironment, quoter: Quoter) -> Probe {
    let Questions { program, cwd, version, login } = questions;
    let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
    let ask = |args: &'static [&'static str]| {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let spawn =
            Spawn { args, output_limit: ANSWER_BYTES, ..Spawn::new(&program, environment.clone(), &cwd) };
        answer(spawn, &quoter)
    };
    let mut probe = Probe::there();
    match version {
        Some(args) => match ask(args).await {
            Ok((exit, text)) if exit.status.success() => {
                probe.version = text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
            }
            Ok((exit, _)) => {
                let (status, stderr) = (exit.status.to_string(), quoter.tail(&exit.stderr));
                return Probe::absent(TurnError::Crashed { status, stderr });
            }
            Err(error) => return Probe::absent(error),
        },
        None => {
            if let Err(error) = cyberine_process::find_program(program.as_os_str(), &environment, &cwd) {
                let (target, detail) = (program.display().to_string(), chain(&error));
                return Probe::absent(TurnError::Unreachable { target, detail });
            }
        }
    }
    if let Some(args) = login {
        probe.login = match ask(args).await {
            Ok((exit, _)) if exit.status.success() => Login::Yes,
            Ok((_, text)) => Login::No(first_words(&text, &quoter)),
            Err(_) => Login::Unknown,
        };
    }
    probe
}

/// What a program says before it ends by itself.
async fn answer(spawn: Spawn, quoter: &Quoter) -> Result<(Exit, String), TurnError> {
    let target = spawn.program.display().to_string();
    let mut child = cyberine_process::spawn(spawn)
        .map_err(|error| TurnError::Unreachable { target, detail: quoter.head(&chain(&error)) })?;
    let mut said = Vec::new();
    let listening = async {
        while let Ok(Some(bytes)) = child.next_chunk().await {
            said.extend_from_slice(&bytes);
        }
        child.finish().await
    };
    let ended = timeout(PATIENCE, listening).await;
    child.kill_tree().await;
    match ended {
        Ok(Ok(exit)) => Ok((exit, String::from_utf8_lossy(&said).into_owned())),
        Ok(Err(error)) => Err(TurnError::Cut { detail: error.to_string() }),
        Err(_) => Err(TurnError::WallTimeout { limit: PATIENCE }),
    }
}

/// Words for people of an answer that may be JSON.
fn first_words(text: &str, quoter: &Quoter) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) if !line.starts_with('{') => quoter.head(line),
        _ => "it is not logged in".to_owned(),
    }
}
