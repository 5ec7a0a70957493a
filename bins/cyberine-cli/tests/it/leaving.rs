//! Readers that leave, signals that end, and files that may not grow.

use std::io::Write;
use std::process::Stdio;

use crate::place::{Place, Said, shell, wait_until};

#[test]
fn a_watcher_ends_as_soon_as_nobody_reads_it() {
    let place = Place::new();
    for arguments in [&["watch"][..], &["inbox", "chat:c", "--follow"], &["watch", "--all", "--json"]] {
        // Nothing comes that it could fail to write.
        let said = place.start(arguments).deafen();
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    }
}

#[test]
fn whoever_is_terminated_is_live_no_longer() {
    let place = Place::new();
    let reader = place.start(&["inbox", "--chat", "desk", "--follow", "--announce"]);
    let record = || {
        let found = std::fs::read_dir(place.home().join("bus/presence")).into_iter().flatten().flatten();
        found.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect::<String>()
    };
    wait_until("the chat is announced", || record().contains("desk"));
    let said = reader.terminate();
    assert_eq!((said.code, said.out.as_str()), (Some(130), ""), "{said:?}");
    assert!(record().contains("\"ended\":true"), "it has withdrawn its record itself: {}", record());
}

#[test]
fn a_file_that_may_not_grow_is_told_and_harms_nothing() {
    let place = Place::new();
    place.run(&["send", "chat:c", "before"]);
    let mut limited = place.program("sh");
    // In blocks of 512 or 1024 bytes.
    limited.args(["-c", "ulimit -f 64; exec \"$0\" send chat:c -", env!("CARGO_BIN_EXE_cyberine")]);
    limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = limited.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&[b'x'; 1 << 20]).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    said.refused(70, &["File too large"]);
    place.run(&["send", "chat:c", "after"]);
    let shown = place.run(&["inbox", "chat:c"]).out;
    let texts: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("  │ ")).collect();
    assert_eq!(texts, ["before", "after"]);
}

#[test]
fn a_program_that_is_started_takes_the_signal_as_the_system_does() {
    let place = Place::with(&shell("a", "cat > /dev/null; grep SigIgn /proc/self/status"));
    let answer = place.run(&["orchestrate", "x", "--json"]).json()["steps"][0]["candidates"][0].clone();
    let answer = answer["output"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let ignored = u64::from_str_radix(answer.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(ignored & (1 << (rustix::process::Signal::XFSZ.as_raw() - 1)), 0, "{answer}");
}
