use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::SignatureAlgorithm;
use super::key_set::{self, Key};
use crate::identity::Rejection;

/// How long keys are taken as they are.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How long keys count that could not be fetched again.
const STALE: Duration = Duration::from_secs(12 * 60 * 60);
/// The least time between two fetches, whatever tokens come.
const LEAST: Duration = Duration::from_secs(60);
/// The same, while there is no key at all.
const LEAST_AT_FIRST: Duration = Duration::from_secs(5);
/// How long a fetch may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why there are no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);

/// Where the keys of an issuer come from. Which place that is was said by whoever configured it; no
/// token has a say in it.
pub trait KeySource: Send + Sync {
    /// The JWK set as it is now, at most [`LARGEST_KEY_SET`](super::LARGEST_KEY_SET) bytes and one more
    /// of it.
    ///
    /// # Errors
    /// Where it cannot be had.
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, KeyError>>;
}

/// The keys of an issuer, held and fetched again.
pub(super) struct Keys {
    source: Arc<dyn KeySource>,
    held: RwLock<Held>,
    /// Whoever fetches holds this until the fetch is over.
    fetching: Arc<Mutex<()>>,
    /// Fetches: one at a time, each bounded.
    fetches: TaskTracker,
}

#[derive(Clone, Default)]
struct Held {
    keys: Arc<Vec<Arc<Key>>>,
    /// When they were fetched.
    at: Option<Instant>,
    /// When they were last asked for.
    asked: Option<Instant>,
    /// Why the last fetch came to nothing.
    fault: Option<KeyError>,
}

impl Held {
    fn key(&self, id: Option<&str>, algorithm: SignatureAlgorithm) -> Option<Arc<Key>> {
        key_set::pick(&self.keys, id, algorithm).cloned()
    }

    fn is_younger_than(&self, age: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < age)
    }

    /// How long it is until they may be asked for again.
    fn wait(&self) -> Duration {
        let least = if self.at.is_some() { LEAST } else { LEAST_AT_FIRST };
        self.asked.map_or(Duration::ZERO, |at| least.saturating_sub(at.elapsed()))
    }
}

impl Keys {
    pub(super) fn new(source: Arc<dyn KeySource>) -> Self {
        Self { source, held: RwLock::default(), fetching: Arc::default(), fetches: TaskTracker::new() }
    }

    /// The key a token names. A name that is not known is worth one fetch a minute, however many
    /// tokens bring one. A key that may have been withdrawn since counts where the issuer was asked and
    /// did not answer.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> Result<Arc<Key>, Rejection> {
        let held = self.held();
        match held.key(id, algorithm) {
            Some(key) if held.is_younger_than(FRESH) => return Ok(key),
            _ => self.refresh().await,
        }
        let held = self.held();
        match held.key(id, algorithm) {
            Some(key) if held.is_younger_than(STALE) => Ok(key),
            _ if held.fault.is_some() || !held.is_younger_than(STALE) => Err(Rejection::Unavailable {
                what: "the keys of the issuer cannot be had now",
                after: held.wait(),
            }),
            _ => Err(Rejection::Invalid("the token is signed with a key its issuer does not publish")),
        }
    }

    /// Fetches the keys, where that was not done a moment ago; whoever comes meanwhile waits for it.
    pub(super) async fn refresh(self: &Arc<Self>) {
        let fetching = Arc::clone(&self.fetching).lock_owned().await;
        if self.is_due() {
            // Its own task: whoever asked may go away, and the fetch counts all the same, also for those
            // who wait.
            let keys = Arc::clone(self);
            let loading = self.fetches.spawn(async move {
                keys.load().await;
                drop(fetching);
            });
            if loading.await.is_err() {
                tracing::error!("fetching the keys of the issuer panicked");
            }
        }
    }

    /// Why the last fetch came to nothing, where it did.
    pub(super) fn fault(&self) -> Option<KeyError> {
        self.held().fault
    }

    /// Whether they may be asked for now; then they count as asked for.
    fn is_due(&self) -> bool {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let is_due = held.wait().is_zero();
        if is_due {
            held.asked = Some(Instant::now());
        }
        is_due
    }

    async fn load(&self) {
        let fetched = match tokio::time::timeout(LIMIT, self.source.fetch()).await {
            Ok(fetched) => fetched.and_then(|json| key_set::parse(&json)),
            Err(_) => Err(KeyError(format!("the keys did not come within {} s", LIMIT.as_secs()))),
        };
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        match fetched {
            Ok(keys) => {
                let keys = Arc::new(keys.into_iter().map(Arc::new).collect());
                *held = Held { keys, at: Some(Instant::now()), asked: Some(Instant::now()), fault: None };
            }
            Err(fault) => {
                tracing::warn!(%fault, "the keys of the issuer could not be fetched");
                held.fault = Some(fault);
                // From now on: whoever waited for a fetch that took long must not wait for one more.
                held.asked = Some(Instant::now());
            }
        }
    }

    fn held(&self) -> Held {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
