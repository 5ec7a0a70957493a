//! Bad input, bad clients, bad handlers.

use std::io::Write as _;
use std::time::Duration;

use cyberine_server::Ended;
use serde_json::{Value, json};

use crate::fixture::Things;
use crate::host::{Host, PATIENCE, WIRES, server, server_of, stateless};

/// What a server has to end within once its client is gone. The promise is one second; a loaded
/// machine gets another one.
const END: Duration = Duration::from_secs(2);

#[test]
fn what_is_no_message_is_answered_and_the_next_line_served() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        for (line, code) in [
            ("hello", -32700),
            ("{\"jsonrpc\":", -32700),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            ("[]", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", -32602),
        ] {
            host.send_line(line);
            assert_eq!(host.recv()["error"]["code"], code, "{line}");
        }
        host.send_line("");
        host.send_line("   ");
        host.initialize(json!({}));
        assert_eq!(host.ask("no/such", json!({}))["error"]["code"], -32601);
        host.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/nonsense" }));
        host.is_quiet();
    }
}

#[test]
fn a_line_of_20_megabytes_is_refused_and_the_next_one_served() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        let text = "x".repeat(20 * 1024 * 1024);
        let params = json!({ "name": "echo", "arguments": { "text": text } });
        let id = host.request("tools/call", params.clone());
        let refusal = host.recv();
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(id), &json!(-32600)), "{refusal}");
        // Some clients write the id last.
        host.send_line(&format!(
            r#"{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"last"}}"#
        ));
        let refusal = host.recv();
        assert_eq!(
            (&refusal["id"], &refusal["error"]["code"]),
            (&json!("last"), &json!(-32600)),
            "{refusal}"
        );
        host.send_line(&text);
        assert_eq!(host.recv().get("id"), None);
        host.is_quiet();
        host.initialize(json!({}));
        let text = "y".repeat(1024 * 1024);
        let echoed = host.call("echo", json!({ "text": text }));
        assert_eq!(echoed["result"]["structuredContent"]["text"].as_str().map(str::len), Some(text.len()));
    }
}

#[test]
fn a_text_of_1_mebibyte_is_served_however_it_is_escaped() {
    const TEXT: usize = 1024 * 1024;
    let mut host = Host::start(WIRES[1], server());
    host.initialize(json!({}));
    for (escaped, plain) in [(r"\u0001", '\u{1}'), (r"\u00e9", 'é'), (r"\ud83d\ude00", '😀')] {
        let count = TEXT / plain.len_utf8();
        let text = escaped.repeat(count);
        host.send_line(&format!(
            r#"{{"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}},"jsonrpc":"2.0","id":"e"}}"#
        ));
        let echoed = host.recv();
        let echoed = echoed["result"]["structuredContent"]["text"].as_str().unwrap_or_default();
        assert!(echoed.chars().eq(std::iter::repeat_n(plain, count)), "{escaped}: {} bytes", echoed.len());
    }
}

#[test]
fn a_text_that_is_cut_within_a_character_is_answered_to_who_sent_it() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let half = r#"{"name":"echo","arguments":{"text":"\ud83d"}}"#;
    host.send_line(&format!(r#"{{"method":"tools/call","params":{half},"jsonrpc":"2.0","id":"half"}}"#));
    let refusal = host.recv();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("half"), &json!(-32602)), "{refusal}");
    host.is_quiet();
}

#[test]
fn an_id_in_flight_is_not_taken_twice() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let slow = json!({ "name": "slow", "arguments": { "ms": 600_000 } });
    host.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": slow }));
    host.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "ping" }));
    assert_eq!(host.recv()["error"]["code"], -32600);
    host.is_quiet();
}

#[test]
fn a_panic_is_one_internal_error_that_tells_nothing() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        for arguments in [json!({}), json!({ "later": true })] {
            for params in [
                json!({ "name": "fail", "arguments": arguments }),
                stateless(json!({ "name": "fail", "arguments": arguments }), json!({})),
            ] {
                let answer = host.ask("tools/call", params);
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                assert!(!answer.to_string().contains("secret"), "{answer}");
            }
        }
        host.is_quiet();
    }
}

#[test]
fn calls_that_wait_do_not_hold_up_others() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        for number in 0..64 {
            let mut params = json!({ "name": "slow", "arguments": { "ms": 600_000 } });
            params["_meta"]["progressToken"] = json!(number);
            host.request("tools/call", params);
        }
        for _ in 0..100 {
            host.is_quiet();
            assert_eq!(
                host.call("list_team", json!({}))["result"]["structuredContent"],
                json!({ "members": [] })
            );
        }
        let (ended, took, rest) = host.ended();
        assert_eq!((ended, rest), (Ended::InputClosed, Vec::new()));
        assert!(took < END, "{took:?}");
    }
}

#[test]
fn calls_in_flight_are_bounded() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let mut ids = Vec::new();
    for _ in 0..257 {
        ids.push(host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 600_000 } })));
    }
    let refusal = host.recv();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(ids[256]), &json!(-33003)), "{refusal}");
    // A place that gets free is taken.
    host.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": ids[0] } }),
    );
    assert_eq!(host.call("list_team", json!({}))["result"]["structuredContent"], json!({ "members": [] }));
}

/// Fills every place with calls that do not end.
fn fill_places(host: &mut Host) {
    for _ in 0..256 {
        host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 600_000 } }));
    }
}

#[test]
fn what_needs_no_place_does_not_wait_for_one() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        fill_places(&mut host);
        let began = std::time::Instant::now();
        for _ in 0..50 {
            host.is_quiet();
            host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/nonsense" }));
            let stray = json!({ "requestId": "none" });
            host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": stray }));
            assert!(host.ask("tools/list", json!({}))["result"]["tools"].is_array());
        }
        // 200 lines, of which each would wait for a quarter of a second.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[test]
fn calls_that_control_others_find_a_place_where_all_are_taken() {
    for wire in WIRES {
        let things = Things::default();
        let mut host = Host::start(wire, server_of(&things, None));
        host.initialize(json!({}));
        fill_places(&mut host);
        assert_eq!(host.call("list_team", json!({}))["error"]["code"], -33003);
        for changes in 1..=50 {
            let touched = host.call("touch", json!({ "id": 1 }));
            assert_eq!(touched["result"]["structuredContent"]["changes"], changes, "{touched}");
        }
        // One that is large takes several places, and so has none.
        let mut large = json!({ "name": "touch", "arguments": { "id": 1 } });
        large["_meta"]["pad"] = json!("x".repeat(300 * 1024));
        assert_eq!(host.ask("tools/call", large)["error"]["code"], -33003);
        assert_eq!(things.touch(1), 51);
    }
}

#[test]
fn the_places_for_control_are_bounded_too() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    fill_places(&mut host);
    for _ in 0..8 {
        host.request("tools/call", json!({ "name": "touch", "arguments": { "id": 1, "linger": true } }));
    }
    assert_eq!(host.call("touch", json!({ "id": 1 }))["error"]["code"], -33003);
    host.is_quiet();
}

#[test]
fn requests_that_find_no_place_hold_up_the_lines_behind_them_once() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    fill_places(&mut host);
    let began = std::time::Instant::now();
    for _ in 0..80 {
        assert_eq!(host.call("list_team", json!({}))["error"]["code"], -33003);
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_large_request_takes_several_places() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let large = |pad: usize| {
        let meta = json!({ "pad": "x".repeat(pad) });
        json!({ "name": "slow", "arguments": { "ms": 600_000 }, "_meta": meta })
    };
    for _ in 0..8 {
        host.request("tools/call", large(8 * 1024 * 1024 - 1024));
    }
    assert_eq!(host.call("list_team", json!({}))["error"]["code"], -33003);
    host.is_quiet();
}

#[test]
fn a_client_that_goes_away_ends_the_server_with_what_was_in_flight() {
    for wire in WIRES {
        let (ended, took, rest) = Host::start(wire, server()).ended();
        assert_eq!((ended, rest), (Ended::InputClosed, Vec::new()));
        assert!(took < END, "{took:?}");

        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 600_000 } }));
        host.writer().write_all(b"{\"jsonrpc\":").unwrap();
        let (ended, took, rest) = host.ended();
        assert_eq!(ended, Ended::InputClosed);
        assert!(took < END, "{took:?}");
        assert_eq!(rest.iter().map(|line| line["error"]["code"].clone()).collect::<Vec<_>>(), [-32700]);
    }
}

#[test]
fn answers_that_are_about_to_come_are_given_at_the_end() {
    let mut host = Host::start(WIRES[1], server());
    host.initialize(json!({}));
    let id = host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 10 } }));
    let (_, _, rest) = host.ended();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["id"], id);
}

#[test]
fn a_server_that_is_told_to_stop_stops() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 600_000 } }));
        host.is_quiet();
        host.stop.cancel();
        assert_eq!(host.finished().0, Ended::Stopped);
    }
}

#[test]
fn a_client_that_reads_no_more_ends_the_server_also_where_it_says_nothing() {
    for wire in WIRES {
        for said in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"] {
            let mut host = Host::start_unread(wire, server());
            host.writer().write_all(said.as_bytes()).unwrap();
            host.stop_reading();
            let (ended, took, _) = host.finished();
            assert_eq!(ended, Ended::OutputClosed);
            assert!(took < END, "{took:?}");
        }
    }
}

/// Requests enough to fill every buffer on the way: pipes, queue and read-ahead.
const FLOOD: u64 = 50_000;

fn flood(host: &Host) -> std::thread::JoinHandle<()> {
    let mut writer = host.writer();
    std::thread::spawn(move || {
        for id in 0..FLOOD {
            let pad = "x".repeat(60);
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}-{pad}\",\"method\":\"ping\"}}\n");
            if writer.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Waits until a flood stands still because the server reads no more.
pub(crate) fn stands_still(host: &Host) {
    let writer = host.writer();
    let began = std::time::Instant::now();
    while !is_full(&writer) {
        assert!(began.elapsed() < PATIENCE, "the server swallows everything");
    }
}

/// Whether nothing can be written for a while.
fn is_full(writer: &std::fs::File) -> bool {
    let mut fds = [rustix::event::PollFd::new(writer, rustix::event::PollFlags::OUT)];
    let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    rustix::event::poll(&mut fds, Some(&wait)).unwrap() == 0
}

#[test]
fn a_client_that_stops_reading_holds_the_server_back_and_loses_nothing() {
    for wire in WIRES {
        let mut host = Host::start_unread(wire, server());
        let flooding = flood(&host);
        stands_still(&host);
        host.read();
        for id in 0..FLOOD {
            let answer = host.recv();
            assert!(answer["id"].as_str().unwrap().starts_with(&format!("{id}-")), "{id}: {answer}");
        }
        flooding.join().unwrap();
        host.is_quiet();
    }
}

#[test]
fn a_client_that_reads_nothing_and_goes_away_ends_the_server() {
    for wire in WIRES {
        let host = Host::start_unread(wire, server());
        let mut writer = host.writer();
        // The flags of the host's end; the server has an end of its own.
        rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).unwrap();
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{:60}\",\"method\":\"ping\"}}\n", "");
        let began = std::time::Instant::now();
        while !is_full(&writer) {
            assert!(began.elapsed() < PATIENCE, "the server swallows everything");
            // What does not fit is asked again.
            let _ = writer.write(line.as_bytes());
        }
        drop(writer);
        let (ended, took, _) = host.ended();
        assert_eq!(ended, Ended::InputClosed);
        assert!(took < END, "{took:?}");
    }
}

#[test]
fn answers_that_are_ready_together_leave_in_one_write() {
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
    // A socket of packets: every write of the server is one packet.
    let packets =
        || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let (from, output) = packets();
    let mut host = Host::over(WIRES[1].pair(), (from.try_clone().unwrap(), output), server());
    let pings: String =
        (0..64).map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")).collect();
    host.writer().write_all(pings.as_bytes()).unwrap();
    let mut packet = vec![0; 1 << 20];
    let (count, _) = recv(&from, &mut packet[..], RecvFlags::empty()).unwrap();
    assert_eq!(packet[..count].iter().filter(|byte| **byte == b'\n').count(), 64);
    host.close();
}

#[test]
fn many_large_answers_arrive_whole() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        let text = "z".repeat(300_000);
        let mut expected = Vec::new();
        for _ in 0..20 {
            expected
                .push(host.request("tools/call", json!({ "name": "echo", "arguments": { "text": text } })));
        }
        for id in expected {
            let answer = host.recv();
            assert_eq!(answer["id"], id);
            assert_eq!(answer["result"]["structuredContent"]["text"], Value::String(text.clone()));
        }
    }
}
