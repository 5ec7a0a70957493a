//! Files as their users wrote them: add, add again, take out.

use std::path::Path;

use cyberine_install::{Host, Overwrite, Plan, Withdrawal, plan, withdraw};

use crate::{added, entry, full_entry};

/// Every fixture of every host, as it is and as other editors would have saved it.
fn texts() -> Vec<(Host, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut texts = Vec::new();
    for host in Host::ALL {
        let folder = root.join(host.word());
        let before = texts.len();
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let name = format!("{}/{}", host.word(), path.file_name().unwrap().display());
            let text = std::fs::read_to_string(&path).unwrap();
            let other_ends = text.replace('\n', "\r\n");
            texts.push((host, format!("{name} with CRLF and a mark"), format!("\u{feff}{other_ends}")));
            texts.push((host, format!("{name} with CRLF"), other_ends));
            texts.push((host, format!("{name} with a mark"), format!("\u{feff}{text}")));
            texts.push((host, format!("{name} without a last line break"), text.trim_end().to_owned()));
            texts.push((host, name, text));
        }
        assert!(texts.len() > before, "{host:?} has no fixture");
        texts.push((host, format!("{}: an empty file", host.word()), String::new()));
        texts.push((host, format!("{}: white space", host.word()), " \n\n".to_owned()));
    }
    texts
}

#[test]
fn adding_twice_changes_nothing_and_taking_out_gives_the_bytes_back() {
    for (host, name, before) in texts() {
        for entry in [entry(), full_entry()] {
            let after = added(host, Some(&before), &entry);
            assert_eq!(plan(host, Some(&after), &entry, Overwrite::Refuse).unwrap(), Plan::Nothing, "{name}");
            let taken = withdraw(host, &after, std::slice::from_ref(&before), Overwrite::Refuse).unwrap();
            assert_eq!(taken, Withdrawal::GiveBack(before.clone()), "{name}");
        }
    }
}

#[test]
fn every_character_that_was_there_is_still_there_in_its_order() {
    for (host, name, before) in texts() {
        let after = added(host, Some(&before), &full_entry());
        let mut rest = after.chars();
        let missing = before.chars().find(|wanted| !rest.any(|c| c == *wanted));
        assert_eq!(missing, None, "{name}:\n{after}");
        if before.contains("\r\n") {
            assert!(!after.replace("\r\n", "").contains('\n'), "{name} has got other line breaks");
        } else {
            assert!(!after.contains('\r'), "{name} has got other line breaks");
        }
    }
}

#[test]
fn what_was_written_beside_the_entry_since_stays() {
    for (host, name, before) in texts() {
        if before.trim_start_matches('\u{feff}').trim().is_empty() {
            continue;
        }
        let after = added(host, Some(&before), &entry());
        let remark = if host == Host::Codex { "# since\n" } else { "\n \n" };
        let changed = format!("{after}{remark}");
        let taken = withdraw(host, &changed, std::slice::from_ref(&before), Overwrite::Refuse).unwrap();
        let Withdrawal::Write(rest) = taken else { panic!("{name}: {taken:?}") };
        // TOML ends a last line before it adds a table; that line break stays.
        let ended = before.ends_with('\n') || host != Host::Codex;
        let line_break = if before.contains("\r\n") { "\r\n" } else { "\n" };
        let expected = format!("{before}{}{remark}", if ended { "" } else { line_break });
        assert_eq!(rest, expected, "{name}");
    }
}

#[test]
fn a_file_that_was_not_there_goes_again() {
    for host in Host::ALL {
        let born = added(host, None, &entry());
        assert!(born.ends_with('\n'), "{born:?}");
        assert_eq!(plan(host, Some(&born), &entry(), Overwrite::Refuse).unwrap(), Plan::Nothing);
        assert_eq!(withdraw(host, &born, &[], Overwrite::Refuse).unwrap(), Withdrawal::Remove, "{host:?}");
        // One that was there and empty stays, empty.
        let taken = withdraw(host, &born, &[String::new()], Overwrite::Refuse).unwrap();
        assert_eq!(taken, Withdrawal::GiveBack(String::new()), "{host:?}");
    }
}

#[test]
fn an_entry_of_ours_that_was_replaced_does_not_come_back() {
    let moved = full_entry();
    for (host, name, before) in texts() {
        let first = added(host, Some(&before), &entry());
        let Plan::Write(second) = plan(host, Some(&first), &moved, Overwrite::Allow).unwrap() else {
            panic!("{name}: nothing to write")
        };
        let taken = withdraw(host, &second, &[first, before.clone()], Overwrite::Refuse).unwrap();
        match taken {
            Withdrawal::GiveBack(rest) | Withdrawal::Write(rest) => assert_eq!(rest, before, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}
