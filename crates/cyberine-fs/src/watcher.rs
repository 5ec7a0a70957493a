use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;

/// How often a subscription wakes when nothing tells it of a change.
pub const POLL: Duration = Duration::from_millis(500);

/// Why [`Subscription::changed`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Something in the directory changed.
    Changed,
    /// The time was up: look anyway.
    Elapsed,
}

/// Tells of changes in directories, through the one watcher of the process. Where the system has
/// no watches left (they are counted per user) or the file system tells nothing, subscriptions
/// wake every [`POLL`] instead: a watch is a hint, the look that follows it is the truth.
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
struct Directories(Mutex<HashMap<PathBuf, watch::Sender<()>>>);

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
            self.shared.start(&mut backend, directory);
        }
        Subscription { receiver, _membership: Membership::new(&self.shared, directory) }
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn start(&self, backend: &mut Backend, directory: &Path) {
        if matches!(backend, Backend::Unopened) {
            *backend = open(Arc::clone(&self.directories));
        }
        let Backend::Open(watcher) = backend else { return };
        if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
            tracing::warn!(directory = %directory.display(), %error, "cannot watch the directory; polling it");
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
    fn subscribe(&self, directory: &Path) -> (watch::Receiver<()>, bool) {
        let mut directories = lock(&self.0);
        if let Some(sender) = directories.get(directory) {
            return (sender.subscribe(), false);
        }
        let (sender, receiver) = watch::channel(());
        directories.insert(directory.to_owned(), sender);
        (receiver, true)
    }

    fn forget_unused(&self, directory: &Path) -> bool {
        let mut directories = lock(&self.0);
        let unused = directories.get(directory).is_some_and(|sender| sender.receiver_count() == 0);
        unused && directories.remove(directory).is_some()
    }

    fn tell(&self, event: &Event) {
        let directories = lock(&self.0);
        for (directory, sender) in directories.iter() {
            if event.need_rescan() || concerns(event, directory) {
                sender.send_replace(());
            }
        }
    }

    fn tell_all(&self) {
        lock(&self.0).values().for_each(|sender| {
            sender.send_replace(());
        });
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
    receiver: watch::Receiver<()>,
    _membership: Membership,
}

impl Subscription {
    /// Waits for a change, but no longer than `timeout` and no longer than [`POLL`]. A change
    /// since the last call returns at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a change it would have told of is told by the next call.
    pub async fn changed(&mut self, timeout: Duration) -> Wake {
        match tokio::time::timeout(timeout.min(POLL), self.receiver.changed()).await {
            Ok(Ok(())) => Wake::Changed,
            // The sender lives as long as a receiver does, so an error is as good as no news.
            Ok(Err(_)) | Err(_) => Wake::Elapsed,
        }
    }
}

struct Membership {
    shared: Arc<Shared>,
    directory: PathBuf,
}

impl Membership {
    fn new(shared: &Arc<Shared>, directory: &Path) -> Self {
        Self { shared: Arc::clone(shared), directory: directory.to_owned() }
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
