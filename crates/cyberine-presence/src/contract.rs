//! The contract of [`Presence`], as a suite that any implementation can run.
//!
//! Call [`every_check`] with a factory; each check gets a place where nobody is.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use cyberine_types::InstanceId;

use crate::error::PresenceError;
use crate::port::{Announcing, Presence};
use crate::record::{Activity, Member, RecordAddr, State};

/// How long a change may take to be seen.
const SEEN: Duration = Duration::from_secs(5);

const ANNOUNCED: &str = "what is fit to be shown is announced";

/// Two processes in one place.
pub struct Subject<P> {
    /// Presence of the first process.
    pub one: P,
    /// The instance it was made with.
    pub one_is: InstanceId,
    /// Presence of the second process.
    pub other: P,
    /// The instance it was made with.
    pub other_is: InstanceId,
}

type Check<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs every check, one after the other. Needs a Tokio runtime with time.
///
/// # Panics
/// Where the implementation breaks the contract.
pub async fn every_check<P: Presence>(make: impl Fn() -> Subject<P>) {
    let checks: [for<'a> fn(&'a Subject<P>) -> Check<'a>; 8] = [
        |subject| Box::pin(nobody_is_there_at_first(subject)),
        |subject| Box::pin(everybody_sees_what_was_announced(subject)),
        |subject| Box::pin(two_processes_may_have_one_address(subject)),
        |subject| Box::pin(one_process_announces_an_address_once(subject)),
        |subject| Box::pin(an_activity_is_seen(subject)),
        |subject| Box::pin(what_ended_or_was_dropped_is_not_listed(subject)),
        |subject| Box::pin(an_address_can_be_announced_again(subject)),
        |subject| Box::pin(names_that_mislead_are_refused(subject)),
    ];
    for check in checks {
        check(&make()).await;
    }
}

/// The chat `id`, without anything that may be left out.
#[must_use]
pub fn chat(id: &str) -> Announcing {
    Announcing {
        addr: RecordAddr { kind: "chat".to_owned(), id: id.to_owned() },
        repo_cwd: "/work".to_owned(),
        capabilities: Vec::new(),
        team: None,
        role: None,
        name: None,
    }
}

async fn roster<P: Presence>(presence: &P) -> Vec<Member> {
    presence.roster().await.expect("a roster is answered")
}

fn ids(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| member.record.addr.id.as_str()).collect()
}

async fn nobody_is_there_at_first<P: Presence>(subject: &Subject<P>) {
    assert_eq!(roster(&subject.one).await, []);
}

async fn everybody_sees_what_was_announced<P: Presence>(subject: &Subject<P>) {
    let announcing = Announcing {
        capabilities: vec!["orchestrate".to_owned(), "research".to_owned()],
        team: Some("owls".to_owned()),
        role: Some("reviewer".to_owned()),
        name: Some("Zoë 🦉".to_owned()),
        ..chat("../b c/ü")
    };
    let _b = subject.one.announce(announcing.clone()).await.expect(ANNOUNCED);
    let _a = subject.other.announce(chat("!a")).await.expect(ANNOUNCED);
    for presence in [&subject.one, &subject.other] {
        let members = roster(presence).await;
        assert_eq!(ids(&members), ["!a", "../b c/ü"]);
        let record = &members[1].record;
        let seen = Announcing {
            addr: record.addr.clone(),
            repo_cwd: record.repo_cwd.clone(),
            capabilities: record.capabilities.clone(),
            team: record.team.clone(),
            role: record.role.clone(),
            name: record.name.clone(),
        };
        assert_eq!(seen, announcing);
        assert_eq!((record.instance_id, record.pid), (subject.one_is, std::process::id()));
        assert_eq!(members[1].state, State::Alive);
    }
}

async fn two_processes_may_have_one_address<P: Presence>(subject: &Subject<P>) {
    let _one = subject.one.announce(chat("a")).await.expect(ANNOUNCED);
    let _other = subject.other.announce(chat("a")).await.expect(ANNOUNCED);
    let found: Vec<_> = roster(&subject.one).await.iter().map(|member| member.record.instance_id).collect();
    let mut both = vec![subject.one_is, subject.other_is];
    both.sort_unstable();
    assert_eq!(found, both);
}

async fn one_process_announces_an_address_once<P: Presence>(subject: &Subject<P>) {
    let _first = subject.one.announce(chat("a")).await.expect(ANNOUNCED);
    let second = subject.one.announce(chat("a")).await;
    assert!(matches!(second, Err(PresenceError::Twice { addr }) if addr.id == "a"));
    assert_eq!(ids(&roster(&subject.one).await), ["a"]);
}

async fn an_activity_is_seen<P: Presence>(subject: &Subject<P>) {
    let announcement = subject.one.announce(chat("a")).await.expect(ANNOUNCED);
    for (activity, state) in [
        (Activity::Progressing, State::Progressing),
        (Activity::Waiting, State::Waiting),
        (Activity::Alive, State::Alive),
    ] {
        announcement.set_activity(activity);
        let until = Instant::now() + SEEN;
        loop {
            let members = roster(&subject.other).await;
            assert_eq!(ids(&members), ["a"]);
            if members[0].state == state {
                break;
            }
            assert!(Instant::now() < until, "{activity:?} is not seen: {members:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn what_ended_or_was_dropped_is_not_listed<P: Presence>(subject: &Subject<P>) {
    let ended = subject.one.announce(chat("ended")).await.expect(ANNOUNCED);
    let dropped = subject.one.announce(chat("dropped")).await.expect(ANNOUNCED);
    let _stays = subject.other.announce(chat("stays")).await.expect(ANNOUNCED);
    ended.end().await;
    assert_eq!(ids(&roster(&subject.other).await), ["dropped", "stays"]);
    // What ended says nothing more, and ending it again changes nothing.
    ended.set_activity(Activity::Waiting);
    ended.end().await;
    drop(dropped);
    assert_eq!(ids(&roster(&subject.other).await), ["stays"]);
}

async fn an_address_can_be_announced_again<P: Presence>(subject: &Subject<P>) {
    let first = subject.one.announce(chat("a")).await.expect(ANNOUNCED);
    first.end().await;
    let _second = subject.one.announce(chat("a")).await.expect(ANNOUNCED);
    // The earlier one has no say in it any more.
    drop(first);
    assert_eq!(ids(&roster(&subject.other).await), ["a"]);
}

async fn names_that_mislead_are_refused<P: Presence>(subject: &Subject<P>) {
    for name in ["\u{202e}adA", "A\u{200b}da", "Ada\n", "", &"a".repeat(129)] {
        let refused = subject.one.announce(Announcing { name: Some(name.to_owned()), ..chat("a") }).await;
        let error = refused.err().expect("a name that misleads is refused");
        assert_eq!(error.code(), "presence_refused", "{name:?}");
    }
    assert_eq!(roster(&subject.one).await, []);
}
