//! Children of a line of sed: a request is answered with its id, one that says `stay` never.

use std::time::Duration;

use serde_json::{Value, json};

use super::start;
use crate::http::{Answer, Connection, request};

const CHILD: &str = r#"/stay/d; s/.*"id":\([0-9]*\).*/{"jsonrpc":"2.0","id":\1,"result":{"n":\1}}/"#;

struct Bridge(String);

impl Bridge {
    fn up() -> Self {
        let url = start(["sed", "-u", CHILD].map(str::to_owned).to_vec()).unwrap();
        Self(url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned())
    }

    fn send(&self, method: &str, headers: &[(&str, &str)], message: &Value) -> Connection {
        let mut connection = Connection::open(&self.0, Duration::from_secs(5)).unwrap();
        connection.send(&request(method, &self.0, headers, Some(message.to_string().as_bytes()))).unwrap();
        connection
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST", headers, message).answer().unwrap()
    }
}

fn modern(id: &Value, method: &str) -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta}})
}

fn headers(method: &str) -> [(&str, &str); 2] {
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
}

#[test]
fn one_child_answers_everybody_under_the_id_each_has_chosen() {
    let bridge = Bridge::up();
    for (n, id) in [json!("x"), json!(1), json!("x")].into_iter().enumerate() {
        let reply = bridge.post(&headers("a"), &modern(&id, "a")).reply().unwrap();
        assert_eq!(reply, json!({"jsonrpc": "2.0", "id": id, "result": {"n": n + 1}}));
    }
    let answer = bridge.post(&headers("b"), &modern(&json!(1), "a"));
    assert_eq!((answer.status, answer.reply().unwrap()["error"]["code"].clone()), (400, json!(-32020)));
}

#[test]
fn a_client_that_leaves_frees_the_turn() {
    let bridge = Bridge::up();
    let waiting = bridge.send("POST", &headers("stay"), &modern(&json!(1), "stay"));
    let next = bridge.send("POST", &headers("a"), &modern(&json!(2), "a"));
    drop(waiting);
    let mut next = next;
    assert_eq!(next.answer().unwrap().reply().unwrap()["id"], 2);
}

#[test]
fn a_session_has_a_child_of_its_own_and_ends() {
    let bridge = Bridge::up();
    let plain = |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let opened = bridge.post(&[], &plain(5, "initialize"));
    let session = opened.head.get("mcp-session-id").unwrap().to_owned();
    assert_eq!(opened.reply().unwrap()["result"]["n"], 5);
    let named = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(bridge.post(&named, &plain(6, "ping")).reply().unwrap()["id"], 6);
    assert_eq!(bridge.post(&[], &plain(6, "ping")).status, 400);
    assert_eq!(bridge.send("DELETE", &named, &json!({})).answer().unwrap().status, 200);
    assert_eq!(bridge.post(&named, &plain(7, "ping")).status, 404);
}
