//! The process that stays beside a runner and settles its run at once should the runner die without
//! having done so: killed, crashed, out of memory. Where the run is to end with the server that
//! started it, it asks the runner to stop once that server is gone. Until then it only waits.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{Channel, Sender};
use cyberine_orchestrator::{Reaper as _, Supervisor};
use cyberine_run_store::{RunStore, SqliteRunStore};
use cyberine_types::{InstanceId, Principal, RunId, SystemClock};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::home::Home;
use crate::host_line::{First, first};
use crate::launcher::ProcessLauncher;
use crate::messaging::Messaging;
use crate::problem::{Problem, chain};
use crate::reaper::MarkReaper;
use crate::{handover, runner, runtime, telemetry};

/// How often a run is looked at whose lock is held by a copy of the dead runner (a child that was
/// just being started), and how often it is tried to ask for a stop.
const TRIES: u32 = 50;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it is looked at whether a runner that was asked to stop does so.
const ATTEND: Duration = Duration::from_secs(5);

/// Waits for the end of the runner of `id`, whose channel is this process's standard input, and
/// settles the run where the runner has not. Where standard output is the line of a server, the run
/// is cancelled when that breaks.
#[must_use]
pub fn run_guardian(id: RunId) -> ExitCode {
    let held = cyberine_process::enter_session().and_then(|()| Held::take());
    let environment = Environment::read();
    telemetry::start(&environment);
    let ended = match held.and_then(Held::wait) {
        Ok(Waited::Dismissed) => Ok(()),
        Ok(Waited::Dead) => watch_over(id, environment, None),
        Ok(Waited::HostGone(leash)) => watch_over(id, environment, Some(leash)),
        Err(error) => Err(Problem::new(
            Exit::Usage,
            format!("a guardian is started by dispatching a run, not by hand: {error}"),
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

/// What a guardian is handed.
struct Held {
    /// What it hears of the runner's end by.
    leash: OwnedFd,
    /// What breaks with the server, where the run is to end with it.
    line: Option<UnixStream>,
}

/// What was waited for.
enum Waited {
    /// The runner has settled its run.
    Dismissed,
    /// The runner is gone, and has not.
    Dead,
    /// The server is gone. The leash.
    HostGone(OwnedFd),
}

impl Held {
    fn take() -> io::Result<Self> {
        Ok(Self { leash: cyberine_process::take_stdin()?, line: cyberine_process::take_channel()? })
    }

    fn wait(self) -> io::Result<Waited> {
        Ok(match first(&self.leash, self.line.as_ref())? {
            First::Host => Waited::HostGone(self.leash),
            First::Runner if handover::was_dismissed(self.leash) => Waited::Dismissed,
            First::Runner => Waited::Dead,
        })
    }
}

/// Asks for the end of a run whose runner is held by `leash`, and settles it should the runner be
/// gone without having done so. Where the home is gone, and the run's record with it, there is only
/// what the run has started to be ended: nobody else will ever find it.
fn watch_over(id: RunId, environment: Environment, leash: Option<OwnedFd>) -> Result<(), Problem> {
    let home = Home::resolve(&environment)?;
    let attended = if runner::is_there(&home) {
        attend(id, environment, home.clone(), leash)
    } else {
        // A runner that is there ends itself and what it has started.
        leash.map(handover::was_dismissed);
        Ok(())
    };
    if attended.is_err() || !runner::is_there(&home) {
        let reaped = runtime::block_on(async move { MarkReaper::Leftovers.reap(id).await })?;
        tracing::warn!(run = %id, killed = reaped.killed, left = reaped.left, "the record of the run cannot be written");
    }
    attended
}

fn attend(id: RunId, environment: Environment, home: Home, leash: Option<OwnedFd>) -> Result<(), Problem> {
    runtime::block_on(async move {
        let store = Arc::new(SqliteRunStore::new(home.directory(), Arc::new(SystemClock)));
        let Some(run) = store.load(id).await? else { return Ok(()) };
        let instance = InstanceId::random();
        let config = runner::bus_config(&environment, &home, Path::new(&run.cwd));
        let Messaging { bus, .. } = Messaging::of(&home, config, instance);
        let sender = Sender::new(&Principal::local(environment.user()), Channel::Run, instance);
        let launcher = ProcessLauncher::new(Arc::new(environment), home);
        let reaper = Arc::new(MarkReaper::Leftovers);
        let supervisor = Supervisor::new(store.clone(), Arc::new(launcher), reaper).with_bus(bus, sender);
        let dismissed = match leash {
            Some(leash) => see_off(&supervisor, id, leash).await,
            None => false,
        };
        if dismissed { Ok(()) } else { settle(&supervisor, &*store, id).await }
    })?
}

/// Cancels the run of a host that has gone and waits for the end of its runner, which is killed
/// where it does not react. Says whether the runner has settled the run.
async fn see_off(supervisor: &Supervisor, id: RunId, leash: OwnedFd) -> bool {
    for _ in 0..TRIES {
        match supervisor.cancel(id, "host-exit".to_owned(), Some("its host has gone".to_owned())).await {
            Ok(outcome) => {
                tracing::info!(run = %id, ?outcome, "the server that started the run is gone");
                break;
            }
            Err(error) => tracing::warn!(run = %id, "the run could not be asked to stop: {}", chain(&error)),
        }
        tokio::time::sleep(PAUSE).await;
    }
    let mut ended = tokio::task::spawn_blocking(|| handover::was_dismissed(leash));
    loop {
        if let Ok(dismissed) = tokio::time::timeout(ATTEND, &mut ended).await {
            return dismissed.unwrap_or(false);
        }
        if let Err(error) = supervisor.settle_if_dead(id).await {
            tracing::warn!(run = %id, "the run could not be looked at: {}", chain(&error));
        }
    }
}

/// Settles the run of a runner that is gone, unless somebody else does.
async fn settle(supervisor: &Supervisor, store: &dyn RunStore, id: RunId) -> Result<(), Problem> {
    for _ in 0..TRIES {
        if supervisor.settle_if_dead(id).await? {
            tracing::warn!(run = %id, "the runner died; its run was settled");
            break;
        }
        if store.load(id).await?.is_none_or(|run| run.state.is_terminal()) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
