//! Random sequences of operations through several handles, against a model of the money and the
//! claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_run_store::{
    CancelOutcome, Choice, Claim, DayTotals, DecideOutcome, DeciderKind, Ledger, MemoryRunStore,
    ProcessCount, Reserve, RunEvent, RunState, RunStore, StoreError, Wish,
};
use cyberine_types::{Billing, Clock as _, CostBasis, RunId, Usage, Usd};
use proptest::prelude::*;

use crate::support::{Place, block_on};

#[derive(Debug, Clone)]
enum Op {
    Admit { cents: u64, cap: Option<u64> },
    Spend { run: usize, cents: Option<u64> },
    Settle { run: usize },
    Abandon { run: usize },
    Adopt { run: usize },
    Cancel { run: usize },
    Wait { run: usize },
    Resume { run: usize },
    Decide { run: usize, step: Option<u32>, choice: Choice },
}

/// What the model knows of one run.
#[derive(Debug)]
struct Known {
    held: u64,
    spent: u64,
    complete: bool,
    asked: u32,
    epoch: u64,
    last: u64,
    cancelled: bool,
    settled: bool,
    waits: bool,
    decided: BTreeMap<Option<u32>, Choice>,
    claim: Option<Claim>,
}

fn op() -> impl Strategy<Value = Op> {
    let run = 0..6_usize;
    prop_oneof![
        3 => (0..300_u64, prop::option::of(0..900_u64)).prop_map(|(cents, cap)| Op::Admit { cents, cap }),
        3 => (run.clone(), prop::option::of(0..200_u64)).prop_map(|(run, cents)| Op::Spend { run, cents }),
        2 => run.clone().prop_map(|run| Op::Settle { run }),
        1 => run.clone().prop_map(|run| Op::Abandon { run }),
        2 => run.clone().prop_map(|run| Op::Adopt { run }),
        1 => run.clone().prop_map(|run| Op::Cancel { run }),
        2 => run.clone().prop_map(|run| Op::Wait { run }),
        2 => run.clone().prop_map(|run| Op::Resume { run }),
        3 => (run, prop::option::of(0..2_u32), prop_oneof![Just(Choice::Approve), Just(Choice::Reject)])
            .prop_map(|(run, step, choice)| Op::Decide { run, step, choice }),
    ]
}

fn cents(amount: u64) -> Usd {
    Usd::from_micros(amount * 10_000)
}

fn settled(state: RunState) -> RunEvent {
    RunEvent::Settled { state, detail: "over".to_owned(), reason: None, processes: ProcessCount::default() }
}

fn spend(run: &Known, amount: Option<u64>) -> Vec<RunEvent> {
    let mut events = Vec::new();
    if run.asked == 0 {
        events.push(RunEvent::StepStarted { step: "s".to_owned(), name: "S".to_owned() });
    }
    let (step, candidate) = ("s".to_owned(), run.asked.to_string());
    events.push(RunEvent::CandidateStarted {
        step: step.clone(),
        candidate: candidate.clone(),
        provider: "p".to_owned(),
        kind: "k".to_owned(),
        model: None,
        billing: Billing::Metered,
    });
    let basis = if amount.is_some() { CostBasis::Reported } else { CostBasis::Unknown };
    let usage = Usage { output: 1, usd: amount.map(cents), basis, ..Usage::default() };
    events.push(RunEvent::CandidateDone { step, candidate, output: "x".to_owned(), usage, duration_ms: 1 });
    events
}

impl Known {
    fn charge(&self) -> u64 {
        if self.complete { self.spent } else { self.spent.max(self.held) }
    }
}

struct Model<'a, S> {
    place: &'a Place,
    handles: [S; 2],
    runs: Vec<(RunId, Known)>,
}

impl<S: RunStore + Ledger> Model<'_, S> {
    fn totals(&self) -> DayTotals {
        let held = self.runs.iter().filter(|(_, run)| !run.settled).map(|(_, run)| run.held).sum();
        let spent = self.runs.iter().filter(|(_, run)| run.settled).map(|(_, run)| run.charge()).sum();
        DayTotals { reserved: cents(held), spent: cents(spent) }
    }

    async fn apply(&mut self, turn: usize, op: &Op) {
        let index = match op {
            Op::Admit { cents: amount, cap } => return self.admit(turn, *amount, *cap).await,
            Op::Spend { run, .. }
            | Op::Settle { run }
            | Op::Abandon { run }
            | Op::Adopt { run }
            | Op::Cancel { run }
            | Op::Wait { run }
            | Op::Resume { run }
            | Op::Decide { run, .. } => *run,
        };
        let store = &self.handles[turn % 2];
        let Some((id, run)) = self.runs.get_mut(index) else { return };
        match op {
            Op::Admit { .. } => {}
            Op::Spend { cents, .. } => {
                let events = spend(run, *cents);
                let count = events.len() as u64;
                if append(store, run, events, !run.waits).await {
                    run.last += count;
                    run.asked += 1;
                    run.spent += cents.unwrap_or(0);
                    run.complete &= cents.is_some();
                }
            }
            Op::Settle { .. } => {
                if append(store, run, vec![settled(RunState::Done)], true).await {
                    run.last += 1;
                    (run.settled, run.waits) = (true, false);
                }
            }
            Op::Wait { .. } => {
                let (step, expires_at) = ("s".to_owned(), self.place.clock.now());
                let event = RunEvent::ApprovalRequested { step, expires_at, on_expiry: Choice::Reject };
                if append(store, run, vec![event], run.asked > 0 && !run.waits).await {
                    run.last += 1;
                    run.waits = true;
                }
            }
            Op::Resume { .. } => {
                let event = RunEvent::Resumed { by: "model".to_owned() };
                if append(store, run, vec![event], run.waits).await {
                    run.last += 1;
                    run.waits = false;
                }
            }
            Op::Decide { step, choice, .. } => decide(store, *id, run, *step, *choice).await,
            Op::Abandon { .. } => run.claim = None,
            Op::Adopt { .. } => {
                let adopted = store.adopt(*id).await.unwrap();
                assert_eq!(adopted.is_some(), !run.settled && run.claim.is_none());
                if let Some(claim) = adopted {
                    run.epoch += 1;
                    assert_eq!(claim.epoch(), run.epoch);
                    run.claim = Some(claim);
                }
            }
            Op::Cancel { .. } => {
                let outcome = store.request_cancel(*id, "model".to_owned(), None).await.unwrap();
                if run.settled {
                    assert_eq!(outcome, CancelOutcome::AlreadyFinished(RunState::Done));
                } else {
                    assert_eq!(outcome, CancelOutcome::Requested);
                    run.last += u64::from(!run.cancelled);
                    run.cancelled = true;
                }
            }
        }
    }

    async fn admit(&mut self, turn: usize, amount: u64, cap: Option<u64>) {
        let reserve = Reserve::of(cents(amount), cap.map(cents));
        let new = self.place.run("model");
        let id = new.id;
        let totals = self.totals();
        let fits = cap.is_none_or(|cap| totals.reserved + totals.spent + cents(amount) <= cents(cap));
        match self.handles[turn % 2].admit(new, reserve).await {
            Ok(claim) => {
                assert!(fits, "{totals:?} leave no room for {amount} cents under {cap:?}");
                let known = Known {
                    held: amount,
                    spent: 0,
                    complete: true,
                    asked: 0,
                    epoch: 1,
                    last: 1,
                    cancelled: false,
                    settled: false,
                    waits: false,
                    decided: BTreeMap::new(),
                    claim: Some(claim),
                };
                self.runs.push((id, known));
            }
            Err(StoreError::CapReached { held, spent, .. }) => {
                assert!(!fits);
                assert_eq!(DayTotals { reserved: held, spent }, totals);
            }
            Err(error) => unreachable!("{error}"),
        }
    }

    async fn agrees(&self) {
        let day = self.place.clock.now().day();
        for store in &self.handles {
            assert_eq!(store.day(day).await.unwrap(), self.totals());
            let open: Vec<RunId> =
                self.runs.iter().filter(|(_, run)| !run.settled).map(|(id, _)| *id).collect();
            assert_eq!(store.unsettled().await.unwrap(), open);
            for (id, known) in &self.runs {
                let run = store.load(*id).await.unwrap().unwrap();
                assert_eq!(run.next_seq - 1, known.last);
                assert_eq!(run.state.is_terminal(), known.settled);
                assert_eq!(
                    (run.state == RunState::Suspended, run.awaiting.is_some()),
                    (known.waits, known.waits)
                );
                assert_eq!(run.decisions.len(), known.decided.len());
            }
        }
    }

    async fn wind_down(&mut self) {
        for (id, run) in &mut self.runs {
            if !run.settled {
                run.claim = None;
                let claim = self.handles[0].adopt(*id).await.unwrap().unwrap();
                self.handles[1].append(&claim, vec![settled(RunState::Error)]).await.unwrap();
                (run.settled, run.waits, run.last) = (true, false, run.last + 1);
            }
        }
        assert_eq!(self.totals().reserved, Usd::ZERO);
        self.agrees().await;
    }
}

/// Step 0 is `s`, once it has begun; there is never a step 1.
async fn decide(store: &impl RunStore, id: RunId, run: &mut Known, step: Option<u32>, choice: Choice) {
    let step_id = step.map(|step| if step == 0 { "s" } else { "t" }.to_owned());
    let wish = Wish { choice, step: step_id, comment: None, by: "model".to_owned(), kind: DeciderKind::Mcp };
    let outcome = store.decide(id, wish).await.unwrap();
    let there = step.is_none_or(|step| step == 0 && run.asked > 0);
    match (there, run.decided.get(&step), outcome) {
        (false, None, DecideOutcome::UnknownStep { .. }) => {}
        (true, Some(stands), DecideOutcome::Standing(found)) => assert_eq!(found.decision, *stands),
        (true, None, DecideOutcome::Recorded(found)) => {
            assert_eq!(found.decision, choice);
            run.decided.insert(step, choice);
            run.last += 1;
        }
        other => unreachable!("{other:?}"),
    }
}

/// Whether the append went through; it does exactly where the claim is held, the run is open and
/// the events fit.
async fn append(store: &impl RunStore, run: &Known, events: Vec<RunEvent>, fits: bool) -> bool {
    let Some(claim) = &run.claim else { return false };
    match store.append(claim, events).await {
        Ok(_) => {
            assert!(!run.settled && fits);
            true
        }
        Err(StoreError::EventRefused { .. }) => {
            assert!(!run.settled && !fits);
            false
        }
        Err(StoreError::Fenced { .. }) => {
            assert!(run.settled);
            false
        }
        Err(error) => unreachable!("{error}"),
    }
}

fn check<S: RunStore + Ledger>(place: &Place, handles: [S; 2], ops: &[Op]) {
    block_on(async {
        let mut model = Model { place, handles, runs: Vec::new() };
        for (turn, op) in ops.iter().enumerate() {
            model.apply(turn, op).await;
        }
        model.agrees().await;
        model.wind_down().await;
        let distinct: BTreeMap<_, _> = model.runs.iter().map(|(id, run)| (*id, run.epoch)).collect();
        assert_eq!(distinct.len(), model.runs.len());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sqlite_store_follows_the_model(ops in prop::collection::vec(op(), 1..24)) {
        let place = Place::new();
        check(&place, [place.store(), place.store()], &ops);
    }

    #[test]
    fn the_memory_store_follows_the_model(ops in prop::collection::vec(op(), 1..60)) {
        let place = Place::new();
        let store = MemoryRunStore::new(Arc::clone(&place.clock) as Arc<dyn cyberine_types::Clock>);
        check(&place, [store.clone(), store], &ops);
    }
}
