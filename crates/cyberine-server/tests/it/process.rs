//! A real process with real standard streams: `examples/fixture_server.rs`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::{PATIENCE, WIRES, stateless};

/// Cargo builds the examples of a package with its tests.
fn fixture_server() -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push("fixture_server");
    assert!(path.exists(), "{} is missing: run all of `cargo test -p cyberine-server`", path.display());
    #[expect(clippy::disallowed_methods, reason = "the process under test")]
    Command::new(path)
}

fn exited(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "the process does not end");
        std::thread::yield_now();
    }
}

const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"p","version":"1"}}}"#,
    "\n",
);

fn call(id: u32, name: &str) -> String {
    let params = json!({ "name": name, "arguments": {} });
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
}

fn ids(output: &str) -> Vec<Value> {
    output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}"))["id"].clone())
        .collect()
}

#[test]
fn nothing_but_messages_reaches_the_hosts_stream() {
    for wire in WIRES {
        let (input, to) = wire.pair();
        let (from, output) = wire.pair();
        let mut command = fixture_server();
        let mut child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        let mut to = File::from(to);
        let requests =
            [OPENING.to_owned(), call(1, "noise"), call(2, "fail"), call(3, "noise"), call(4, "list_team")];
        to.write_all(requests.concat().as_bytes()).unwrap();
        let answers: Vec<String> =
            BufReader::new(File::from(from)).lines().take(5).map(Result::unwrap).collect();
        assert_eq!(ids(&answers.join("\n")), [0, 1, 2, 3, 4]);
        // A child that reads its inherited stdin finds its end, not our requests.
        assert!(answers[1].contains(r#""child":true"#), "{}", answers[1]);
        drop(to);
        assert!(exited(&mut child).success());
        let mut log = String::new();
        child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert_eq!(log.matches("noise of a library").count(), 2, "{log}");
        assert_eq!(log.matches("noise of a child").count(), 2, "{log}");
    }
}

#[test]
fn files_are_served_like_any_other_stream() {
    let home = tempfile::tempdir().unwrap();
    let (requests, answers) = (home.path().join("in"), home.path().join("out"));
    std::fs::write(&requests, [OPENING.to_owned(), call(1, "list_team"), call(2, "whoami")].concat())
        .unwrap();
    let (input, output) = (File::open(&requests).unwrap(), File::create(&answers).unwrap());
    let mut child = fixture_server().stdin(input).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    assert!(exited(&mut child).success());
    assert_eq!(ids(&std::fs::read_to_string(&answers).unwrap()), [0, 1, 2]);
}

#[test]
fn the_end_of_input_ends_the_process_also_before_the_first_line() {
    for requests in ["", OPENING] {
        let mut child = fixture_server()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut to = child.stdin.take().unwrap();
        to.write_all(requests.as_bytes()).unwrap();
        if !requests.is_empty() {
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        }
        drop(to);
        let began = Instant::now();
        assert!(exited(&mut child).success());
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

#[test]
fn a_termination_signal_is_a_quiet_end() {
    let mut child =
        fixture_server().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(OPENING.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(exited(&mut child).success());
    drop(to);
}

#[test]
fn a_termination_signal_ends_what_is_followed_with_its_result() {
    let mut child =
        fixture_server().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let wanted = json!({ "resourceSubscriptions": ["fixture://things/1"] });
    let listen = stateless(json!({ "notifications": wanted }), json!({}));
    let touch = stateless(json!({ "name": "touch", "arguments": { "id": 1 } }), json!({}));
    for (id, method, params) in [("sub", "subscriptions/listen", listen), ("t", "tools/call", touch)] {
        writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .unwrap();
    }
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["method"], "notifications/subscriptions/acknowledged");
    let mut methods = [next(), next()].map(|message| message["method"].as_str().map(str::to_owned));
    methods.sort();
    assert_eq!(methods, [None, Some("notifications/resources/updated".to_owned())]);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let end = next();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("sub"), &json!("complete")), "{end}");
    assert!(lines.next().is_none());
    assert!(exited(&mut child).success());
    drop(to);
}

/// The most memory a process has had so far, in KiB.
#[cfg(target_os = "linux")]
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits until a process has taken all the memory it wants for what it was sent.
#[cfg(target_os = "linux")]
fn settles(child: &Child) {
    let began = Instant::now();
    let mut last = 0;
    loop {
        let (now, seen) = (peak(child), Instant::now());
        if now == last {
            return;
        }
        last = now;
        assert!(began.elapsed() < PATIENCE, "the process grows and grows");
        while seen.elapsed() < Duration::from_millis(300) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

/// Sends lines to a host's server that nobody reads from, then reads what comes; gives the messages
/// and by how many KiB the process has grown at most.
#[cfg(target_os = "linux")]
fn answers_and_growth(revision: &str, lines: &[String], answers: usize) -> (Vec<Value>, u64) {
    let mut child =
        fixture_server().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap()).lines();
    to.write_all(OPENING.replace("2025-11-25", revision).as_bytes()).unwrap();
    from.next().unwrap().unwrap();
    let before = peak(&child);
    to.write_all(lines.concat().as_bytes()).unwrap();
    settles(&child);
    let seen =
        from.by_ref().take(answers).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let grown = peak(&child) - before;
    drop(to);
    assert!(exited(&mut child).success());
    (seen, grown)
}

/// Reads whose answers have 40 MiB together.
#[cfg(target_os = "linux")]
fn large_reads() -> Vec<Value> {
    let read = |id| {
        let params = json!({ "uri": format!("fixture://large/{id}") });
        json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params })
    };
    (0..40).map(read).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn answers_that_nobody_reads_are_not_piled_up() {
    let lines: Vec<String> = large_reads().iter().map(|read| format!("{read}\n")).collect();
    let (answers, grown) = answers_and_growth("2025-11-25", &lines, 40);
    assert!(answers.iter().all(|answer| answer["result"]["contents"][0]["text"].is_string()));
    assert!(grown < 24 * 1024, "{grown} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn answers_that_wait_in_batches_are_not_piled_up() {
    let batch = format!("{}\n", Value::from(large_reads()));
    let (answers, grown) = answers_and_growth("2025-03-26", &[batch], 1);
    let parts = answers[0].as_array().unwrap();
    assert_eq!(parts.iter().filter(|part| part["result"].is_object()).count(), 7);
    assert_eq!(parts.iter().filter(|part| part["error"]["code"] == -32603).count(), 33);
    assert!(grown < 24 * 1024, "{grown} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn news_that_nobody_reads_is_not_piled_up() {
    let uris: Vec<String> = (0..500).map(|id| format!("fixture://busy/{id:0>2000}")).collect();
    let wanted = json!({ "resourceSubscriptions": uris });
    let listen = stateless(json!({ "notifications": wanted }), json!({}));
    let listen = json!({ "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": listen });
    // Twenty times a second each, 1 MiB together.
    let (news, grown) = answers_and_growth("2025-11-25", &[format!("{listen}\n")], 2000);
    assert!(news[1..].iter().all(|news| news["method"] == "notifications/resources/updated"));
    assert!(grown < 24 * 1024, "{grown} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_line_does_not_grow_the_process() {
    let mut child =
        fixture_server().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    to.write_all(OPENING.as_bytes()).unwrap();
    answers.next().unwrap().unwrap();
    let before = peak(&child);
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..20 {
        to.write_all(&chunk).unwrap();
    }
    to.write_all(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    assert!(answers.next().unwrap().unwrap().contains("error"));
    assert!(answers.next().unwrap().unwrap().contains("\"id\":1"));
    let grown = peak(&child) - before;
    assert!(grown < 9 * 1024, "{grown} KiB");
    drop(to);
    assert!(exited(&mut child).success());
}
