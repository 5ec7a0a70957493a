use std::time::{Duration, Instant};

use cyberine_fs::{Durability, POLL, PrivateDir, Wake, Watcher};

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

#[test]
fn a_wait_ends_after_the_poll_interval_or_earlier() {
    let (_scratch, home) = home();
    block_on(async {
        let mut subscription = Watcher::new().watch(home.path());
        let timed = async |subscription: &mut cyberine_fs::Subscription, timeout| {
            let started = Instant::now();
            assert_eq!(subscription.changed(timeout).await, Wake::Elapsed);
            started.elapsed()
        };
        assert!(timed(&mut subscription, Duration::from_millis(20)).await < POLL);
        assert!(timed(&mut subscription, LONG).await < Duration::from_secs(10));
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
