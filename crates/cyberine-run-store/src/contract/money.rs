//! Money held and spent.

use cyberine_types::{Billing, Clock as _, Usd};

use super::{Subject, answered, asked, settled};
use crate::claim::Claim;
use crate::error::StoreError;
use crate::event::RunState;
use crate::money::{DayTotals, Ledger, Reserve};
use crate::port::{Registry, RunStore};

const DOLLAR: Usd = Usd::from_micros(1_000_000);

async fn admit<S: RunStore + Registry + Ledger>(subject: &Subject<S>, cap: Usd) -> Result<Claim, StoreError> {
    subject.store.admit(subject.run("paid"), Reserve::of(DOLLAR, Some(cap))).await
}

async fn today<S: RunStore + Registry + Ledger>(subject: &Subject<S>) -> DayTotals {
    subject.other.day(subject.clock.now().day()).await.expect("a day adds up")
}

pub(super) async fn the_cap_counts_what_is_held_and_what_was_spent<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let cap = Usd::from_dollars(2.0);
    let first = admit(subject, cap).await.expect("there is room");
    let second = admit(subject, cap).await.expect("there is just room");
    let refused = admit(subject, cap).await;
    assert!(
        matches!(refused, Err(StoreError::CapReached { held, spent, wanted, .. })
            if held == cap && spent == Usd::ZERO && wanted == DOLLAR),
        "{refused:?}"
    );
    subject.append(&first, asked(Billing::Metered)).await;
    subject.append(&first, vec![answered("Rhine", Some(0.25)), settled(RunState::Done)]).await;
    assert_eq!(today(subject).await, DayTotals { reserved: DOLLAR, spent: Usd::from_dollars(0.25) });
    assert!(admit(subject, cap).await.is_err(), "three quarters of a dollar are left");
    subject.append(&second, vec![settled(RunState::Error)]).await;
    assert_eq!(today(subject).await, DayTotals { reserved: Usd::ZERO, spent: Usd::from_dollars(0.25) });
    admit(subject, cap).await.expect("there is room again");
}

pub(super) async fn a_refused_run_leaves_nothing<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let new = subject.run("refused");
    let none = Reserve::of(DOLLAR, Some(Usd::ZERO));
    assert!(matches!(subject.store.admit(new.clone(), none).await, Err(StoreError::CapReached { .. })));
    assert_eq!(subject.other.load(new.id).await.expect("absence is an answer"), None);
    assert_eq!(subject.other.unsettled().await.expect("they are listed"), []);
    assert_eq!(today(subject).await, DayTotals::default());
    let free = Reserve::of(Usd::ZERO, Some(Usd::ZERO));
    subject.store.admit(new, free).await.expect("the id is free, and so is the run");
}

pub(super) async fn each_day_has_a_cap_of_its_own<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let yesterday = admit(subject, DOLLAR).await.expect("there is room");
    let day = subject.clock.now().day();
    assert!(admit(subject, DOLLAR).await.is_err());
    subject.clock.step(86_400_000);
    let today_claim = admit(subject, DOLLAR).await.expect("a new day has room");
    subject.append(&yesterday, vec![settled(RunState::Cancelled)]).await;
    assert_eq!(subject.other.day(day).await.expect("it adds up"), DayTotals::default());
    assert_eq!(today(subject).await.reserved, DOLLAR, "settling yesterday's run leaves today alone");
    drop(today_claim);
}

pub(super) async fn unknown_metered_cost_is_charged_in_full<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    for (billing, expected) in [
        (Billing::Metered, DOLLAR),
        (Billing::Subscription, Usd::ZERO),
        (Billing::Free, Usd::ZERO),
        (Billing::Scripted, Usd::ZERO),
    ] {
        subject.clock.step(86_400_000);
        let claim = admit(subject, DOLLAR).await.expect("there is room");
        subject.append(&claim, asked(billing)).await;
        subject.append(&claim, vec![answered("Rhine", None), settled(RunState::Done)]).await;
        assert_eq!(today(subject).await, DayTotals { reserved: Usd::ZERO, spent: expected }, "{billing:?}");
    }
}
