//! What reaches a run from outside while it runs.

use cyberine_run_store::RunEvent;
use futures_util::future::BoxFuture;

/// A word to a running engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Stop the run.
    Stop {
        /// Who: `control-file`, `signal`.
        by: String,
        /// Why, where they said.
        reason: Option<String>,
    },
    /// Something that is not understood: recorded and otherwise ignored.
    Unknown {
        /// What was wrong with it.
        detail: String,
    },
}

impl Control {
    pub(crate) fn ignored(detail: String) -> RunEvent {
        RunEvent::ControlIgnored { detail }
    }
}

/// Where controls come from beside the store's own, such as the project's `control.json`.
pub trait ControlSource: Send {
    /// The next control. Pending as long as there is none.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no control is lost.
    fn next(&mut self) -> BoxFuture<'_, Control>;
}

/// No controls but the store's.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoControls;

impl ControlSource for NoControls {
    fn next(&mut self) -> BoxFuture<'_, Control> {
        Box::pin(std::future::pending())
    }
}
