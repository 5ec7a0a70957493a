//! `inspect_run`: how a run stands, now or after a while.

use std::time::Duration;

use cyberine_run_store::RunState;
use cyberine_server::{Progress, ToolResult};
use serde_json::json;
use tokio::time::Instant;

use crate::arguments::Inspect;
use crate::follow::{Follower, Story};
use crate::services::{Services, no_such_run};
use crate::view;
use crate::waiting::Wait;

/// How long is waited with a run that waits for somebody itself: its caller should hear of that
/// soon, and not ask again at once.
const SUSPENDED: Duration = Duration::from_secs(1);

/// Shows a run. With `waitMs` it first waits for the run to end, or to begin to wait for somebody;
/// with `sinceSeq`, for any event from that number on; while it waits, `progress` hears of the run.
/// Without `leave` to wait it shows the run as it is, and says so.
pub(crate) async fn inspect(
    services: &Services,
    arguments: &Inspect,
    leave: &Wait<'_>,
    progress: Progress,
) -> Result<ToolResult, String> {
    let id = arguments.run;
    let run = services.look(id).await?.ok_or_else(|| no_such_run(id))?;
    let last = run.next_seq - 1;
    let news_already = arguments.since_seq.is_some_and(|since| since <= last);
    if arguments.wait_ms == 0 || run.state.is_terminal() || news_already {
        return Ok(ToolResult::ok(view::bounded(&run)));
    }
    if let Some(note) = leave.note {
        let mut view = view::bounded(&run);
        view["note"] = json!(note);
        return Ok(ToolResult::ok(view));
    }
    let mut wait = leave.time;
    if run.state == RunState::Suspended && arguments.since_seq.is_none() {
        wait = wait.min(SUSPENDED);
    }
    let deadline = Instant::now() + wait;
    let mut follower = Follower::after(services, id, last, progress).await;
    let wanted = arguments.since_seq;
    let enough =
        |story: &Story| story.settled || story.suspended || wanted.is_some_and(|since| story.seq >= since);
    follower.until(Some(deadline), enough).await;
    let run = services.look(id).await?.ok_or_else(|| no_such_run(id))?;
    Ok(ToolResult::ok(view::bounded(&run)))
}
