//! The tools as hosts see them. Every word here costs tokens in every session.

use std::sync::{Arc, LazyLock};

use cyberine_server::{Annotations, Tool};

mod decisions;
mod messages;
mod runs;
mod text;

pub(crate) const ORCHESTRATE: &str = "orchestrate";
pub(crate) const SEND_MESSAGE: &str = "send_message";
pub(crate) const POLL_INBOX: &str = "poll_inbox";
pub(crate) const QUERY_RUNS: &str = "query_runs";
pub(crate) const LIST_TEAM: &str = "list_team";
pub(crate) const SEND_TO_TEAM: &str = "send_to_team";
pub(crate) const SEND_TO_ROLE: &str = "send_to_role";
pub(crate) const INSPECT_RUN: &str = "inspect_run";
pub(crate) const APPROVE_RUN: &str = "approve_run";
pub(crate) const REJECT_RUN: &str = "reject_run";
pub(crate) const CANCEL_RUN: &str = "cancel_run";

static TOOLS: LazyLock<Arc<[Tool]>> = LazyLock::new(|| {
    Arc::new([
        runs::orchestrate(),
        messages::send_message(),
        messages::poll_inbox(),
        runs::query_runs(),
        messages::list_team(),
        messages::send_to_team(),
        messages::send_to_role(),
        runs::inspect_run(),
        decisions::approve_run(),
        decisions::reject_run(),
        runs::cancel_run(),
    ])
});

/// The tools, in their fixed order.
pub(crate) fn tools() -> Arc<[Tool]> {
    Arc::clone(&TOOLS)
}

/// Looking changes nothing that the caller could see.
const READS: Annotations =
    Annotations { read_only: true, destructive: false, idempotent: true, open_world: false };
/// Doing it twice is doing it once.
const SETTLES: Annotations =
    Annotations { read_only: false, destructive: false, idempotent: true, open_world: false };
/// Every call adds something, and takes nothing away.
const ADDS: Annotations =
    Annotations { read_only: false, destructive: false, idempotent: false, open_world: false };
