//! Presence in files: one a record, in `<home>/bus/presence/`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cyberine_types::{Clock, InstanceId};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::error::PresenceError;
use crate::host::Processes;
use crate::liveness::Memory;
use crate::port::{Announcement, Announcing, Presence};
use crate::record::{Host, Member, RecordAddr};
use crate::text;

mod announcer;
mod entry;
mod place;
mod reader;
mod stored;

pub use reader::Check;

use announcer::FileAnnouncement;
use entry::Entry;
use place::Place;
use stored::Version;

/// How often a record is written anew. It holds three times as long.
const INTERVAL: Duration = Duration::from_secs(20);
/// Bounds of the interval: three of it lie within those of a time to live.
const INTERVALS: [Duration; 2] = [Duration::from_millis(170), Duration::from_secs(200)];

/// Presence in files of a home. Nothing is opened before the first use, and whoever only reads
/// creates nothing. Clones share their announcements.
///
/// One task keeps all records of the process fresh. It runs on the runtime of the first
/// announcement, as long as a clone or an announcement is there.
#[derive(Clone)]
pub struct FilePresence {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    clock: Arc<dyn Clock>,
    instance: InstanceId,
    host: OnceLock<Host>,
    interval: Duration,
    /// What this process announces.
    entries: Mutex<HashMap<RecordAddr, Arc<Entry>>>,
    /// How many announcements there were: numbers their files, so that no name is used twice.
    count: AtomicU64,
    /// Told when something is to be written soon.
    news: Arc<Notify>,
    heart: Mutex<JoinSet<()>>,
    memory: Mutex<Memory<Version>>,
}

impl FilePresence {
    /// Presence in the home `home`, of the process `instance`.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>, clock: Arc<dyn Clock>, instance: InstanceId) -> Self {
        Self::with_interval(home, clock, instance, INTERVAL)
    }

    /// The same with a beat every `interval`, from 170 ms to 200 s, instead of every 20 s. The
    /// records carry three times that as their time to live.
    #[must_use]
    pub fn with_interval(
        home: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        instance: InstanceId,
        interval: Duration,
    ) -> Self {
        let shared = Shared {
            place: Place::new(home.into()),
            clock,
            instance,
            host: OnceLock::new(),
            interval: interval.clamp(INTERVALS[0], INTERVALS[1]),
            entries: Mutex::default(),
            count: AtomicU64::new(0),
            news: Arc::new(Notify::new()),
            heart: Mutex::new(JoinSet::new()),
            memory: Mutex::new(Memory::new()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What lies in the presence directory, for those who look after it. Changes nothing.
    ///
    /// # Errors
    /// As [`Presence::roster`].
    pub async fn check(&self) -> Result<Check, PresenceError> {
        let look = self.look(false).await?;
        Ok(look.check())
    }

    async fn look(&self, sweep: bool) -> Result<reader::Look, PresenceError> {
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.look(sweep)).await
    }
}

impl Presence for FilePresence {
    fn announce(
        &self,
        announcing: Announcing,
    ) -> BoxFuture<'_, Result<Arc<dyn Announcement>, PresenceError>> {
        Box::pin(async move {
            text::check(&announcing)?;
            let (addr, entry) = self.shared.enter(announcing)?;
            let announcement = FileAnnouncement::new(Arc::clone(&self.shared), addr, Arc::clone(&entry));
            let shared = Arc::clone(&self.shared);
            blocking(move || {
                let dir = shared.place.create()?;
                shared.tidy(&dir);
                entry.write(&shared.place, &*shared.clock)
            })
            .await?;
            self.shared.ensure_heart();
            Ok(Arc::new(announcement) as Arc<dyn Announcement>)
        })
    }

    fn roster(&self) -> BoxFuture<'_, Result<Vec<Member>, PresenceError>> {
        Box::pin(async { Ok(self.look(true).await?.members()) })
    }
}

impl Shared {
    fn host(&self) -> &Host {
        self.host.get_or_init(Host::here)
    }

    fn look(&self, sweep: bool) -> Result<reader::Look, cyberine_fs::FsError> {
        let Some(dir) = self.place.existing()? else { return Ok(reader::Look::default()) };
        let mut memory = lock(&self.memory);
        let mut processes = Processes::new(self.host().clone());
        let look = reader::look(&dir, memory.pass(Instant::now()), &mut processes, &*self.clock)?;
        drop(memory);
        if sweep {
            look.sweep(&dir);
        }
        Ok(look)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, cyberine_fs::FsError> + Send + 'static,
) -> Result<T, PresenceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(PresenceError::Files),
        Err(error) => Err(PresenceError::Worker { detail: error.to_string() }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
