//! Mailboxes whose files have suffered.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::place::Place;

/// The file that holds `text`.
fn file_with(directory: &Path, text: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            return file_with(&path, text);
        }
        std::fs::read_to_string(&path).is_ok_and(|read| read.contains(text)).then_some(path)
    })
}

#[test]
fn a_broken_record_is_passed_over_told_and_named_by_doctor() {
    let place = Place::new();
    for text in ["first", "second", "third"] {
        place.run(&["send", "chat:c", text]);
    }
    assert_eq!(place.run(&["doctor"]).code, Some(0));
    let file = file_with(&place.home().join("bus"), "second").unwrap();
    let text = std::fs::read_to_string(&file).unwrap().replace("second", "s3cond");
    std::fs::write(&file, text).unwrap();

    let read = place.run(&["inbox", "chat:c"]);
    assert_eq!(read.code, Some(0));
    assert!(
        read.out.contains("first") && read.out.contains("third") && !read.out.contains("s3cond"),
        "{read:?}"
    );
    assert!(read.err.contains("1 broken record") && read.err.contains("cyberine doctor"), "{read:?}");
    assert_eq!(place.run(&["inbox", "chat:c", "--json"]).json()["skipped"], 1);

    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(70), "{doctor:?}");
    assert!(doctor.out.contains("chat:c") && doctor.out.contains("1 damaged"), "{doctor:?}");
    let report = place.run(&["doctor", "--json"]).json();
    assert_eq!(
        (&report["mail"]["messages"], &report["mail"]["broken"][0]["badLines"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    assert_eq!(place.run(&["send", "chat:c", "fourth", "--json"]).json()["seq"], 4);
}

#[test]
fn an_odd_directory_is_named_and_every_other_mailbox_is_listed() {
    let place = Place::new();
    place.run(&["send", "chat:c", "first"]);
    place.run(&["send", "chat:linked", "second"]);
    let kind = place.home().join("bus/chat");
    std::os::unix::fs::symlink("/tmp", kind.join("odd")).unwrap();
    let file = file_with(&kind.join("linked"), "second").unwrap();
    std::fs::hard_link(&file, place.home().join("other")).unwrap();

    let listed = place.run(&["inbox"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.out.contains("chat:c") && !listed.out.contains("linked"), "{listed:?}");
    assert!(listed.err.contains("bus/chat/odd") && listed.err.contains("bus/chat/linked/"), "{listed:?}");
    let report = place.run(&["inbox", "--json"]).json();
    assert_eq!(report["mailboxes"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["unusable"].as_array().map(Vec::len), Some(2), "{report}");

    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(70), "{doctor:?}");
    assert!(doctor.out.contains("bus/chat/odd") && doctor.out.contains("1 messages in 1"), "{doctor:?}");
    let report = place.run(&["doctor", "--json"]).json();
    assert_eq!(report["mail"]["broken"].as_array().map(Vec::len), Some(2), "{report}");
}
