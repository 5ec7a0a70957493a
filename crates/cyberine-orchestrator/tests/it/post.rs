//! A bus in memory that can be told to misbehave.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cyberine_bus::{
    Address, AddressKind, Bus, BusError, Channel, Durability, Envelope, From, FromKind, Outgoing, Page,
    ReadRequest, Reader, Receipt, Sender, Topic,
};
use cyberine_types::{Clock, InstanceId, MessageId, Principal, RunId, SystemClock};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub(crate) struct Post {
    boxes: Mutex<BTreeMap<Address, Vec<Envelope>>>,
    acknowledged: Mutex<Vec<(Address, String, u64)>>,
    changes: watch::Sender<()>,
    /// Reads give everything from the first on, whatever they ask for.
    pub(crate) forgets: AtomicBool,
    /// Nobody is woken by a message.
    pub(crate) mute: AtomicBool,
    /// Nothing ever comes of a call.
    pub(crate) hangs: AtomicBool,
    /// Every call fails.
    pub(crate) fails: AtomicBool,
}

impl Default for Post {
    fn default() -> Self {
        let (changes, _) = watch::channel(());
        Self {
            boxes: Mutex::default(),
            acknowledged: Mutex::default(),
            changes,
            forgets: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            fails: AtomicBool::new(false),
        }
    }
}

impl Post {
    /// Puts a message into a mailbox, as a host that calls itself `host@1`.
    pub(crate) fn send(&self, kind: AddressKind, id: &str, topic: Topic, text: &str) -> MessageId {
        let to = Address::new(kind, id).unwrap();
        let from = From { kind: FromKind::Mcp, id: "host@1".into() };
        let sender = Sender::new(&Principal::local("u"), Channel::Mcp, InstanceId::random());
        self.put(Outgoing { topic, ..Outgoing::note(to, from, sender, text) }).id
    }

    pub(crate) fn steer(&self, run: RunId, text: &str) -> MessageId {
        self.send(AddressKind::Run, &run.to_string(), Topic::Steer, text)
    }

    fn put(&self, message: Outgoing) -> Receipt {
        let mut boxes = self.boxes.lock().unwrap();
        let mailbox = boxes.entry(message.to.clone()).or_default();
        let Outgoing {
            id, to, from, sender, topic, text, thread, reply_to, importance, ack_required, ..
        } = message;
        let (seq, sent_at) = (u64::try_from(mailbox.len()).unwrap() + 1, SystemClock.now());
        mailbox.push(Envelope {
            seq,
            id,
            to,
            from,
            sender,
            topic,
            text,
            sent_at,
            thread,
            reply_to,
            importance,
            ack_required,
        });
        drop(boxes);
        if !self.mute.load(Ordering::SeqCst) {
            self.changes.send_replace(());
        }
        Receipt { id, seq, sent_at }
    }

    /// What the run has told its mailbox.
    pub(crate) fn news(&self, run: RunId) -> Vec<Envelope> {
        let mailbox = Address::new(AddressKind::Run, run.to_string()).unwrap();
        let boxes = self.boxes.lock().unwrap();
        let all = boxes.get(&mailbox).cloned().unwrap_or_default();
        all.into_iter().filter(|envelope| envelope.topic == Topic::Progress).collect()
    }

    /// How far which mailbox was said to be read, by whom, in that order.
    pub(crate) fn acknowledged(&self) -> Vec<(String, String, u64)> {
        let all = self.acknowledged.lock().unwrap();
        all.iter()
            .map(|(mailbox, reader, through)| (mailbox.id().to_owned(), reader.clone(), *through))
            .collect()
    }

    async fn check(&self, mailbox: &Address) -> Result<(), BusError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.fails.load(Ordering::SeqCst) {
            return Err(BusError::Busy { mailbox: mailbox.clone(), waited: Duration::ZERO });
        }
        Ok(())
    }
}

impl Bus for Post {
    fn publish(&self, message: Outgoing, durability: Durability) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move {
            self.check(&message.to).await?;
            assert_eq!(durability, Durability::Fast, "news is worth no wait");
            Ok(self.put(message))
        })
    }

    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        Box::pin(async move {
            self.check(&mailbox).await?;
            let after = if self.forgets.load(Ordering::SeqCst) { 0 } else { request.after };
            let boxes = self.boxes.lock().unwrap();
            let all = boxes.get(&mailbox).map(Vec::as_slice).unwrap_or_default();
            let last = all.last().map_or(0, |envelope| envelope.seq);
            let left = all.iter().filter(|envelope| envelope.seq > after);
            let messages: Vec<Envelope> = left.take(request.limit).cloned().collect();
            let next = messages.last().map_or(after, |envelope| envelope.seq);
            Ok(Page { messages, next, more: next < last, last, skipped: 0 })
        })
    }

    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        Box::pin(async move {
            self.check(&mailbox).await?;
            self.acknowledged.lock().unwrap().push((mailbox, reader.clone(), through));
            Ok(Reader { reader, through, unread: 0 })
        })
    }

    fn readers(&self, _mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        let mut changes = self.changes.subscribe();
        Box::pin(async move {
            if self.mute.load(Ordering::SeqCst) {
                return std::future::pending().await;
            }
            let newer = || {
                let boxes = self.boxes.lock().unwrap();
                boxes.get(&mailbox).and_then(|all| all.last()).is_some_and(|last| last.seq > after)
            };
            let moved = async { while !newer() && changes.changed().await.is_ok() {} };
            let _ = tokio::time::timeout(timeout, moved).await;
        })
    }
}
