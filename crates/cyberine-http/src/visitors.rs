use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cyberine_server::{Peer, Server};
use cyberine_types::Principal;

/// From so many principals on those of whom nothing goes on are forgotten.
const MANY: usize = 1024;

/// Who sends stateless requests: what one principal has in flight at once is bounded, whatever
/// connections it comes over.
pub(crate) struct Visitors {
    server: Arc<Server>,
    peers: Mutex<HashMap<Principal, Arc<Peer>>>,
}

impl Visitors {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, peers: Mutex::default() }
    }

    pub(crate) fn of(&self, principal: &Principal) -> Arc<Peer> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(principal) {
            return Arc::clone(peer);
        }
        if peers.len() >= MANY {
            // One that is kept elsewhere too is about to be used.
            peers.retain(|_, peer| Arc::strong_count(peer) > 1 || !peer.is_idle());
        }
        let peer = Arc::new(Peer::stateless(Arc::clone(&self.server)));
        peers.insert(principal.clone(), Arc::clone(&peer));
        peer
    }

    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
