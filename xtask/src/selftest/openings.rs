//! The openings a server of both eras meets on one pipe. No message may pin the pipe to an era.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::World;
use crate::wire::{Server, Stdio2};

/// What must come back for one line.
enum Answer {
    /// Nothing.
    Silence,
    /// A result that a 2025 client understands.
    Legacy,
    /// A result of the 2026 era.
    Modern,
    /// `initialize` answered with this revision.
    Initialized(&'static str),
    /// An error with this code, and with the request's id.
    Error(i64),
    /// An error with this code, and without an id.
    Nameless(i64),
}
use Answer::{Error, Initialized, Legacy, Modern, Nameless, Silence};

const NEWEST_LEGACY: &str = "2025-11-25";

fn modern(id: i64, method: &str, version: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta}}).to_string()
}

fn plain(id: i64, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string()
}

fn initialize(version: &str) -> String {
    let client = json!({"name": "x", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// The openings: a name, and lines with their answers.
fn all() -> Vec<(&'static str, Vec<(String, Answer)>)> {
    let now = "2026-07-28";
    vec![
        (
            "the version is checked on every request",
            vec![
                (modern(1, "tools/list", now), Modern),
                (modern(2, "tools/list", "2099-01-01"), Error(-32022)),
                (modern(3, "tools/list", NEWEST_LEGACY), Error(-32022)),
                (plain(4, "tools/list"), Error(-32602)),
            ],
        ),
        ("a future version first", vec![(modern(1, "server/discover", "2099-01-01"), Error(-32022))]),
        (
            "a request that claims nothing, then initialize",
            vec![
                (plain(1, "tools/list"), Error(-32602)),
                (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY)),
                (initialized(), Silence),
                (plain(2, "tools/list"), Legacy),
            ],
        ),
        ("ping first", vec![(plain(1, "ping"), Legacy), (modern(2, "server/discover", now), Modern)]),
        (
            "a notification first",
            vec![
                (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#.into(), Silence),
                (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY)),
            ],
        ),
        (
            "initialize, then both eras",
            vec![
                (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY)),
                (initialized(), Silence),
                (modern(1, "tools/list", now), Modern),
                (modern(2, "server/discover", now), Modern),
                (plain(3, "tools/list"), Legacy),
            ],
        ),
        (
            "discover, then initialize",
            vec![
                (modern(1, "server/discover", now), Modern),
                (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY)),
                (initialized(), Silence),
                (plain(2, "tools/list"), Legacy),
            ],
        ),
        (
            "a modern request, then initialize",
            vec![(modern(1, "tools/list", now), Modern), (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY))],
        ),
        (
            "garbage, a batch, a null id",
            vec![
                ("{bad".into(), Nameless(-32700)),
                (format!("[{}]", plain(1, "ping")), Nameless(-32600)),
                (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.into(), Nameless(-32600)),
                (initialize(NEWEST_LEGACY), Initialized(NEWEST_LEGACY)),
            ],
        ),
        (
            "a claim without capabilities",
            vec![(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#
                    .into(),
                Error(-32602),
            )],
        ),
        (
            "methods the modern era does not have",
            vec![(modern(1, "foo/bar", now), Error(-32601)), (modern(2, "ping", now), Error(-32601))],
        ),
        (
            "initialize with versions that have none",
            vec![(initialize(now), Initialized(NEWEST_LEGACY)), (initialize("1999-01-01"), Initialized(NEWEST_LEGACY))],
        ),
    ]
}

pub(crate) fn openings(world: &World) -> Result<String> {
    let openings = all();
    for kind in [Stdio2::Pipes, Stdio2::Sockets] {
        for (name, lines) in &openings {
            let place = world.place()?;
            let mut server = place.server(kind)?;
            for (line, answer) in lines {
                check(&mut server, line, answer).with_context(|| format!("{name} ({kind:?}), at {line}"))?;
            }
            let (code, rest) = server.close()?;
            ensure!(code == 0 && rest.is_empty(), "{name}: exit {code}, and then {rest:?}");
        }
    }
    Ok(format!("{} openings, over pipes and sockets", openings.len()))
}

fn check(server: &mut Server, line: &str, answer: &Answer) -> Result<()> {
    server.send_line(line)?;
    if matches!(answer, Silence) {
        return Ok(());
    }
    let got = server.next()?;
    let asked: Value = serde_json::from_str(line).unwrap_or_default();
    match answer {
        Nameless(code) => {
            ensure!(got["error"]["code"] == *code && got.get("id").is_none(), "{got}");
            return Ok(());
        }
        Error(code) => ensure!(got["error"]["code"] == *code, "{got}"),
        Legacy => ensure!(got["result"].is_object() && got["result"].get("resultType").is_none(), "{got}"),
        Modern => ensure!(got["result"]["resultType"] == "complete", "{got}"),
        Initialized(revision) => ensure!(got["result"]["protocolVersion"] == *revision, "{got}"),
        Silence => {}
    }
    ensure!(got["id"] == asked["id"], "the id is not the request's: {got}");
    Ok(())
}
