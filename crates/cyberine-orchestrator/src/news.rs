//! What a run tells its own mailbox.

use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{Address, AddressKind, Bus, Durability, From, FromKind, Outgoing, Sender, Topic};
use cyberine_run_store::{RunEvent, VerdictOutcome};
use cyberine_types::RunId;

use crate::plan::STEP_ID;
use crate::text::preview;

/// How long news may take that somebody waits for.
const MOMENT: Duration = Duration::from_secs(1);

/// The one line about a change of a run's state; `None` for every other event.
pub(crate) fn line(event: &RunEvent) -> Option<String> {
    let line = match event {
        RunEvent::Started { .. } => "started".to_owned(),
        RunEvent::StepStarted { step, name } if step != STEP_ID => {
            format!("{name}: the candidates are asked again, each shown the others' answers")
        }
        RunEvent::ApprovalRequested { expires_at, on_expiry, .. } => {
            format!("suspended: waits until {expires_at} for an approval, then: {}", on_expiry.name())
        }
        RunEvent::Resumed { by } => format!("resumed by {}", preview(by, 120)),
        RunEvent::Approved { by } => format!("approved by {}, and not suspended", preview(by, 120)),
        RunEvent::Judged { verdict, .. } => match &verdict.winner {
            Some(winner) => format!("judged by {}: {winner} wins", verdict.kind),
            None => format!("judged by {}: {}", verdict.kind, without_winner(verdict.outcome)),
        },
        RunEvent::Settled { state, detail, .. } => {
            format!("settled {}: {}", state.name(), preview(detail, 500))
        }
        _ => return None,
    };
    Some(line)
}

const fn without_winner(outcome: VerdictOutcome) -> &'static str {
    match outcome {
        VerdictOutcome::Tie => "a tie",
        VerdictOutcome::NoQuorum => "too few answers",
        VerdictOutcome::Majority | VerdictOutcome::Winner | VerdictOutcome::Unjudged => "no verdict",
    }
}

/// The mailbox of a run.
pub(crate) fn mailbox(run: RunId) -> Option<Address> {
    Address::new(AddressKind::Run, run.to_string()).ok()
}

/// `line` as the run itself writes it into its mailbox.
pub(crate) fn message(run: RunId, sender: &Sender, line: String) -> Option<Outgoing> {
    let from = From { kind: FromKind::Run, id: run.to_string() };
    let note = Outgoing::note(mailbox(run)?, from, sender.clone(), line);
    Some(Outgoing { topic: Topic::Progress, ..note })
}

/// The news of a run that is settled by another process than its runner.
#[derive(Clone)]
pub(crate) struct Herald {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) sender: Sender,
}

impl Herald {
    /// Tells of `event`, which is on record. Takes a moment at most, and whatever becomes of it
    /// changes nothing about the run.
    pub(crate) async fn tell(&self, run: RunId, event: &RunEvent) {
        let news = line(event).and_then(|line| message(run, &self.sender, line));
        let Some(news) = news else { return };
        match tokio::time::timeout(MOMENT, self.bus.publish(news, Durability::Fast)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%run, %error, "the run's mailbox was not told of its end"),
            Err(_) => tracing::debug!(%run, "the run's mailbox was not told of its end in time"),
        }
    }
}
