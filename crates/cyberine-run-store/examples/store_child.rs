//! A process that uses a store and is meant to be killed: the fault tests start it. Every line it
//! prints is an acknowledgement, `ack <run id> <last sequence number>`, `decided <run id> <step or
//! -> <choice>`, `began <key> <draft>` or `finished <key> <result>`; an answer, `stood <choice>` or
//! `found <draft>`; or a refusal, `refused <code>`.
#![expect(
    clippy::unwrap_used,
    reason = "a test's child speaks on its standard output and stops where it fails"
)]

use std::io::Read as _;
use std::sync::Arc;

use cyberine_run_store::{
    Begun, CallerCap, Choice, Claim, DecideOutcome, DeciderKind, Idempotency as _, IdempotencyKey, NewRun,
    ProcessCount, Reserve, RunEvent, RunState, RunStore as _, Share, SqliteRunStore, StoreError, Wish,
};
use cyberine_types::{Billing, CostBasis, ManualClock, RunId, Timestamp, Usage, Usd};

struct Child {
    store: SqliteRunStore,
    project: String,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, home, rest] = args.as_slice() else { return say("refused usage") };
    // The same noon for all, so that no test meets midnight.
    let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
    let child = Child { store: SqliteRunStore::new(home, clock), project: rest.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        match mode.as_str() {
            "capped" => child.capped().await,
            "spender" => child.spends_until_refused().await,
            "once" => child.whole_run().await,
            "forever" => loop {
                child.whole_run().await?;
            },
            "twice" => match child.whole_run().await {
                // Once more in the same process: a fault that has passed needs no restart.
                Err(error) => {
                    say(&format!("refused {}", error.code()));
                    child.whole_run().await
                }
                done => done,
            },
            "runner" => child.runner().await,
            "decided" => child.decided_run().await,
            "decided-forever" => loop {
                child.decided_run().await?;
            },
            "decide" => child.decide_when_told().await,
            "key" => child.begin_when_told().await,
            _ => {
                say("refused usage");
                Ok(())
            }
        }
    });
    if let Err(error) = outcome {
        say(&format!("refused {}", error.code()));
    }
}

/// One call a line, so that a line is there whole or not at all; and one that the store does not
/// use, so that a fault injected into the store's calls cannot silence the child.
fn say(line: &str) {
    let line = format!("{line}\n");
    rustix::io::writev(std::io::stdout(), &[std::io::IoSlice::new(line.as_bytes())]).unwrap();
}

impl Child {
    async fn admit(&self, daily_cap: Option<Usd>) -> Result<Claim, StoreError> {
        let run = NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".to_owned(),
            prompt: "three rivers".to_owned(),
            cwd: self.project.clone(),
            requested_by: "child@1".to_owned(),
            spec: serde_json::json!({}),
        };
        let claim = self.store.admit(run, Reserve::of(Usd::from_dollars(1.0), daily_cap)).await?;
        say(&format!("ack {} 1", claim.run()));
        Ok(claim)
    }

    async fn append(&self, claim: &Claim, events: Vec<RunEvent>) -> Result<(), StoreError> {
        let last = self.store.append(claim, events).await?;
        say(&format!("ack {} {last}", claim.run()));
        Ok(())
    }

    /// Wants one run of ten that a day has room for, and holds it until standard input ends.
    async fn capped(&self) -> Result<(), StoreError> {
        let _claim = self.admit(Some(Usd::from_dollars(10.0))).await?;
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        Ok(())
    }

    /// Runs one run after the other under every kind of cap, until eight in a row are refused. They
    /// end in every way there is, some not at all. `project` is `<caller> <project>` here.
    async fn spends_until_refused(&self) -> Result<(), StoreError> {
        let (caller, project) = self.project.split_once(' ').unwrap();
        let (mut refused, mut turn) = (0, std::process::id());
        while refused < 8 {
            turn = turn.wrapping_add(1);
            let run = NewRun {
                id: RunId::random(),
                workflow: "mcp-orchestrate".to_owned(),
                prompt: "three rivers".to_owned(),
                cwd: project.to_owned(),
                requested_by: caller.to_owned(),
                spec: serde_json::json!({}),
            };
            let share = |provider: &str, cents: u32, cap: u32| Share {
                provider: provider.to_owned(),
                billing: Billing::Metered,
                amount: Usd::from_dollars(f64::from(cents) / 100.0),
                daily_cap: Some(Usd::from_dollars(f64::from(cap))),
            };
            let name = caller.split_once('@').unwrap().0;
            let reserve = Reserve {
                shares: vec![share("a", 20, 4), share("b", 15, 3)],
                caller_caps: vec![CallerCap { caller: name.to_owned(), daily_cap: Usd::from_dollars(2.0) }],
                ..Reserve::of(Usd::from_dollars(0.3), Some(Usd::from_dollars(6.0)))
            };
            let claim = match self.store.admit(run, reserve).await {
                Ok(claim) => claim,
                Err(StoreError::CapReached { .. }) => {
                    refused += 1;
                    say("refused cap_reached");
                    continue;
                }
                Err(error) => return Err(error),
            };
            refused = 0;
            say(&format!("ack {} 1", claim.run()));
            self.append(&claim, begin()).await?;
            let usage = |dollars: f64| Usage {
                usd: Some(Usd::from_dollars(dollars)),
                basis: CostBasis::Reported,
                ..Usage::default()
            };
            let (step, candidate) = ("dispatch".to_owned(), "a".to_owned());
            let ended = |state| {
                let processes = ProcessCount::default();
                RunEvent::Settled { state, detail: "over".to_owned(), reason: None, processes }
            };
            match turn % 5 {
                // Its claim is given up with money held: whoever looks next settles it.
                0 => drop(claim),
                1 => self.append(&claim, vec![ended(RunState::Cancelled)]).await?,
                2 => {
                    let (code, message, usage) = ("rejected".to_owned(), "no".to_owned(), Usage::default());
                    let failed =
                        RunEvent::CandidateFailed { step, candidate, code, message, usage, duration_ms: 1 };
                    self.append(&claim, vec![failed, ended(RunState::Error)]).await?;
                }
                _ => {
                    let (output, usage) = ("Rhine".to_owned(), usage(0.11));
                    let done = RunEvent::CandidateDone { step, candidate, output, usage, duration_ms: 1 };
                    self.append(&claim, vec![done, ended(RunState::Done)]).await?;
                }
            }
        }
        Ok(())
    }

    async fn whole_run(&self) -> Result<(), StoreError> {
        let claim = self.admit(None).await?;
        self.append(&claim, begin()).await?;
        let id = claim.run();
        self.store.request_cancel(id, "child@1".to_owned(), None).await?;
        say(&format!("ack {id} 5"));
        drop(claim);
        let Some(claim) = self.store.adopt(id).await? else { return Err(StoreError::NotFound { run: id }) };
        say(&format!("ack {id} 5"));
        let done = RunEvent::CandidateDone {
            step: "dispatch".to_owned(),
            candidate: "a".to_owned(),
            output: "Rhine, Danube, Elbe".to_owned(),
            usage: Usage {
                usd: Some(Usd::from_dollars(0.1)),
                basis: CostBasis::Reported,
                ..Usage::default()
            },
            duration_ms: 1,
        };
        self.append(&claim, vec![done]).await?;
        self.append(&claim, vec![settled()]).await
    }

    /// A run that waits for its approval, gets it, ends, and is decided on once more; under a key.
    async fn decided_run(&self) -> Result<(), StoreError> {
        let key = key(&RunId::random().to_string());
        let claim = self.admit(None).await?;
        self.begin(&key).await?;
        let (step, at) = ("dispatch".to_owned(), Timestamp::from_unix_ms(1_796_040_060_000));
        let mut events = begin();
        let (candidate, code, message) = ("a".to_owned(), "auth".to_owned(), "no".to_owned());
        let usage = Usage::default();
        let failed =
            RunEvent::CandidateFailed { step: step.clone(), candidate, code, message, usage, duration_ms: 1 };
        events.push(failed);
        events.push(RunEvent::ApprovalRequested { step, expires_at: at, on_expiry: Choice::Reject });
        self.append(&claim, events).await?;
        let id = claim.run();
        self.decide(id, Some("dispatch"), Choice::Approve).await?;
        self.append(&claim, vec![RunEvent::Resumed { by: "child@1".to_owned() }, settled()]).await?;
        drop(claim);
        self.decide(id, None, Choice::Reject).await?;
        self.store.finish(key.clone(), serde_json::json!(id.to_string())).await?;
        say(&format!("finished {} {id}", key.key));
        Ok(())
    }

    async fn decide(&self, id: RunId, step: Option<&str>, choice: Choice) -> Result<(), StoreError> {
        let by = format!("child@{}", std::process::id());
        let wish = Wish { choice, step: step.map(str::to_owned), comment: None, by, kind: DeciderKind::Mcp };
        match self.store.decide(id, wish).await? {
            DecideOutcome::Recorded(decision) => {
                say(&format!("decided {id} {} {}", step.unwrap_or("-"), decision.decision.name()));
            }
            DecideOutcome::Standing(decision) => say(&format!("stood {}", decision.decision.name())),
            DecideOutcome::UnknownStep { .. } | DecideOutcome::NotFound => say("refused nothing"),
        }
        Ok(())
    }

    async fn begin(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        let draft = RunId::random().to_string();
        match self.store.begin(key.clone(), draft.clone()).await? {
            Begun::Fresh => say(&format!("began {} {draft}", key.key)),
            Begun::Unfinished { draft } => say(&format!("found {draft}")),
            Begun::Finished(result) => say(&format!("finished {} {}", key.key, result.as_str().unwrap())),
            Begun::Conflict => say("refused conflict"),
        }
        Ok(())
    }

    /// Decides as `project` says, `<run id> <choice>` here, once standard input ends.
    async fn decide_when_told(&self) -> Result<(), StoreError> {
        let (id, choice) = self.project.split_once(' ').unwrap();
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        let choice = if choice == "approve" { Choice::Approve } else { Choice::Reject };
        self.decide(id.parse().unwrap(), None, choice).await
    }

    /// Opens the key that `project` is here, once standard input ends.
    async fn begin_when_told(&self) -> Result<(), StoreError> {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        self.begin(&key(&self.project)).await
    }

    /// Takes the lock it was given as standard input; `project` is the run's id here.
    async fn runner(&self) -> Result<(), StoreError> {
        let lock = cyberine_process::take_stdin().unwrap();
        let id = self.project.parse().unwrap();
        let claim = self.store.claim_handed_over(id, lock, std::process::id()).await?;
        say(&format!("ack {id} {}", claim.epoch()));
        loop {
            std::thread::park();
        }
    }
}

fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey { scope: "child".to_owned(), key: key.to_owned(), fingerprint: "same".to_owned() }
}

fn settled() -> RunEvent {
    let processes = ProcessCount::default();
    RunEvent::Settled { state: RunState::Done, detail: "over".to_owned(), reason: None, processes }
}

fn begin() -> Vec<RunEvent> {
    vec![
        RunEvent::Started { pid: std::process::id() },
        RunEvent::StepStarted { step: "dispatch".to_owned(), name: "Dispatch".to_owned() },
        RunEvent::CandidateStarted {
            step: "dispatch".to_owned(),
            candidate: "a".to_owned(),
            provider: "a".to_owned(),
            kind: "command".to_owned(),
            model: None,
            billing: Billing::Metered,
        },
    ]
}
