//! The process that stays beside a runner and settles its run at once should the runner die without
//! having done so: killed, crashed, out of memory. Until then it only waits.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{Channel, Sender};
use cyberine_orchestrator::Supervisor;
use cyberine_run_store::{RunStore, SqliteRunStore};
use cyberine_types::{InstanceId, Principal, RunId, SystemClock};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::home::Home;
use crate::launcher::ProcessLauncher;
use crate::messaging::Messaging;
use crate::problem::Problem;
use crate::reaper::MarkReaper;
use crate::{handover, runner, runtime, telemetry};

/// How often a run is looked at whose lock is held by a copy of the dead runner: a child that was
/// just being started.
const LOOKS: u32 = 50;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits for the end of the runner of `id`, whose channel is this process's standard input, and
/// settles the run where the runner has not.
#[must_use]
pub fn run_guardian(id: RunId) -> ExitCode {
    let leash = cyberine_process::enter_session().and_then(|()| cyberine_process::take_stdin());
    let environment = Environment::read();
    telemetry::start(&environment);
    let ended = match leash.map(handover::was_dismissed) {
        Ok(true) => Ok(()),
        Ok(false) => settle(id, environment),
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

fn settle(id: RunId, environment: Environment) -> Result<(), Problem> {
    let home = Home::resolve(&environment)?;
    if !home.directory().is_dir() {
        return Ok(());
    }
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
        for _ in 0..LOOKS {
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
    })?
}
