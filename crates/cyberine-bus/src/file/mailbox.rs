//! One mailbox as this process uses it: its directory, who waits to publish, and its end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, FsError, LockFile, PrivateDir, RestingLock, Subscription, Watcher};
use cyberine_types::{Clock, MessageId, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::queue::{Queue, Waiting};
use super::read;
use super::retention;
use super::writer::Writer;
use crate::address::Address;
use crate::envelope::Outgoing;
use crate::error::BusError;
use crate::names;
use crate::page::{seal, stamp};
use crate::port::Receipt;
use crate::record::encode;

/// The bus's directory in the home.
pub(crate) const BUS: &str = "bus";
/// The lock over appending and removing in a mailbox.
const LOCK: &str = "lock";
/// How long the lock is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many messages of one mailbox this process holds that are not written yet; more publishers
/// wait.
const WAITING: usize = 1024;

/// One mailbox, shared by everyone in the process who uses it.
pub(crate) struct Mailbox {
    home: PathBuf,
    pub(crate) address: Address,
    clock: Arc<dyn Clock>,
    retention: Option<u32>,
    pub(crate) room: Arc<Semaphore>,
    pub(crate) queue: Mutex<Queue>,
    dir: Mutex<Option<PrivateDir>>,
    writer: Mutex<Option<Writer>>,
    /// The lock between one use and the next; only whoever has the writer takes it.
    resting: Mutex<Option<RestingLock>>,
    /// The last message this process has published here: those who wait in it hear of that from
    /// here, before the system tells them.
    pub(crate) news: watch::Sender<u64>,
    /// Keeps the watch on the directory that was waited in last, so that the next wait there takes
    /// nothing from the system, and its end gives nothing back.
    watched: Mutex<Option<(PathBuf, Subscription)>>,
    /// The first number of the last segment, as far as this process knows; 0 where it does not.
    pub(crate) tip: AtomicU64,
    /// The highest sequence number this process knows to be given away.
    used: AtomicU64,
    /// Whether this process has synced the names of the bus and of its kinds.
    roots: Arc<AtomicBool>,
}

/// A message of a batch, and what became of it.
struct Placed {
    durability: Durability,
    answer: oneshot::Sender<Result<Receipt, BusError>>,
    receipt: Receipt,
    /// The record that was there already, to be made durable.
    found: Option<read::Found>,
    _room: OwnedSemaphorePermit,
}

/// What a search found, and where it ended.
type Sought = (Option<read::Found>, read::Place);
/// The receipt of a message that is there already, and its record where that is not of this batch.
type Known = (Receipt, Option<read::Found>);

impl Mailbox {
    pub(crate) fn new(
        home: PathBuf,
        address: Address,
        clock: Arc<dyn Clock>,
        retention: Option<u32>,
        roots: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            home,
            address,
            clock,
            retention,
            room: Arc::new(Semaphore::new(WAITING)),
            queue: Mutex::default(),
            dir: Mutex::default(),
            writer: Mutex::default(),
            resting: Mutex::default(),
            news: watch::Sender::new(0),
            watched: Mutex::default(),
            tip: AtomicU64::new(0),
            used: AtomicU64::new(0),
            roots,
        })
    }

    /// The mailbox's directory; `None` where there is none.
    pub(crate) fn existing(&self) -> Result<Option<PrivateDir>, FsError> {
        let mut cached = lock(&self.dir);
        if let Some(dir) = cached.as_ref()
            && dir.is_in_place()?
        {
            return Ok(Some(dir.clone()));
        }
        cached.clone_from(&self.open_existing()?);
        Ok(cached.clone())
    }

    fn open_existing(&self) -> Result<Option<PrivateDir>, FsError> {
        let Some(kind) = kind_dir(&self.home, &self.address)? else { return Ok(None) };
        kind.existing_subdir(&names::encode(self.address.id()))
    }

    /// The mailbox's directory, made where there is none. A directory in use that is no longer
    /// there is an error once, so that nobody takes the mail in it for safe.
    pub(crate) fn made(&self) -> Result<PrivateDir, BusError> {
        let mut cached = lock(&self.dir);
        if let Some(dir) = cached.as_ref() {
            if dir.is_in_place().map_err(|error| self.files(error))? {
                return Ok(dir.clone());
            }
            let path = dir.path().to_owned();
            *cached = None;
            return Err(BusError::Gone { mailbox: self.address.clone(), path });
        }
        let dir = self.make().map_err(|error| self.files(error))?;
        *cached = Some(dir.clone());
        Ok(dir)
    }

    fn make(&self) -> Result<PrivateDir, FsError> {
        let [_, _, kind] = self.parents()?;
        kind.subdir(&names::encode(self.address.id()))
    }

    /// The directories above the mailbox's, outermost first.
    fn parents(&self) -> Result<[PrivateDir; 3], FsError> {
        let home = PrivateDir::open_or_create(&self.home)?;
        let bus = home.subdir(BUS)?;
        let kind = bus.subdir(self.address.kind().name())?;
        Ok([home, bus, kind])
    }

    /// Makes the name of a new mailbox safe. Who made a directory above may have died before its
    /// name was, so those are synced too, once a process.
    fn sync_parents(&self) -> Result<(), FsError> {
        let [home, bus, kind] = self.parents()?;
        if !self.roots.load(Ordering::Acquire) {
            home.sync_names()?;
            bus.sync_names()?;
            self.roots.store(true, Ordering::Release);
        }
        kind.sync_names()
    }

    pub(crate) fn files(&self, error: FsError) -> BusError {
        BusError::files(&self.address, error)
    }

    /// Subscribes to changes of `place`, where the mailbox's next message will be seen to arrive.
    pub(crate) fn watch(&self, place: &Path) -> Subscription {
        let news = Watcher::shared().watch(place);
        let mut watched = lock(&self.watched);
        if watched.as_ref().is_none_or(|(known, _)| known != place) {
            *watched = Some((place.to_owned(), Watcher::shared().watch(place)));
        }
        news
    }

    /// Takes a lock of the mailbox. A dead holder's is free.
    pub(crate) fn lock(&self, dir: &PrivateDir, name: &str) -> Result<LockFile, BusError> {
        self.patiently(|| dir.try_lock(name))
    }

    /// Tries again until something is there, for as long as a lock is waited for.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<Option<T>, FsError>) -> Result<T, BusError> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some(outcome) = attempt().map_err(|error| self.files(error))? {
                return Ok(outcome);
            }
            if started.elapsed() >= PATIENCE {
                return Err(BusError::Busy { mailbox: self.address.clone(), waited: PATIENCE });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Takes the lock over appending and removing. Only for whoever has the writer.
    fn hold(&self, dir: &PrivateDir) -> Result<LockFile, BusError> {
        let resting = lock(&self.resting).take();
        match resting.map(RestingLock::try_lock).transpose().map_err(|error| self.files(error))? {
            Some(Some(held)) => Ok(held),
            _ => self.lock(dir, LOCK),
        }
    }

    /// Frees what [`Mailbox::hold`] took.
    fn let_go(&self, held: LockFile) {
        match held.rest() {
            Ok(resting) => *lock(&self.resting) = Some(resting),
            Err(error) => tracing::debug!(%error, "a lock is freed by closing it"),
        }
    }

    /// Publishes a batch: one lock, one write, one sync.
    pub(crate) fn publish(&self, batch: Vec<Waiting>) {
        let mut writer = lock(&self.writer);
        let mut placed = Vec::with_capacity(batch.len());
        let mut begun = Begun::default();
        if let Err(error) = self.place(&mut writer, batch, &mut placed, &mut begun) {
            *writer = None;
            return refuse(placed, &error);
        }
        let (durable, fast): (Vec<_>, Vec<_>) =
            placed.into_iter().partition(|one| one.durability == Durability::Durable);
        accept(fast);
        if !durable.is_empty() {
            match self.settle(writer.as_ref(), &durable) {
                Ok(()) => accept(durable),
                Err(error) => {
                    // Poisoned: what it holds is opened anew and looked at, and never synced again.
                    *writer = None;
                    refuse(durable, &error);
                }
            }
        }
        if begun.has_to_close {
            *writer = None;
        }
        if begun.segment {
            self.sweep();
        }
    }

    /// Numbers the messages and writes them down under the lock.
    fn place(
        &self,
        writer: &mut Option<Writer>,
        batch: Vec<Waiting>,
        placed: &mut Vec<Placed>,
        begun: &mut Begun,
    ) -> Result<(), BusError> {
        let mut batch = batch.into_iter();
        let outcome = self.place_locked(writer, &mut batch, placed, begun);
        // Those not reached yet share the fate of the others.
        let rest = batch.map(|waiting| Placed {
            durability: waiting.durability,
            receipt: Receipt { id: waiting.message.id, seq: 0, sent_at: Timestamp::from_unix_ms(0) },
            answer: waiting.answer,
            found: None,
            _room: waiting._room,
        });
        placed.extend(rest);
        outcome
    }

    fn place_locked(
        &self,
        writer: &mut Option<Writer>,
        batch: &mut std::vec::IntoIter<Waiting>,
        placed: &mut Vec<Placed>,
        begun: &mut Begun,
    ) -> Result<(), BusError> {
        let dir = self.made()?;
        // What is long is looked through before the lock is taken, and only the rest under it.
        let mut sought: HashMap<MessageId, Sought> = HashMap::new();
        for waiting in batch.as_slice() {
            let (id, Some(again)) = (waiting.message.id, waiting.message.again) else { continue };
            let looked = read::Place::behind(&dir, again)
                .and_then(|place| read::find(&dir, &self.address, &id, place));
            sought.insert(id, looked.map_err(|error| self.files(error))?);
        }
        let held = self.hold(&dir)?;
        let current = self.end(&dir, writer.take(), begun)?;
        let current = writer.insert(current);
        let (mut last, mut sent_at, mut goes_back) = (current.last, current.sent_at, false);
        let mut bytes = current.repair.to_vec();
        let repair = bytes.len();
        for waiting in batch {
            let id = waiting.message.id;
            let known = match (repeated(placed, &waiting.message), sought.remove(&id)) {
                (Some(known), _) => Some(known),
                (None, Some(looked)) => self.known(&dir, id, looked)?,
                (None, None) => None,
            };
            let (receipt, found) = match known {
                Some(known) => known,
                None => {
                    let at = stamp(&*self.clock, sent_at);
                    goes_back |= sent_at.is_some_and(|before| at <= before);
                    let envelope = seal(waiting.message, last + 1, at);
                    encode(&envelope, &mut bytes)
                        .map_err(|error| BusError::Worker { detail: error.to_string() })?;
                    (last, sent_at) = (last + 1, Some(at));
                    (Receipt { id, seq: last, sent_at: at }, None)
                }
            };
            let (durability, answer, _room) = (waiting.durability, waiting.answer, waiting._room);
            placed.push(Placed { durability, answer, receipt, found, _room });
        }
        if let Some(at) = sent_at
            && bytes.len() > repair
        {
            if goes_back {
                read::mark_unordered(&dir).map_err(|error| self.files(error))?;
            }
            current.append(&bytes, last, at).map_err(|error| self.files(error))?;
            self.used.fetch_max(last, Ordering::Relaxed);
            self.news.send_replace(last);
        }
        if let Err(error) = current.file.unlock() {
            tracing::debug!(%error, "a lock is freed by closing its file");
            begun.has_to_close = true;
        }
        self.let_go(held);
        Ok(())
    }

    /// The end of the mailbox, with room for a record, and locked: the lock of the mailbox, whose
    /// file somebody may have removed, is not relied on alone.
    fn end(
        &self,
        dir: &PrivateDir,
        mut known: Option<Writer>,
        begun: &mut Begun,
    ) -> Result<Writer, BusError> {
        let files = |error| self.files(error);
        let (until, is_first) = (Instant::now() + PATIENCE, known.is_none());
        while Instant::now() < until {
            let is_new = known.is_none();
            let current = match known.take() {
                Some(current) => current,
                None => {
                    let used = self.used.load(Ordering::Relaxed);
                    let opened = Writer::open(dir, used, || self.sync_parents()).map_err(files)?;
                    begun.segment |= is_first && opened.has_older;
                    opened
                }
            };
            self.patiently(|| Ok(current.file.try_lock()?.then_some(())))?;
            if !current.is_current(dir).map_err(files)? || (is_new && !current.is_last(dir).map_err(files)?) {
                continue;
            }
            if !current.is_full() {
                return Ok(current);
            }
            begun.segment = true;
            known = Some(current.rotate(dir).map_err(files)?);
        }
        Err(BusError::Busy { mailbox: self.address.clone(), waited: PATIENCE })
    }

    /// The message `id`, where it was found or came while the lock was waited for.
    fn known(&self, dir: &PrivateDir, id: MessageId, looked: Sought) -> Result<Option<Known>, BusError> {
        let found = match looked {
            (Some(found), _) => Some(found),
            (None, end) => read::find(dir, &self.address, &id, end).map_err(|error| self.files(error))?.0,
        };
        Ok(found.map(|found| {
            let receipt = Receipt { id, seq: found.envelope.seq, sent_at: found.envelope.sent_at };
            (receipt, Some(found))
        }))
    }

    /// Makes a batch durable.
    fn settle(&self, writer: Option<&Writer>, durable: &[Placed]) -> Result<(), BusError> {
        let is_new = |one: &&Placed| one.found.is_none();
        if let Some(writer) = writer
            && durable.iter().any(|one| is_new(&one))
        {
            writer.file.sync().map_err(|error| self.files(error))?;
        }
        for found in durable.iter().filter_map(|one| one.found.as_ref()) {
            let dir = self.made()?;
            dir.restate(&names::segment(found.first), found.offset, &found.bytes)
                .map_err(|error| self.files(error))?;
        }
        Ok(())
    }

    /// Removes what may go. Mail that stays longer than it must harms nobody.
    fn sweep(&self) {
        let Some(days) = self.retention else { return };
        let swept = self.made().and_then(|dir| {
            let held = self.hold(&dir)?;
            let swept = retention::sweep(&dir, self.clock.now(), days).map_err(|error| self.files(error));
            self.let_go(held);
            swept
        });
        if let Err(error) = swept {
            tracing::warn!(mailbox = %self.address, %error, "old mail was not removed");
        }
    }
}

/// What a batch began.
#[derive(Default)]
struct Begun {
    /// A new segment, or the work on a mailbox of several.
    segment: bool,
    /// A lock that only the end of its file frees.
    has_to_close: bool,
}

/// A message that is tried again in the batch in which it is.
fn repeated(placed: &[Placed], message: &Outgoing) -> Option<Known> {
    let one = placed.iter().filter(|_| message.again.is_some()).find(|one| one.receipt.id == message.id)?;
    Some((one.receipt, None))
}

fn accept(placed: Vec<Placed>) {
    for one in placed {
        // Whoever no longer waits is not told.
        let _ = one.answer.send(Ok(one.receipt));
    }
}

fn refuse(placed: Vec<Placed>, error: &BusError) {
    for one in placed {
        let _ = one.answer.send(Err(error.share()));
    }
}

/// Frees a lock by name, so that no child that is just being started keeps it for an instant.
pub(crate) fn unlock(held: LockFile) {
    if let Err(error) = held.release() {
        tracing::debug!(%error, "a lock is freed by closing it");
    }
}

/// The directory of the mailboxes of an address's kind; `None` where there is none.
pub(crate) fn kind_dir(home: &std::path::Path, address: &Address) -> Result<Option<PrivateDir>, FsError> {
    let Some(bus) = bus_dir(home)? else { return Ok(None) };
    bus.existing_subdir(address.kind().name())
}

/// The directory of the bus; `None` where there is none.
pub(crate) fn bus_dir(home: &std::path::Path) -> Result<Option<PrivateDir>, FsError> {
    match PrivateDir::open_existing(home) {
        Ok(home) => home.existing_subdir(BUS),
        Err(FsError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A panic while one of these locks is held leaves something whole behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
