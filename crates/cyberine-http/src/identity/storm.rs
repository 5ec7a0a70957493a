use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Rejections one address may cause before it is told to wait.
const BURST: u32 = 20;
/// The time after which an address may cause one more.
const EACH: Duration = Duration::from_millis(200);
/// Addresses that are kept apart. The others share what is left.
const MOST: usize = 1024;
/// The least time between two lines of the log.
const QUIET: Duration = Duration::from_secs(10);

/// How many rejected requests there were, from where, and how much of that was told.
///
/// Only credentials that were rejected are charged and held back: whoever brings a valid token is served, also from
/// an address from which a storm comes, which may be that of a proxy.
#[derive(Debug, Default)]
pub(super) struct Storm {
    /// By address: the moment at which it will have worked off what it caused.
    peers: HashMap<IpAddr, Instant>,
    others: Option<Instant>,
    told: Option<Instant>,
    untold: u64,
}

/// What to do about a rejected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weather {
    /// How long the address has to wait, where it has caused too many.
    pub(super) wait: Option<Duration>,
    /// Where it is time for a line of the log: how many were rejected since the last one.
    pub(super) tell: Option<u64>,
}

impl Storm {
    /// Counts a request that was rejected at `now`, and charges it to `tried`, from where credentials
    /// came that do not count.
    pub(super) fn rejected(&mut self, tried: Option<IpAddr>, now: Instant) -> Weather {
        self.untold += 1;
        let is_time = self.told.is_none_or(|told| now.duration_since(told) >= QUIET);
        let tell = is_time.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.untold)
        });
        Weather { wait: tried.and_then(|peer| self.charge(peer, now)), tell }
    }

    fn charge(&mut self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let peer = network(peer);
        if self.peers.len() >= MOST && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, until| *until > now);
        }
        let until = if self.peers.len() < MOST || self.peers.contains_key(&peer) {
            self.peers.entry(peer).or_insert(now)
        } else {
            self.others.get_or_insert(now)
        };
        let next = (*until).max(now) + EACH;
        let over = next.duration_since(now).checked_sub(EACH * BURST).filter(|over| !over.is_zero());
        if over.is_none() {
            *until = next;
        }
        over
    }
}

/// The address that stands for all that one sender has: an IPv6 network of 64 bits is one line.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_storm_is_held_back_from_where_it_comes_and_ends() {
        let (mut storm, start) = (Storm::default(), Instant::now());
        let mut held = 0;
        for _ in 0..1_000 {
            held += u32::from(storm.rejected(Some(address("10.0.0.1")), start).wait.is_some());
        }
        assert_eq!(held, 1_000 - BURST);
        assert_eq!(storm.rejected(Some(address("10.0.0.2")), start).wait, None);
        let wait = storm.rejected(Some(address("10.0.0.1")), start).wait.unwrap();
        assert!(wait <= EACH, "{wait:?}");
        assert_eq!(storm.rejected(Some(address("10.0.0.1")), start + wait).wait, None);
    }

    #[test]
    fn the_log_gets_one_line_for_all_of_a_while() {
        let (mut storm, start) = (Storm::default(), Instant::now());
        let told: Vec<u64> =
            (0..1_000).filter_map(|_| storm.rejected(Some(address("10.0.0.1")), start).tell).collect();
        assert_eq!(told, [1]);
        assert_eq!(storm.rejected(None, start), Weather { wait: None, tell: None });
        assert_eq!(storm.rejected(Some(address("10.0.0.1")), start + QUIET).tell, Some(1_001));
    }

    #[test]
    fn addresses_without_end_take_no_memory_without_end() {
        let (mut storm, start) = (Storm::default(), Instant::now());
        for host in 0..10_000_u32 {
            storm.rejected(Some(IpAddr::from(host.to_be_bytes())), start);
        }
        assert_eq!(storm.peers.len(), MOST);
        assert!(
            storm.rejected(Some(address("200.0.0.1")), start).wait.is_some(),
            "the others share one allowance"
        );
        storm.rejected(Some(address("200.0.0.1")), start + EACH * 2);
        assert!(storm.peers.len() <= 1, "{}", storm.peers.len());
    }

    #[test]
    fn one_network_is_one_sender() {
        let (mut storm, start) = (Storm::default(), Instant::now());
        for host in 0..BURST {
            storm.rejected(Some(address(&format!("2001:db8::{host:x}"))), start);
        }
        assert!(storm.rejected(Some(address("2001:db8::ffff")), start).wait.is_some());
        assert_eq!(storm.rejected(Some(address("2001:db8:0:1::1")), start).wait, None);
    }
}
