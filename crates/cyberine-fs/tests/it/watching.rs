use std::time::{Duration, Instant};

use cyberine_fs::{Durability, POLL, PrivateDir, WATCHED_POLL, Wake, Watcher};

use crate::{helper, home};

const LONG: Duration = Duration::from_secs(60);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Waits for news for as long as a slow machine may need; a wake by poll is no news.
async fn is_told(subscription: &mut cyberine_fs::Subscription) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if subscription.changed(LONG).await == Wake::Changed {
            return true;
        }
    }
    false
}

/// Takes the news there is, until there is none for a while.
async fn settle(subscription: &mut cyberine_fs::Subscription) {
    while subscription.changed(Duration::from_millis(150)).await == Wake::Changed {}
}

#[test]
fn every_kind_of_change_wakes() {
    let (_scratch, home) = home();
    home.touch("old").unwrap();
    type Change = fn(&PrivateDir);
    let changes: [(&str, Change); 5] = [
        ("touch", |home| home.touch("old").unwrap()),
        ("create", |home| home.touch("new").unwrap()),
        ("replace", |home| home.replace("new", b"x", Durability::Fast).unwrap()),
        ("append", |home| home.append("new", b"x", Durability::Fast).unwrap()),
        ("remove", |home| assert!(home.remove("old").unwrap())),
    ];
    block_on(async {
        let mut subscription = Watcher::new().watch(home.path());
        for (name, change) in changes {
            settle(&mut subscription).await;
            change(&home);
            assert!(is_told(&mut subscription).await, "{name}");
        }
    });
}

#[test]
fn reading_wakes_nobody() {
    let (_scratch, home) = home();
    home.touch("file").unwrap();
    block_on(async {
        let mut subscription = Watcher::new().watch(home.path());
        settle(&mut subscription).await;
        home.read("file", 64).unwrap();
        home.list(9).unwrap();
        home.exists("file").unwrap();
        assert_eq!(subscription.changed(Duration::from_millis(300)).await, Wake::Elapsed);
    });
}

/// How long a wait is that nothing ends, by the clock that stands still.
async fn waits(subscription: &mut cyberine_fs::Subscription, timeout: Duration) -> Duration {
    let started = tokio::time::Instant::now();
    tokio::time::pause();
    let wake = subscription.changed(timeout).await;
    tokio::time::resume();
    assert_eq!(wake, Wake::Elapsed);
    started.elapsed()
}

#[test]
fn a_wait_ends_after_the_poll_interval_or_earlier() {
    let (_scratch, home) = home();
    block_on(async {
        let mut subscription = Watcher::new().watch(home.path());
        settle(&mut subscription).await;
        assert!(waits(&mut subscription, Duration::from_millis(20)).await < POLL);
        assert!(waits(&mut subscription, LONG).await < 2 * POLL, "what came before is looked for soon");
        let longest = waits(&mut subscription, LONG).await;
        let is_slow = longest > WATCHED_POLL - Duration::from_secs(2);
        assert!(is_slow && longest < WATCHED_POLL + POLL, "what is told is looked at seldom: {longest:?}");
        let mut absent = Watcher::new().watch(&home.path().join("absent"));
        assert!(waits(&mut absent, LONG).await < 2 * POLL, "what is not told is looked at often");
    });
}

/// Waits until the system tells of the directory's changes, and nothing has changed.
async fn is_watched(subscription: &mut cyberine_fs::Subscription) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        settle(subscription).await;
        if waits(subscription, LONG).await > 2 * POLL {
            return true;
        }
    }
    false
}

#[test]
fn a_directory_that_comes_later_or_is_replaced_is_watched_again() {
    let (_scratch, home) = home();
    let place = home.path().join("place/inner");
    let outer = home.path().join("place");
    block_on(async {
        let mut subscription = Watcher::new().watch(&place);
        assert!(waits(&mut subscription, LONG).await < 2 * POLL);
        let make = || home.subdir("place").unwrap().subdir("inner").unwrap();
        let inner = make();
        assert!(is_watched(&mut subscription).await, "it was made");
        inner.touch("file").unwrap();
        assert!(is_told(&mut subscription).await);
        std::fs::remove_dir_all(&place).unwrap();
        assert!(is_told(&mut subscription).await, "its end is told");
        settle(&mut subscription).await;
        waits(&mut subscription, POLL).await;
        assert!(waits(&mut subscription, LONG).await < 2 * POLL, "what is gone is looked for often");
        let inner = make();
        assert!(is_watched(&mut subscription).await, "it was made again");
        inner.touch("file").unwrap();
        assert!(is_told(&mut subscription).await);
        settle(&mut subscription).await;
        // Nothing tells of this.
        std::fs::rename(&outer, home.path().join("elsewhere")).unwrap();
        let inner = make();
        waits(&mut subscription, LONG).await;
        inner.touch("file").unwrap();
        assert!(is_told(&mut subscription).await, "the one that has its path is watched");
    });
}

#[test]
fn news_is_neither_lost_by_a_dropped_wait_nor_told_twice() {
    let (_scratch, home) = home();
    block_on(async {
        let watcher = Watcher::new();
        let mut subscription = watcher.watch(home.path());
        let mut other = watcher.watch(home.path());
        settle(&mut subscription).await;
        assert!(tokio::time::timeout(Duration::from_millis(5), subscription.changed(LONG)).await.is_err());
        for _ in 0..50 {
            home.touch("file").unwrap();
        }
        assert!(is_told(&mut subscription).await);
        assert!(is_told(&mut other).await, "each subscription is told for itself");
        settle(&mut subscription).await;
        assert_eq!(subscription.changed(Duration::from_millis(50)).await, Wake::Elapsed);
    });
}

#[test]
fn one_directory_is_watched_while_anyone_is_subscribed() {
    let (_scratch, home) = home();
    let (near, far) = (home.subdir("near").unwrap(), home.subdir("far").unwrap());
    block_on(async {
        let watcher = Watcher::new();
        let mut first = watcher.watch(near.path());
        let second = watcher.watch(near.path());
        let mut elsewhere = watcher.watch(far.path());
        settle(&mut elsewhere).await;
        drop(second);
        near.touch("file").unwrap();
        assert!(is_told(&mut first).await);
        assert_eq!(elsewhere.changed(Duration::from_millis(50)).await, Wake::Elapsed);
        drop(first);
        let mut again = watcher.watch(near.path());
        near.touch("file").unwrap();
        assert!(is_told(&mut again).await, "a directory can be watched again");
    });
}

#[test]
fn a_directory_that_is_not_there_is_polled() {
    let (_scratch, home) = home();
    block_on(async {
        let mut subscription = Watcher::new().watch(&home.path().join("absent"));
        assert_eq!(subscription.changed(Duration::from_millis(20)).await, Wake::Elapsed);
    });
}

#[test]
fn without_watches_left_everything_is_polled() {
    let (_scratch, home) = home();
    helper::run("watch without descriptors", home.path());
}
