//! Who waits to publish in one mailbox, and who does it for them.

use std::sync::Arc;

use cyberine_fs::Durability;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::mailbox::{Mailbox, lock};
use crate::envelope::Outgoing;
use crate::error::BusError;
use crate::port::Receipt;

/// At most so many bytes of text go down in one write, the last message aside.
const BATCH_BYTES: usize = 1 << 20;

/// A message that waits to be written, and who waits for that.
pub(crate) struct Waiting {
    pub(crate) message: Outgoing,
    pub(crate) durability: Durability,
    pub(crate) answer: oneshot::Sender<Result<Receipt, BusError>>,
    pub(crate) _room: OwnedSemaphorePermit,
}

/// Who waits.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    /// Whether somebody is at work on it.
    is_led: bool,
}

impl Mailbox {
    /// Puts a message into the queue. Whoever gets a [`Lead`] runs it.
    pub(crate) fn enqueue(self: &Arc<Self>, waiting: Waiting) -> Option<Lead> {
        let mut queue = lock(&self.queue);
        queue.waiting.push(waiting);
        let leads = !std::mem::replace(&mut queue.is_led, true);
        leads.then(|| Lead { mailbox: Arc::clone(self), is_done: false })
    }
}

/// The duty to publish what is waiting until nothing is.
pub(crate) struct Lead {
    mailbox: Arc<Mailbox>,
    is_done: bool,
}

impl Lead {
    /// Publishes batch after batch; blocks for as long as that takes.
    pub(crate) fn run(mut self) {
        while let Some(batch) = self.take() {
            self.mailbox.publish(batch);
        }
        self.is_done = true;
    }

    /// What waits, up to a batch; lays the duty down where nothing does.
    fn take(&self) -> Option<Vec<Waiting>> {
        let mut queue = lock(&self.mailbox.queue);
        if queue.waiting.is_empty() {
            queue.is_led = false;
            return None;
        }
        let mut bytes = 0;
        let fits = |waiting: &&Waiting| {
            let fits = bytes < BATCH_BYTES;
            bytes += waiting.message.text.len();
            fits
        };
        let count = queue.waiting.iter().take_while(fits).count();
        Some(queue.waiting.drain(..count).collect())
    }
}

impl Drop for Lead {
    /// Where the work was broken off, those who wait are told, by the end of their answers.
    fn drop(&mut self) {
        if !self.is_done {
            let mut queue = lock(&self.mailbox.queue);
            queue.is_led = false;
            queue.waiting.clear();
        }
    }
}
