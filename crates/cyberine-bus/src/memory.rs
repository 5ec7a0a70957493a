//! The bus of one process, in its memory: for tests and embedders.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cyberine_types::Clock;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::address::Address;
use crate::envelope::{Envelope, Outgoing};
use crate::error::BusError;
use crate::page::{Collector, check, check_reader, seal, stamp};
use crate::port::{Bus, Durability, Page, ReadRequest, Reader, Receipt};

/// Mailboxes in memory. They keep every message, and end with the last clone.
#[derive(Clone)]
pub struct MemoryBus {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    mailboxes: Mutex<HashMap<Address, Mailbox>>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Mailbox {
    messages: Vec<Envelope>,
    readers: BTreeMap<String, u64>,
}

impl Mailbox {
    fn last(&self) -> u64 {
        self.messages.last().map_or(0, |envelope| envelope.seq)
    }

    fn reader(&self, reader: &str, through: u64) -> Reader {
        let unread = self.last().saturating_sub(through);
        Reader { reader: reader.to_owned(), through, unread }
    }

    fn page(&self, request: ReadRequest) -> Page {
        let start = self.messages.partition_point(|envelope| envelope.seq <= request.after);
        let mut collector = Collector::new(request);
        let mut new: Vec<&Envelope> = self.messages[start..].iter().collect();
        if request.newest {
            new.reverse();
        }
        for envelope in new {
            if !collector.offer(envelope.clone()) {
                break;
            }
        }
        collector.finish(self.last())
    }
}

impl MemoryBus {
    /// A bus without a message.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let inner = Inner { clock, mailboxes: Mutex::default(), news: watch::Sender::new(()) };
        Self { inner: Arc::new(inner) }
    }

    /// A panic while the lock is held leaves the mailboxes whole.
    fn mailboxes(&self) -> MutexGuard<'_, HashMap<Address, Mailbox>> {
        self.inner.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Outgoing) -> Result<Receipt, BusError> {
        check(&message)?;
        let mut mailboxes = self.mailboxes();
        let mailbox = mailboxes.entry(message.to.clone()).or_default();
        let beyond = message.again.map(|again| if again > mailbox.last() { 0 } else { again });
        let is_known =
            |known: &&Envelope| known.id == message.id && beyond.is_some_and(|beyond| known.seq > beyond);
        if let Some(known) = mailbox.messages.iter().find(is_known) {
            return Ok(Receipt { id: known.id, seq: known.seq, sent_at: known.sent_at });
        }
        let before = mailbox.messages.last().map(|envelope| envelope.sent_at);
        let envelope = seal(message, mailbox.last() + 1, stamp(&*self.inner.clock, before));
        let receipt = Receipt { id: envelope.id, seq: envelope.seq, sent_at: envelope.sent_at };
        mailbox.messages.push(envelope);
        self.inner.news.send_replace(());
        Ok(receipt)
    }

    fn advance(&self, address: &Address, reader: &str, through: u64) -> Result<Reader, BusError> {
        check_reader(reader)?;
        let mut mailboxes = self.mailboxes();
        let Some(mailbox) = mailboxes.get_mut(address) else {
            return Ok(Reader { reader: reader.to_owned(), through: 0, unread: 0 });
        };
        let through = through.min(mailbox.last());
        let mark = mailbox.readers.entry(reader.to_owned()).or_default();
        *mark = through.max(*mark);
        let mark = *mark;
        Ok(mailbox.reader(reader, mark))
    }

    fn last(&self, address: &Address) -> u64 {
        self.mailboxes().get(address).map_or(0, Mailbox::last)
    }
}

impl Bus for MemoryBus {
    fn publish(
        &self,
        message: Outgoing,
        _durability: Durability,
    ) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(std::future::ready(self.put(message)))
    }

    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        let page = self.mailboxes().get(&mailbox).map(|mailbox| mailbox.page(request));
        Box::pin(std::future::ready(Ok(page.unwrap_or_default())))
    }

    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        Box::pin(std::future::ready(self.advance(&mailbox, &reader, through)))
    }

    fn readers(&self, mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        let readers = self.mailboxes().get(&mailbox).map(|mailbox| {
            mailbox.readers.iter().map(|(reader, through)| mailbox.reader(reader, *through)).collect()
        });
        Box::pin(std::future::ready(Ok(readers.unwrap_or_default())))
    }

    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let until = Instant::now() + timeout;
            let mut news = self.inner.news.subscribe();
            while self.last(&mailbox) <= after {
                // The sender lives as long as this bus, so a wait ends by news or in time.
                if tokio::time::timeout_at(until, news.changed()).await.is_err() {
                    return;
                }
            }
        })
    }
}
