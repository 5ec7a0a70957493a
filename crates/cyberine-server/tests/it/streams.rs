//! The same server over streams of memory.

use std::sync::Arc;

use cyberine_server::{Ended, Server};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{PATIENCE, server};

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<Ended>,
}

impl Client {
    /// A client whose stream holds `size` bytes.
    fn start(size: usize) -> Self {
        Self::of(&Arc::new(server()), size)
    }

    /// The same to a server that has other clients.
    fn of(server: &Arc<Server>, size: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(size);
        let (reader, writer) = tokio::io::split(theirs);
        let serving = Arc::clone(server).serve(reader, writer, CancellationToken::new());
        let serving = TaskTracker::new().spawn(serving);
        let (reader, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(reader).lines(), writer, serving }
    }

    async fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn recv(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn a_stream_of_memory_is_served_to_its_end() {
    let mut client = Client::start(64);
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(client.recv().await["result"], json!({}));
    let info = json!({ "name": "memory", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params })).await;
    assert_eq!(client.recv().await["id"], 2);
    for (id, name, arguments) in
        [(3, "slow", json!({ "ms": 5 })), (4, "fail", json!({ "later": true })), (5, "list_team", json!({}))]
    {
        let params = json!({ "name": name, "arguments": arguments });
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
        assert_eq!(client.recv().await["id"], id);
    }
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call",
        "params": { "name": "slow", "arguments": { "ms": 600_000 } } }))
        .await;
    client.writer.shutdown().await.unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, client.serving).await.unwrap().unwrap(), Ended::InputClosed);
    assert_eq!(client.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_nobody_reads_holds_the_server_back() {
    let mut client = Client::start(1024);
    let mut writer = client.writer;
    let flood = TaskTracker::new().spawn(async move {
        for id in 0..20_000 {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}-{:60}\",\"method\":\"ping\"}}\n", "");
            writer.write_all(line.as_bytes()).await.unwrap();
        }
        writer
    });
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert!(!flood.is_finished());
    for id in 0..20_000 {
        let line = client.lines.next_line().await.unwrap().unwrap();
        assert!(line.contains(&format!("\"{id}-")), "{line}");
    }
    drop(flood.await.unwrap());
}

#[tokio::test]
async fn two_clients_of_one_server_share_nothing() {
    let server = Arc::new(server());
    let mut clients = [("ada", Client::of(&server, 4096)), ("bob", Client::of(&server, 4096))];
    for (name, client) in &mut clients {
        let info = json!({ "name": name, "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
        assert_eq!(client.recv().await["id"], 1);
        let slow = json!({ "name": "slow", "arguments": { "ms": 600_000 } });
        client.send(&json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": slow })).await;
    }
    for (name, client) in &mut clients {
        let params = json!({ "name": "whoami", "arguments": {} });
        client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
        let answer = client.recv().await;
        assert_eq!(answer["result"]["structuredContent"]["client"], format!("{name}@1"), "{answer}");
    }
    let [(_, ada), (_, mut bob)] = clients;
    drop(ada);
    bob.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await;
    assert_eq!(bob.recv().await["id"], 3);
}
