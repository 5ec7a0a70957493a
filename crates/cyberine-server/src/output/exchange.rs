//! The queue of one exchange: the lines of one message that came by itself, up to its reply.

use std::mem;
use std::sync::{Arc, MutexGuard};

use super::{Flush, Output, Stage, State};

/// Bytes that may wait where lines of no request go: whoever does not fetch them loses nothing but
/// room, since what changes is told when there is some again.
const NEWS_HIGH_WATER: usize = 64 * 1024;

/// How an exchange begins.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// With its reply, which is all of it: one message, without a line feed.
    Reply(Vec<u8>),
    /// With a message that is not its reply.
    Message,
    /// Nothing will ever come: nothing was asked, or the request was cancelled.
    Nothing,
}

impl Output {
    /// Lines up to the reply, to be taken with [`next`](Self::next); `then` gets what comes behind it.
    pub(crate) fn to_exchange(then: Option<Arc<Self>>) -> Self {
        Self::new(None, super::HIGH_WATER, then)
    }

    /// Lines of no request.
    pub(crate) fn to_news() -> Self {
        Self::new(None, NEWS_HIGH_WATER, None)
    }

    /// Where a line that is pushed now would go.
    pub(super) fn route(&self) -> &Self {
        match &self.then {
            Some(then) if self.lock().stage == Stage::Sealed => then,
            _ => self,
        }
    }

    /// Lets a line in that comes too late for this queue.
    pub(super) fn push_after(&self, state: MutexGuard<'_, State>, line: Vec<u8>) {
        let sealed = state.stage == Stage::Sealed;
        drop(state);
        if let Some(then) = self.then.as_ref().filter(|_| sealed) {
            then.push(line, Flush::Now);
        }
    }

    /// Takes note that the reply is let in, or that none will come.
    pub(crate) fn seal(&self) {
        let mut state = self.lock();
        if state.stage != Stage::Closing {
            state.stage = Stage::Sealed;
        }
        drop(state);
        self.wake_all();
    }

    /// Takes note that nobody will fetch anything any more. `true` where the reply was not let in yet.
    pub(crate) fn abandon(&self) -> bool {
        let mut state = self.lock();
        (state.pending, state.held) = (Vec::new(), 0);
        let early = state.stage == Stage::Open;
        if early {
            state.stage = Stage::Broken;
        }
        drop(state);
        self.wake_all();
        early
    }

    /// Whether the reply may still come.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().stage == Stage::Open
    }

    /// How many bytes wait to be taken.
    pub(crate) fn waits(&self) -> usize {
        self.lock().waiting()
    }

    /// Lets no more lines in. Those that wait can still be taken.
    pub(crate) fn end(&self) {
        self.lock().stage = Stage::Closing;
        self.wake_all();
    }

    /// Resolves when it is known how the exchange begins.
    pub(crate) async fn first(&self) -> First {
        loop {
            let notified = self.work_async.notified();
            {
                let mut state = self.lock();
                let sealed = state.stage != Stage::Open;
                match memchr::memchr(b'\n', &state.pending) {
                    Some(end) if sealed && end + 1 == state.pending.len() => {
                        let mut line = mem::take(&mut state.pending);
                        line.pop();
                        return First::Reply(line);
                    }
                    Some(_) => return First::Message,
                    None if sealed => return First::Nothing,
                    None => {}
                }
            }
            notified.await;
        }
    }

    /// All lines that wait, each with its line feed; waits for one. `None` when no more will come.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, nothing is lost.
    pub(crate) async fn next(&self) -> Option<Vec<u8>> {
        loop {
            let notified = self.work_async.notified();
            {
                let mut state = self.lock();
                if let Some(batch) = Self::take(&mut state) {
                    drop(state);
                    self.wrote(batch.len());
                    return Some(batch);
                }
                if state.stage != Stage::Open {
                    return None;
                }
            }
            notified.await;
        }
    }
}
