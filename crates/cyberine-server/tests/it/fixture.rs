//! Tools and resources that do next to nothing, each of them showing one ability of the rail.
//! Shared by the tests and by `examples/fixture_server.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_server::{
    Annotations, Call, CallError, ElicitForm, InputRequest, Outcome, ReadOutcome, Resource, ResourceBody,
    ResourceContents, ResourceError, ResourcePage, ResourceRead, ResourceSet, ResourceTemplate,
    ResourceWatch, Tool, ToolResult, ToolSet,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How often each thing was changed, shared by the tools and the resources of one server.
#[derive(Clone, Default)]
pub(crate) struct Things(Arc<Mutex<BTreeMap<u32, watch::Sender<u64>>>>);

impl Things {
    /// Changes a thing, and tells how often that has been done.
    pub(crate) fn touch(&self, id: u32) -> u64 {
        let mut things = self.0.lock().unwrap();
        let thing = things.entry(id).or_default();
        thing.send_modify(|changes| *changes += 1);
        *thing.borrow()
    }

    fn follow(&self, id: u32) -> watch::Receiver<u64> {
        self.0.lock().unwrap().entry(id).or_default().subscribe()
    }
}

/// The tools.
pub(crate) struct FixtureTools {
    tools: Arc<[Tool]>,
    things: Things,
}

impl FixtureTools {
    pub(crate) fn new(things: &Things) -> Self {
        let things = things.clone();
        Self { tools: Self::tools(), things }
    }

    async fn touch(&self, call: &Call) -> Result<Outcome, CallError> {
        let id = call.arguments["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let Some(id) = id else { return Err(CallError::Internal("no such thing".to_owned())) };
        let changes = self.things.touch(id);
        if call.arguments.get("linger") == Some(&json!(true)) {
            std::future::pending::<()>().await;
        }
        done(json!({ "id": id, "changes": changes }))
    }

    fn tools() -> Arc<[Tool]> {
        Arc::from([
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
            tool(
                "touch",
                "Changes a thing, and may never come back from that.",
                json!({ "id": { "type": "integer", "minimum": 0 }, "linger": { "type": "boolean" } }),
                &["id"],
            ),
        ])
    }
}

fn tool(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    Tool {
        name,
        title: name,
        description: description.into(),
        input_schema:
            json!({ "properties": properties, "required": required, "additionalProperties": false }).into(),
        output_schema: json!({}).into(),
        annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
    }
}

impl ToolSet for FixtureTools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        Arc::clone(&self.tools)
    }

    fn is_control(&self, name: &str) -> bool {
        name == "touch"
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        Box::pin(async move {
            match call.name.as_str() {
                "list_team" => done(json!({ "members": [] })),
                "echo" => done(
                    json!({ "text": call.arguments["text"], "keys": call.arguments.keys().collect::<Vec<_>>() }),
                ),
                "whoami" => done(json!({
                    "principal": call.caller.principal().name, "client": call.caller.attribution(),
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
                "touch" => self.touch(&call).await,
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
    let message = format!("your {key}, please");
    let request = InputRequest::Form(ElicitForm { message, requested_schema: schema });
    Ok(Outcome::InputRequired { requests: BTreeMap::from([(key.to_owned(), request)]), state })
}

/// The resources, each of which can be followed:
///
/// | URI | what it is |
/// |---|---|
/// | `fixture://things/{id}` | a thing, for every id that is a number |
/// | `fixture://later/{id}` | the same, which cannot be followed before it has changed |
/// | `fixture://large/{id}` | 1 MiB of text, which takes a while as from a disk |
/// | `fixture://busy/{id}` | something that changes all the time |
/// | `fixture://broken/{id}` | something whose watch panics |
/// | `fixture://clients/{client}` | something that only this client has |
pub(crate) struct FixtureResources(Things);

impl FixtureResources {
    pub(crate) fn new(things: &Things) -> Self {
        Self(things.clone())
    }

    fn find(&self, caller: &Caller, uri: &str) -> Option<Watch> {
        let (kind, id) = uri.strip_prefix("fixture://")?.split_once('/')?;
        match kind {
            "things" | "later" => Some(Watch::Thing(self.0.follow(id.parse().ok()?))),
            "large" => Some(Watch::Still),
            "busy" => Some(Watch::Busy),
            "broken" => Some(Watch::Broken),
            "clients" => (caller.attribution() == id).then_some(Watch::Still),
            _ => None,
        }
    }
}

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

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        let ResourceRead { caller, uri, .. } = read;
        Box::pin(async move {
            let (mime_type, text) = match self.find(&caller, &uri) {
                Some(Watch::Thing(changes)) => {
                    let id: Value = uri.rsplit('/').next().and_then(|id| id.parse::<u32>().ok()).into();
                    ("application/json", json!({ "id": id, "changes": *changes.borrow() }).to_string())
                }
                Some(Watch::Still) if uri.starts_with("fixture://large/") => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    ("text/plain", "x".repeat(1024 * 1024))
                }
                Some(_) => ("text/plain", String::new()),
                None => return Err(ResourceError::NotFound { uri }),
            };
            let body = ResourceBody::Text(text);
            let contents = ResourceContents { uri, mime_type: mime_type.to_owned(), body };
            Ok(ReadOutcome::Contents(vec![contents]))
        })
    }

    fn is_watchable(&self) -> bool {
        true
    }

    fn watch(
        &self,
        caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        Box::pin(async move {
            let Some(mut watch) = self.find(&caller, &uri) else {
                return Err(ResourceError::NotFound { uri });
            };
            if uri.starts_with("fixture://later/") {
                watch.changed().await;
            }
            let watch: Box<dyn ResourceWatch> = Box::new(FixtureWatch { uri, watch });
            Ok(watch)
        })
    }
}

enum Watch {
    Thing(watch::Receiver<u64>),
    Still,
    Busy,
    Broken,
}

impl Watch {
    async fn changed(&mut self) {
        match self {
            // Things stay as long as their watches.
            Self::Thing(changes) => drop(changes.changed().await),
            Self::Still => std::future::pending().await,
            Self::Busy => {}
            Self::Broken => panic!("a secret of the watch"),
        }
    }
}

struct FixtureWatch {
    uri: String,
    watch: Watch,
}

impl ResourceWatch for FixtureWatch {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.watch.changed())
    }
}
