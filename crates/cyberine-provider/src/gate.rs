//! The gate before one account of a provider: when one turn is told to wait, all wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cyberine_types::{Clock, Timestamp};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

/// The longest an account stays closed, whatever was said: who asks again after that is told anew.
pub const LONGEST_CLOSED: Duration = Duration::from_secs(60 * 60);
/// How long the others wait how the first turn after a wait fares. A refusal comes sooner.
const TRIAL: Duration = Duration::from_secs(10);
/// Within what time those that waited begin, at least and at most.
const SPREAD: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// The longest reason that is kept, in characters.
const REASON: usize = 300;

/// What a gate says to a turn that wants to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// It may begin.
    Open,
    /// It may begin, and the others wait how it fares: it tells with [`AccountGate::leave`].
    Trial,
    /// The account is closed.
    Closed {
        /// For how long yet.
        left: Duration,
        /// What the provider said.
        reason: String,
        /// Within what time those that wait are to begin afterwards.
        spread: Duration,
    },
    /// The time is over, and another turn tries whether the account is open.
    Tried {
        /// For how long that is waited for yet.
        left: Duration,
        /// Within what time those that wait are to begin afterwards.
        spread: Duration,
    },
}

/// The right to run a turn, where only so many may run at once. Dropped, it is free for the next.
pub type Place = Box<dyn Send + Sync>;

/// A gate that does not work. A turn goes past it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the gate of a provider's account does not work: {detail}")]
pub struct GateError {
    /// What went wrong.
    pub detail: String,
}

/// The gate before one account of a provider, shared by every turn that uses the account. A turn
/// is known by a number it has drawn for itself.
pub trait AccountGate: Send + Sync {
    /// Asks to begin.
    ///
    /// # Errors
    /// [`GateError`]; the turn begins then as if it were open.
    fn enter(&self, turn: u64) -> BoxFuture<'_, Result<Entry, GateError>>;

    /// Closes the account for at least `wait` from now, since `turn` was told so for `reason`.
    ///
    /// # Errors
    /// [`GateError`]; the turn waits alone then.
    fn close(&self, turn: u64, wait: Duration, reason: String) -> BoxFuture<'_, Result<(), GateError>>;

    /// How the turn fares that tries whether the account is open: it was let in, or it ended
    /// without having learned that. Of any other turn this says nothing.
    ///
    /// # Errors
    /// [`GateError`]; the others find out by themselves.
    fn leave(&self, turn: u64, let_in: bool) -> BoxFuture<'_, Result<(), GateError>>;

    /// A place among the turns that may run at once; `None` where all are taken.
    ///
    /// # Errors
    /// [`GateError`]; the turn begins then without one.
    fn place(&self) -> BoxFuture<'_, Result<Option<Place>, GateError>>;
}

/// Whether an account is open, and since when not. Pure; kept in memory or in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateState {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    closed: Option<Closed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Closed {
    until: Timestamp,
    reason: String,
    spread_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    trial: Option<Trial>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trial {
    turn: u64,
    until: Timestamp,
}

impl GateState {
    /// Until when the account is closed, and what the provider said; `None` where it is open.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Option<(Timestamp, &str)> {
        let left = |closed: &&Closed| until(now, closed.until);
        let shut = |closed: &&Closed| !left(closed).is_zero() && left(closed) <= LONGEST_CLOSED;
        self.closed.as_ref().filter(shut).map(|closed| (closed.until, closed.reason.as_str()))
    }

    /// See [`AccountGate::enter`].
    pub fn enter(&mut self, turn: u64, now: Timestamp) -> Entry {
        let Some(closed) = &mut self.closed else { return Entry::Open };
        let spread = Duration::from_millis(closed.spread_ms);
        let left = until(now, closed.until);
        if left > LONGEST_CLOSED {
            // The clock was set back, and nobody knows any more how long it was.
            self.closed = None;
            return Entry::Open;
        }
        if !left.is_zero() {
            return Entry::Closed { left, reason: closed.reason.clone(), spread };
        }
        match closed.trial {
            Some(trial) if trial.turn == turn => Entry::Trial,
            Some(trial) if now < trial.until && until(now, trial.until) <= TRIAL => {
                Entry::Tried { left: until(now, trial.until), spread }
            }
            Some(_) => {
                // No refusal has come, which comes at once where one does.
                self.closed = None;
                Entry::Open
            }
            None => {
                closed.trial = Some(Trial { turn, until: after(now, TRIAL) });
                Entry::Trial
            }
        }
    }

    /// See [`AccountGate::close`].
    pub fn close(&mut self, now: Timestamp, wait: Duration, reason: &str) {
        let wait = wait.min(LONGEST_CLOSED);
        let this = after(now, wait);
        let earlier = self.closed.as_ref().map(|closed| closed.until);
        if earlier.is_some_and(|earlier| earlier >= this && until(now, earlier) <= LONGEST_CLOSED) {
            return;
        }
        let spread = (wait / 5).clamp(SPREAD.0, SPREAD.1);
        self.closed = Some(Closed {
            until: this,
            reason: reason.chars().filter(|c| !c.is_control()).take(REASON).collect(),
            spread_ms: u64::try_from(spread.as_millis()).unwrap_or(u64::MAX),
            trial: None,
        });
    }

    /// See [`AccountGate::leave`].
    pub fn leave(&mut self, turn: u64, let_in: bool) {
        let Some(closed) = &mut self.closed else { return };
        if closed.trial.is_none_or(|trial| trial.turn != turn) {
            return;
        }
        if let_in {
            self.closed = None;
        } else {
            closed.trial = None;
        }
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(then.unix_ms().saturating_sub(now.unix_ms())).unwrap_or_default())
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_ms(now.unix_ms().saturating_add(wait))
}

/// A gate for the turns of one process.
pub struct MemoryGate {
    clock: Arc<dyn Clock>,
    state: Mutex<GateState>,
    places: Option<Arc<Semaphore>>,
}

impl MemoryGate {
    /// An open gate that lets any number of turns run at once, or as many as `places`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, places: Option<usize>) -> Self {
        let places = places.map(|places| Arc::new(Semaphore::new(places.max(1))));
        Self { clock, state: Mutex::default(), places }
    }

    fn with<T>(&self, change: impl FnOnce(&mut GateState, Timestamp) -> T) -> T {
        // Whatever panicked with it left a state that is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state, self.clock.now())
    }
}

impl AccountGate for MemoryGate {
    fn enter(&self, turn: u64) -> BoxFuture<'_, Result<Entry, GateError>> {
        let entry = self.with(|state, now| state.enter(turn, now));
        Box::pin(std::future::ready(Ok(entry)))
    }

    fn close(&self, _turn: u64, wait: Duration, reason: String) -> BoxFuture<'_, Result<(), GateError>> {
        self.with(|state, now| state.close(now, wait, &reason));
        Box::pin(std::future::ready(Ok(())))
    }

    fn leave(&self, turn: u64, let_in: bool) -> BoxFuture<'_, Result<(), GateError>> {
        self.with(|state, _| state.leave(turn, let_in));
        Box::pin(std::future::ready(Ok(())))
    }

    fn place(&self) -> BoxFuture<'_, Result<Option<Place>, GateError>> {
        let place: Option<Place> = match &self.places {
            None => Some(Box::new(())),
            Some(places) => Arc::clone(places).try_acquire_owned().ok().map(|place| Box::new(place) as Place),
        };
        Box::pin(std::future::ready(Ok(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(ms)
    }

    fn closed(left_ms: u64) -> Entry {
        let spread = Duration::from_millis(2_000);
        Entry::Closed { left: Duration::from_millis(left_ms), reason: "429".into(), spread }
    }

    /// Closed at 0 for 10 s.
    fn shut() -> GateState {
        let mut state = GateState::default();
        assert_eq!(state.enter(1, at(0)), Entry::Open);
        state.close(at(0), Duration::from_secs(10), "42\n9");
        state
    }

    #[test]
    fn nobody_enters_before_the_time_is_over_and_then_one_alone() {
        let mut state = shut();
        assert_eq!(state.enter(2, at(0)), closed(10_000));
        assert_eq!(state.enter(2, at(9_999)), closed(1));
        assert_eq!(state.enter(2, at(10_000)), Entry::Trial);
        let spread = Duration::from_secs(2);
        assert_eq!(state.enter(3, at(10_001)), Entry::Tried { left: Duration::from_millis(9_999), spread });
        assert_eq!(state.enter(2, at(10_002)), Entry::Trial, "the one who tries may ask again");
        state.leave(3, true);
        assert!(matches!(state.enter(3, at(10_003)), Entry::Tried { .. }), "only who tries knows");
        state.leave(2, true);
        assert_eq!(state.enter(3, at(10_004)), Entry::Open);
    }

    #[test]
    fn a_trial_that_fails_closes_anew_and_one_that_is_given_up_is_taken_by_the_next() {
        let mut state = shut();
        assert_eq!(state.enter(2, at(10_000)), Entry::Trial);
        state.close(at(10_500), Duration::from_secs(10), "429");
        assert_eq!(state.enter(2, at(10_500)), closed(10_000));
        assert_eq!(state.enter(3, at(20_500)), Entry::Trial);
        state.leave(3, false);
        assert_eq!(state.enter(4, at(20_501)), Entry::Trial);
        state.leave(3, true);
        assert!(matches!(state.enter(5, at(20_502)), Entry::Tried { .. }), "its trial is over");
    }

    #[test]
    fn a_trial_without_a_refusal_or_of_one_that_died_opens_in_the_end() {
        let mut state = shut();
        assert_eq!(state.enter(2, at(10_000)), Entry::Trial);
        assert!(matches!(state.enter(3, at(19_999)), Entry::Tried { .. }));
        assert_eq!(state.enter(3, at(20_000)), Entry::Open);
        assert_eq!(state.enter(4, at(20_000)), Entry::Open);
    }

    #[test]
    fn the_longest_wait_counts_and_no_wait_is_longer_than_an_hour() {
        let mut state = shut();
        state.close(at(5_000), Duration::from_secs(1), "shorter");
        assert_eq!(state.enter(2, at(5_000)), closed(5_000));
        state.close(at(5_000), Duration::from_secs(90_000), "longer");
        assert!(matches!(state.enter(2, at(3_604_999)), Entry::Closed { reason, .. } if reason == "longer"));
        assert_eq!(state.enter(2, at(3_605_000)), Entry::Trial);
    }

    #[test]
    fn a_clock_that_was_set_back_closes_nothing_for_ever() {
        let mut state = GateState::default();
        state.close(at(100_000_000), Duration::from_secs(10), "429");
        assert_eq!(state.enter(2, at(0)), Entry::Open);
        state.close(at(100_000_000), Duration::from_secs(10), "429");
        state.close(at(0), Duration::from_secs(10), "429");
        assert_eq!(state.enter(2, at(0)), closed(10_000));
        let mut state = shut();
        assert_eq!(state.enter(2, at(3_000_000)), Entry::Trial);
        assert_eq!(state.enter(3, at(20_000)), Entry::Open, "nor does a trial");
    }

    #[test]
    fn a_state_survives_being_written_down() {
        let mut state = shut();
        state.enter(u64::MAX, at(10_000));
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<GateState>(&text).unwrap(), state);
        assert_eq!(serde_json::from_str::<GateState>("{}").unwrap(), GateState::default());
    }

    #[tokio::test]
    async fn only_so_many_turns_have_a_place_at_once() {
        let gate = MemoryGate::new(Arc::new(cyberine_types::SystemClock), Some(2));
        let first = gate.place().await.unwrap().unwrap();
        let second = gate.place().await.unwrap();
        assert!(second.is_some() && gate.place().await.unwrap().is_none());
        drop(first);
        assert!(gate.place().await.unwrap().is_some());
    }
}
