//! What the server has seen, what it holds back, and who waits for a change of either.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;

use crate::call::Call;

/// How many requests are remembered one by one; the counts go on.
const REMEMBERED: usize = 256;

/// Of a prompt, so many bytes are remembered.
const REMEMBERED_BYTES: usize = 256 << 10;

/// How a request fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It waits for its hold to be released, and nothing has been sent.
    Held,
    /// The answer is on its way.
    Answering,
    /// All that the script wants sent is sent.
    Done,
    /// The server broke the connection, as the script wants.
    Broken,
    /// The client went away before the end.
    Disconnected,
}

/// A request, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Its number, from one.
    pub seq: u64,
    /// `openai`, `openai-responses`, `anthropic`, `gemini`, `ollama` or `program`.
    pub wire: &'static str,
    /// The model it asks for, always `scripted/<name>`.
    pub model: String,
    /// The rule that answers it.
    pub rule: String,
    /// How it fares.
    pub phase: Phase,
    /// The system prompt, at most its first 256 KiB. Not shown over HTTP.
    #[serde(skip)]
    pub system: Arc<str>,
    /// The last message of the user, at most its first 256 KiB. Not shown over HTTP.
    #[serde(skip)]
    pub user: Arc<str>,
}

/// A request that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The name that releases it.
    pub name: String,
    /// Its number among the requests.
    pub seq: u64,
    /// The model it asks for.
    pub model: String,
}

/// A snapshot of the server. Counts are of requests since its start, except `answering`, which is
/// of this moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Requests that were understood.
    pub seen: u64,
    /// The requests that are held now, longest first.
    pub held: Vec<Held>,
    /// Requests that were held and let go.
    pub released: u64,
    /// Answers that are on their way now.
    pub answering: u64,
    /// Answers that were sent to their end.
    pub done: u64,
    /// Connections the server broke, as scripted.
    pub broken: u64,
    /// Connections the client broke.
    pub disconnected: u64,
    /// The latest 256 requests, oldest first.
    pub requests: Vec<Seen>,
}

/// The state, its lock, and those who wait.
#[derive(Debug)]
pub(crate) struct Control {
    inner: Mutex<Inner>,
    changed: Condvar,
    tick: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    requests: VecDeque<Seen>,
    calls: BTreeMap<String, u32>,
    released: BTreeSet<String>,
}

impl Control {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), changed: Condvar::new(), tick: watch::Sender::new(0) })
    }

    /// Counts a request of `model` and returns its number among those of the model.
    pub(crate) fn count(&self, model: &str) -> u32 {
        let mut inner = self.lock();
        let calls = inner.calls.entry(model.to_owned()).or_default();
        *calls += 1;
        *calls
    }

    /// Notes a request that `rule` answers. The ticket is its account from here on.
    pub(crate) fn admit(self: &Arc<Self>, call: &Call, rule: String) -> Ticket {
        let seq = self.change(|inner| {
            inner.state.seen += 1;
            inner.state.answering += 1;
            let seen = Seen {
                seq: inner.state.seen,
                wire: call.wire.name(),
                model: call.model.clone(),
                rule,
                phase: Phase::Answering,
                system: head(&call.system),
                user: head(&call.user),
            };
            if inner.requests.len() == REMEMBERED {
                inner.requests.pop_front();
            }
            inner.requests.push_back(seen);
            inner.state.seen
        });
        Ticket {
            control: Arc::clone(self),
            seq,
            phase: Phase::Answering,
            model: call.model.clone(),
            hold: String::new(),
        }
    }

    /// Lets go everything that is or will be held under `name`; returns how many were held.
    pub(crate) fn release(&self, name: &str) -> u64 {
        self.change(|inner| {
            inner.released.insert(name.to_owned());
            let held = inner.state.held.iter().filter(|held| held.name == name).count();
            u64::try_from(held).unwrap_or(u64::MAX)
        })
    }

    pub(crate) fn state(&self) -> State {
        snapshot(&self.lock())
    }

    /// Blocks until `ready` holds, or `limit` is over. Returns the last state, and whether it holds.
    pub(crate) fn wait_blocking(&self, limit: Duration, ready: impl Fn(&State) -> bool) -> (State, bool) {
        let until = Instant::now() + limit;
        let mut inner = self.lock();
        loop {
            let state = snapshot(&inner);
            let left = until.saturating_duration_since(Instant::now());
            if ready(&state) || left.is_zero() {
                let holds = ready(&state);
                return (state, holds);
            }
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// As [`Self::wait_blocking`], without blocking.
    pub(crate) async fn wait(&self, limit: Duration, ready: impl Fn(&State) -> bool) -> (State, bool) {
        let mut tick = self.tick.subscribe();
        let changed = tokio::time::timeout(limit, async {
            while !ready(&self.state()) && tick.changed().await.is_ok() {}
        });
        let _timed_out = changed.await;
        let state = self.state();
        let holds = ready(&state);
        (state, holds)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.tick.send_modify(|tick| *tick += 1);
        result
    }
}

fn head(text: &str) -> Arc<str> {
    Arc::from(&text[..text.floor_char_boundary(REMEMBERED_BYTES)])
}

fn snapshot(inner: &Inner) -> State {
    State { requests: inner.requests.iter().cloned().collect(), ..inner.state.clone() }
}

/// The account of one request. Dropped before its end, it counts as disconnected.
#[derive(Debug)]
pub(crate) struct Ticket {
    control: Arc<Control>,
    seq: u64,
    phase: Phase,
    model: String,
    hold: String,
}

impl Ticket {
    /// Waits until `name` is released.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing but the ticket's phase has changed.
    pub(crate) async fn hold(&mut self, name: &str) {
        let mut tick = self.control.tick.subscribe();
        self.hold = name.to_owned();
        self.enter(Phase::Held);
        loop {
            let released = self.control.lock().released.contains(name);
            if released || tick.changed().await.is_err() {
                break;
            }
        }
        self.enter(Phase::Answering);
    }

    /// The script is through.
    pub(crate) fn done(&mut self) {
        self.enter(Phase::Done);
    }

    /// The script breaks the connection.
    pub(crate) fn broken(&mut self) {
        self.enter(Phase::Broken);
    }

    fn enter(&mut self, phase: Phase) {
        let (before, seq) = (std::mem::replace(&mut self.phase, phase), self.seq);
        let held = Held { name: self.hold.clone(), seq, model: self.model.clone() };
        self.control.change(|inner| {
            let state = &mut inner.state;
            match before {
                Phase::Held => state.held.retain(|held| held.seq != seq),
                Phase::Answering => state.answering -= 1,
                Phase::Done | Phase::Broken | Phase::Disconnected => {}
            }
            match phase {
                Phase::Held => state.held.push(held),
                Phase::Answering => {
                    state.released += u64::from(before == Phase::Held);
                    state.answering += 1;
                }
                Phase::Done => state.done += 1,
                Phase::Broken => state.broken += 1,
                Phase::Disconnected => state.disconnected += 1,
            }
            if let Some(seen) = inner.requests.iter_mut().rfind(|seen| seen.seq == seq) {
                seen.phase = phase;
            }
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if matches!(self.phase, Phase::Held | Phase::Answering) {
            self.enter(Phase::Disconnected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call::program("scripted/m".into(), "hi".into())
    }

    fn phases(control: &Control) -> Vec<Phase> {
        control.state().requests.iter().map(|seen| seen.phase).collect()
    }

    #[test]
    fn a_ticket_that_is_dropped_early_is_a_disconnect() {
        let control = Control::new();
        control.admit(&call(), "r".into()).done();
        control.admit(&call(), "r".into()).broken();
        drop(control.admit(&call(), "r".into()));
        assert_eq!(phases(&control), [Phase::Done, Phase::Broken, Phase::Disconnected]);
        let state = control.state();
        assert_eq!(
            (state.seen, state.done, state.broken, state.disconnected, state.answering),
            (3, 1, 1, 1, 0)
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_hold_lasts_until_its_name_is_released() {
        let control = Control::new();
        let mut ticket = control.admit(&call(), "r".into());
        let held = async {
            control.wait(Duration::from_secs(5), |state| state.held.len() == 1).await;
            assert_eq!(control.release("other"), 0);
            let held = Held { name: "a".into(), seq: 1, model: "scripted/m".into() };
            assert_eq!(control.state().held, [held]);
            assert_eq!(control.release("a"), 1);
        };
        tokio::join!(ticket.hold("a"), held);
        let state = control.state();
        assert_eq!((state.held.len(), state.released, state.answering), (0, 1, 1));
    }

    #[test]
    fn a_wait_that_is_over_says_so() {
        let control = Control::new();
        assert!(!control.wait_blocking(Duration::from_millis(1), |state| state.seen == 1).1);
        let _ticket = control.admit(&call(), "r".into());
        assert!(control.wait_blocking(Duration::ZERO, |state| state.seen == 1).1);
    }
}
