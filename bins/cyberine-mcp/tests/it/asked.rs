//! The server asked by our own client, in both eras, and as a provider.

use cyberine_client::{CallEvent, Client, ClientError, ClientOptions, RequestError, ToolReply};
use cyberine_process::{ChildEnvironment, Spawn};
use cyberine_provider::{Limits, Message, ProviderConfig, Role, StopReason, Turn, TurnEvent, build};
use cyberine_types::Secret;
use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::host::{PATIENCE, Place, shell};

/// A front that knows no `server/discover`; what follows reaches the server.
const OLDER: &str = r#"
IFS= read -r line
printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}\n'
exec "$0"
"#;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.unwrap() })
}

fn environment(place: &Place) -> ChildEnvironment {
    let command = place.command();
    let pairs = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    pairs.fold(ChildEnvironment::allowed([]), |all, (name, value)| all.set(name, value))
}

/// The server, by itself or behind a front, as a child of our client.
fn server(place: &Place, front: Option<&str>) -> Spawn {
    let server = env!("CARGO_BIN_EXE_cyberine-mcp");
    let (program, args) = match front {
        Some(front) => ("sh", vec!["-c".into(), front.into(), server.into()]),
        None => (server, vec![]),
    };
    Spawn { args, ..Spawn::new(program, environment(place), place.project()) }
}

async fn call(client: &mut Client, tool: &str, arguments: Value) -> Result<ToolReply, ClientError> {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    let mut call = client.call(tool, &arguments)?;
    loop {
        if let CallEvent::Done(reply) = call.next().await? {
            return Ok(reply);
        }
    }
}

fn structured(reply: &ToolReply) -> Value {
    serde_json::from_str(reply.structured.as_ref().unwrap().get()).unwrap()
}

#[test]
fn our_client_finds_lists_and_calls_it_in_both_eras() {
    for (front, revision) in [(None, "2026-07-28"), (Some(OLDER), "2025-11-25")] {
        let place = Place::with(&shell("solo", "cat > /dev/null; echo 42"));
        block_on(async {
            let mut client =
                Client::start(server(&place, front), ClientOptions::new("our-client", "1")).unwrap();
            let facts = client.open().await.unwrap();
            assert_eq!((facts.revision.as_str(), facts.tools), (revision, true));
            assert!(facts.label.unwrap().starts_with("cyberine "));

            let tools = client.tools().await.unwrap();
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert!(names.contains(&"orchestrate") && names.contains(&"cancel_run"), "{names:?}");

            let begun =
                call(&mut client, "orchestrate", json!({ "prompt": "What is 6 * 7?" })).await.unwrap();
            let run = structured(&begun)["runId"].clone();
            let state = loop {
                let seen = json!({ "runId": run, "waitMs": 5000 });
                let seen = structured(&call(&mut client, "inspect_run", seen).await.unwrap());
                if seen["state"] != "queued" && seen["state"] != "running" {
                    break seen;
                }
            };
            let answer = &state["steps"][0]["candidates"][0]["outputPreview"];
            assert_eq!((&state["state"], answer), (&json!("done"), &json!("42")));

            let bad = call(&mut client, "inspect_run", json!({})).await.unwrap();
            assert!(bad.is_error, "{bad:?}");
            let unknown = call(&mut client, "no_such_tool", json!({})).await.unwrap_err();
            let ClientError::Request(RequestError::Remote { error, .. }) = unknown else {
                panic!("{unknown}")
            };
            assert_eq!(error.code, -32602, "{error}");
            assert_eq!(client.close().await.left, 0);
        });
    }
}

#[test]
fn a_tool_of_it_answers_as_a_provider() {
    let place = Place::new();
    let config = |tool: &str, argument: &str| -> ProviderConfig {
        let config = json!({
            "kind": "mcp", "command": [env!("CARGO_BIN_EXE_cyberine-mcp")], "tool": tool,
            "argument": argument, "arguments": { "limit": 5 }, "env": ["CYBERINE_HOME"],
        });
        serde_json::from_value(config).unwrap()
    };
    let home = place.home().to_str().unwrap().to_owned();
    let ask = async |config: &ProviderConfig| {
        let secret = |name: &str| (name == "CYBERINE_HOME").then(|| Secret::new(home.clone()));
        let provider = build("cyberine-itself", config, &secret, &environment(&place)).unwrap();
        let turn = Turn {
            messages: vec![Message::new(Role::User, "which runs were there?")],
            tools: vec![],
            output_schema: None,
            limits: Limits::default(),
            cwd: place.project(),
            mark: format!("asked-{}", std::process::id()),
        };
        let mut stream = provider.turn(turn, CancellationToken::new());
        let mut text = String::new();
        loop {
            match stream.next().await.unwrap() {
                Ok(TurnEvent::Text(more)) => text.push_str(&more),
                Ok(TurnEvent::Stop(stop)) => break Ok((text, stop)),
                Ok(_) => {}
                Err(error) => break Err(error.to_string()),
            }
        }
    };
    block_on(async {
        let (text, stop) = ask(&config("query_runs", "query")).await.unwrap();
        assert_eq!(stop, StopReason::EndTurn);
        let answer: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["runs"], json!([]), "{text}");

        let error = ask(&config("query_run", "query")).await.unwrap_err();
        assert!(
            error.contains("has no tool `query_run`; it has `") && error.contains("`query_runs`"),
            "{error}"
        );
        let error = ask(&config("query_runs", "prompt")).await.unwrap_err();
        let expected = "the tool `query_runs` has no argument `prompt` for the prompt; it has ";
        assert!(error.contains(expected) && error.contains("`query`"), "{error}");
    });
}
