//! What a client follows: subscriptions of the `initialize` era, and listens of the stateless one.
//!
//! Every resource that is followed has a task, which waits for a change, then for its turn at the
//! output, and tells. Changes meanwhile count as one, so that a client that does not read has one
//! notification pending for each resource at most, and hears of the last change in any case. What
//! changes all the time is told of a few times a second. A request to follow holds its place among
//! the requests only until it is answered.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cyberine_protocol::model::SubscriptionFilter;
use cyberine_protocol::{Answer, RequestKey, RpcError};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Connection, Entry, log_panic};
use crate::output::Flush;
use crate::resource_set::ResourceWatch;

/// Resources that one connection may follow.
const MAX_FOLLOWED: usize = 512;

/// Listens that may be open on one connection.
const MAX_LISTENS: usize = 64;

/// The shortest time between two notifications of one resource: a client may read it every time.
const PAUSE: Duration = Duration::from_millis(50);

/// What one connection follows.
pub(super) struct Follows {
    resources: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    subscriptions: Mutex<Vec<Subscription>>,
    pub(super) tasks: TaskTracker,
}

/// One `resources/subscribe`, from its arrival to its end.
struct Subscription {
    key: RequestKey,
    /// The URI the client wrote, without a token.
    asked: String,
    /// The URI that notifications name, once it is followed.
    uri: Option<String>,
}

/// The request that wants to follow. While it is kept, the client can end it.
pub(crate) struct Follower {
    pub(crate) entry: Arc<Entry>,
    pub(crate) cancel: CancellationToken,
}

/// One resource to follow, with its place among those of the connection.
pub(crate) struct Followed {
    pub(crate) uri: String,
    pub(crate) watch: Box<dyn ResourceWatch>,
    pub(crate) place: OwnedSemaphorePermit,
}

/// A `subscriptions/listen` that is about to be acknowledged.
pub(crate) struct Listening {
    pub(crate) resources: Vec<Followed>,
    pub(crate) place: OwnedSemaphorePermit,
}

impl Follows {
    pub(super) fn new() -> Self {
        Self {
            resources: Arc::new(Semaphore::new(MAX_FOLLOWED)),
            listens: Arc::new(Semaphore::new(MAX_LISTENS)),
            subscriptions: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a subscription.
    pub(super) fn forget(&self, key: RequestKey) {
        self.subscriptions().retain(|subscription| subscription.key != key);
    }
}

impl Connection {
    /// Takes a place for a resource to follow.
    ///
    /// # Errors
    /// Where the connection follows too many.
    pub(crate) fn follow_place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        Arc::clone(&self.follows.resources).try_acquire_owned().map_err(|_| {
            let message = format!(
                "subscription limit reached: a connection follows at most {MAX_FOLLOWED} resources; end what is not needed"
            );
            RpcError::internal(message)
        })
    }

    /// Takes a place for a listen.
    ///
    /// # Errors
    /// Where too many are open.
    pub(crate) fn listen_place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        Arc::clone(&self.follows.listens).try_acquire_owned().map_err(|_| {
            let message = format!(
                "subscription limit reached: at most {MAX_LISTENS} listens are open on a connection; cancel one"
            );
            RpcError::internal(message)
        })
    }

    /// Takes note of a subscription before its resource is looked for, so that an
    /// [`unsubscribe`](Self::unsubscribe) that comes meanwhile ends it.
    pub(crate) fn subscribing(&self, key: RequestKey, asked: String) {
        self.follows.subscriptions().push(Subscription { key, asked, uri: None });
    }

    /// Ends the subscriptions to a URI, given without a token.
    pub(crate) fn unsubscribe(&self, plain: &str) {
        let mut ended = Vec::new();
        {
            let mut session = self.session();
            self.follows.subscriptions().retain(|Subscription { key, asked, uri }| {
                let other = asked != plain && uri.as_deref() != Some(plain);
                if !other {
                    session.end_subscription(*key);
                    // One that is not answered yet will be, and finds that it is forgotten.
                    ended.extend(uri.is_some().then_some(*key));
                }
                other
            });
        }
        for key in ended {
            self.cancel(key);
        }
    }

    /// Answers a `resources/subscribe` and begins to follow, unless the resource is followed already
    /// or the client has changed its mind.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        key: RequestKey,
        follower: Follower,
        followed: Followed,
        flush: Flush,
    ) {
        let begins = {
            let mut session = self.session();
            let mut subscriptions = self.follows.subscriptions();
            if let Some(line) = session.finish(key, Ok(Answer::Empty)) {
                self.output.push(line, flush);
            }
            let is_new = subscriptions.iter().all(|other| other.uri.as_deref() != Some(&*followed.uri));
            let own = subscriptions.iter_mut().find(|subscription| subscription.key == key);
            match own.filter(|_| is_new && session.is_followed(key)) {
                Some(own) => own.uri = Some(followed.uri.clone()),
                None => session.end_subscription(key),
            }
            is_new && session.is_followed(key)
        };
        if begins {
            self.follow(key, followed, follower);
        }
    }

    /// Acknowledges a `subscriptions/listen` and begins to follow. It ends with the request's
    /// cancellation: silently where the client cancelled it, with its result where the server ends.
    pub(super) fn listen(
        self: &Arc<Self>,
        key: RequestKey,
        follower: Follower,
        listening: Listening,
        flush: Flush,
    ) {
        let Listening { resources, place } = listening;
        let resource_subscriptions = resources.iter().map(|followed| followed.uri.clone()).collect();
        let served = SubscriptionFilter { resource_subscriptions, ..SubscriptionFilter::default() };
        {
            let mut session = self.session();
            let Some(line) = session.acknowledge(key, &served) else { return };
            self.output.push(line, flush);
        }
        let Follower { entry, cancel } = follower;
        for followed in resources {
            self.follow(key, followed, Follower { entry: Arc::clone(&entry), cancel: cancel.clone() });
        }
        let connection = Arc::clone(self);
        self.follows.tasks.spawn(async move {
            cancel.cancelled().await;
            if connection.session().is_followed(key) {
                let _turn = connection.output.turn().await;
                connection.finish(key, Ok(Answer::ListenEnded), Flush::Now);
            }
            drop((entry, place));
        });
    }

    /// Follows one resource in a task of its own. A watch that panics ends alone.
    fn follow(self: &Arc<Self>, key: RequestKey, followed: Followed, follower: Follower) {
        let connection = Arc::clone(self);
        let Followed { uri, watch, place } = followed;
        let Follower { entry, cancel } = follower;
        self.follows.tasks.spawn(async move {
            let telling = AssertUnwindSafe(connection.tell(key, &uri, watch)).catch_unwind();
            if let Some(Err(panic)) = cancel.run_until_cancelled(telling).await {
                log_panic(&*panic, "a watch panicked");
            }
            drop((entry, place));
        });
    }

    /// Tells of every change, until nothing more will be sent.
    async fn tell(&self, key: RequestKey, uri: &str, mut watch: Box<dyn ResourceWatch>) {
        loop {
            watch.changed().await;
            {
                let _turn = self.output.turn().await;
                let session = self.session();
                let Some(line) = session.updated(key, uri) else { return };
                self.output.push(line, Flush::Now);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
