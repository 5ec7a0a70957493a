//! A run and its candidates on the roster, for as long as they are there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::AddressKind;
use cyberine_presence::{Activity, Announcement, Announcing, Presence, RecordAddr};
use cyberine_run_store::{RunEvent, RunStore};
use cyberine_types::RunId;
use futures_util::future::join_all;

use crate::problem::chain;

/// How long news of the log are waited for at a time. The store looks in between by itself.
const WAIT: Duration = Duration::from_secs(30);
/// How long the withdrawal may take.
const FAREWELL: Duration = Duration::from_millis(500);
/// What a running run can be asked for.
const CAPABILITIES: [&str; 2] = ["steer", "cancel"];
/// The role of a candidate.
const CANDIDATE: &str = "candidate";

/// Keeps the roster as the run's log says. Whatever is wrong with the roster, the run goes on.
pub(super) struct Roll {
    presence: Arc<dyn Presence>,
    run: RunId,
    cwd: String,
    itself: Option<Arc<dyn Announcement>>,
    /// By candidate: those that run.
    workers: BTreeMap<String, Arc<dyn Announcement>>,
    complained: bool,
}

impl Roll {
    pub(super) fn new(presence: Arc<dyn Presence>, run: RunId, cwd: String) -> Self {
        Self { presence, run, cwd, itself: None, workers: BTreeMap::new(), complained: false }
    }

    /// Announces the run, and follows it through `store` until the future is dropped.
    pub(super) async fn keep(&mut self, store: &dyn RunStore) -> std::convert::Infallible {
        let capabilities = CAPABILITIES.map(str::to_owned).to_vec();
        self.itself = self.announce(AddressKind::Run, self.run.to_string(), capabilities, None).await;
        let mut after = 0;
        loop {
            match store.events(self.run, after).await {
                Ok(events) => {
                    for event in events {
                        after = event.seq;
                        self.take(event.body).await;
                    }
                }
                Err(error) => tracing::debug!("the log could not be followed: {}", chain(&error)),
            }
            store.changed(self.run, after, WAIT).await;
        }
    }

    async fn take(&mut self, event: RunEvent) {
        match event {
            RunEvent::Started { .. } | RunEvent::Resumed { .. } | RunEvent::Rejected { .. } => {
                self.say(Activity::Progressing);
            }
            RunEvent::ApprovalRequested { .. } => self.say(Activity::Waiting),
            RunEvent::CandidateStarted { candidate, provider, .. } => {
                let id = format!("{}/{candidate}", self.run);
                if let Some(worker) = self.announce(AddressKind::Worker, id, Vec::new(), Some(provider)).await
                {
                    worker.set_activity(Activity::Progressing);
                    self.workers.insert(candidate, worker);
                }
            }
            RunEvent::CandidateDone { candidate, .. } | RunEvent::CandidateFailed { candidate, .. } => {
                if let Some(worker) = self.workers.remove(&candidate) {
                    worker.end().await;
                }
            }
            _ => {}
        }
    }

    fn say(&self, activity: Activity) {
        if let Some(itself) = &self.itself {
            itself.set_activity(activity);
        }
    }

    async fn announce(
        &mut self,
        kind: AddressKind,
        id: String,
        capabilities: Vec<String>,
        worker: Option<String>,
    ) -> Option<Arc<dyn Announcement>> {
        let announcing = Announcing {
            addr: RecordAddr { kind: kind.name().to_owned(), id },
            repo_cwd: self.cwd.clone(),
            capabilities,
            team: None,
            role: worker.is_some().then(|| CANDIDATE.to_owned()),
            name: worker,
        };
        match self.presence.announce(announcing).await {
            Ok(announcement) => Some(announcement),
            Err(error) if std::mem::replace(&mut self.complained, true) => {
                tracing::debug!("the run is not announced whole: {}", chain(&error));
                None
            }
            Err(error) => {
                tracing::warn!("the run is not announced whole: {}", chain(&error));
                None
            }
        }
    }

    /// Withdraws everything that is left, in a moment or not at all.
    pub(super) async fn end(self) {
        let all: Vec<_> = self.workers.into_values().chain(self.itself).collect();
        let ending = join_all(all.iter().map(|announcement| announcement.end()));
        if tokio::time::timeout(FAREWELL, ending).await.is_err() {
            tracing::debug!("the roster is slow; the run ends without withdrawing from it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_presence::MemoryPresence;
    use cyberine_run_store::{Choice, Claim, MemoryRunStore, NewRun, Reserve};
    use cyberine_types::{Billing, InstanceId, SystemClock, Timestamp, Usage, Usd};

    async fn admitted(store: &MemoryRunStore) -> Claim {
        let new = NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".into(),
            prompt: "p".into(),
            cwd: "/project".into(),
            requested_by: "cli".into(),
            spec: serde_json::Value::Null,
        };
        store.admit(new, Reserve::of(Usd::ZERO, None)).await.unwrap()
    }

    fn started(candidate: &str) -> RunEvent {
        RunEvent::CandidateStarted {
            step: "dispatch".into(),
            candidate: candidate.into(),
            provider: candidate.into(),
            kind: "command".into(),
            model: None,
            billing: Billing::Free,
        }
    }

    fn done(candidate: &str) -> RunEvent {
        RunEvent::CandidateDone {
            step: "dispatch".into(),
            candidate: candidate.into(),
            output: "x".into(),
            usage: Usage::default(),
            duration_ms: 1,
        }
    }

    /// Waits until the roster is `expected`: address, name and activity of each.
    async fn see(presence: &MemoryPresence, expected: &[(&str, String, Option<&str>, Activity)]) {
        let seen = async {
            loop {
                let roster = presence.roster().await.unwrap();
                let shown: Vec<_> = roster
                    .iter()
                    .map(|member| &member.record)
                    .map(|record| {
                        let RecordAddr { kind, id } = record.addr.clone();
                        (kind, id, record.name.clone(), record.activity)
                    })
                    .collect();
                let same = shown.len() == expected.len()
                    && shown.iter().zip(expected).all(|(one, other)| {
                        (one.0.as_str(), &one.1, one.2.as_deref(), one.3)
                            == (other.0, &other.1, other.2, other.3)
                    });
                if same {
                    assert!(roster.iter().all(|member| member.record.repo_cwd == "/project"));
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), seen).await.expect("the roster comes to look like this");
    }

    #[tokio::test]
    async fn the_roster_shows_the_run_its_running_candidates_and_whether_it_waits() {
        let store = MemoryRunStore::new(Arc::new(SystemClock));
        let presence = Arc::new(MemoryPresence::new(Arc::new(SystemClock), InstanceId::random()));
        let claim = admitted(&store).await;
        let run = claim.run();
        let mut roll = Roll::new(presence.clone(), run, "/project".into());
        let itself = |activity| ("run", run.to_string(), None, activity);
        let worker = |name| ("worker", format!("{run}/{name}"), Some(name), Activity::Progressing);
        let playing = async {
            let append = async |events| {
                store.append(&claim, events).await.unwrap();
            };
            see(&presence, &[itself(Activity::Alive)]).await;
            let step = RunEvent::StepStarted { step: "dispatch".into(), name: "Dispatch".into() };
            append(vec![RunEvent::Started { pid: 1 }, step, started("a"), started("b")]).await;
            see(&presence, &[itself(Activity::Progressing), worker("a"), worker("b")]).await;
            append(vec![done("a")]).await;
            see(&presence, &[itself(Activity::Progressing), worker("b")]).await;
            let waits = RunEvent::ApprovalRequested {
                step: "dispatch".into(),
                expires_at: Timestamp::from_unix_ms(0),
                on_expiry: Choice::Reject,
            };
            append(vec![done("b"), waits]).await;
            see(&presence, &[itself(Activity::Waiting)]).await;
            append(vec![RunEvent::Resumed { by: "me".into() }, started("c")]).await;
            see(&presence, &[itself(Activity::Progressing), worker("c")]).await;
        };
        tokio::select! {
            never = roll.keep(&store) => match never {},
            () = playing => {}
        }
        roll.end().await;
        see(&presence, &[]).await;
    }
}
