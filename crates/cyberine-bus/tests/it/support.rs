//! Homes, mailboxes and messages for tests.

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_bus::{
    Address, AddressKind, Bus as _, Channel, Durability, FileBus, From, FromKind, Outgoing, Page,
    ReadRequest, Receipt, Sender,
};
use cyberine_types::{Clock, InstanceId, ManualClock, Timestamp};
use tempfile::TempDir;

/// A home of one test, removed with it.
pub(crate) struct Place {
    /// Removes the rest when it is dropped.
    pub(crate) root: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        Self { root, clock }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn bus(&self) -> FileBus {
        FileBus::new(self.home(), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// The directory of [`chat`].
    pub(crate) fn mailbox(&self) -> PathBuf {
        self.home().join("bus/chat/here")
    }

    /// The first segment of [`chat`].
    pub(crate) fn segment(&self) -> PathBuf {
        self.mailbox().join(format!("{:020}.jsonl", 1))
    }
}

pub(crate) fn chat() -> Address {
    Address::new(AddressKind::Chat, "here").unwrap()
}

pub(crate) fn note(text: &str) -> Outgoing {
    let from = From { kind: FromKind::Mcp, id: "client@1".to_owned() };
    let principal = "local/user".to_owned();
    let sender = Sender { principal, channel: Channel::Mcp, pid: 7, instance_id: InstanceId::random() };
    Outgoing::note(chat(), from, sender, text)
}

/// Runs a future on a runtime like the server's.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) async fn send(bus: &FileBus, text: &str) -> Receipt {
    bus.publish(note(text), Durability::Durable).await.unwrap()
}

pub(crate) async fn read(bus: &FileBus, after: u64) -> Page {
    let request = ReadRequest { after, limit: usize::MAX, max_bytes: usize::MAX, ..ReadRequest::default() };
    bus.read(chat(), request).await.unwrap()
}

pub(crate) fn seqs(page: &Page) -> Vec<u64> {
    page.messages.iter().map(|envelope| envelope.seq).collect()
}

/// A small random sequence, seeded and printed by its user.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*, by Marsaglia and Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}
