use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::dir::Identity;

mod place;

/// How often a subscription wakes where the system does not tell it of changes.
pub const POLL: Duration = Duration::from_millis(500);
/// How often one wakes at the least where the system does tell: for what is never told, such as a
/// directory that went with the one above it.
pub const WATCHED_POLL: Duration = Duration::from_secs(5);
/// Within this time before [`WATCHED_POLL`] the subscriptions wake, so that not all do at once.
const SPREAD_MS: u64 = 1000;

/// Why [`Subscription::changed`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Something in the directory changed.
    Changed,
    /// The time was up: look anyway.
    Elapsed,
}

/// Tells of changes in directories, through the one watcher of the process. Where the system has
/// no watches left (they are counted per user), the file system does not tell all, or the directory
/// is not there, subscriptions wake every [`POLL`] instead; elsewhere every [`WATCHED_POLL`] at the
/// least: a watch is a hint, the look that follows it is the truth. A directory that is removed or
/// replaced is polled until the one that then has its path is watched.
///
/// Clones share the watcher.
#[derive(Clone)]
pub struct Watcher {
    shared: Arc<Shared>,
}

struct Shared {
    /// The system's watcher, made at the first subscription. Held while directories are added and
    /// dropped; never taken by the watcher's own thread.
    backend: Mutex<Backend>,
    /// Who waits for what. Taken by the watcher's thread, so never held over a call to `backend`.
    directories: Arc<Directories>,
}

#[derive(Default)]
struct Directories(Mutex<HashMap<PathBuf, Watched>>);

/// A directory somebody is subscribed to.
struct Watched {
    /// Whether the system tells of all its changes; each send is such a change.
    sender: watch::Sender<bool>,
    /// Which directory is watched; `None` where none is.
    identity: Option<Identity>,
    /// When that was last asked.
    looked: Instant,
}

enum Backend {
    Unopened,
    Open(RecommendedWatcher),
    Exhausted,
}

impl Watcher {
    /// The watcher of this process.
    #[must_use]
    pub fn shared() -> Self {
        static SHARED: OnceLock<Watcher> = OnceLock::new();
        SHARED.get_or_init(Self::new).clone()
    }

    /// A watcher of its own, which takes nothing from the system before its first subscription.
    /// Prefer [`Watcher::shared`]: the system allows each user only a hundred or so.
    #[must_use]
    pub fn new() -> Self {
        let backend = Mutex::new(Backend::Unopened);
        Self { shared: Arc::new(Shared { backend, directories: Arc::default() }) }
    }

    /// Subscribes to changes of the names and files directly in `directory`. Never fails: what
    /// cannot be watched is polled.
    #[must_use]
    pub fn watch(&self, directory: &Path) -> Subscription {
        let mut backend = lock(&self.shared.backend);
        let (receiver, is_new) = self.shared.directories.subscribe(directory);
        if is_new {
            if let Err(error) = self.shared.start(&mut backend, directory) {
                tracing::warn!(directory = %directory.display(), %error, "cannot watch the directory; polling it");
            }
        } else {
            self.shared.renew(&mut backend, directory);
        }
        let membership = Membership::new(&self.shared, directory);
        Subscription { receiver, spread: spread(), has_settled: false, membership }
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    /// Has the system tell of changes in `directory` from now on, where it can.
    fn start(&self, backend: &mut Backend, directory: &Path) -> notify::Result<()> {
        if matches!(backend, Backend::Unopened) {
            *backend = open(Arc::clone(&self.directories));
        }
        let Backend::Open(watcher) = backend else { return Ok(()) };
        let before = place::identity(directory);
        // Said first: what is told of the directory's end from here on is not overwritten.
        self.directories.is_watched(directory, before, place::tells_all(directory));
        let outcome = watcher.watch(directory, RecursiveMode::NonRecursive);
        if outcome.is_err() || place::identity(directory) != before {
            self.directories.is_watched(directory, None, false);
        }
        outcome
    }

    /// Watches the directory that has the path now, where that is not the one that is watched.
    fn renew(&self, backend: &mut Backend, directory: &Path) {
        let known = self.directories.looked(directory);
        let found = place::identity(directory);
        if found == known {
            return;
        }
        if found.is_none() {
            return self.directories.is_watched(directory, None, false);
        }
        if let Backend::Open(watcher) = backend
            && let Err(error) = watcher.unwatch(directory)
        {
            tracing::debug!(directory = %directory.display(), %error, "the watch had ended already");
        }
        if let Err(error) = self.start(backend, directory) {
            tracing::debug!(directory = %directory.display(), %error, "the directory is still polled");
        }
    }

    /// Stops watching `directory` once its last subscriber is gone.
    fn stop(&self, directory: &Path) {
        let mut backend = lock(&self.backend);
        if self.directories.forget_unused(directory)
            && let Backend::Open(watcher) = &mut *backend
            && let Err(error) = watcher.unwatch(directory)
        {
            // The directory is gone, and its watch with it.
            tracing::debug!(directory = %directory.display(), %error, "the watch had ended already");
        }
    }
}

impl Directories {
    fn subscribe(&self, directory: &Path) -> (watch::Receiver<bool>, bool) {
        let mut directories = lock(&self.0);
        if let Some(watched) = directories.get(directory) {
            return (watched.sender.subscribe(), false);
        }
        let (sender, receiver) = watch::channel(false);
        let watched = Watched { sender, identity: None, looked: Instant::now() };
        directories.insert(directory.to_owned(), watched);
        (receiver, true)
    }

    /// Notes which directory is watched, and whether the system tells of all its changes. Nobody is
    /// woken.
    fn is_watched(&self, directory: &Path, identity: Option<Identity>, tells_all: bool) {
        if let Some(watched) = lock(&self.0).get_mut(directory) {
            watched.identity = identity;
            watched.sender.send_if_modified(|told| {
                *told = identity.is_some() && tells_all;
                false
            });
        }
    }

    /// Which directory is watched, for whoever looks now whether that is the right one.
    fn looked(&self, directory: &Path) -> Option<Identity> {
        let mut directories = lock(&self.0);
        let watched = directories.get_mut(directory)?;
        watched.looked = Instant::now();
        watched.identity
    }

    /// Whether nobody has looked for a while.
    fn is_due(&self, directory: &Path) -> bool {
        lock(&self.0).get(directory).is_some_and(|watched| watched.looked.elapsed() >= POLL)
    }

    fn forget_unused(&self, directory: &Path) -> bool {
        let mut directories = lock(&self.0);
        let unused = directories.get(directory).is_some_and(|watched| watched.sender.receiver_count() == 0);
        unused && directories.remove(directory).is_some()
    }

    fn tell(&self, event: &Event) {
        let mut directories = lock(&self.0);
        for (directory, watched) in directories.iter_mut() {
            if replaces(event, directory) {
                watched.identity = None;
                watched.sender.send_replace(false);
            } else if event.need_rescan() || concerns(event, directory) {
                watched.sender.send_modify(|_| {});
            }
        }
    }

    fn tell_all(&self) {
        lock(&self.0).values().for_each(|watched| watched.sender.send_modify(|_| {}));
    }
}

/// Whether `event` is a change in `directory`. Opening and reading are not: whoever woke up and
/// looked would wake itself again.
fn concerns(event: &Event, directory: &Path) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    };
    changes && event.paths.iter().any(|path| path == directory || path.parent() == Some(directory))
}

/// Whether `directory` no longer is the one it was, as far as `event` tells.
fn replaces(event: &Event, directory: &Path) -> bool {
    let moves = matches!(
        event.kind,
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
    );
    moves && event.paths.iter().any(|path| path == directory)
}

fn open(directories: Arc<Directories>) -> Backend {
    let handler = move |event: notify::Result<Event>| match event {
        Ok(event) => directories.tell(&event),
        Err(_) => directories.tell_all(),
    };
    match RecommendedWatcher::new(handler, notify::Config::default()) {
        Ok(watcher) => Backend::Open(watcher),
        Err(error) => {
            tracing::warn!(%error, "no file watches left on this system; polling every {} ms", POLL.as_millis());
            Backend::Exhausted
        }
    }
}

/// One directory's changes, from the moment of subscribing on. Changes between two looks count
/// as one.
pub struct Subscription {
    // Dropped before the membership, which counts the receivers that are left.
    receiver: watch::Receiver<bool>,
    /// How much earlier than others this one wakes.
    spread: Duration,
    /// Whether the directory was looked at for some time after the subscription and after the last
    /// change in it. The end of one that somebody has open is not told, but what was in it ends
    /// before.
    has_settled: bool,
    membership: Membership,
}

impl Subscription {
    /// Waits for a change, but no longer than `timeout`, and no longer than [`WATCHED_POLL`] where
    /// the system tells of changes; than [`POLL`] where it does not, or has just told of one, and
    /// the first time. A change since the last call returns at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a change it would have told of is told by the next call.
    pub async fn changed(&mut self, timeout: Duration) -> Wake {
        let tells_all = *self.receiver.borrow() && self.has_settled;
        let poll = if tells_all { WATCHED_POLL - self.spread } else { POLL };
        match tokio::time::timeout(timeout.min(poll), self.receiver.changed()).await {
            Ok(Ok(())) => {
                self.has_settled = false;
                Wake::Changed
            }
            // The sender lives as long as a receiver does, so an error is as good as no news.
            Ok(Err(_)) | Err(_) => {
                self.has_settled |= timeout >= poll;
                self.membership.renew();
                Wake::Elapsed
            }
        }
    }
}

/// A part of the time in which subscriptions wake, another for each.
fn spread() -> Duration {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Duration::from_millis(NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(619) % SPREAD_MS)
}

struct Membership {
    shared: Arc<Shared>,
    directory: PathBuf,
}

impl Membership {
    fn new(shared: &Arc<Shared>, directory: &Path) -> Self {
        Self { shared: Arc::clone(shared), directory: directory.to_owned() }
    }

    fn renew(&self) {
        if self.shared.directories.is_due(&self.directory) {
            self.shared.renew(&mut lock(&self.shared.backend), &self.directory);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.shared.stop(&self.directory);
    }
}

/// A panic while one of these locks is held leaves a map or a watcher that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
