//! The official Rust SDK as a client: `cyberine-interop COMMAND... | URL`. MODE is initialize, discover or
//! auto.

use std::error::Error;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents, ResourceUpdatedNotificationParam, ServerNotification,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;

const TOOLS: [&str; 11] = [
    "orchestrate",
    "send_message",
    "poll_inbox",
    "query_runs",
    "list_team",
    "send_to_team",
    "send_to_role",
    "inspect_run",
    "approve_run",
    "reject_run",
    "cancel_run",
];
const IDENTITY: &str = "interop-rmcp@3";

type Fallible<T> = Result<T, Box<dyn Error>>;

struct Host(mpsc::UnboundedSender<String>);

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("interop-rmcp", "3"))
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // The other end lives as long as the client.
        let _ = self.0.send(params.uri);
    }
}

struct Client(RunningService<RoleClient, Host>);

impl Client {
    async fn call(&self, name: &'static str, arguments: Value) -> Fallible<Value> {
        let mut call = CallToolRequestParams::new(name);
        call.arguments = arguments.as_object().cloned();
        let result = self.0.call_tool(call).await?;
        Ok(result.structured_content.ok_or("no structured content")?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let mut words = std::env::args().skip(1);
    let target = words.next().ok_or("the server's command, or its URL")?;
    let over_http = target.starts_with("http://");
    let mode = std::env::var("MODE").unwrap_or_else(|_| "auto".to_owned());
    let lifecycle = match mode.as_str() {
        "initialize" => ClientLifecycleMode::Initialize,
        "discover" => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        _ => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
    };
    let (told, mut news) = mpsc::unbounded_channel();
    let host = Host(told);
    let client = Client(if over_http {
        host.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target), lifecycle).await?
    } else {
        let mut command = Command::new(target);
        command.args(words);
        host.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    });
    let version = client.0.peer_info().ok_or("the server said nothing of itself")?.protocol_version.clone();

    let tools = client.0.list_all_tools().await?;
    assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), TOOLS);

    let label = format!("Rust SDK {mode} ({version}){}", if over_http { " over HTTP" } else { "" });
    let prompt = json!({ "prompt": format!("six times seven, asked by {label}"), "idempotencyKey": label });
    let sent = client.call("orchestrate", prompt.clone()).await?;
    assert_eq!(sent["status"], "dispatched", "{sent}");
    let run = sent["runId"].clone();
    assert_eq!(client.call("orchestrate", prompt).await?["runId"], run, "one key began two runs");
    let mut view = json!({ "nextSeq": 0 });
    for _ in 0..60 {
        let look = json!({ "runId": run, "sinceSeq": view["nextSeq"], "waitMs": 2000 });
        view = client.call("inspect_run", look).await?;
        if ["done", "error", "cancelled"].contains(&view["state"].as_str().unwrap_or_default()) {
            break;
        }
    }
    assert_eq!(view["state"], "done", "{view}");
    assert_eq!(view["steps"][0]["verdict"]["outcome"], "majority", "{view}");
    let found = client.call("query_runs", json!({ "query": format!("asked by {label}") })).await?;
    assert!(
        found["runs"].as_array().is_some_and(|runs| runs.iter().any(|found| found["runId"] == run)),
        "{found}"
    );
    assert!(client.call("list_team", json!({ "joinRuns": true })).await?["members"].is_array());

    let text = format!("a word from {label}: \u{2028} \"é\" \\n");
    let note = json!({ "to_kind": "chat", "to_id": label, "text": text });
    let note = client.call("send_message", note).await?;
    let before = note["seq"].as_u64().ok_or("no sequence number")? - 1;
    let inbox = client.call("poll_inbox", json!({ "kind": "chat", "id": label, "cursor": before })).await?;
    let message = &inbox["messages"][0];
    assert_eq!(message["text"], *text, "{message}");
    assert_eq!(message["from"], json!({ "kind": "mcp", "id": IDENTITY }), "{message}");
    assert_eq!(message["sender"]["channel"], "mcp", "{message}");
    assert_eq!(client.call("send_to_team", json!({ "team": "interop", "text": text })).await?["ok"], true);
    let role = client.call("send_to_role", json!({ "role": "nobody has this role", "text": text })).await?;
    assert!(role["ok"] == false && role["reason"].is_string(), "{role}");

    let uri = format!("cyberine://runs/{}", run.as_str().ok_or("no run id")?);
    assert!(client.0.list_all_resources().await?.iter().any(|resource| resource.uri == uri));
    let approve = json!({ "runId": run, "comment": "well done" });
    if version >= ProtocolVersion::V_2026_07_28 {
        let filter =
            SubscriptionFilter::builder().tools_list_changed().resource_subscriptions([&uri]).build();
        let mut subscription = client.0.listen(filter).await?;
        let honoured = subscription.acknowledged();
        assert_eq!(
            (honoured.resource_subscriptions.as_deref(), honoured.tools_list_changed),
            (Some(&[uri.clone()][..]), None)
        );
        decide(&client, approve).await?;
        match subscription.next().await? {
            Some(ServerNotification::ResourceUpdatedNotification(news)) => assert_eq!(news.params.uri, uri),
            other => return Err(format!("told of {other:?}").into()),
        }
        subscription.cancel().await?;
    } else {
        #[expect(deprecated, reason = "this is the way of the era")]
        client.0.subscribe(SubscribeRequestParams::new(&uri)).await?;
        decide(&client, approve).await?;
        assert_eq!(news.recv().await.as_deref(), Some(uri.as_str()));
        #[expect(deprecated, reason = "this is the way of the era")]
        client.0.unsubscribe(UnsubscribeRequestParams::new(&uri)).await?;
    }
    let whole = client.0.read_resource(ReadResourceRequestParams::new(&uri)).await?;
    let Some(ResourceContents::TextResourceContents { text, .. }) = whole.contents.first() else {
        return Err("the resource has no text".into());
    };
    let whole: Value = serde_json::from_str(text)?;
    assert_eq!((&whole["runId"], &whole["decision"]["comment"]), (&run, &json!("well done")));
    let late = client.call("reject_run", json!({ "runId": run })).await?;
    assert!(late["error"].as_str().is_some_and(|error| error.contains(IDENTITY)), "{late}");
    assert_eq!(client.call("cancel_run", json!({ "runId": run })).await?["outcome"], "already_finished");
    client.0.cancel().await?;
    println!("ok {label}: {} tools, run done, told of its approval", TOOLS.len());
    Ok(())
}

async fn decide(client: &Client, approve: Value) -> Fallible<()> {
    let decision = client.call("approve_run", approve).await?;
    assert_eq!(
        (&decision["decision"], &decision["decidedBy"]),
        (&json!("approve"), &json!(IDENTITY)),
        "{decision}"
    );
    Ok(())
}
