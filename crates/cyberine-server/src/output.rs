//! The queue of lines to one client: bounded, ordered, written by one writer at a time.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use fd::FdSink;

mod exchange;
pub(crate) mod fd;

pub use exchange::First;

/// Bytes that may wait before producers are held back.
const HIGH_WATER: usize = 1024 * 1024;

/// What the buffer keeps between large answers.
const USUAL: usize = 64 * 1024;

/// A line from this size on becomes the buffer, where that is empty, rather than being copied to it.
const LARGE: usize = 4 * 1024;

/// How often a blocked writer looks whether it is still wanted.
const WRITER_POLL: Duration = Duration::from_millis(100);

/// When a line should leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// At once.
    Now,
    /// With the lines behind it, at the next [`Output::flush`].
    Later,
}

/// Lines on their way to one client.
///
/// Full-policy: producers ask for room first. Answers wait for it (the reader stops reading, tasks
/// await their [`turn`](Self::turn)), news is dropped. A line that was let in is written, in the order of the pushes,
/// unless the client goes away.
pub(crate) struct Output {
    state: Mutex<State>,
    /// Bytes that may wait before producers are held back.
    high_water: usize,
    /// Written without blocking by whoever pushes; `None` where an async task writes.
    direct: Option<FdSink>,
    /// Where lines go after the reply of an exchange.
    then: Option<Arc<Self>>,
    /// Wakes the writer thread.
    work: Condvar,
    /// Wakes the writing task.
    work_async: Notify,
    /// Wakes threads that wait for room.
    room: Condvar,
    /// Wakes tasks that wait for room.
    room_async: Notify,
    /// Whose turn it is among tasks with an answer, so that room is not given away twice.
    turn: Semaphore,
    /// Wakes whoever waits for the end of the stream.
    broken: Notify,
}

#[derive(Default)]
struct State {
    pending: Vec<u8>,
    /// Bytes a writer has taken and not yet written.
    held: usize,
    /// Bytes that have left, ever.
    written: u64,
    stage: Stage,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The reply of an exchange is let in, or will never come. What waits can be taken; further
    /// lines go where those of no request go.
    Sealed,
    /// No line is let in any more; what waits is written.
    Closing,
    /// The client is gone, or waited for long enough.
    Broken,
}

impl State {
    fn waiting(&self) -> usize {
        self.pending.len() + self.held
    }

    fn has_room(&self, high_water: usize) -> bool {
        self.stage != Stage::Open || self.waiting() < high_water
    }
}

impl Output {
    /// Lines to a descriptor; a thread must run [`write_blocked`](Self::write_blocked).
    pub(crate) fn to_fd(sink: FdSink) -> Self {
        Self::new(Some(sink), HIGH_WATER, None)
    }

    /// Lines to be written by a task that runs [`write_to`](Self::write_to).
    pub(crate) fn to_task() -> Self {
        Self::new(None, HIGH_WATER, None)
    }

    fn new(direct: Option<FdSink>, high_water: usize, then: Option<Arc<Self>>) -> Self {
        Self {
            state: Mutex::default(),
            high_water,
            direct,
            then,
            work: Condvar::new(),
            work_async: Notify::new(),
            room: Condvar::new(),
            room_async: Notify::new(),
            turn: Semaphore::new(1),
            broken: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one line in, whatever waits: whoever pushes has asked for room before.
    pub(crate) fn push(&self, mut line: Vec<u8>, flush: Flush) {
        let mut state = self.lock();
        if state.stage != Stage::Open {
            return self.push_after(state, line);
        }
        line.push(b'\n');
        if state.pending.is_empty() && line.len() >= LARGE {
            state.pending = line;
        } else {
            state.pending.extend_from_slice(&line);
        }
        if flush == Flush::Now {
            self.flush_locked(&mut state);
        }
    }

    /// Writes what waits as far as the client takes it without blocking, and leaves the rest to
    /// the writer.
    pub(crate) fn flush(&self) {
        self.flush_locked(&mut self.lock());
    }

    fn flush_locked(&self, state: &mut State) {
        // While a writer holds earlier bytes, these are behind them; it takes them next.
        if state.pending.is_empty() || state.held > 0 || state.stage == Stage::Broken {
            return;
        }
        let Some(sink) = &self.direct else {
            self.work_async.notify_one();
            return;
        };
        let was_full = !state.has_room(self.high_water);
        match write_now(sink, &state.pending) {
            Ok(count) => {
                state.written += count as u64;
                state.pending.drain(..count);
                if was_full && state.has_room(self.high_water) {
                    self.room.notify_all();
                    self.room_async.notify_waiters();
                }
                if state.pending.is_empty() {
                    state.pending.shrink_to(USUAL);
                } else {
                    self.work.notify_one();
                }
            }
            Err(error) => self.break_locked(state, &error),
        }
    }

    fn break_locked(&self, state: &mut State, error: &io::Error) {
        tracing::debug!(%error, "the client has gone away");
        state.stage = Stage::Broken;
        (state.pending, state.held) = (Vec::new(), 0);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.work_async.notify_one();
        self.room.notify_all();
        self.room_async.notify_waiters();
        self.broken.notify_waiters();
    }

    /// Whether a line may be pushed now. Stays true once the stream has ended, where lines go
    /// nowhere and nobody should wait.
    pub(crate) fn has_room(&self) -> bool {
        let route = self.route();
        route.lock().has_room(route.high_water)
    }

    /// Waits for room, for at most `limit`; tells how many bytes have left so far, and whether
    /// there is room.
    pub(crate) fn wait_room(&self, limit: Duration) -> (bool, u64) {
        let state = self.lock();
        let (state, _) = self
            .room
            .wait_timeout_while(state, limit, |state| !state.has_room(self.high_water))
            .unwrap_or_else(PoisonError::into_inner);
        (state.has_room(self.high_water), state.written)
    }

    /// Resolves when there is room and every task that asked before has had its turn. Whoever has
    /// the turn pushes one line and then gives it back.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it gives up its place among those who wait.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        let turn = self.route().turn.acquire().await.ok();
        self.room().await;
        turn
    }

    /// Resolves when there is room.
    pub(crate) async fn room(&self) {
        loop {
            let route = self.route();
            let notified = route.room_async.notified();
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }

    /// The descriptor that is written to, where there is one: it says when nobody reads it any more.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.direct.as_ref().map(FdSink::descriptor)
    }

    /// Takes note that nobody reads the descriptor any more.
    pub(crate) fn hung_up(&self) {
        self.break_locked(&mut self.lock(), &io::ErrorKind::BrokenPipe.into());
    }

    /// Resolves when the client has gone away.
    pub(crate) async fn broken(&self) {
        loop {
            let notified = self.broken.notified();
            if self.lock().stage == Stage::Broken {
                return;
            }
            notified.await;
        }
    }

    /// Lets no more lines in and waits until those that wait are written, for at most `limit`;
    /// then the writer ends.
    pub(crate) async fn close(&self, limit: Duration) {
        {
            let mut state = self.lock();
            if state.stage == Stage::Open {
                self.flush_locked(&mut state);
            }
            if state.stage == Stage::Open {
                state.stage = Stage::Closing;
            }
        }
        self.wake_all();
        let drained = async {
            loop {
                let notified = self.room_async.notified();
                if self.lock().waiting() == 0 {
                    return;
                }
                notified.await;
            }
        };
        let in_time = tokio::time::timeout(limit, drained).await.is_ok();
        let mut state = self.lock();
        if !in_time {
            tracing::warn!(bytes = state.waiting(), "the client did not read the last answers");
        }
        state.stage = Stage::Broken;
        drop(state);
        self.wake_all();
    }

    /// Takes everything that waits, for a writer; `None` where nothing does.
    fn take(state: &mut State) -> Option<Vec<u8>> {
        let batch = std::mem::take(&mut state.pending);
        state.held = batch.len();
        (!batch.is_empty()).then_some(batch)
    }

    /// Takes note that a writer wrote `count` bytes of what it holds.
    fn wrote(&self, count: usize) {
        let mut state = self.lock();
        state.held = state.held.saturating_sub(count);
        state.written += count as u64;
        let room = state.has_room(self.high_water);
        drop(state);
        if room {
            self.room.notify_all();
            self.room_async.notify_waiters();
        }
    }

    /// Writes what the client does not take at once. Runs on a thread of its own until the
    /// stream ends.
    pub(crate) fn write_blocked(&self) {
        let Some(sink) = &self.direct else { return };
        while let Some(batch) = self.next_batch() {
            if let Err(error) = self.write_batch(sink, &batch) {
                self.break_locked(&mut self.lock(), &error);
            }
        }
    }

    fn next_batch(&self) -> Option<Vec<u8>> {
        let state = self.lock();
        let idle = |state: &mut State| state.pending.is_empty() && state.stage != Stage::Broken;
        let mut state = self.work.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        Self::take(&mut state)
    }

    fn write_batch(&self, sink: &FdSink, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() && self.lock().stage != Stage::Broken {
            match sink.try_write(rest) {
                Ok(count) => {
                    rest = &rest[count..];
                    self.wrote(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sink.wait_writable(WRITER_POLL)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes to an async stream until the queue is closed or the stream fails.
    pub(crate) async fn write_to(&self, mut writer: impl tokio::io::AsyncWrite + Unpin) {
        loop {
            let notified = self.work_async.notified();
            let batch = {
                let mut state = self.lock();
                if state.stage == Stage::Broken {
                    return;
                }
                Self::take(&mut state)
            };
            let Some(batch) = batch else {
                notified.await;
                continue;
            };
            match write_all(&mut writer, &batch).await {
                Ok(()) => self.wrote(batch.len()),
                Err(error) => self.break_locked(&mut self.lock(), &error),
            }
        }
    }
}

async fn write_all(writer: &mut (impl tokio::io::AsyncWrite + Unpin), batch: &[u8]) -> io::Result<()> {
    use tokio::io::AsyncWriteExt as _;
    writer.write_all(batch).await?;
    writer.flush().await
}

/// Writes until the sink takes no more without blocking; the count of bytes it took.
fn write_now(sink: &FdSink, bytes: &[u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match sink.try_write(&bytes[done..]) {
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn room_is_given_to_one_task_at_a_time() {
        let output = Output::to_task();
        let drain = || {
            let batch = Output::take(&mut output.lock());
            output.wrote(batch.map_or(0, |batch| batch.len()));
        };
        let mut context = Context::from_waker(Waker::noop());
        output.push(vec![b'x'; HIGH_WATER], Flush::Now);
        let (mut first, mut second) = (pin!(output.turn()), pin!(output.turn()));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        drain();
        let turn = first.as_mut().poll(&mut context);
        assert!(turn.is_ready());
        assert!(second.as_mut().poll(&mut context).is_pending(), "the first has not pushed yet");
        output.push(vec![b'x'; HIGH_WATER], Flush::Now);
        drop(turn);
        assert!(second.as_mut().poll(&mut context).is_pending(), "the first has taken the room");
        drain();
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
