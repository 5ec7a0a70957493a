//! Carrying runs out in the process that dispatched them, for embedders and tests.

use std::sync::Arc;

use cyberine_run_store::Claim;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::control::NoControls;
use crate::engine::Engine;
use crate::plan::Plan;
use crate::supervisor::{LaunchError, Launched, Launcher};
use crate::team::Team;

/// Carries runs out as tasks of this process.
///
/// The promise is weaker than a runner process's: the runs end with this process (the next one
/// that looks settles them as interrupted), and a `control.json` is not watched. Requests to stop
/// that are recorded in the store are honoured. [`close`](Self::close) cancels what still runs
/// and waits for it.
pub struct InProcessLauncher {
    engine: Engine,
    build: Box<dyn Fn(&Plan) -> Team + Send + Sync>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl InProcessLauncher {
    /// A launcher that runs `engine` with the providers that `build` makes of a plan.
    #[must_use]
    pub fn new(engine: Engine, build: impl Fn(&Plan) -> Team + Send + Sync + 'static) -> Arc<Self> {
        let (tasks, cancel) = (TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { engine, build: Box::new(build), tasks, cancel })
    }

    /// Cancels every run and waits until all of them have settled. Nothing can be launched after.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Launcher for InProcessLauncher {
    fn launch(&self, claim: Claim, plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move {
            if self.cancel.is_cancelled() {
                return Err(LaunchError { detail: "the launcher is closed".to_owned() });
            }
            let (engine, cancel, run) = (self.engine.clone(), self.cancel.child_token(), claim.run());
            let team = (self.build)(&plan);
            let running = self.tasks.spawn(async move {
                if let Err(error) = engine.run(claim, &plan, team, Box::new(NoControls), cancel).await {
                    tracing::error!(%run, %error, "the run did not come to its own end");
                }
            });
            // How it ended has been told; a panic leaves a dead run like any other.
            let ended = Box::pin(async move { drop(running.await) });
            Ok(Launched { pid: std::process::id(), ended })
        })
    }
}
