//! The shell of the process kinds: one child a turn, its prompt on its input, and the limits on it.

mod home;
mod probe;
mod scratch;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use cyberine_process::{OutputError, Running, SendError, Spawn};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::{TurnError, chain};
use crate::port::{Limits, StopReason, TurnEvent};
use crate::quote::Quoter;
use crate::stream::Emitter;
use crate::wire::{End, Exit, Said, Session};
pub(crate) use home::Home;
pub(crate) use probe::{Questions, probe};
pub(crate) use scratch::Scratch;
pub use scratch::remove_scratch;

/// How long a program that has said its last word may take to end.
const AFTER_LAST_WORD: Duration = Duration::from_secs(5);

/// How long a program may take to answer what is asked before the prompt is sent: one that does not
/// know the dialogue would be waited for until the turn's own limits.
const GREETING: Duration = Duration::from_secs(60);

/// How long a program that was asked to stop may take to say what it has used.
const AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// A turn that is about to begin.
pub(crate) struct Start {
    /// The program, without its arguments.
    pub(crate) spawn: Spawn,
    /// Files it needs, by name.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Whether it works in the turn's own directory for temporary files.
    pub(crate) apart: bool,
    /// Where it keeps its configuration, if it is to have a place of its own for that.
    pub(crate) home: Option<Home>,
    pub(crate) session: Session,
    pub(crate) limits: Limits,
    pub(crate) cancel: CancellationToken,
    pub(crate) quoter: Quoter,
}

/// Takes one turn with one child. Whatever the outcome, the child and everything it started are
/// dead when this returns, and the directory for its temporary files is gone.
pub(crate) async fn drive(
    start: Start,
    args: impl FnOnce(&Path) -> Vec<OsString>,
    out: Emitter,
) -> Result<StopReason, TurnError> {
    let Start { mut spawn, files, apart, home, mut session, limits, cancel, quoter } = start;
    if cancel.is_cancelled() {
        return Err(TurnError::Cancelled);
    }
    let target = spawn.program.display().to_string();
    let unreachable = |error: &dyn std::error::Error| TurnError::Unreachable {
        target: target.clone(),
        detail: quoter.head(&chain(error)),
    };
    let scratch = Scratch::create(&spawn.environment, files).map_err(|error| unreachable(&error))?;
    spawn.args = args(scratch.path());
    if apart {
        spawn.cwd = scratch.path().to_owned();
    }
    spawn.environment = scratch.named_in(spawn.environment);
    if let Some(home) = home {
        let made = home.made_in(scratch.path(), spawn.environment, &spawn.cwd);
        spawn.environment = made.map_err(|error| unreachable(&error))?;
    }
    let mut child = cyberine_process::spawn(spawn).map_err(|error| unreachable(&error))?;
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(TurnError::Cancelled),
        () = tokio::time::sleep(limits.wall) => Err(TurnError::WallTimeout { limit: limits.wall }),
        ended = follow(&mut child, &mut session, &limits, &quoter, &out) => ended,
    };
    if ended.is_err() && session.interrupt() {
        let stopping = stop(&mut child, &mut session, &out);
        // What it does not say in time is not waited for.
        let _ = timeout(AFTER_INTERRUPT, stopping).await;
    }
    if !matches!(ended, Ok(End::Exit(_))) {
        let report = child.kill_tree().await;
        if report.left > 0 {
            tracing::warn!(left = report.left, "processes of a turn outlived their killing");
        }
    }
    if ended.is_err() {
        session.overhear(&quoter.tail(&child.stderr()));
    }
    conclude(ended, session, &out).await
}

/// Hands the child what its wire says. Where its input is closed it has ended or will be ended, and
/// its output tells the story.
fn speak(child: &mut Running, session: &mut Session) -> Result<(), TurnError> {
    for said in session.said() {
        match said {
            Said::Text(text) => match child.send(text.into()) {
                Ok(()) => {}
                Err(SendError::Closed) => tracing::debug!("a program's input is closed"),
                Err(error @ SendError::Full) => {
                    let detail = format!("the program asks and {error}, more than is kept for it");
                    return Err(TurnError::Protocol { detail });
                }
            },
            Said::End => child.close_input(),
        }
    }
    Ok(())
}

/// Reads what a child that was asked to stop still says.
async fn stop(child: &mut Running, session: &mut Session, out: &Emitter) {
    if speak(child, session).is_err() {
        return;
    }
    let mut events = Vec::new();
    while let (false, Ok(Some(bytes))) = (session.is_over(), child.next_chunk().await) {
        let pushed = session.push(&bytes, &mut events);
        out.send(&mut events).await;
        if pushed.is_err() {
            return;
        }
    }
}

/// Reads the child to its end, or to its last word and a while longer.
async fn follow(
    child: &mut Running,
    session: &mut Session,
    limits: &Limits,
    quoter: &Quoter,
    out: &Emitter,
) -> Result<End, TurnError> {
    let silence = |_| TurnError::IdleTimeout { limit: limits.idle };
    let patience = Instant::now() + GREETING;
    let mut events = Vec::new();
    session.begin(&mut events)?;
    speak(child, session)?;
    while !session.is_over() {
        let silent = Instant::now() + limits.idle;
        let deadline = if session.is_greeting() { silent.min(patience) } else { silent };
        let Ok(chunk) = timeout_at(deadline, child.next_chunk()).await else {
            return Err(if deadline < silent {
                unanswered(&quoter.tail(&child.stderr()))
            } else {
                TurnError::IdleTimeout { limit: limits.idle }
            });
        };
        let Some(bytes) = chunk.map_err(|error| unreadable(&error, quoter))? else { break };
        let pushed = session.push(&bytes, &mut events);
        out.send(&mut events).await;
        pushed?;
        speak(child, session)?;
    }
    child.close_input();
    if session.is_over() {
        return Ok(match timeout(AFTER_LAST_WORD, child.finish()).await {
            Ok(Ok(exit)) => End::Exit(quoted(&exit, quoter)),
            _ => End::Closed,
        });
    }
    match timeout(limits.idle, child.finish()).await.map_err(silence)? {
        Ok(exit) => Ok(End::Exit(quoted(&exit, quoter))),
        Err(error) => Err(TurnError::Cut { detail: format!("its end was not reported: {error}") }),
    }
}

/// A program that runs and does not answer what comes before the prompt.
fn unanswered(stderr: &str) -> TurnError {
    let said = if stderr.is_empty() { "it said nothing".to_owned() } else { format!("it said: {stderr}") };
    let limit = GREETING.as_secs();
    let detail = format!("the program did not answer the first request within {limit} s; {said}");
    TurnError::Protocol { detail }
}

async fn conclude(
    ended: Result<End, TurnError>,
    session: Session,
    out: &Emitter,
) -> Result<StopReason, TurnError> {
    let mut events: Vec<TurnEvent> = Vec::new();
    let outcome = match ended {
        Ok(end) => session.finish(end, &mut events),
        Err(late @ (TurnError::IdleTimeout { .. } | TurnError::WallTimeout { .. })) => {
            Err(session.complaint().unwrap_or(late))
        }
        Err(error) => Err(error),
    };
    out.send(&mut events).await;
    outcome
}

fn unreadable(error: &OutputError, quoter: &Quoter) -> TurnError {
    match error {
        OutputError::TooMuch { limit } => TurnError::TooLong { limit: *limit },
        other => TurnError::Cut { detail: quoter.head(&other.to_string()) },
    }
}

fn quoted(exit: &cyberine_process::Exit, quoter: &Quoter) -> Exit {
    Exit {
        success: exit.status.success(),
        status: exit.status.to_string(),
        stderr: quoter.tail(&exit.stderr),
    }
}
