//! Money held and spent.

use cyberine_types::{Billing, Clock as _, Usd};

use super::{Subject, answered, asked, settled};
use crate::claim::Claim;
use crate::error::StoreError;
use crate::event::RunState;
use crate::money::{CallerCap, Cap, DayTotals, Ledger, Reserve, Share, Used};
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

const CENT: Usd = Usd::from_micros(10_000);

fn share(provider: &str, cents: u64, cap: Option<u64>) -> Share {
    let of = |cents: u64| Usd::from_micros(CENT.micros() * cents);
    Share {
        provider: provider.to_owned(),
        billing: Billing::Metered,
        amount: of(cents),
        daily_cap: cap.map(of),
    }
}

async fn under<S: RunStore + Registry + Ledger>(subject: &Subject<S>, cap: Cap) -> DayTotals {
    subject.other.under(subject.clock.now().day(), cap).await.expect("a cap's money adds up")
}

pub(super) async fn a_provider_has_a_cap_of_its_own<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let reserve = |cap: u64| Reserve {
        shares: vec![share("a", 60, Some(cap)), share("b", 90, None)],
        ..Reserve::of(DOLLAR, None)
    };
    let first = subject.store.admit(subject.run("paid"), reserve(100)).await.expect("there is room");
    let refused = subject.store.admit(subject.run("paid"), reserve(100)).await;
    assert!(
        matches!(&refused, Err(StoreError::CapReached { of: Cap::Provider(name), cap, held, spent, wanted })
            if name == "a" && *cap == DOLLAR && *spent == Usd::ZERO
                && *held == share("", 60, None).amount && wanted == held),
        "40 cents are left: {refused:?}"
    );
    let second = subject.store.admit(subject.run("paid"), reserve(120)).await.expect("there is just room");
    assert_eq!(under(subject, Cap::Provider("b".to_owned())).await.reserved, share("", 180, None).amount);
    // What was not held there is charged there all the same, and what was held and not used comes back.
    subject.append(&first, asked(Billing::Metered)).await;
    subject.append(&first, vec![answered("Rhine", Some(0.25)), settled(RunState::Done)]).await;
    let a = under(subject, Cap::Provider("a".to_owned())).await;
    assert_eq!((a.reserved, a.spent), (share("", 60, None).amount, Usd::from_dollars(0.25)));
    assert_eq!(under(subject, Cap::Provider("b".to_owned())).await.reserved, share("", 90, None).amount);
    subject.append(&second, vec![settled(RunState::Cancelled)]).await;
    assert_eq!(under(subject, Cap::Provider("a".to_owned())).await.reserved, Usd::ZERO);
    assert_eq!(under(subject, Cap::Provider("b".to_owned())).await, DayTotals::default());
}

pub(super) async fn a_caller_has_a_cap_of_its_own<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let caps = |caps: &[(&str, f64)]| Reserve {
        caller_caps: caps
            .iter()
            .map(|(caller, cap)| CallerCap {
                caller: (*caller).to_owned(),
                daily_cap: Usd::from_dollars(*cap),
            })
            .collect(),
        ..Reserve::of(DOLLAR, None)
    };
    let by = |caller: &str| {
        let mut run = subject.run("paid");
        run.requested_by = caller.to_owned();
        run
    };
    let _one = subject.store.admit(by("host@1"), caps(&[("host", 2.0)])).await.expect("there is room");
    // Another version counts for the name, another name does not.
    let _two =
        subject.store.admit(by("host@2"), caps(&[("host@2", 1.0), ("host", 2.0)])).await.expect("room");
    let refused = subject.store.admit(by("host@2"), caps(&[("host@2", 5.0), ("host", 2.0)])).await;
    assert!(
        matches!(&refused, Err(StoreError::CapReached { of: Cap::Caller(name), held, .. })
            if name == "host" && *held == Usd::from_dollars(2.0)),
        "{refused:?}"
    );
    let _other = subject.store.admit(by("hostess@1"), caps(&[("hostess", 1.0)])).await.expect("another name");
    assert_eq!(under(subject, Cap::Caller("host@2".to_owned())).await.reserved, DOLLAR);
    assert_eq!(under(subject, Cap::Caller("ho".to_owned())).await, DayTotals::default());
    assert_eq!(today(subject).await.reserved, Usd::from_dollars(3.0));
}

pub(super) async fn unknown_cost_is_charged_at_the_share<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let shares = vec![share("a", 30, None), share("b", 40, None)];
    let reserve = Reserve { shares, ..Reserve::of(share("", 70, None).amount, None) };
    let claim = subject.store.admit(subject.run("paid"), reserve).await.expect("it is admitted");
    subject.append(&claim, asked(Billing::Metered)).await;
    subject.append(&claim, vec![answered("Rhine", None), settled(RunState::Done)]).await;
    assert_eq!(under(subject, Cap::Provider("a".to_owned())).await.spent, share("", 30, None).amount);
    assert_eq!(under(subject, Cap::Provider("b".to_owned())).await, DayTotals::default());
    assert_eq!(today(subject).await.spent, share("", 30, None).amount, "the day is the sum of the providers");
}

pub(super) async fn what_was_spent_is_told_by_day_provider_and_caller<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let first = subject.clock.now().day();
    for (billing, usd) in [(Billing::Metered, Some(0.25)), (Billing::Subscription, None)] {
        let claim = admit(subject, Usd::from_dollars(9.0)).await.expect("there is room");
        subject.append(&claim, asked(billing)).await;
        subject.append(&claim, vec![answered("Rhine", usd), settled(RunState::Done)]).await;
    }
    subject.clock.step(2 * 86_400_000);
    let last = subject.clock.now().day();
    let shares = vec![share("x", 30, None)];
    let reserve = Reserve { shares, ..Reserve::of(DOLLAR, None) };
    let _open = subject.store.admit(subject.run("open"), reserve).await.expect("it is admitted");
    let days = subject.other.spending(first, last).await.expect("days add up");
    assert_eq!(days.iter().map(|day| (day.day, day.runs)).collect::<Vec<_>>(), [(last, 1), (first, 2)]);
    let told = |day: usize| {
        let lines = days[day].providers.iter();
        lines.map(|one| (one.provider.as_str(), one.billing, one.totals, one.used)).collect::<Vec<_>>()
    };
    let none = Used::default();
    let held = DayTotals { reserved: share("", 30, None).amount, spent: Usd::ZERO };
    assert_eq!(told(0), [("x", Billing::Metered, held, none)]);
    let used = |unknown_cost| Used { turns: 1, unknown_cost, input: 3, output: 5 };
    let spent = DayTotals { reserved: Usd::ZERO, spent: Usd::from_dollars(0.25) };
    assert_eq!(
        told(1),
        [
            ("a", Billing::Metered, spent, used(0)),
            ("a", Billing::Subscription, DayTotals::default(), used(0))
        ]
    );
    let callers = &days[1].callers;
    assert_eq!((callers.len(), callers[0].caller.as_str(), callers[0].runs), (1, "contract@1", 2));
    assert_eq!((callers[0].totals, days[1].totals), (spent, spent));
    assert_eq!(subject.other.spending(last, last).await.expect("one day adds up").len(), 1);
    assert_eq!(subject.other.spending(last.before(1), last.before(1)).await.expect("an empty day"), []);
}

pub(super) async fn a_key_behind_a_subscription_is_charged<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = admit(subject, DOLLAR).await.expect("there is room");
    subject.append(&claim, asked(Billing::Subscription)).await;
    subject.append(&claim, vec![answered("Rhine", Some(0.5)), settled(RunState::Done)]).await;
    assert_eq!(today(subject).await.spent, Usd::from_dollars(0.5));
}
