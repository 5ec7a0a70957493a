//! What a client follows: subscriptions of the `initialize` era, and listens of the stateless one.
//!
//! Every resource that is followed has a task, which waits for a change, then for its turn at the
//! output, and tells. Changes meanwhile count as one, so that a client that does not read has one
//! notification pending for each resource at most, and hears of the last change in any case. What
//! changes all the time is told of a few times a second. A request to follow holds its place among
//! the requests only until it is answered.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cyberine_protocol::model::{ListKind, SubscriptionFilter};
use cyberine_protocol::{Answer, RequestKey, RpcError};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::watched::Watched;
use super::{Connection, Entry, log_panic};
use crate::changes::ListChanges;
use crate::output::Flush;
use crate::resource_set::ResourceWatch;
use crate::task_set::TaskWatch;

/// Resources and tasks that one client may follow.
const MAX_FOLLOWED: usize = 512;

/// Listens that one client may have open.
const MAX_LISTENS: usize = 64;

/// The shortest time between two notifications of one thing: a client may read it every time.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// What one client follows.
pub(super) struct Follows {
    resources: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    subscriptions: Mutex<Vec<Subscription>>,
    pub(super) tasks: TaskTracker,
}

/// One `resources/subscribe`, from its arrival to its end.
struct Subscription {
    /// Whose request it is: over HTTP every message has a connection of its own, and each counts its
    /// keys from the beginning.
    of: Weak<Connection>,
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

/// One resource to follow, with its place among those of the client.
pub(crate) struct Followed {
    pub(crate) uri: String,
    pub(crate) watch: Box<dyn ResourceWatch>,
    pub(crate) place: OwnedSemaphorePermit,
}

/// One task to follow, with its place among what the client follows.
pub(crate) struct FollowedTask {
    pub(crate) id: String,
    pub(crate) watch: Box<dyn TaskWatch>,
    pub(crate) place: OwnedSemaphorePermit,
}

/// A `subscriptions/listen` that is about to be acknowledged.
pub(crate) struct Listening {
    pub(crate) resources: Vec<Followed>,
    pub(crate) tasks: Vec<FollowedTask>,
    pub(crate) lists: Vec<(ListKind, ListChanges)>,
    pub(crate) place: OwnedSemaphorePermit,
}

impl Listening {
    /// What of the client's wishes is served.
    fn served(&self) -> SubscriptionFilter {
        let tells_of = |list| self.lists.iter().any(|(kind, _)| *kind == list);
        SubscriptionFilter {
            tools_list_changed: tells_of(ListKind::Tools),
            prompts_list_changed: tells_of(ListKind::Prompts),
            resources_list_changed: tells_of(ListKind::Resources),
            resource_subscriptions: self.resources.iter().map(|followed| followed.uri.clone()).collect(),
            task_ids: self.tasks.iter().map(|task| task.id.clone()).collect(),
        }
    }
}

impl Subscription {
    fn is(&self, connection: &Connection, key: RequestKey) -> bool {
        self.key == key && std::ptr::eq(self.of.as_ptr(), connection)
    }
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
    pub(super) fn forget(&self, connection: &Connection, key: RequestKey) {
        self.subscriptions().retain(|subscription| !subscription.is(connection, key));
    }
}

impl Connection {
    /// Takes a place for a resource or a task to follow.
    ///
    /// # Errors
    /// Where the client follows too many.
    pub(crate) fn follow_place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        Arc::clone(&self.shared.follows.resources).try_acquire_owned().map_err(|_| {
            let message = format!(
                "subscription limit reached: a client follows at most {MAX_FOLLOWED} resources and tasks; end what is not needed"
            );
            RpcError::internal(message)
        })
    }

    /// Takes a place for a listen.
    ///
    /// # Errors
    /// Where too many are open.
    pub(crate) fn listen_place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        Arc::clone(&self.shared.follows.listens).try_acquire_owned().map_err(|_| {
            let message = format!(
                "subscription limit reached: a client has at most {MAX_LISTENS} listens open; cancel one"
            );
            RpcError::internal(message)
        })
    }

    /// Takes note of a subscription before its resource is looked for, so that an
    /// [`unsubscribe`](Self::unsubscribe) that comes meanwhile ends it.
    pub(crate) fn subscribing(self: &Arc<Self>, key: RequestKey, asked: String) {
        let of = Arc::downgrade(self);
        self.shared.follows.subscriptions().push(Subscription { of, key, asked, uri: None });
    }

    /// Ends the subscriptions to a URI, given without a token.
    pub(crate) fn unsubscribe(&self, plain: &str) {
        let mut ended = Vec::new();
        self.shared.follows.subscriptions().retain(|Subscription { of, key, asked, uri }| {
            let other = asked != plain && uri.as_deref() != Some(plain);
            if !other && uri.is_some() {
                // One that is not answered yet will be, and finds that it is forgotten.
                ended.extend(of.upgrade().map(|connection| (connection, *key)));
            }
            other
        });
        for (connection, key) in ended {
            connection.session().end_subscription(key);
            connection.cancel(key);
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
            let mut subscriptions = self.shared.follows.subscriptions();
            if let Some(line) = session.finish(key, Ok(Answer::Empty)) {
                self.output.push(line, flush);
            }
            self.settle(&session);
            let is_new = subscriptions.iter().all(|other| other.uri.as_deref() != Some(&*followed.uri));
            let own = subscriptions.iter_mut().find(|subscription| subscription.is(self, key));
            match own.filter(|_| is_new && session.is_followed(key)) {
                Some(own) => own.uri = Some(followed.uri.clone()),
                None => session.end_subscription(key),
            }
            is_new && session.is_followed(key)
        };
        if begins {
            let Followed { uri, watch, place } = followed;
            self.follow(key, Watched::Resource { uri, watch }, Some(place), follower);
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
        let served = listening.served();
        {
            let mut session = self.session();
            let Some(line) = session.acknowledge(key, &served) else { return };
            self.output.push(line, flush);
        }
        let Follower { entry, cancel } = follower;
        let Listening { resources, tasks, lists, place } = listening;
        let resources = resources
            .into_iter()
            .map(|Followed { uri, watch, place }| (Watched::Resource { uri, watch }, Some(place)));
        let tasks =
            tasks.into_iter().map(|FollowedTask { watch, place, .. }| (Watched::Task(watch), Some(place)));
        let lists = lists.into_iter().map(|(kind, changes)| (Watched::List(kind, changes), None));
        for (watched, place) in resources.chain(tasks).chain(lists) {
            let follower = Follower { entry: Arc::clone(&entry), cancel: cancel.clone() };
            self.follow(key, watched, place, follower);
        }
        let connection = Arc::clone(self);
        self.shared.follows.tasks.spawn(async move {
            cancel.cancelled().await;
            if connection.session().is_followed(key) {
                let _turn = connection.output.turn().await;
                connection.finish(key, Ok(Answer::ListenEnded), Flush::Now);
            }
            drop((entry, place));
        });
    }

    /// Follows one thing in a task of its own. A watch that panics ends alone.
    fn follow(
        self: &Arc<Self>,
        key: RequestKey,
        watched: Watched,
        place: Option<OwnedSemaphorePermit>,
        follower: Follower,
    ) {
        let connection = Arc::clone(self);
        let Follower { entry, cancel } = follower;
        self.shared.follows.tasks.spawn(async move {
            let telling = AssertUnwindSafe(connection.tell(key, watched)).catch_unwind();
            if let Some(Err(panic)) = cancel.run_until_cancelled(telling).await {
                log_panic(&*panic, "a watch panicked");
            }
            drop((entry, place));
        });
    }

    /// Tells of every change, until nothing more will be sent.
    async fn tell(&self, key: RequestKey, mut watched: Watched) {
        while let Some(change) = watched.next().await {
            {
                let _turn = self.output.turn().await;
                let session = self.session();
                let Some(line) = change.line(&session, key) else { return };
                self.output.push(line, Flush::Now);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
