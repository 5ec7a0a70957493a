//! Following one run for those who subscribed to its resource.

use std::time::Duration;

use cyberine_run_store::{Run, RunEvent};
use cyberine_server::ResourceWatch;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

use crate::services::Services;
use crate::view;

/// How often it is looked whether the runner of a run that goes on is still alive.
const ALIVE: Duration = Duration::from_secs(2);
/// How long a run that is over is waited for at once: decisions may still come.
const OVER: Duration = Duration::from_secs(60);

/// A run that is followed.
pub(crate) struct RunWatch {
    services: Services,
    run: RunId,
    uri: String,
    /// The last event its subscriber was told of.
    told: u64,
    over: bool,
}

impl RunWatch {
    /// Follows `run` from what it is now.
    pub(crate) fn new(services: Services, run: &Run) -> Self {
        let over = run.state.is_terminal();
        Self { services, run: run.run_id, uri: view::uri(run), told: run.next_seq - 1, over }
    }

    /// Returns once there is an event nobody was told of.
    pub(crate) async fn next(&mut self) {
        loop {
            let patience = if self.over { OVER } else { ALIVE };
            self.services.store.changed(self.run, self.told, patience).await;
            match self.services.store.events(self.run, self.told).await {
                Ok(events) => {
                    if let Some(last) = events.last() {
                        self.told = last.seq;
                        self.over |=
                            events.iter().any(|event| matches!(event.body, RunEvent::Settled { .. }));
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(run = %self.run, %error, "a run could not be followed");
                    tokio::time::sleep(ALIVE).await;
                }
            }
            if !self.over {
                self.services.buried(self.run).await;
            }
        }
    }
}

impl ResourceWatch for RunWatch {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.next())
    }
}
