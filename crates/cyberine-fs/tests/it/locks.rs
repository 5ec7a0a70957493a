use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cyberine_fs::{FsError, PrivateDir};

use crate::{helper, home};

/// A process that another test is starting holds a copy of every descriptor for an instant, so a
/// lock that was closed, rather than released, can be free a moment later only.
fn assert_comes_free(home: &PrivateDir) {
    let until = Instant::now() + Duration::from_secs(10);
    while home.is_locked("lock").unwrap() {
        assert!(Instant::now() < until, "the lock stays taken");
        std::thread::yield_now();
    }
}

#[test]
fn a_lock_has_one_holder_until_it_is_dropped() {
    let (_scratch, home) = home();
    assert!(!home.is_locked("lock").unwrap(), "what is not there is not locked");
    let held = home.try_lock("lock").unwrap().unwrap();
    assert!(home.is_locked("lock").unwrap() && held.is_current().unwrap());
    assert!(home.try_lock("lock").unwrap().is_none());
    assert!(home.try_lock("other").unwrap().is_some());
    drop(held);
    assert_comes_free(&home);
    assert!(home.try_lock("lock").unwrap().is_some());
}

#[test]
fn a_lock_is_freed_at_once_although_a_copy_is_open() {
    let (_scratch, home) = home();
    let held = home.try_lock("lock").unwrap().unwrap();
    let copy = held.try_clone_file().unwrap();
    held.release().unwrap();
    assert!(home.try_lock("lock").unwrap().is_some());
    drop(copy);
}

#[test]
fn a_lock_that_rests_is_taken_again_unless_it_is_held_or_its_file_is_gone() {
    let (_scratch, home) = home();
    let resting = home.try_lock("lock").unwrap().unwrap().rest().unwrap();
    assert!(!home.is_locked("lock").unwrap());
    let held = resting.try_lock().unwrap().unwrap();
    assert!(home.is_locked("lock").unwrap() && held.is_current().unwrap());
    let resting = held.rest().unwrap();
    let other = home.try_lock("lock").unwrap().unwrap();
    assert!(resting.try_lock().unwrap().is_none(), "somebody holds it");
    let resting = other.rest().unwrap();
    home.remove("lock").unwrap();
    let new = home.try_lock("lock").unwrap().unwrap();
    assert!(resting.try_lock().unwrap().is_none(), "it is another file's lock");
    drop(new);
}

#[test]
fn a_killed_holder_frees_the_lock() {
    let (_scratch, home) = home();
    let mut holder = helper::start("hold a lock", home.path());
    assert!(home.is_locked("lock").unwrap());
    assert!(home.try_lock("lock").unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(home.try_lock("lock").unwrap().is_some());
}

#[test]
fn a_holder_learns_that_its_lock_file_was_removed() {
    let (_scratch, home) = home();
    let earlier = home.try_lock("lock").unwrap().unwrap();
    assert!(home.remove("lock").unwrap());
    assert!(!earlier.is_current().unwrap());
    let later = home.try_lock("lock").unwrap().unwrap();
    assert!(later.is_current().unwrap() && !earlier.is_current().unwrap());
    drop(earlier);
    assert!(home.is_locked("lock").unwrap(), "the earlier holder frees its own file only");
}

#[test]
fn removing_the_file_while_others_wait_for_it_gives_no_second_holder() {
    let (_scratch, home) = home();
    let (inside, taken) = (AtomicBool::new(false), AtomicU32::new(0));
    let until = Instant::now() + Duration::from_secs(20);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while taken.load(Ordering::Relaxed) < 3_000 && Instant::now() < until {
                    let Some(lock) = home.try_lock("lock").unwrap() else {
                        std::thread::yield_now();
                        continue;
                    };
                    assert!(!inside.swap(true, Ordering::SeqCst), "two holders");
                    taken.fetch_add(1, Ordering::Relaxed);
                    assert!(lock.is_current().unwrap(), "only a holder removes the file");
                    inside.store(false, Ordering::SeqCst);
                    home.remove("lock").unwrap();
                    drop(lock);
                }
            });
        }
    });
    assert!(taken.into_inner() >= 3_000, "the lock was hardly ever free");
}

#[test]
fn asking_whether_it_is_locked_does_not_keep_it_from_being_locked() {
    let (_scratch, home) = home();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    home.is_locked("lock").unwrap();
                }
            });
        }
        let taken = |_: &u32| home.try_lock("lock").unwrap().map(|lock| lock.release().unwrap()).is_some();
        let missed = 500 - (0..500).filter(taken).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(missed, 0);
    });
}

#[test]
fn a_lock_passes_on_with_its_descriptor() {
    let (_scratch, home) = home();
    let held = home.try_lock("lock").unwrap().unwrap();
    let descriptor = held.as_fd().try_clone_to_owned().unwrap();
    let taken = home.take_over_lock("lock", descriptor).unwrap();
    drop(held);
    assert!(home.is_locked("lock").unwrap());
    drop(taken.into_file());
    assert_comes_free(&home);
}

#[test]
fn a_descriptor_that_is_not_the_lock_is_refused() {
    let (scratch, home) = home();
    let refused = |home: &PrivateDir, file: std::fs::File| {
        matches!(home.take_over_lock("lock", file), Err(FsError::NotTheLock { .. }))
    };
    let other = home.try_lock("other").unwrap().unwrap().into_file();
    assert!(refused(&home, other.try_clone().unwrap()), "there is no such lock");
    let held = home.try_lock("lock").unwrap().unwrap();
    assert!(refused(&home, other), "another file");
    assert!(refused(&home, std::fs::File::open("/dev/null").unwrap()));
    assert!(
        refused(&home, std::fs::File::open(home.path().join("lock")).unwrap()),
        "the file, but not the lock"
    );
    let elsewhere = PrivateDir::open_or_create(&scratch.path().join("elsewhere")).unwrap();
    let foreign = elsewhere.try_lock("lock").unwrap().unwrap();
    assert!(refused(&home, foreign.into_file()), "the same name elsewhere");
    let copy = held.try_clone_file().unwrap();
    home.remove("lock").unwrap();
    home.touch("lock").unwrap();
    assert!(refused(&home, copy), "a file that lost its name");
}
