//! The process that carries one run out.

mod roll;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cyberine_bus::{Channel, Sender};
use cyberine_orchestrator::{Control, ControlSource, Engine, Plan, Reaper as _, TickSink};
use cyberine_run_store::{Claim, ControlReader, RunStore, SqliteRunStore, StoreError, Tick, TickWriter};
use cyberine_types::{InstanceId, Principal, RunId, SystemClock};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::{BusBackend, BusConfig, Config};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::gates::Gates;
use crate::handover;
use crate::home::Home;
use crate::launcher;
use crate::messaging::{self, Messaging};
use crate::problem::{Problem, chain};
use crate::project::Project;
use crate::reaper::MarkReaper;
use crate::runtime;
use crate::trial::CommandTrials;
use crate::{team, telemetry};
use roll::Roll;

/// How long news of the project's control file are waited for at a time. Where no change of it is
/// told it is looked at earlier.
const CONTROL_WAIT: Duration = Duration::from_secs(30);

/// How often it is looked at whether the home is still there.
const HOME_POLL: Duration = Duration::from_secs(2);

/// Carries out the run `id`, whose lock is this process's standard input, and ends with it.
#[must_use]
pub fn run_runner(id: RunId) -> ExitCode {
    // Before threads, runtime and telemetry: nothing else may hold these descriptors.
    let handed = cyberine_process::enter_session().and_then(|()| take_over());
    let environment = Environment::read();
    telemetry::start(&environment);
    let ended = match handed {
        Ok(Handed { lock, variables, channel }) => {
            let environment =
                variables.into_iter().fold(environment, |all, (name, value)| all.with(name, value));
            carry_out(id, lock, environment).map(|()| handover::dismiss(channel))
        }
        Err(error) => Err(Problem::new(
            Exit::Usage,
            format!("a runner is started by dispatching a run, not by hand: {error}"),
        )),
    };
    match ended {
        Ok(()) => Exit::Done.into(),
        Err(problem) => {
            tracing::error!(run = %id, "{problem}");
            problem.exit.into()
        }
    }
}

/// What a runner is handed.
struct Handed {
    /// The lock of its run.
    lock: OwnedFd,
    /// What its providers need.
    variables: Vec<(OsString, OsString)>,
    /// What its guardian hears of its end by.
    channel: UnixStream,
}

fn take_over() -> io::Result<Handed> {
    cyberine_process::conceal();
    let lock = cyberine_process::take_stdin()?;
    let channel = cyberine_process::take_channel()?
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "standard output is no channel"))?;
    Ok(Handed { lock, variables: handover::accept(&channel)?, channel })
}

/// Removes the log of a runner that had nothing to say: there is one for every run.
fn discard_silent_log(id: RunId, home: &Home) {
    let Ok(logs) = home.logs() else { return };
    let name = launcher::log_name(id);
    if logs.read(&name, 1).is_ok_and(|log| log.is_some_and(|bytes| bytes.is_empty())) {
        // That an empty file stays harms nobody.
        let _ = logs.remove(&name);
    }
}

fn carry_out(id: RunId, lock: OwnedFd, environment: Environment) -> Result<(), Problem> {
    let home = Home::resolve(&environment)?;
    let place = home.clone();
    runtime::block_on(async move {
        let store = SqliteRunStore::new(place.directory(), Arc::new(SystemClock));
        let claim = store.claim_handed_over(id, lock, std::process::id()).await.map_err(not_handed_over)?;
        engage(&store, claim, &environment, &place).await
    })??;
    discard_silent_log(id, &home);
    Ok(())
}

/// A lock that nobody handed over is a runner somebody started by hand.
fn not_handed_over(error: StoreError) -> Problem {
    match error {
        StoreError::ClaimRefused { .. } => Problem { exit: Exit::Usage, ..Problem::from(error) },
        _ => Problem::from(error),
    }
}

/// Drives the engine from the claim to the settlement.
async fn engage(
    store: &SqliteRunStore,
    claim: Claim,
    environment: &Environment,
    home: &Home,
) -> Result<(), Problem> {
    let id = claim.run();
    let run = store
        .load(id)
        .await?
        .ok_or_else(|| Problem::new(Exit::Internal, "the run is not in the database"))?;
    let plan = Plan::from_spec(&run.spec).map_err(|error| {
        Problem::new(Exit::Internal, format!("the run's plan is not understood: {error}"))
    })?;
    let ticks = Arc::new(Stream::open(store, id).await?);
    let instance = InstanceId::random();
    let Messaging { bus, presence } =
        Messaging::of(home, bus_config(environment, home, Path::new(&run.cwd)), instance);
    let mut roll = Roll::new(presence, id, run.cwd);
    let engine = Engine {
        store: Arc::new(store.clone()),
        reaper: Arc::new(MarkReaper::OwnTree),
        trials: Arc::new(CommandTrials::of(environment)),
        ticks: ticks.clone(),
        bus,
        sender: Sender::new(&Principal::local(environment.user()), Channel::Run, instance),
    };
    let team = team::team(&plan, environment, &Gates::of(home));
    let control = Box::new(ControlFile(ControlReader::new(store.run_dir(id).await?)));
    let cancel = CancellationToken::new();
    let settled = tokio::select! {
        biased;
        settled = engine.run(claim, &plan, team, control, cancel.clone()) => settled,
        never = attend(&ticks, &cancel) => match never {},
        never = roll.keep(store) => match never {},
        () = removed(home) => return Err(give_up(id, home).await),
    };
    roll.end().await;
    settled
        .map(|state| tracing::info!(run = %id, state = state.name(), "settled"))
        .map_err(|error| Problem::of(Exit::Internal, &error))
}

/// Whether `home`, in which this process was started, is still there, and is the same one.
pub(crate) fn is_there(home: &Home) -> bool {
    is_same(Path::new("."), home.directory())
}

/// Whether `directory` is the one that is `held`. What cannot be looked at is not gone.
fn is_same(held: &Path, directory: &Path) -> bool {
    match (std::fs::metadata(held), std::fs::metadata(directory)) {
        (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
        (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
        (Err(_), Ok(_)) => true,
    }
}

/// Resolves once the home is not there any more.
async fn removed(home: &Home) {
    while is_there(home) {
        tokio::time::sleep(HOME_POLL).await;
    }
}

/// Ends what a run has started of which there is no record any more.
async fn give_up(id: RunId, home: &Home) -> Problem {
    let processes = MarkReaper::OwnTree.reap(id).await;
    let place = home.directory().display();
    Problem::new(
        Exit::Unavailable,
        format!("the home `{place}` was removed; {} processes of its run were killed", processes.killed),
    )
}

/// What keeps the mail: what the environment says, which the runner has from whoever dispatched
/// the run, else the configuration of the run's project. Mail that cannot be had stops no run.
pub(crate) fn bus_config(environment: &Environment, home: &Home, cwd: &Path) -> BusConfig {
    let project = Project::at(cwd, environment).ok();
    let config = project.and_then(|project| Config::load(home, &project).ok());
    let config = config.map(|config| config.bus).unwrap_or_default();
    match messaging::backend(environment) {
        Ok(backend) => BusConfig { backend: backend.or(config.backend), ..config },
        Err(problem) => {
            tracing::warn!("the run takes no guidance and tells no news: {problem}");
            BusConfig { backend: Some(BusBackend::None), ..config }
        }
    }
}

/// Writes ticks whose time has come, and turns a request to end into a request to stop the run.
async fn attend(ticks: &Stream, cancel: &CancellationToken) -> std::convert::Infallible {
    let mut asked = Box::pin(runtime::asked_to_end());
    loop {
        tokio::select! {
            () = &mut asked, if !cancel.is_cancelled() => cancel.cancel(),
            () = ticks.due() => {}
        }
    }
}

/// The run's `stream.jsonl`.
struct Stream {
    writer: Mutex<TickWriter>,
    /// Told of each tick.
    offered: Notify,
}

/// How often ticks that wait for their turn are looked at.
const TICK_POLL: Duration = Duration::from_millis(50);

impl Stream {
    async fn open(store: &SqliteRunStore, id: RunId) -> Result<Self, Problem> {
        let writer = Mutex::new(TickWriter::new(store.run_dir(id).await?));
        Ok(Self { writer, offered: Notify::new() })
    }

    /// Writes what is due after a short while, once something waits.
    async fn due(&self) {
        let waits = self.writer.lock().unwrap_or_else(PoisonError::into_inner).next_flush().is_some();
        if !waits {
            return self.offered.notified().await;
        }
        tokio::time::sleep(TICK_POLL).await;
        self.write(|writer| writer.flush(Instant::now()));
    }

    fn write(&self, write: impl FnOnce(&mut TickWriter) -> Result<(), StoreError>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write(&mut writer) {
            tracing::debug!("a tick was not written: {}", chain(&error));
        }
    }
}

impl TickSink for Stream {
    fn tick(&self, tick: &Tick) {
        self.write(|writer| writer.offer(tick.clone(), Instant::now()));
        self.offered.notify_one();
    }
}

/// The project's `control.json`.
struct ControlFile(ControlReader);

impl ControlSource for ControlFile {
    fn next(&mut self) -> BoxFuture<'_, Control> {
        Box::pin(async move {
            loop {
                match self.0.look() {
                    Some(cyberine_run_store::Control::Stop) => {
                        return Control::Stop { by: "control-file".to_owned(), reason: None };
                    }
                    Some(cyberine_run_store::Control::Ignored { detail }) => {
                        return Control::Unknown { detail };
                    }
                    None => self.0.changed(CONTROL_WAIT).await,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_there_until_it_is_gone_or_another() {
        let place = tempfile::tempdir().unwrap();
        let (home, other) = (place.path().join("home"), place.path().join("other"));
        std::fs::create_dir(&home).unwrap();
        assert!(is_same(&other, &home), "what is held cannot be looked at");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        assert!(is_same(&home.join("."), &home) && !is_same(&other, &home));
        std::fs::remove_dir_all(&home).unwrap();
        assert!(!is_same(&other, &home));
    }
}
