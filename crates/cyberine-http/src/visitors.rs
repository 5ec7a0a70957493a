use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cyberine_server::{Peer, Server};
use cyberine_types::Principal;

use crate::observe::{Gauge, Held};

/// From so many principals on those of whom nothing goes on are forgotten.
const MANY: usize = 1024;

/// Event streams that one principal may have where there are so many: more than a client needs.
const STREAMS_OF_ONE: usize = 64;

/// One principal: what it has in flight at once is bounded, whatever sessions and connections it comes
/// over.
pub(crate) struct Visitor {
    /// Whom its stateless requests come from.
    pub(crate) peer: Peer,
    streams: Gauge,
}

impl Visitor {
    /// A place for one more event stream among `all` of at most `most`, of which one principal takes
    /// half, or [`STREAMS_OF_ONE`] where that is more.
    pub(crate) fn place_of_stream(&self, all: &Gauge, most: usize) -> Option<StreamPlace> {
        let _own = self.streams.hold_below((most / 2).max(STREAMS_OF_ONE))?;
        Some(StreamPlace { _own, _all: all.hold_below(most)? })
    }
}

/// The place of an event stream among those of its principal and among all, as long as it is kept.
pub(crate) struct StreamPlace {
    _own: Held,
    _all: Held,
}

/// All principals that were here lately.
pub(crate) struct Visitors {
    server: Arc<Server>,
    visitors: Mutex<HashMap<Principal, Arc<Visitor>>>,
}

impl Visitors {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, visitors: Mutex::default() }
    }

    pub(crate) fn of(&self, principal: &Principal) -> Arc<Visitor> {
        let mut visitors = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(visitor) = visitors.get(principal) {
            return Arc::clone(visitor);
        }
        if visitors.len() >= MANY {
            // One that is kept elsewhere too is about to be used, or has a session.
            visitors.retain(|_, visitor| {
                Arc::strong_count(visitor) > 1 || !visitor.peer.is_idle() || visitor.streams.value() > 0
            });
        }
        let peer = Peer::stateless(Arc::clone(&self.server));
        let visitor = Arc::new(Visitor { peer, streams: Gauge::default() });
        visitors.insert(principal.clone(), Arc::clone(&visitor));
        visitor
    }

    pub(crate) fn all(&self) -> Vec<Arc<Visitor>> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
