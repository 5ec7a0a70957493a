//! Sessions that go wrong, and servers that do not want to end.

use std::time::Duration;

use cyberine_client::{CallEvent, Client, ClientError, ClientOptions};
use cyberine_process::Spawn;
use cyberine_testkit::{is_gone, wait_until};

use crate::peer::{LEGACY, Peer, STATELESS, arguments, block_on, call};

async fn opened(peer: &Peer) -> ClientError {
    let mut client = peer.start();
    let error = client.open().await.unwrap_err();
    assert_eq!(client.close().await.left, 0);
    error
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let peer = Peer::new(&[]);
    block_on(async {
        let spawn = Spawn { program: "no-such-server-anywhere".into(), ..peer.spawn() };
        let error = Client::start(spawn, ClientOptions::new("test", "0")).err().unwrap();
        let ClientError::Start { source } = error else { panic!("{error}") };
        assert!(source.to_string().contains("`no-such-server-anywhere` was not found"), "{source}");
    });
}

#[test]
fn a_server_that_ends_at_once_tells_its_last_words() {
    let peer = Peer::new(&["hear; echo 'API_KEY is not set' >&2; exit 7"]);
    let error = block_on(opened(&peer)).to_string();
    let expected = "the server ended before it answered, with exit status: 7; its standard error ends: `API_KEY is not set`";
    assert_eq!(error, expected);
    assert_eq!(peer.methods(), ["server/discover", "initialize"]);
}

#[test]
fn a_server_that_ends_amid_a_call_is_not_started_again() {
    let peer = Peer::new(&[STATELESS, "hear; printf '{\"jsonrpc\":\"2.0\",\"id\":2,\"res'"]);
    block_on(async {
        let mut client = peer.start();
        client.open().await.unwrap();
        let (_, reply) = call(&mut client).await;
        let ClientError::Fault { fault, .. } = reply.unwrap_err() else {
            panic!("half a line is no message")
        };
        assert!(fault.to_string().contains("`{\"jsonrpc\":\"2.0\",\"id\":2,\"res`"), "{fault}");
        assert!(matches!(client.call("echo", &arguments()), Err(ClientError::NotOpen)));
        client.close().await;
    });
    let peer = Peer::new(&[STATELESS, "hear; exit 0"]);
    block_on(async {
        let mut client = peer.start();
        client.open().await.unwrap();
        let error = call(&mut client).await.1.unwrap_err();
        assert!(matches!(error, ClientError::Ended { success: true, .. }), "{error}");
        client.close().await;
    });
    assert_eq!(peer.methods(), ["server/discover", "tools/call"]);
}

#[test]
fn a_server_that_closes_its_output_and_stays_did_not_end_by_itself() {
    let peer = Peer::new(&[STATELESS, "hear; echo 'still here' >&2; exec >&-; exec sleep 600"]);
    block_on(async {
        let mut client = peer.start();
        client.open().await.unwrap();
        let error = call(&mut client).await.1.unwrap_err();
        assert!(matches!(error, ClientError::Ended { success: true, .. }), "{error}");
        let expected = "the server ended before it answered, with its output closed, and was killed; its standard error ends: `still here`";
        assert_eq!(error.to_string(), expected);
        assert_eq!(client.close().await.left, 0);
    });
}

#[test]
fn nonsense_on_the_output_is_quoted_with_what_the_error_stream_says() {
    let peer = Peer::new(&["echo 'why' >&2; echo 'Server ready on stdio'; hear; hear"]);
    let error = block_on(opened(&peer)).to_string();
    assert!(error.contains("no message (the line is not JSON at byte 0"), "{error}");
    assert!(error.contains("`Server ready on stdio`"), "{error}");
    assert!(error.ends_with("; its standard error ends: `why`"), "{error}");
}

const SILENT: &str = "echo 'starting' >&2; : > begun; cat > heard";

#[test]
fn a_server_that_never_answers_is_given_up_at_the_deadline() {
    let peer = Peer::new(&[SILENT]);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut client = peer.start();
        wait_until("the server has begun", || peer.path("begun").exists());
        let before = tokio::time::Instant::now();
        let error = client.open().await.unwrap_err().to_string();
        let expected =
            "the server did not finish its handshake within 60 s; its standard error ends: `starting`";
        assert_eq!(error, expected);
        assert!(before.elapsed() >= Duration::from_secs(60));
        client.close().await;
    });
}

#[test]
fn a_server_that_never_answers_is_asked_both_ways() {
    let peer = Peer::new(&[SILENT]);
    let (probe, handshake) = (Duration::from_millis(10), Duration::from_secs(1));
    block_on(async {
        let options = ClientOptions { probe, handshake, ..ClientOptions::new("test", "0") };
        let mut client = Client::start(peer.spawn(), options).unwrap();
        let error = client.open().await.unwrap_err();
        assert!(matches!(error, ClientError::Late { .. }), "{error}");
        client.close().await;
    });
    assert_eq!(peer.methods(), ["server/discover", "initialize"]);
}

#[test]
fn a_server_that_writes_without_end_is_stopped() {
    let peer = Peer::new(&[STATELESS, "hear; yes '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}'"]);
    block_on(async {
        let spawn = Spawn { output_limit: 1 << 20, ..peer.spawn() };
        let mut client = Client::start(spawn, ClientOptions::new("test", "0")).unwrap();
        client.open().await.unwrap();
        let error = call(&mut client).await.1.unwrap_err();
        assert!(matches!(error, ClientError::TooMuch { limit: 1_048_576 }), "{error}");
        assert_eq!(client.close().await.left, 0);
    });
}

#[test]
fn a_line_longer_than_the_limit_is_refused() {
    let peer = Peer::new(&["head -c 2000 /dev/zero | tr '\\0' x; hear"]);
    block_on(async {
        let options = ClientOptions { frame_limit: 1000, ..ClientOptions::new("test", "0") };
        let mut client = Client::start(peer.spawn(), options).unwrap();
        let error = client.open().await.unwrap_err().to_string();
        assert!(error.starts_with("the server wrote a line of more than 1000 bytes: `xxx"), "{error}");
        client.close().await;
    });
}

#[test]
fn a_server_that_stays_is_killed_with_all_it_started() {
    let stays = r#"
trap '' TERM; sleep 600 & echo $! > helper; echo $$ > itself
printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"here"}}\n'
while :; do sleep 1; done
"#;
    for opening in [STATELESS, LEGACY] {
        let peer = Peer::new(&[opening, stays]);
        let pid =
            |name: &str| -> u32 { std::fs::read_to_string(peer.path(name)).unwrap().trim().parse().unwrap() };
        let report = block_on(async {
            let mut client = peer.start();
            client.open().await.unwrap();
            let mut call = client.call("echo", &arguments()).unwrap();
            assert!(matches!(call.next().await.unwrap(), CallEvent::Log(_)));
            drop(call);
            // It is not waited for in real time.
            tokio::time::pause();
            client.close().await
        });
        assert_eq!(report.left, 0);
        assert!(report.killed > 0);
        assert!(is_gone(pid("helper")) && is_gone(pid("itself")));
    }
}
