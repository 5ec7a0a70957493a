//! Tools and resources that do next to nothing, each of them showing one ability of the rail.
//! Shared by the tests and by `examples/fixture_server.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cyberine_server::{
    Annotations, Call, CallError, InputRequest, Outcome, Resource, ResourceContents, ResourceError,
    ResourcePage, ResourceSet, ResourceTemplate, Tool, ToolResult, ToolSet,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// The tools.
pub(crate) struct FixtureTools(Arc<[Tool]>);

impl FixtureTools {
    pub(crate) fn new() -> Self {
        Self(Arc::from([
            tool(
                "list_team",
                "Lists the members of a team that has none.",
                json!({ "joinRuns": { "type": "boolean" } }),
                &[],
            ),
            tool("echo", "Gives a text back.", json!({ "text": { "type": "string" } }), &["text"]),
            tool("whoami", "Says who calls.", json!({}), &[]),
            tool(
                "slow",
                "Takes its time, and reports ten times on the way.",
                json!({ "ms": { "type": "integer", "minimum": 0, "maximum": 600_000 } }),
                &["ms"],
            ),
            tool(
                "follow",
                "Answers at once and goes on reporting.",
                json!({ "ticks": { "type": "integer", "minimum": 0 }, "ms": { "type": "integer", "minimum": 0 } }),
                &["ticks"],
            ),
            tool("fail", "Panics, at once or later.", json!({ "later": { "type": "boolean" } }), &[]),
            tool(
                "ask",
                "Asks for a name, then for a colour.",
                json!({ "stubborn": { "type": "boolean" } }),
                &[],
            ),
            tool("noise", "Prints to standard output.", json!({}), &[]),
        ]))
    }
}

fn tool(name: &'static str, description: &str, properties: Value, required: &[&str]) -> Tool {
    Tool {
        name,
        title: name,
        description: description.to_owned(),
        input_schema: json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }),
        output_schema: json!({ "type": "object" }),
        annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
    }
}

impl ToolSet for FixtureTools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        Arc::clone(&self.0)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        Box::pin(async move {
            match call.name.as_str() {
                "list_team" => done(json!({ "members": [] })),
                "echo" => done(
                    json!({ "text": call.arguments["text"], "keys": call.arguments.keys().collect::<Vec<_>>() }),
                ),
                "whoami" => done(json!({
                    "principal": call.caller.principal.name, "client": call.caller.attribution(),
                })),
                "slow" => slow(call).await,
                "follow" => follow(call),
                "fail" => {
                    if call.arguments.get("later") == Some(&json!(true)) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    panic!("a secret of the handler");
                }
                "ask" => ask(&call),
                "noise" => noise(),
                other => Err(CallError::UnknownTool(other.to_owned())),
            }
        })
    }
}

fn done(value: Value) -> Result<Outcome, CallError> {
    Ok(Outcome::Complete(ToolResult::ok(value)))
}

/// What a careless library and a careless child do to the standard streams.
#[expect(clippy::disallowed_methods, reason = "a child with inherited streams is the point")]
fn noise() -> Result<Outcome, CallError> {
    println!("noise of a library");
    let child = std::process::Command::new("sh").args(["-c", "echo noise of a child; cat"]).status();
    done(json!({ "child": child.is_ok_and(|status| status.success()) }))
}

async fn slow(call: Call) -> Result<Outcome, CallError> {
    let step = Duration::from_millis(call.arguments["ms"].as_u64().unwrap_or(0)) / 10;
    for tick in 1..=10_u32 {
        tokio::time::sleep(step).await;
        call.progress.send(f64::from(tick), Some(10.0), Some("still at it"));
    }
    done(json!({ "slept": true }))
}

fn follow(call: Call) -> Result<Outcome, CallError> {
    let ticks = call.arguments["ticks"].as_u64().unwrap_or(0);
    let pause = Duration::from_millis(call.arguments.get("ms").and_then(Value::as_u64).unwrap_or(0));
    let progress = call.progress.clone();
    if progress.may_outlive_reply() {
        call.background.spawn(async move {
            for tick in 1..=ticks {
                tokio::time::sleep(pause).await;
                progress.deliver(tick as f64, None, Some("tick")).await;
            }
            progress.deliver(ticks as f64 + 1.0, None, Some("settled")).await;
        });
    }
    done(json!({ "following": call.progress.may_outlive_reply() }))
}

/// Two rounds of questions; where `stubborn`, rounds without end.
fn ask(call: &Call) -> Result<Outcome, CallError> {
    let answer = |key: &str| call.input_responses.get(key).map(|answer| answer["content"][key].clone());
    let known = call.state.clone().unwrap_or_else(|| json!({}));
    if call.arguments.get("stubborn") == Some(&json!(true)) {
        return needs("name", known);
    }
    match (known.get("name"), answer("name"), answer("colour")) {
        (Some(name), _, Some(colour)) => done(json!({ "name": name, "colour": colour })),
        (Some(_), _, None) => needs("colour", known),
        (None, Some(name), _) => needs("colour", json!({ "name": name })),
        (None, None, _) => needs("name", known),
    }
}

fn needs(key: &str, state: Value) -> Result<Outcome, CallError> {
    let schema = json!({ "type": "object", "properties": { key: { "type": "string" } }, "required": [key] });
    let request = InputRequest::Form { message: format!("your {key}, please"), schema };
    Ok(Outcome::InputRequired { requests: BTreeMap::from([(key.to_owned(), request)]), state })
}

/// The resources: `fixture://things/{id}` for every id that is a number, and `fixture://large/{id}`
/// with 1 MiB of text, which take a while as from a disk.
pub(crate) struct FixtureResources;

impl ResourceSet for FixtureResources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: "fixture://things/{id}".to_owned(),
            name: "thing".to_owned(),
            title: "A thing".to_owned(),
            description: "One thing.".to_owned(),
            mime_type: "application/json".to_owned(),
        }]
    }

    fn list(
        &self,
        _caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        Box::pin(async move {
            let first = match cursor.as_deref() {
                None => 0,
                Some("2") => 2,
                Some(_) => return Err(ResourceError::BadCursor),
            };
            let resources = (first..first + 2)
                .map(|id| Resource {
                    uri: format!("fixture://things/{id}"),
                    name: format!("thing-{id}"),
                    description: "One thing.".to_owned(),
                    mime_type: "application/json".to_owned(),
                    last_modified: None,
                })
                .collect();
            Ok(ResourcePage { resources, next_cursor: (first == 0).then(|| "2".to_owned()) })
        })
    }

    fn read(&self, _caller: Caller, uri: String) -> BoxFuture<'_, Result<ResourceContents, ResourceError>> {
        Box::pin(async move {
            if uri.starts_with("fixture://large/") {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let text = "x".repeat(1024 * 1024);
                return Ok(ResourceContents { uri, mime_type: "text/plain".to_owned(), text });
            }
            let id = uri.strip_prefix("fixture://things/").and_then(|id| id.parse::<u32>().ok());
            let Some(id) = id else { return Err(ResourceError::NotFound { uri }) };
            let text = json!({ "id": id }).to_string();
            Ok(ResourceContents { uri, mime_type: "application/json".to_owned(), text })
        })
    }
}
