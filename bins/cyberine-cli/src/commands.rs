//! What each command does.

mod cancel;
mod decide;
mod demo;
mod doctor;
mod inbox;
mod init;
mod inspect;
mod install;
mod judge;
mod orchestrate;
mod overview;
mod runs;
mod schema;
mod send;
mod spend;
mod team;
mod token;
mod trust;
mod watch;

use std::path::Path;
use std::sync::Arc;

use cyberine_app::{Environment, Exit, Problem, Workplace};
use cyberine_run_store::{Choice, Registry, Run, RunStore};
use cyberine_types::RunId;

use crate::args::{Cli, Command};
use crate::out::Out;

/// Who the command line is in records.
pub(crate) const SELF: &str = "cli";

/// How many of the newest runs a beginning of an id is looked for in.
const NEWEST: u32 = 10_000;

/// Carries `cli` out.
///
/// # Errors
/// Whatever keeps the command from doing what it was asked.
pub(crate) async fn run(cli: Cli, environment: Environment, out: &Out) -> Result<Exit, Problem> {
    let environment = Arc::new(environment);
    let open_at = |project: Option<&Path>| Workplace::resolve(project, Arc::clone(&environment));
    let open = || open_at(cli.project.as_deref());
    match cli.command {
        Command::Guide => {
            crate::guide::run(out);
            Ok(Exit::Done)
        }
        Command::Demo(args) => demo::run(args, &environment, out).await,
        Command::Init(args) => init::run(&args, &open()?, out).await,
        Command::Trust(args) => {
            let project = args.dir.as_deref().or(cli.project.as_deref());
            trust::run(&open_at(project)?, args.yes, out)
        }
        Command::Install(args) => install::run(&args, cli.project.as_deref(), &environment, out).await,
        Command::Doctor(args) => doctor::run(&args, cli.project.as_deref(), &environment, out).await,
        Command::Orchestrate(args) => orchestrate::run(args, &open()?, out).await,
        Command::Runs(args) => runs::run(args, &open()?, out).await,
        Command::Inspect(args) => inspect::run(&args, &open()?, out).await,
        Command::Cancel(args) => cancel::run(args, &open()?, out).await,
        Command::Approve(args) => decide::run(Choice::Approve, args, &open()?, out).await,
        Command::Reject(args) => decide::run(Choice::Reject, args, &open()?, out).await,
        Command::Watch(args) => watch::run(args, &open()?, out).await,
        Command::Send(args) => send::run(args, &open()?, out).await,
        Command::Inbox(args) => inbox::run(args, &open()?, out).await,
        Command::Team(args) => team::run(&args, &open()?, out).await,
        Command::Spend(args) => spend::run(args, &open()?, out).await,
        Command::Judge(args) => judge::run(args.command, &open()?, out).await,
        Command::Token(args) => token::run(args.command, &environment, out),
        Command::Schema => Ok(schema::run(out)),
    }
}

/// The run a person means by its id, or by the beginning of it.
pub(crate) async fn find(workplace: &Workplace, wanted: &str) -> Result<RunId, Problem> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let prefix = wanted.to_ascii_lowercase();
    let hexadecimal = prefix.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if prefix.len() < 4 || !hexadecimal {
        return Err(Problem::new(
            Exit::Usage,
            format!("`{wanted}` is not a run's id: give it whole, or at least its first four digits"),
        ));
    }
    let runs = workplace.store.query(prefix.clone(), NEWEST).await?;
    let mut fitting = runs.iter().map(|run| run.run_id).filter(|id| id.to_string().starts_with(&prefix));
    match (fitting.next(), fitting.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(no_run(wanted)),
        (Some(_), Some(_)) => Err(Problem::new(
            Exit::Usage,
            format!("more than one run begins with `{wanted}`; give more of the id"),
        )),
    }
}

/// The run, settled first where its runner is dead.
pub(crate) async fn load(workplace: &Workplace, id: RunId) -> Result<Run, Problem> {
    let run = workplace.store.load(id).await?.ok_or_else(|| no_run(&id.to_string()))?;
    if run.state.is_terminal() || !workplace.supervisor.settle_if_dead(id).await? {
        return Ok(run);
    }
    workplace.store.load(id).await?.ok_or_else(|| no_run(&id.to_string()))
}

pub(crate) fn no_run(wanted: &str) -> Problem {
    Problem::new(Exit::Unavailable, format!("there is no run `{wanted}`; `cyberine runs` lists them"))
}

/// The end of a command about a run that is over.
pub(crate) const fn verdict_on(run: &Run) -> Exit {
    match run.state {
        cyberine_run_store::RunState::Error | cyberine_run_store::RunState::Cancelled => Exit::Failed,
        _ => Exit::Done,
    }
}
