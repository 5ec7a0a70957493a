//! Turns, and what came of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cyberine_process::ChildEnvironment;
use cyberine_provider::{
    BuildError, Limits, Message, Provider, ProviderConfig, Role, StopReason, ToolCall, Turn, TurnError,
    TurnEvent, build,
};
use cyberine_types::{Secret, Usage};
use futures_util::StreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The key that must never show up anywhere.
pub(crate) const KEY: &str = "sk-canary-0123456789";

/// The longest wait for anything that should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    block_on_for(PATIENCE, work)
}

pub(crate) fn block_on_for<T>(patience: Duration, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(patience, work).await.unwrap() })
}

pub(crate) fn try_provider(config: Value) -> Result<Arc<dyn Provider>, BuildError> {
    let config: ProviderConfig = serde_json::from_value(config).unwrap();
    let environment = ChildEnvironment::allowed(std::env::vars_os())
        .set("ANTHROPIC_API_KEY", "stray")
        .set("STRAY", "stray");
    let secret = |name: &str| match name {
        "TEST_KEY" | "ANTHROPIC_API_KEY" => Some(Secret::new(KEY)),
        "TEST_MODE" => Some(Secret::new("production")),
        "CLAUDE_CODE_MAX_RETRIES" => Some(Secret::new("7")),
        _ => None,
    };
    build("under-test", &config, &secret, &environment)
}

pub(crate) fn provider(config: Value) -> Arc<dyn Provider> {
    try_provider(config).unwrap()
}

/// A turn that asks `text`, with a mark of its own.
pub(crate) fn turn(text: &str) -> Turn {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Turn {
        messages: vec![Message::new(Role::User, text)],
        tools: vec![],
        output_schema: None,
        limits: Limits::default(),
        cwd: std::env::temp_dir(),
        mark: format!("provider-test-{}-{count}", std::process::id()),
    }
}

pub(crate) fn limited(text: &str, change: fn(&mut Limits)) -> Turn {
    let mut turn = turn(text);
    change(&mut turn.limits);
    turn
}

/// A turn read to its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Option<Usage>,
    pub(crate) outcome: Result<StopReason, TurnError>,
}

impl Taken {
    pub(crate) fn code(&self) -> &'static str {
        self.outcome.as_ref().map_or_else(TurnError::code, |_| "ok")
    }

    pub(crate) fn error(&self) -> String {
        self.outcome.as_ref().unwrap_err().to_string()
    }
}

pub(crate) async fn take(provider: &Arc<dyn Provider>, turn: Turn) -> Taken {
    take_with(provider, turn, CancellationToken::new(), |_| {}).await
}

/// Takes a turn and shows every event to `watch`.
pub(crate) async fn take_with(
    provider: &Arc<dyn Provider>,
    turn: Turn,
    cancel: CancellationToken,
    mut watch: impl FnMut(&TurnEvent),
) -> Taken {
    let mut stream = provider.turn(turn, cancel);
    let (mut text, mut calls, mut usage) = (String::new(), vec![], None);
    let outcome = loop {
        let event = match stream.next().await.unwrap() {
            Ok(event) => event,
            Err(error) => break Err(error),
        };
        watch(&event);
        match event {
            TurnEvent::Text(more) => text.push_str(&more),
            TurnEvent::Retract => text.clear(),
            TurnEvent::ToolCall(call) => calls.push(call),
            TurnEvent::Usage(counted) => usage = Some(counted),
            TurnEvent::Working | TurnEvent::Waiting { .. } => {}
            TurnEvent::Stop(stop) => break Ok(stop),
        }
    };
    assert_eq!(stream.next().await, None, "nothing comes after the end");
    Taken { text, calls, usage, outcome }
}

/// Writes an executable script.
pub(crate) fn script(directory: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    // Written under another name first: a file that is still open for writing cannot be executed.
    let draft = directory.join(format!("{name}.draft"));
    std::fs::write(&draft, text).unwrap();
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::hard_link(&draft, &path).unwrap();
    path.to_str().unwrap().to_owned()
}
