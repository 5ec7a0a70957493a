//! Files that stay open, to be appended to and read at offsets.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use cyberine_fs::FsError;

use crate::home;

#[test]
fn a_log_grows_and_is_read_at_offsets() {
    let (_scratch, home) = home();
    assert!(home.open_file("log").unwrap().is_none());
    let (log, born) = home.open_log("log").unwrap();
    assert!(born && !home.open_log("log").unwrap().1);
    log.append(0, b"one\n").unwrap();
    log.append(4, b"two\n").unwrap();
    log.sync().unwrap();
    home.sync_names().unwrap();
    let mode = std::fs::metadata(log.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let file = home.open_file("log").unwrap().unwrap();
    let mut bytes = b"> ".to_vec();
    assert_eq!(file.read_at(4, 2, &mut bytes).unwrap(), 2);
    assert_eq!(file.read_at(6, 99, &mut bytes).unwrap(), 2);
    assert_eq!(file.read_at(99, 9, &mut bytes).unwrap(), 0);
    assert_eq!(bytes, b"> two\n");
}

#[test]
fn a_status_tells_growth_and_replacement() {
    let (_scratch, home) = home();
    assert_eq!(home.status("log").unwrap(), None);
    let (log, _) = home.open_log("log").unwrap();
    let empty = home.status("log").unwrap().unwrap();
    assert_eq!(log.status().unwrap(), empty);
    log.append(0, b"grown").unwrap();
    let grown = home.status("log").unwrap().unwrap();
    assert_eq!((grown.identity, grown.length), (empty.identity, 5));
    home.remove("log").unwrap();
    home.open_log("log").unwrap().0.append(0, b"other").unwrap();
    let other = home.status("log").unwrap().unwrap();
    assert_ne!(log.status().unwrap(), other, "the one that is open is another");
    home.subdir("directory").unwrap();
    assert_eq!(home.status("directory").unwrap(), None);
}

#[test]
fn what_is_restated_is_there_already() {
    let (_scratch, home) = home();
    assert!(!home.restate("log", 0, b"x").unwrap(), "nothing is made");
    assert_eq!(home.status("log").unwrap(), None);
    home.open_log("log").unwrap().0.append(0, b"one two three").unwrap();
    assert!(home.restate("log", 4, b"two").unwrap());
    assert_eq!(home.read("log", 99).unwrap().as_deref(), Some(&b"one two three"[..]));
}

#[test]
fn a_directory_knows_whether_its_path_still_leads_to_it() {
    let (scratch, home) = home();
    let inner = home.subdir("inner").unwrap();
    assert!(inner.is_in_place().unwrap());
    let aside = scratch.path().join("aside");
    std::fs::rename(inner.path(), &aside).unwrap();
    assert!(!inner.is_in_place().unwrap());
    symlink(&aside, inner.path()).unwrap();
    assert!(!inner.is_in_place().unwrap(), "a link to it is not it");
    std::fs::remove_file(inner.path()).unwrap();
    home.subdir("inner").unwrap();
    assert!(!inner.is_in_place().unwrap(), "another of the same name");
}

#[test]
fn links_are_refused() {
    let (scratch, home) = home();
    let target = scratch.path().join("target");
    std::fs::write(&target, b"theirs").unwrap();
    symlink(&target, home.path().join("link")).unwrap();
    std::fs::hard_link(&target, home.path().join("second")).unwrap();
    assert!(matches!(home.open_log("link"), Err(FsError::Symlink { .. })));
    assert!(matches!(home.open_file("link"), Err(FsError::Symlink { .. })));
    assert!(matches!(home.restate("link", 0, b"x"), Err(FsError::Symlink { .. })));
    assert!(matches!(home.open_log("second"), Err(FsError::HardLinked { .. })));
    assert!(matches!(home.restate("second", 0, b"x"), Err(FsError::HardLinked { .. })));
    assert_eq!(home.status("link").unwrap(), None);
    assert_eq!(std::fs::read(target).unwrap(), b"theirs");
}
