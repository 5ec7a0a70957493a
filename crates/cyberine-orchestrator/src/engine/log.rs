//! What others write into a run's log: requests to stop it, and decisions.

use std::sync::Arc;
use std::time::Duration;

use cyberine_run_store::{Choice, Event, RunEvent, RunStore, StoreError};
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

use crate::machine::{Decision, Input};
use crate::plan::STEP_ID;

/// How long news of the log are waited for at a time. The store looks in between by itself.
const WAIT: Duration = Duration::from_secs(30);

/// Reads a run's log as it grows.
pub(super) struct LogWatch {
    store: Arc<dyn RunStore>,
    run: RunId,
    after: u64,
    reading: Option<BoxFuture<'static, (u64, Vec<Input>)>>,
}

impl LogWatch {
    pub(super) fn new(store: Arc<dyn RunStore>, run: RunId) -> Self {
        Self { store, run, after: 0, reading: None }
    }

    /// The last event that was read.
    pub(super) const fn seen(&self) -> u64 {
        self.after
    }

    /// What is there and was not given before: requests to stop, then rejections, then approvals.
    /// What is about to end does not go on first.
    pub(super) async fn look(&mut self) -> Result<Vec<Input>, StoreError> {
        self.reading = None;
        let events = self.store.events(self.run, self.after).await?;
        self.after = last(&events, self.after);
        Ok(inputs(events))
    }

    /// The next of it, as soon as there is some. A store that fails here is asked again: the next
    /// append will show whether it is broken.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Vec<Input> {
        let (store, run, after) = (&self.store, self.run, self.after);
        let reading = self.reading.get_or_insert_with(|| Box::pin(wait(Arc::clone(store), run, after)));
        let (after, inputs) = reading.await;
        (self.after, self.reading) = (after, None);
        inputs
    }
}

async fn wait(store: Arc<dyn RunStore>, run: RunId, mut after: u64) -> (u64, Vec<Input>) {
    loop {
        match store.events(run, after).await {
            Ok(events) => {
                after = last(&events, after);
                let inputs = inputs(events);
                if !inputs.is_empty() {
                    return (after, inputs);
                }
            }
            Err(error) => {
                tracing::warn!(%run, %error, "requests to stop and decisions could not be read");
            }
        }
        store.changed(run, after, WAIT).await;
    }
}

fn last(events: &[Event], after: u64) -> u64 {
    events.last().map_or(after, |event| event.seq)
}

fn inputs(events: Vec<Event>) -> Vec<Input> {
    let mut inputs: Vec<Input> = events.into_iter().filter_map(|event| input(event.body)).collect();
    inputs.sort_by_key(|input| match input {
        Input::CancelRequested { .. } => 0,
        Input::Decided(Decision { choice: Choice::Reject, .. }) => 1,
        _ => 2,
    });
    inputs
}

fn input(event: RunEvent) -> Option<Input> {
    match event {
        RunEvent::CancelRequested { by, reason } => Some(Input::CancelRequested { by, reason }),
        RunEvent::Decided { decision } if decision.step_id.as_deref().is_none_or(|step| step == STEP_ID) => {
            let (choice, by, comment) = (decision.decision, decision.decider(), decision.comment);
            Some(Input::Decided(Decision { choice, by, comment }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_run_store::{DeciderKind, OperatorDecision};
    use cyberine_types::Timestamp;

    fn event(body: RunEvent) -> Event {
        Event { seq: 1, at: Timestamp::from_unix_ms(0), epoch: 1, body }
    }

    fn decided(choice: Choice, step: Option<&str>) -> Event {
        let decision = OperatorDecision {
            decision: choice,
            run_id: RunId::random(),
            step_id: step.map(str::to_owned),
            comment: None,
            decided_by: "boss@1".into(),
            decider_kind: DeciderKind::Mcp,
            decided_at: Timestamp::from_unix_ms(0),
        };
        event(RunEvent::Decided { decision })
    }

    #[test]
    fn what_ends_the_run_goes_first_and_a_decision_on_another_step_is_none() {
        let stop = event(RunEvent::CancelRequested { by: "me".into(), reason: None });
        let started = event(RunEvent::Started { pid: 1 });
        let (approve, reject) = (Choice::Approve, Choice::Reject);
        let other = decided(reject, Some("other"));
        let log = vec![started, other, decided(approve, None), decided(reject, Some(STEP_ID)), stop];
        let found = inputs(log);
        let choices = found.iter().filter_map(|input| match input {
            Input::Decided(decision) => Some(decision.choice),
            _ => None,
        });
        assert_eq!(choices.collect::<Vec<_>>(), [reject, approve], "{found:?}");
        assert!(matches!(found[0], Input::CancelRequested { .. }), "{found:?}");
    }
}
