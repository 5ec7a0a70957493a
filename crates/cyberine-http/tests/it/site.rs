//! A server to test, whose tools are done when the test says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cyberine_http::identity::{Admission, Door, ProtectedResource, Rejection, Resolver, TransportFacts};
use cyberine_http::{HttpServer, Meters, Settings};
use cyberine_protocol::model::{ElicitForm, InputRequest};
use cyberine_server::{
    Annotations, Call, CallError, ListChanges, ListSignal, ObjectSchema, Outcome, ReadOutcome, Resource,
    ResourceError, ResourcePage, ResourceRead, ResourceSet, ResourceTemplate, ResourceWatch, SealKey, Server,
    Tool, ToolResult, ToolSet,
};
use cyberine_types::{Caller, Clock as _, Identity, Principal, SystemClock, Timestamp};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, in_time};

/// What the tools and the test tell each other.
#[derive(Default)]
pub(crate) struct Stage {
    /// Lets one `wait` go on.
    pub(crate) go: Gate,
    /// One `wait` has begun.
    pub(crate) begun: Gate,
    /// One `wait` was cancelled.
    pub(crate) cancelled: Gate,
    /// The resource has changed.
    pub(crate) changed: Notify,
    pub(crate) tools: ListSignal,
}

/// Something that is counted and waited for.
pub(crate) struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Gate {
    pub(crate) fn open(&self, count: usize) {
        self.0.add_permits(count);
    }

    pub(crate) fn left(&self) -> usize {
        self.0.available_permits()
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// Tells of a call that was dropped half way.
struct Ends {
    stage: Arc<Stage>,
    done: bool,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.done {
            self.stage.cancelled.open(1);
        }
    }
}

struct Tools(Arc<Stage>, Arc<[Tool]>);

fn tool(name: &'static str, schema: &'static str) -> Tool {
    Tool {
        name,
        title: "Test",
        description: "For tests.".into(),
        input_schema: ObjectSchema::new(schema, ""),
        output_schema: ObjectSchema::new("", ""),
        annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
    }
}

impl ToolSet for Tools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        Arc::clone(&self.1)
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.0.tools.changes())
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        let stage = Arc::clone(&self.0);
        Box::pin(async move { Ok(run(&stage, call).await) })
    }
}

async fn run(stage: &Arc<Stage>, call: Call) -> Outcome {
    let number = |name: &str| {
        usize::try_from(call.arguments.get(name).and_then(Value::as_u64).unwrap_or_default()).unwrap()
    };
    let value = match call.name.as_str() {
        "echo" => json!({ "echo": call.arguments, "by": call.caller.principal().name }),
        // Waits for the test.
        "wait" => {
            let mut ends = Ends { stage: Arc::clone(stage), done: false };
            stage.begun.open(1);
            stage.go.pass().await;
            ends.done = true;
            json!({ "waited": call.arguments })
        }
        // Sends news, waits for the test, and sends more.
        "news" => {
            for at in 0..number("count") {
                call.progress.deliver(at as f64, None, Some(&"x".repeat(number("size")))).await;
            }
            stage.begun.open(1);
            stage.go.pass().await;
            call.progress.deliver(1e6, None, None).await;
            json!({ "told": true })
        }
        "ask" => match call.input_responses.get("name") {
            Some(answer) => json!({ "answer": answer }),
            None => {
                let form = ElicitForm {
                    message: "Name?".into(),
                    requested_schema: json!({ "type": "object", "properties": {} }),
                };
                let requests = [("name".to_owned(), InputRequest::Form(form))].into();
                return Outcome::InputRequired { requests, state: Value::Null };
            }
        },
        "large" => json!({ "text": "y".repeat(number("size")) }),
        other => json!({ "error": other }),
    };
    Outcome::Complete(ToolResult::ok(value))
}

struct Resources(Arc<Stage>);

impl ResourceSet for Resources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    fn list(
        &self,
        _caller: Caller,
        _cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        let page = ResourcePage { resources: Vec::<Resource>::new(), next_cursor: None };
        Box::pin(std::future::ready(Ok(page)))
    }

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        let error = if read.uri.contains('?') {
            ResourceError::BadUri { message: "no query".to_owned(), reason: "has_query" }
        } else {
            ResourceError::NotFound { uri: read.uri }
        };
        Box::pin(std::future::ready(Err(error)))
    }

    fn is_watchable(&self) -> bool {
        true
    }

    fn watch(
        &self,
        _caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        let watch: Box<dyn ResourceWatch> = Box::new(Watch(uri, Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(watch)))
    }
}

struct Watch(String, Arc<Stage>);

impl ResourceWatch for Watch {
    fn uri(&self) -> &str {
        &self.0
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.1.changed.notified())
    }
}

/// A token that counts for a moment: every time it is brought.
pub(crate) const BRIEF: &str = "brief";

/// Whoever brings a token is who it names.
struct Named;

impl Resolver for Named {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
        let resolved = match &facts.bearer {
            Some(token) if token.expose() == "bad" => Err(Rejection::Invalid("no such token")),
            Some(token) => {
                Ok(Identity::of(Principal { tenant: "t".into(), name: token.expose().to_owned() }))
            }
            None => Ok(Identity::local("me")),
        };
        let is_brief = facts.bearer.as_ref().is_some_and(|token| token.expose() == BRIEF);
        let until = is_brief.then(|| Timestamp::from_unix_ms(SystemClock.now().unix_ms() + 300));
        let admitted = resolved.map(|identity| Admission { identity: Arc::new(identity), until });
        Box::pin(std::future::ready(admitted))
    }
}

/// A running server.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) stage: Arc<Stage>,
    pub(crate) meters: Meters,
    stop: CancellationToken,
    done: watch::Receiver<bool>,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let stage = Arc::new(Stage::default());
        let tools: Arc<[Tool]> = Arc::from([
            tool("echo", r#""region":{"type":"string","x-mcp-header":"Region"}"#),
            tool("wait", ""),
            tool("news", ""),
            tool("ask", ""),
            tool("large", ""),
        ]);
        let tools = Arc::new(Tools(Arc::clone(&stage), tools));
        let server = Server::new("test", "1", tools, Identity::local("me"), SealKey::random().unwrap())
            .with_resources(Arc::new(Resources(Arc::clone(&stage))));
        let resource = ProtectedResource::at("https://h/mcp").unwrap();
        let resource = resource.with_authorization_server("https://login");
        let door = Door::new(Arc::new(Named)).with_resource(resource);
        let server = HttpServer::new(Arc::new(server), door, settings).unwrap();
        let meters = server.meters();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, (over, done)) = (CancellationToken::new(), watch::channel(false));
        let stopped = stop.clone();
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move {
            server.serve(listener, stopped).await;
            over.send_replace(true);
        });
        serving.detach_all();
        Self { address, stage, meters, stop, done }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::new(self.address).await
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) {
        in_time(self.done.wait_for(|done| *done)).await.unwrap();
    }

    /// Waits until something is so; nothing tells of it.
    pub(crate) async fn until(&self, is_so: impl Fn(&Meters) -> bool) {
        in_time(async {
            while !is_so(&self.meters) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
