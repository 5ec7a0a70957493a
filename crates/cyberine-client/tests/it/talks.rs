//! Sessions that go well, in both eras.

use cyberine_client::{CallEvent, ReplyPart};
use serde_json::json;

use crate::peer::{LEGACY, Peer, STATELESS, arguments, block_on, call};

const ANSWER: &str = r#"answer $id '{"content":[{"type":"text","text":"hello"}]}'
"#;

fn hello() -> Vec<ReplyPart> {
    vec![ReplyPart::Text("hello".into())]
}

#[test]
fn both_eras_are_found_out_listed_called_and_closed() {
    let pages = r#"
hear; answer $id '{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"more"}'; id=$((id + 1))
hear; answer $id '{"tools":[{"name":"c"}]}'; id=$((id + 1))
hear
printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"on it"}}\n'
printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' $id
"#;
    for (opening, id, revision) in [(STATELESS, "id=2\n", "2026-07-28"), (LEGACY, "id=3\n", "2025-06-18")] {
        let peer = Peer::new(&[opening, id, pages, ANSWER, "hear"]);
        block_on(async {
            let mut client = peer.start();
            let facts = client.open().await.unwrap();
            assert_eq!((facts.revision.as_str(), facts.tools), (revision, true));
            let tools = client.tools().await.unwrap();
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "c"]);
            let (before, reply) = call(&mut client).await;
            assert_eq!((before, reply.unwrap().content), (2, hello()));
            assert_eq!(client.close().await.left, 0);
        });
        let heard = peer.heard();
        assert!(heard.iter().any(|line| line["params"]["cursor"] == "more"), "{heard:?}");
        let called = heard.last().unwrap();
        assert_eq!(called["method"], "tools/call");
        assert_eq!(called["params"]["arguments"], json!(arguments()));
        let stateless = called["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == revision;
        assert_eq!(stateless, opening == STATELESS, "{called}");
    }
}

#[test]
fn a_server_that_does_not_survive_discover_is_started_again() {
    let picky = r#"
hear
case $line in *server/discover*) echo 'what is this?' >&2; exit 3;; esac
answer 1 '{"protocolVersion":"2024-11-05","capabilities":{}}'
hear; hear; id=2
"#;
    let peer = Peer::new(&[picky, ANSWER]);
    block_on(async {
        let mut client = peer.start();
        assert_eq!(client.open().await.unwrap().revision.as_str(), "2024-11-05");
        assert_eq!(call(&mut client).await.1.unwrap().content, hello());
        client.close().await;
    });
    let methods = peer.methods();
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized", "tools/call"]);
}

#[test]
fn a_server_that_asks_for_sampling_hears_no_and_goes_on() {
    let asks = r#"
hear; id=3
printf '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}\n'
hear
"#;
    let peer = Peer::new(&[LEGACY, asks, ANSWER]);
    block_on(async {
        let mut client = peer.start();
        client.open().await.unwrap();
        assert_eq!(call(&mut client).await.1.unwrap().content, hello());
        client.close().await;
    });
    let said = peer.heard().pop().unwrap();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!("q"), &json!(-32601)));
}

#[test]
fn a_call_that_is_dropped_is_cancelled_in_either_era() {
    let waits = r#"
hear
printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' $id
hear
answer $id '{"content":[]}'; id=$((id + 1))
hear
"#;
    for (opening, id) in [(STATELESS, "id=2\n"), (LEGACY, "id=3\n")] {
        let peer = Peer::new(&[opening, id, waits, ANSWER]);
        block_on(async {
            let mut client = peer.start();
            client.open().await.unwrap();
            let mut first = client.call("echo", &arguments()).unwrap();
            assert!(matches!(first.next().await.unwrap(), CallEvent::Progress { .. }));
            drop(first);
            // The late answer to the first is not taken for the second's.
            assert_eq!(call(&mut client).await.1.unwrap().content, hello());
            client.close().await;
        });
        let heard = peer.heard();
        let [.., first, cancelled, _] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], first["id"]);
    }
}

#[test]
fn a_long_question_and_a_long_log_do_not_wait_for_each_other() {
    let floods = r#"
yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}' | head -n 20000
hear; id=2
"#;
    let peer = Peer::new(&[STATELESS, floods, ANSWER]);
    block_on(async {
        let mut client = peer.start();
        client.open().await.unwrap();
        let long = [("text".to_owned(), json!("x".repeat(1 << 20)))].into_iter().collect();
        let mut call = client.call("echo", &long).unwrap();
        let mut logs = 0;
        let reply = loop {
            match call.next().await.unwrap() {
                CallEvent::Done(reply) => break reply,
                CallEvent::Log(_) => logs += 1,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((logs, reply.content), (20_000, hello()));
        drop(call);
        client.close().await;
    });
}
