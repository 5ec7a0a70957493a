//! The shell: the server, the limits on it, and what becomes of its failures.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use cyberine_client::{
    CallEvent, Client, ClientError, ClientFault, ClientOptions, RequestError, ServerFacts, ToolReply,
};
use cyberine_process::{ChildEnvironment, Spawn};

use super::answer;
use crate::child::{Scratch, Start};
use crate::child_provider::Program;
use crate::command::split;
use crate::config::McpConfig;
use crate::error::{TurnError, chain};
use crate::fault::Fault;
use crate::port::{Limits, StopReason, Turn};
use crate::probe::Probe;
use crate::prompt;
use crate::quote::Quoter;
use crate::stream::Emitter;
use crate::wire::{End, Exit};

/// The longest line for every byte of the longest answer: the answer as text and as structure,
/// each escaped.
const LINE_FACTOR: usize = 8;
/// The longest line where answers are short: a list of tools is no answer.
const LINE_BYTES: usize = 8 << 20;
/// What a server may write beside its answer in a turn: its tools, its log.
const BESIDE_BYTES: usize = 64 << 20;

/// How long a server that is only looked at may take for each answer: some are fetched first.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes one turn with one server. Whatever the outcome, the server and everything it started are
/// dead when this returns, and the directory for its temporary files is gone.
pub(crate) async fn drive(
    start: Start,
    config: McpConfig,
    turn: Turn,
    out: Emitter,
) -> Result<StopReason, TurnError> {
    let Start { mut spawn, files, mut session, limits, cancel, quoter, .. } = start;
    if cancel.is_cancelled() {
        return Err(TurnError::Cancelled);
    }
    let account = Account { target: spawn.program.display().to_string(), limits, quoter };
    let scratch = Scratch::create(&spawn.environment, files).map_err(|error| account.unreachable(&error))?;
    spawn.args = config.args(&turn, scratch.path());
    spawn.environment = scratch.named_in(spawn.environment);
    spawn.output_limit = spawn.output_limit.saturating_add(BESIDE_BYTES);
    let mut client = Client::start(spawn, options(&limits)).map_err(|error| account.before(error))?;
    let prompt = prompt::render(&turn.messages);
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(TurnError::Cancelled),
        () = tokio::time::sleep(limits.wall) => Err(TurnError::WallTimeout { limit: limits.wall }),
        ended = ask(&mut client, &config, prompt, &account) => ended,
    };
    // A call that was given up is cancelled first, since dropping it says so.
    let report = client.close().await;
    if report.left > 0 {
        tracing::warn!(left = report.left, "processes of a turn outlived their killing");
    }
    let text = answer::text(ended?).map_err(|said| account.failed(said))?;
    let mut events = Vec::new();
    let pushed = session.push(text.as_bytes(), &mut events);
    out.send(&mut events).await;
    pushed?;
    let exit = Exit { success: true, status: String::new(), stderr: String::new() };
    let outcome = session.finish(End::Exit(exit), &mut events);
    out.send(&mut events).await;
    outcome
}

/// Looks whether a server is there and has the tool. Nothing is called.
pub(crate) async fn probe(config: McpConfig, environment: ChildEnvironment, quoter: Quoter) -> Probe {
    let (program, args) = split(&config.command);
    let limits = Limits { idle: PATIENCE, ..Limits::default() };
    let account = Account { target: program.display().to_string(), limits, quoter };
    let cwd = config.cwd.as_deref().unwrap_or(Path::new("/"));
    let args = args.iter().map(OsString::from).collect();
    let spawn = Spawn { args, ..Spawn::new(program, environment, cwd) };
    let mut client = match Client::start(spawn, options(&limits)) {
        Ok(client) => client,
        Err(error) => return Probe::absent(account.before(error)),
    };
    let found = ready(&mut client, &config, &account).await;
    client.close().await;
    match found {
        Ok(facts) => Probe { version: facts.label, ..Probe::there() },
        Err(error) => Probe::absent(error),
    }
}

fn options(limits: &Limits) -> ClientOptions {
    ClientOptions {
        frame_limit: limits.answer_bytes.saturating_mul(LINE_FACTOR).max(LINE_BYTES),
        ..ClientOptions::new("cyberine", env!("CARGO_PKG_VERSION"))
    }
}

/// The handshake, and a look at the tools.
async fn ready(client: &mut Client, config: &McpConfig, account: &Account) -> Result<ServerFacts, TurnError> {
    let facts = account.awaited(client.open()).await?.map_err(|error| account.before(error))?;
    let tools = account.awaited(client.tools()).await?.map_err(|error| account.of(error))?;
    let server = facts.label.as_deref().unwrap_or(&account.target);
    answer::check(&tools, server, config).map_err(|detail| account.rejected(&detail))?;
    Ok(facts)
}

/// One call, from the handshake to its result. Each sign of life restarts the idle limit.
async fn ask(
    client: &mut Client,
    config: &McpConfig,
    prompt: String,
    account: &Account,
) -> Result<ToolReply, TurnError> {
    ready(client, config, account).await?;
    let arguments = answer::arguments(config, prompt);
    let mut call = client.call(&config.tool, &arguments).map_err(|error| account.of(error))?;
    loop {
        match account.awaited(call.next()).await?.map_err(|error| account.of(error))? {
            CallEvent::Done(reply) => return Ok(reply),
            // It asks nothing, for nothing is declared; it may want to be asked again.
            CallEvent::NeedsInput(_) => {
                call.go_on(std::collections::BTreeMap::new()).map_err(|error| account.of(error))?;
            }
            _ => {}
        }
    }
}

/// What a turn is held to, and how its failures are told.
struct Account {
    target: String,
    limits: Limits,
    quoter: Quoter,
}

impl Account {
    async fn awaited<T>(&self, work: impl Future<Output = T>) -> Result<T, TurnError> {
        let limit = self.limits.idle;
        tokio::time::timeout(limit, work).await.map_err(|_| TurnError::IdleTimeout { limit })
    }

    fn unreachable(&self, error: &dyn Error) -> TurnError {
        TurnError::Unreachable { target: self.target.clone(), detail: self.quoter.head(&chain(error)) }
    }

    fn rejected(&self, detail: &str) -> TurnError {
        TurnError::Rejected { detail: self.quoter.head(detail) }
    }

    /// A tool that failed. What it says decides, as with every provider.
    fn failed(&self, said: String) -> TurnError {
        Fault { message: said, ..Fault::default() }.classify(&self.quoter)
    }

    /// A failure before the session was open: there is no answer yet that could be cut.
    fn before(&self, error: ClientError) -> TurnError {
        match error {
            ClientError::Ended { status, stderr, .. } => {
                TurnError::Crashed { status, stderr: self.quoter.tail(&stderr.0) }
            }
            other => self.of(other),
        }
    }

    fn of(&self, error: ClientError) -> TurnError {
        let detail = self.quoter.head(&chain(&error));
        match error {
            ClientError::Start { .. } | ClientError::Late { .. } => {
                TurnError::Unreachable { target: self.target.clone(), detail }
            }
            ClientError::Ended { success: false, status, stderr } => {
                TurnError::Crashed { status, stderr: self.quoter.tail(&stderr.0) }
            }
            ClientError::Fault { fault: ClientFault::TooLong { .. }, .. } | ClientError::TooMuch { .. } => {
                TurnError::TooLong { limit: self.limits.answer_bytes }
            }
            ClientError::Fault { fault: ClientFault::Refused { .. }, .. } => TurnError::Rejected { detail },
            ClientError::Request(RequestError::Remote { error, .. }) => self.failed(error.to_string()),
            ClientError::Request(RequestError::NeedsInput { .. }) => TurnError::Rejected { detail },
            ClientError::Ended { .. } | ClientError::Output { .. } => TurnError::Cut { detail },
            _ => TurnError::Protocol { detail },
        }
    }
}
