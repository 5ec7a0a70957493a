use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, FsError, Listing, PrivateDir};

use crate::{helper, home, is_root};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let (_scratch, home) = home();
    for durability in [Durability::Fast, Durability::Durable] {
        home.replace("a", b"first", durability).unwrap();
        home.replace("a", b"second", durability).unwrap();
        home.append("a", b", third", durability).unwrap();
    }
    assert_eq!(home.read("a", 64).unwrap().as_deref(), Some(&b"second, third"[..]));
    assert_eq!(home.read("a", 13).unwrap().map(|bytes| bytes.len()), Some(13));
    assert!(matches!(home.read("a", 12), Err(FsError::TooLarge { limit: 12, .. })));
    assert_eq!(home.read("absent", 64).unwrap(), None);
    assert_eq!(home.read_from("a", 8, 3).unwrap().as_deref(), Some(&b"thi"[..]));
    assert_eq!(home.read_from("a", 99, 3).unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(home.read_from("absent", 0, 3).unwrap(), None);

    assert_eq!([home.exists("a").unwrap(), home.remove("a").unwrap()], [true, true]);
    assert_eq!([home.exists("a").unwrap(), home.remove("a").unwrap()], [false, false]);
}

#[test]
fn a_touch_changes_the_file_and_not_its_size() {
    let (_scratch, home) = home();
    for _ in 0..3 {
        home.touch("wake").unwrap();
    }
    assert_eq!(home.read("wake", 64).unwrap().as_deref(), Some(&b"."[..]));
}

#[test]
fn a_name_is_one_component() {
    let (_scratch, home) = home();
    let long = "x".repeat(256);
    for bad in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0b", &long] {
        let refused = |result: Result<(), FsError>| matches!(result, Err(FsError::BadName { .. }));
        assert!(refused(home.replace(bad, b"", Durability::Fast)), "{bad}");
        assert!(refused(home.append(bad, b"", Durability::Fast)), "{bad}");
        assert!(refused(home.touch(bad)), "{bad}");
        assert!(refused(home.read(bad, 1).map(drop)), "{bad}");
        assert!(refused(home.read_from(bad, 0, 1).map(drop)), "{bad}");
        assert!(refused(home.read_unshared(bad, 1).map(drop)), "{bad}");
        assert!(refused(home.remove(bad).map(drop)), "{bad}");
        assert!(refused(home.exists(bad).map(drop)), "{bad}");
        assert!(refused(home.subdir(bad).map(drop)), "{bad}");
        assert!(refused(home.existing_subdir(bad).map(drop)), "{bad}");
        assert!(refused(home.try_lock(bad).map(drop)), "{bad}");
        assert!(refused(home.is_locked(bad).map(drop)), "{bad}");
    }
    let error = home.read("a\n\u{1b}[31m/", 1).unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error}");
    let longest = "x".repeat(255);
    home.replace(&longest, b"x", Durability::Fast).unwrap();
    assert!(home.exists(&longest).unwrap());
}

#[test]
fn modes_are_private_whatever_the_umask() {
    for role in ["write under umask 000", "write under umask 777"] {
        let scratch = tempfile::tempdir().unwrap();
        helper::run(role, scratch.path());
        let home = scratch.path().join("deep/home");
        assert_eq!([mode(&home), mode(&home.join("sub"))], [0o700, 0o700], "{role}");
        for file in ["replaced", "appended", "touched", "lock", "sub/replaced"] {
            assert_eq!(mode(&home.join(file)), 0o600, "{role}: {file}");
        }
    }
}

#[test]
fn a_home_that_others_can_reach_is_closed_or_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("home");
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o755);
    PrivateDir::open_or_create(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    for shared in [0o777, 0o770, 0o702, 0o1777] {
        set_mode(&path, shared);
        assert!(
            matches!(PrivateDir::open_or_create(&path), Err(FsError::SharedWrite { mode, .. }) if mode == shared)
        );
        assert_eq!(mode(&path), shared, "a refusal changes nothing");
    }
}

#[test]
fn a_link_is_not_a_home_and_may_be_a_project() {
    let scratch = tempfile::tempdir().unwrap();
    let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
    PrivateDir::open_or_create(&real).unwrap();
    symlink(&real, &link).unwrap();
    for disguise in [link.clone(), link.join(""), link.join(".")] {
        let error = PrivateDir::open_or_create(&disguise).unwrap_err();
        assert!(matches!(&error, FsError::Symlink { path } if *path == link), "{error}");
    }
    let project = PrivateDir::open_existing(&link).unwrap();
    assert_eq!(project.identity().unwrap(), PrivateDir::open_existing(&real).unwrap().identity().unwrap());
}

#[test]
fn a_project_replaced_by_a_link_leads_nowhere_else() {
    let scratch = tempfile::tempdir().unwrap();
    let (project, moved, trap) =
        (scratch.path().join("project"), scratch.path().join("moved"), scratch.path().join("trap"));
    fs::create_dir(&project).unwrap();
    fs::create_dir(&trap).unwrap();
    let opened = PrivateDir::open_existing(&project).unwrap();
    Command::new("mv").args([&project, &moved]).status().unwrap();
    symlink(&trap, &project).unwrap();

    opened.subdir("runs").unwrap().replace("run.json", b"{}", Durability::Fast).unwrap();
    assert!(moved.join("runs/run.json").exists());
    assert_eq!(fs::read_dir(&trap).unwrap().count(), 0);
    assert_ne!(opened.identity().unwrap(), PrivateDir::open_existing(&project).unwrap().identity().unwrap());
}

#[test]
fn what_is_no_directory_is_refused() {
    let (scratch, home) = home();
    home.replace("file", b"", Durability::Fast).unwrap();
    symlink(scratch.path(), home.path().join("link")).unwrap();
    let wrong = |error: FsError| matches!(error, FsError::WrongType { wanted: "directory", .. });
    assert!(wrong(home.subdir("file").unwrap_err()));
    assert!(wrong(PrivateDir::open_or_create(&home.path().join("file")).unwrap_err()));
    assert!(wrong(PrivateDir::open_existing(&home.path().join("file")).unwrap_err()));
    assert!(matches!(home.subdir("link"), Err(FsError::Symlink { .. })));
    assert!(matches!(home.existing_subdir("link"), Err(FsError::Symlink { .. })));
    assert!(home.existing_subdir("absent").unwrap().is_none());
    assert!(PrivateDir::open_existing(&home.path().join("absent")).is_err());
    home.subdir("sub").unwrap();
    assert!(home.existing_subdir("sub").unwrap().is_some());
}

#[test]
fn links_fifos_and_second_names_are_no_files_of_ours() {
    let (scratch, home) = home();
    let outside = scratch.path().join("outside");
    fs::write(&outside, "precious").unwrap();
    let at = |name: &str| home.path().join(name);
    symlink(&outside, at("link")).unwrap();
    fs::hard_link(&outside, at("hard")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    fs::create_dir(at("dir")).unwrap();

    type Check = fn(&FsError) -> bool;
    let wrong: Check = |error| matches!(error, FsError::WrongType { wanted: "regular file", .. });
    let cases: [(&str, Check); 4] = [
        ("link", |error| matches!(error, FsError::Symlink { .. })),
        ("hard", |error| matches!(error, FsError::HardLinked { links: 2, .. })),
        ("fifo", wrong),
        ("dir", wrong),
    ];
    for (name, expected) in cases {
        for error in [
            home.read(name, 64).unwrap_err(),
            home.read_from(name, 0, 64).unwrap_err(),
            home.append(name, b"x", Durability::Fast).unwrap_err(),
            home.touch(name).unwrap_err(),
            home.try_lock(name).unwrap_err(),
            home.is_locked(name).unwrap_err(),
        ] {
            assert!(expected(&error) && error.path() == at(name), "{name}: {error}");
        }
    }
    // Replacing puts a file of ours in the place of the link and leaves what it led to alone.
    home.replace("link", b"ours", Durability::Fast).unwrap();
    home.replace("hard", b"ours", Durability::Fast).unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
    assert_eq!(home.read("link", 64).unwrap().as_deref(), Some(&b"ours"[..]));
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    if !is_root() {
        println!("skipped: only root can give a file away");
        return;
    }
    let (scratch, home) = home();
    home.replace("file", b"x", Durability::Fast).unwrap();
    home.subdir("sub").unwrap();
    for name in ["file", "sub"] {
        std::os::unix::fs::chown(home.path().join(name), Some(4242), None).unwrap();
    }
    let foreign = |error: FsError| matches!(error, FsError::ForeignOwner { owner: 4242, me: 0, .. });
    assert!(foreign(home.read("file", 64).unwrap_err()));
    assert!(foreign(home.append("file", b"x", Durability::Fast).unwrap_err()));
    assert!(foreign(home.try_lock("file").unwrap_err()));
    assert!(foreign(home.subdir("sub").unwrap_err()));
    assert!(foreign(PrivateDir::open_or_create(&home.path().join("sub")).unwrap_err()));
    // A project of another user's may be worked in.
    std::os::unix::fs::chown(scratch.path(), Some(4242), None).unwrap();
    PrivateDir::open_existing(scratch.path()).unwrap();
}

#[test]
fn what_is_obeyed_may_not_be_written_by_others() {
    let (_scratch, home) = home();
    home.replace("config", b"x", Durability::Fast).unwrap();
    assert!(home.read_unshared("config", 64).unwrap().is_some());
    assert!(home.read_unshared("absent", 64).unwrap().is_none());
    for shared in [0o620, 0o602, 0o666] {
        set_mode(&home.path().join("config"), shared);
        assert!(
            matches!(home.read_unshared("config", 64), Err(FsError::SharedWrite { mode, .. }) if mode == shared)
        );
    }
    set_mode(&home.path().join("config"), 0o644);
    assert!(home.read_unshared("config", 64).unwrap().is_some());
}

#[test]
fn readers_of_a_replaced_file_see_one_whole_content() {
    let (_scratch, home) = home();
    let whole = |letter: u8| vec![letter; 100_000];
    home.replace("run.json", &whole(b'a'), Durability::Fast).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        let bytes =
                            home.read("run.json", 100_000).unwrap().expect("the name is always there");
                        assert!(bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]));
                        seen += 1;
                    }
                    seen
                })
            })
            .collect();
        for round in 0..300_u32 {
            home.replace("run.json", &whole(b'a' + (round % 26) as u8), Durability::Fast).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u32>() > 0);
    });
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn listings_are_bounded_and_leftovers_are_swept() {
    let (_scratch, home) = home();
    for name in ["a", "b", "c"] {
        home.touch(name).unwrap();
    }
    home.touch(".tmp-4242-0").unwrap();
    let mut all = home.list(3).unwrap();
    all.names.sort();
    assert_eq!(all, Listing { names: ["a", "b", "c"].map(String::from).to_vec(), truncated: false });
    let some = home.list(2).unwrap();
    assert_eq!((some.names.len(), some.truncated), (2, true));

    assert_eq!(home.sweep_temporary(Duration::from_secs(600)).unwrap(), 0);
    assert_eq!(home.sweep_temporary(Duration::ZERO).unwrap(), 1);
    assert_eq!(home.list(9).unwrap().names.len(), 3);
}

#[test]
fn a_home_that_was_removed_is_an_error_with_its_path() {
    let (_scratch, home) = home();
    fs::remove_dir_all(home.path()).unwrap();
    let error = home.replace("a", b"x", Durability::Durable).unwrap_err();
    assert_eq!(error.path(), home.path().join("a"));
    assert!(home.append("a", b"x", Durability::Fast).is_err());
    assert!(home.try_lock("a").is_err());
}

#[test]
fn a_full_disk_loses_nothing_and_is_survived() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: this user cannot mount a small file system");
        return;
    }
    let outcome = std::panic::catch_unwind(|| fill(&disk));
    assert!(Command::new("umount").args(["-l"]).arg(&disk).status().unwrap().success());
    outcome.unwrap();
}

fn fill(disk: &Path) {
    let home = PrivateDir::open_or_create(&disk.join("home")).unwrap();
    home.replace("state", b"kept", Durability::Durable).unwrap();
    home.append("log", b"kept\n", Durability::Durable).unwrap();
    let huge = vec![b'x'; 1024 * 1024];
    let full = |error: FsError| matches!(error, FsError::Full { .. });
    assert!(full(home.replace("state", &huge, Durability::Durable).unwrap_err()));
    assert!(full(home.append("log", &huge, Durability::Durable).unwrap_err()));
    assert_eq!(home.read("state", 64).unwrap().as_deref(), Some(&b"kept"[..]));
    assert_eq!(
        home.read("log", 64).unwrap().as_deref(),
        Some(&b"kept\n"[..]),
        "the part that fitted is gone"
    );
    // Space comes back with the failed writes, so no restart is needed. A process that another test
    // is starting may hold the removed file open for an instant.
    let until = Instant::now() + Duration::from_secs(10);
    while let Err(error) = home.replace("state", b"new", Durability::Durable) {
        assert!(full(error) && Instant::now() < until);
    }
    home.append("log", b"new\n", Durability::Durable).unwrap();
    assert_eq!(home.list(9).unwrap().names.len(), 2);
}

#[test]
fn a_file_is_dated_by_what_was_read_and_only_that_is_dated_anew() {
    let (_scratch, home) = home();
    home.replace("a", b"first", Durability::Fast).unwrap();
    let first = home.read_dated("a", 64).unwrap().unwrap();
    let now = home.file_system_time().unwrap();
    assert_eq!(first.bytes, b"first");
    assert!(first.modified <= now && now < first.modified + Duration::from_secs(60));

    let earlier = now - Duration::from_secs(3600);
    assert!(home.set_modified("a", first.identity, earlier).unwrap());
    assert_eq!(home.read_dated("a", 64).unwrap().unwrap().modified, earlier);
    // Made while the first is still there, so that it is another file.
    home.replace("a", b"second", Durability::Fast).unwrap();
    assert!(!home.set_modified("a", first.identity, earlier).unwrap());
    assert!(home.read_dated("a", 64).unwrap().unwrap().modified >= first.modified);
    assert_eq!(home.read_dated("absent", 64).unwrap(), None);
    assert!(!home.set_modified("absent", first.identity, earlier).unwrap());
    assert!(matches!(home.read_dated("a", 5), Err(FsError::TooLarge { limit: 5, .. })));
}
