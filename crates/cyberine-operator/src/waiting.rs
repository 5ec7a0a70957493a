//! Calls that wait for news.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cyberine_types::Principal;

/// How many calls of one principal wait at once. A connection carries more calls than that, so that
/// those which do not wait always find room.
pub(crate) const WAITS: usize = 128;
/// How many wait at once, whoever called.
const ALL: usize = 8 * WAITS;

/// Said by a call that would have waited.
const FULL: &str = "128 calls wait already, which is the most: this one did not. End some of them, or ask \
                    again after a while.";

/// The places of calls that wait. Nobody can take those of others, as far as there are any.
#[derive(Default)]
pub(crate) struct Waits(Mutex<HashMap<Principal, usize>>);

/// Leave to wait. Its place is given back when it is dropped.
pub(crate) struct Wait<'a> {
    place: Option<(&'a Waits, &'a Principal)>,
    /// How long.
    pub(crate) time: Duration,
    /// Why not as long as was asked for.
    pub(crate) note: Option<&'static str>,
}

impl Waits {
    fn taken(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave for a call of `principal` to wait so long; not at all, where as many wait as may.
    pub(crate) fn ask<'a>(&'a self, principal: &'a Principal, wait_ms: u64) -> Wait<'a> {
        let time = Duration::from_millis(wait_ms);
        if time.is_zero() {
            return Wait { place: None, time, note: None };
        }
        let mut taken = self.taken();
        let all: usize = taken.values().sum();
        let own = taken.get(principal).copied().unwrap_or_default();
        if own >= WAITS || all >= ALL {
            return Wait { place: None, time: Duration::ZERO, note: Some(FULL) };
        }
        taken.insert(principal.clone(), own + 1);
        Wait { place: Some((self, principal)), time, note: None }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some((waits, principal)) = self.place else { return };
        let mut taken = waits.taken();
        match taken.get_mut(principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.remove(principal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_of_one_wait_and_no_more_and_a_place_is_given_back() {
        let (waits, one, other) = (Waits::default(), Principal::local("one"), Principal::local("other"));
        let mut held: Vec<Wait<'_>> = (0..WAITS).map(|_| waits.ask(&one, 5)).collect();
        assert!(held.iter().all(|wait| wait.time == Duration::from_millis(5) && wait.note.is_none()));
        let refused = waits.ask(&one, 5);
        assert!(refused.time.is_zero() && refused.note.is_some_and(|note| note.contains(&WAITS.to_string())));
        assert_eq!(waits.ask(&one, 0).note, None, "what does not wait needs no place");
        assert_eq!(waits.ask(&other, 5).note, None, "others have places of their own");
        held.pop();
        assert_eq!(waits.ask(&one, 5).note, None);
        held.clear();
        assert!(waits.taken().is_empty());
    }

    #[test]
    fn all_together_are_bounded() {
        let waits = Waits::default();
        let principals: Vec<Principal> = (0..9).map(|n| Principal::local(n.to_string())).collect();
        let held: Vec<Wait<'_>> =
            principals.iter().flat_map(|who| (0..WAITS).map(|_| waits.ask(who, 5))).collect();
        assert_eq!(held.iter().filter(|wait| wait.note.is_none()).count(), ALL);
    }
}
