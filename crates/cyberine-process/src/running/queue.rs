//! Messages on their way to a child, bounded by what they take up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::SendError;

/// How much may be on its way: a child that lets more of it pile up reads nothing any more.
const BYTES_IN_FLIGHT: usize = 8 * 1024 * 1024;

/// What a message takes up beside its bytes.
const OVERHEAD: usize = 64;

/// The end that messages are put in at.
#[derive(Debug)]
pub(super) struct Sender {
    messages: mpsc::Sender<Bytes>,
    held: Arc<AtomicUsize>,
}

/// The end that they come out of.
#[derive(Debug)]
pub(super) struct Receiver {
    messages: mpsc::Receiver<Bytes>,
    held: Arc<AtomicUsize>,
    /// What the message takes up that was handed out last.
    out: usize,
}

pub(super) fn queue() -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(BYTES_IN_FLIGHT / OVERHEAD);
    let held = Arc::new(AtomicUsize::new(0));
    (Sender { messages: sender, held: Arc::clone(&held) }, Receiver { messages: receiver, held, out: 0 })
}

impl Sender {
    /// Puts a message in. One alone may be of any size.
    pub(super) fn send(&self, message: Bytes) -> Result<(), SendError> {
        let size = message.len().saturating_add(OVERHEAD);
        let held = self.held.load(Ordering::Acquire);
        if held > 0 && held.saturating_add(size) > BYTES_IN_FLIGHT {
            return Err(if self.messages.is_closed() { SendError::Closed } else { SendError::Full });
        }
        self.held.fetch_add(size, Ordering::AcqRel);
        self.messages.try_send(message).map_err(|error| {
            self.held.fetch_sub(size, Ordering::AcqRel);
            match error {
                TrySendError::Full(_) => SendError::Full,
                TrySendError::Closed(_) => SendError::Closed,
            }
        })
    }
}

impl Receiver {
    /// The next message, once the one before is written: until then it takes up its room.
    pub(super) async fn recv(&mut self) -> Option<Bytes> {
        self.held.fetch_sub(std::mem::take(&mut self.out), Ordering::AcqRel);
        let message = self.messages.recv().await?;
        self.out = message.len().saturating_add(OVERHEAD);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_takes_up_its_room_until_it_is_written() {
        let (sender, mut receiver) = queue();
        let half = Bytes::from(vec![0; BYTES_IN_FLIGHT / 2 - OVERHEAD]);
        assert_eq!(sender.send(half.clone()), Ok(()));
        assert_eq!(sender.send(half.clone()), Ok(()));
        assert_eq!(sender.send(Bytes::new()), Err(SendError::Full));
        assert_eq!(receiver.recv().await, Some(half.clone()));
        assert_eq!(sender.send(Bytes::new()), Err(SendError::Full));
        assert_eq!(receiver.recv().await, Some(half.clone()));
        assert_eq!(sender.send(half), Ok(()));
        drop(receiver);
        assert_eq!(sender.send(Bytes::new()), Err(SendError::Closed));
    }

    #[test]
    fn one_message_alone_may_be_of_any_size_and_many_small_ones_are_bounded() {
        let (sender, _receiver) = queue();
        assert_eq!(sender.send(Bytes::from(vec![0; BYTES_IN_FLIGHT + 1])), Ok(()));
        let (sender, _receiver) = queue();
        let most = BYTES_IN_FLIGHT / OVERHEAD;
        assert!((0..most).all(|_| sender.send(Bytes::new()).is_ok()));
        assert_eq!(sender.send(Bytes::new()), Err(SendError::Full));
    }
}
