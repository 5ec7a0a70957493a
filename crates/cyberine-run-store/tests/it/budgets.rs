//! Many processes that spend under one day's, two providers' and four callers' caps.

use std::io::Read as _;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cyberine_run_store::{Cap, DayTotals, Ledger as _, RunStore as _};
use cyberine_types::{Clock as _, Usd};

use crate::support::{Dice, Place, Said, assert_sound, block_on, child_about, interrupted};

/// How many spend at the same time.
const SPENDERS: u32 = 16;
/// How many of them are killed on their way.
const KILLED: u32 = 6;

/// Every cap the spenders are under, in dollars.
fn caps() -> Vec<(Cap, f64)> {
    let provider = |name: &str| Cap::Provider(name.to_owned());
    let callers = (0..4).map(|at| (Cap::Caller(format!("host{at}")), 2.0));
    [(Cap::Day, 6.0), (provider("a"), 4.0), (provider("b"), 3.0)].into_iter().chain(callers).collect()
}

fn under(place: &Place, cap: &Cap) -> DayTotals {
    block_on(place.store().under(place.clock.now().day(), cap.clone())).unwrap()
}

#[test]
fn of_16_processes_that_spend_and_die_no_cap_is_ever_exceeded_and_nothing_stays_held() {
    let place = Place::new();
    let over = AtomicBool::new(false);
    let (said, looks) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut looks = 0_u32;
            while !over.load(Ordering::Relaxed) {
                for (cap, dollars) in caps() {
                    let totals = under(&place, &cap);
                    let all = totals.reserved + totals.spent;
                    assert!(all <= Usd::from_dollars(dollars), "{cap:?}: {totals:?}");
                }
                looks += 1;
            }
            looks
        });
        let mut spenders: Vec<Child> = (0..SPENDERS)
            .map(|at| {
                let about = format!("host{}@{at} {}", at % 4, place.project().display());
                child_about(&place, "spender", &about).spawn().unwrap()
            })
            .collect();
        let mut dice = Dice(0x51ed_270b);
        for one in spenders.iter_mut().take(KILLED as usize) {
            // The moment of death is the point: nothing is waited for here.
            std::thread::sleep(Duration::from_millis(dice.roll(120)));
            one.kill().unwrap();
        }
        let mut said = Said::default();
        for mut one in spenders {
            let mut text = String::new();
            one.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            one.wait().unwrap();
            said.join(Said::parse(&text));
        }
        over.store(true, Ordering::Relaxed);
        (said, watching.join().unwrap())
    });
    assert!(said.refusals.iter().all(|code| code == "cap_reached"), "{:?}", said.refusals);
    assert!(said.refusals.len() >= 80 && looks > 3, "{} refusals, {looks} looks", said.refusals.len());
    let before = under(&place, &Cap::Day);
    assert!(before.reserved > Usd::ZERO && before.spent > Usd::from_dollars(1.0), "{before:?}");
    eprintln!("{} acknowledged, {} refused, {looks} looks, {before:?}", said.acks.len(), said.refusals.len());
    settle_what_is_left(&place);
    for (cap, dollars) in caps() {
        let totals = under(&place, &cap);
        assert_eq!(totals.reserved, Usd::ZERO, "{cap:?}");
        assert!(totals.spent <= Usd::from_dollars(dollars), "{cap:?}: {totals:?}");
    }
    assert_sound(&place, &said.acks);
}

fn settle_what_is_left(place: &Place) {
    let since = Instant::now();
    block_on(async {
        let store = place.store();
        for id in store.unsettled().await.unwrap() {
            let claim = store.adopt(id).await.unwrap().unwrap();
            store.append(&claim, vec![interrupted()]).await.unwrap();
        }
    });
    assert!(since.elapsed() < Duration::from_secs(20));
}
