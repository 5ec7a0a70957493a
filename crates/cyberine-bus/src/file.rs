//! The bus in files of the home: one directory a mailbox, JSON lines in it.
//!
//! ```text
//! <home>/bus/<kind>/<name>/            0700; the name is the id, encoded injectively
//!     00000000000000000001.jsonl       messages from sequence number 1 on
//!     00000000000000004097.jsonl       the next segment: after 1 MiB or 4,096 messages
//!     unordered                        there where a message is earlier than the one before it
//!     lock                             held while a record is added or a segment removed
//!     readers/<name>.json              how far one reader has read
//! ```
//!
//! Who publishes takes the lock and that of the last segment's file, looks at the end, writes once,
//! lets go and syncs. In one process everybody who waits for a mailbox shares that write and that
//! sync.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_fs::{FsError, POLL, PrivateDir, Subscription, Wake};
use cyberine_types::Clock;
use futures_util::future::{BoxFuture, Either, select};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

mod mailbox;
mod queue;
mod read;
mod readers;
mod report;
mod retention;
mod segment;
mod writer;

pub use report::{MailboxReport, Mailboxes, Unusable};

use crate::address::Address;
use crate::envelope::Outgoing;
use crate::error::BusError;
use crate::page::{check, check_reader};
use crate::port::{Bus, Durability, Page, ReadRequest, Reader, Receipt};
use mailbox::{BUS, Mailbox, lock, unlock};
use queue::Waiting;
use read::Tip;
use readers::Mark;

/// How many mailboxes a process keeps open.
const OPEN: usize = 32;
/// How many of those who wait for mail look for it at the same time.
const LOOKS: usize = 4;

/// Mailboxes in `<home>/bus/`. Many processes may use one home at once. Clones share what is open.
///
/// Making one does no I/O; directories are made by the first message to each mailbox. Calls need a
/// tokio runtime: the work itself is done on its blocking threads.
#[derive(Clone)]
pub struct FileBus {
    inner: Arc<Inner>,
}

struct Inner {
    home: PathBuf,
    clock: Arc<dyn Clock>,
    retention: Option<u32>,
    /// Whether the names of the bus's own directories are known to be safe.
    roots: Arc<AtomicBool>,
    /// The mailboxes last used, the latest first.
    open: Mutex<VecDeque<Arc<Mailbox>>>,
    /// Turns of those who wait for mail: however many do, a few threads look for it.
    looks: Semaphore,
}

impl FileBus {
    /// A bus in the directory `home`, which keeps all mail.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self::made(home.into(), clock, None)
    }

    /// The same bus, except that mail which was sent more than `days` days ago and which every
    /// reader of its mailbox has acknowledged is removed, about 4,096 messages at a time. Mail in
    /// a mailbox that nobody has ever acknowledged anything in is unread, and stays.
    #[must_use]
    pub fn with_retention(self, days: u32) -> Self {
        Self::made(self.inner.home.clone(), Arc::clone(&self.inner.clock), Some(days))
    }

    fn made(home: PathBuf, clock: Arc<dyn Clock>, retention: Option<u32>) -> Self {
        let (roots, open, looks) = (Arc::default(), Mutex::default(), Semaphore::new(LOOKS));
        Self { inner: Arc::new(Inner { home, clock, retention, roots, open, looks }) }
    }

    /// The addresses that have a mailbox, at most `limit`.
    ///
    /// # Errors
    /// [`BusError::Home`].
    pub async fn mailboxes(&self, limit: usize) -> Result<Mailboxes, BusError> {
        let home = self.inner.home.clone();
        blocking(move || report::list(&home, limit).map_err(|source| BusError::Home { source })).await
    }

    /// Reads every mailbox from its first byte to its last, and says what was found.
    ///
    /// # Errors
    /// [`BusError::Home`].
    pub async fn check(&self) -> Result<Vec<MailboxReport>, BusError> {
        let home = self.inner.home.clone();
        blocking(move || report::check(&home).map_err(|source| BusError::Home { source })).await
    }

    fn mailbox(&self, address: &Address) -> Arc<Mailbox> {
        let mut open = lock(&self.inner.open);
        let known = open.iter().position(|mailbox| mailbox.address == *address);
        let mailbox = match known.and_then(|index| open.remove(index)) {
            Some(mailbox) => mailbox,
            None => {
                let (clock, roots) = (Arc::clone(&self.inner.clock), Arc::clone(&self.inner.roots));
                Mailbox::new(self.inner.home.clone(), address.clone(), clock, self.inner.retention, roots)
            }
        };
        open.push_front(Arc::clone(&mailbox));
        // One that is still in use lives on until it no longer is.
        open.truncate(OPEN);
        mailbox
    }

    /// Does `work` on the mailbox's directory, on a blocking thread; `None` without one.
    async fn on_existing<T: Send + 'static>(
        &self,
        address: &Address,
        work: impl FnOnce(&Mailbox, &PrivateDir) -> Result<T, BusError> + Send + 'static,
    ) -> Result<Option<T>, BusError> {
        let mailbox = self.mailbox(address);
        blocking(move || match mailbox.existing().map_err(|error| mailbox.files(error))? {
            Some(dir) => work(&mailbox, &dir).map(Some),
            None => Ok(None),
        })
        .await
    }

    async fn look(&self, address: &Address) -> Result<Look, BusError> {
        let _turn = self.inner.looks.acquire().await;
        let found = self.on_existing(address, |mailbox, dir| {
            // The tip first: what comes between the two is seen as a change of it.
            let seen = Tip::of(dir).and_then(|tip| Ok((tip, last(dir)?)));
            let (tip, last) = seen.map_err(|error| mailbox.files(error))?;
            Ok(Look { last, place: dir.path().to_owned(), tip })
        });
        if let Some(found) = found.await? {
            return Ok(found);
        }
        let (home, kind) = (self.inner.home.clone(), address.kind().name());
        let above = blocking(move || {
            let made = PrivateDir::open_or_create(&home).and_then(|home| home.subdir(BUS)?.subdir(kind));
            made.map_err(|source| BusError::Home { source })
        });
        Ok(Look { last: 0, place: above.await?.path().to_owned(), tip: None })
    }
}

/// How a mailbox is before somebody waits for its next message.
struct Look {
    /// The last message's sequence number.
    last: u64,
    /// The directory in which the next one will be seen to arrive: the mailbox's, or the one above
    /// where there is none yet.
    place: PathBuf,
    tip: Option<Tip>,
}

impl Bus for FileBus {
    fn publish(&self, message: Outgoing, durability: Durability) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move {
            check(&message)?;
            let mailbox = self.mailbox(&message.to);
            let room = Arc::clone(&mailbox.room).acquire_owned().await.map_err(|_| stopped())?;
            let (answer, answered) = oneshot::channel();
            if let Some(lead) = mailbox.enqueue(Waiting { message, durability, answer, _room: room }) {
                // Goes on also where this future is dropped: others rely on it.
                tokio::task::spawn_blocking(move || lead.run());
            }
            answered.await.map_err(|_| stopped())?
        })
    }

    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        Box::pin(async move {
            let page = self.on_existing(&mailbox, move |mailbox, dir| {
                read::page(dir, &mailbox.address, request, &mailbox.tip).map_err(|error| mailbox.files(error))
            });
            Ok(page.await?.unwrap_or_default())
        })
    }

    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        Box::pin(async move {
            check_reader(&reader)?;
            let name = reader.clone();
            let acknowledged = self.on_existing(&mailbox, move |mailbox, dir| {
                let readers = readers::directory(dir).map_err(|error| mailbox.files(error))?;
                let held = mailbox.lock(&readers, readers::LOCK)?;
                let outcome = advance(dir, &readers, name, through).map_err(|error| mailbox.files(error));
                unlock(held);
                outcome
            });
            Ok(acknowledged.await?.unwrap_or(Reader { reader, through: 0, unread: 0 }))
        })
    }

    fn readers(&self, mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        Box::pin(async move {
            let readers = self.on_existing(&mailbox, |mailbox, dir| {
                let known = last(dir).and_then(|last| Ok((last, readers::all(dir)?)));
                let (last, marks) = known.map_err(|error| mailbox.files(error))?;
                Ok(marks.into_iter().map(|mark| counted(mark, last)).collect())
            });
            Ok(readers.await?.unwrap_or_default())
        })
    }

    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let until = Instant::now() + timeout;
            let shared = self.mailbox(&mailbox);
            let mut own = shared.news.subscribe();
            let mut watched: Option<(PathBuf, Subscription)> = None;
            loop {
                // Of a mailbox that was replaced this says nothing; what comes after it does.
                let before = *own.borrow_and_update();
                let look = match self.look(&mailbox).await {
                    Ok(look) if look.last > after => return,
                    // The read that follows tells what is wrong; meanwhile there is nothing to see.
                    look => look.ok(),
                };
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return;
                }
                match (&mut watched, look) {
                    (Some((place, news)), Some(look)) if *place == look.place => {
                        let told = pin!(is_told(news, look.tip.as_ref(), until));
                        let published = pin!(own.wait_for(|last| *last > after && *last != before));
                        match select(published, told).await {
                            Either::Left(_) | Either::Right((true, _)) => return,
                            Either::Right((false, _)) => {}
                        }
                    }
                    // What came between the look and the watch is seen by looking again.
                    (_, Some(look)) => {
                        watched = Some((look.place.clone(), shared.watch(&look.place)));
                    }
                    (_, None) => tokio::time::sleep(left.min(POLL)).await,
                }
            }
        })
    }
}

/// Waits for news of the tip, and says whether there are some; `false` where only a look can tell.
/// The lock, too, changes in the directory, so news of that are not enough.
async fn is_told(news: &mut Subscription, tip: Option<&Tip>, until: Instant) -> bool {
    loop {
        let wake = news.changed(until.saturating_duration_since(Instant::now())).await;
        match (wake, tip) {
            (Wake::Changed, Some(tip)) if tip.is_same() => {}
            (Wake::Changed, Some(_)) => return true,
            (Wake::Changed, None) | (Wake::Elapsed, _) => return false,
        }
    }
}

fn last(dir: &PrivateDir) -> Result<u64, FsError> {
    read::last(dir, &read::segments(dir)?)
}

/// Moves a reader's mark forward, and never beyond what is there.
fn advance(dir: &PrivateDir, readers: &PrivateDir, reader: String, through: u64) -> Result<Reader, FsError> {
    let last = last(dir)?;
    let known = readers::one(readers, &reader)?;
    let through = through.min(last).max(known.unwrap_or(0));
    let mark = Mark { reader, through };
    if known != Some(through) {
        readers::record(readers, &mark)?;
    }
    Ok(counted(mark, last))
}

fn counted(mark: Mark, last: u64) -> Reader {
    let unread = last.saturating_sub(mark.through);
    Reader { reader: mark.reader, through: mark.through, unread }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BusError> + Send + 'static,
) -> Result<T, BusError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(BusError::Worker { detail: error.to_string() }),
    }
}

fn stopped() -> BusError {
    BusError::Worker { detail: "it ended before the message was written".to_owned() }
}
