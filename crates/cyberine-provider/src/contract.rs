//! What every provider must do, as one suite: run it against an adapter and whatever stands behind
//! it, be that a fixture, a scripted server or a real model.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use cyberine_provider::contract::{self, Fixture, Scenario};
//! # use cyberine_provider::{Provider, Turn};
//! struct Local(Arc<dyn Provider>, Turn);
//!
//! impl Fixture for Local {
//!     fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>> {
//!         matches!(scenario, Scenario::Answers | Scenario::Talks).then(|| Arc::clone(&self.0))
//!     }
//!     fn turn(&self, _: Scenario) -> Turn {
//!         self.1.clone()
//!     }
//! }
//!
//! # async fn check(fixture: &mut Local) {
//! let checked = contract::check(fixture).await;
//! assert_eq!(checked, [Scenario::Answers, Scenario::Talks]);
//! # }
//! ```
#![expect(clippy::panic, reason = "a check that fails is a test that fails")]

use std::sync::Arc;
use std::time::Duration;

use cyberine_types::Usage;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::TurnError;
use crate::port::{Message, Provider, StopReason, ToolCall, ToolSpec, Turn, TurnEvent};

/// What stands behind a provider in one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// It answers in a few words and ends.
    Answers,
    /// It begins to answer and goes on for longer than the checks last.
    Talks,
    /// It calls the tool it is offered, and answers once it has the results.
    Calls,
    /// It is held to a schema, and keeps to it.
    Structured,
    /// It takes the question and says nothing.
    Silent,
    /// It reports success without an answer.
    Empty,
    /// It begins to answer and breaks off without its end.
    Cut,
    /// It does not accept the credential.
    Unauthorized,
    /// Its account cannot pay.
    Unpaid,
    /// It limits the rate and asks for a wait.
    Limited,
    /// It is overloaded.
    Overloaded,
    /// It is not there.
    Absent,
}

impl Scenario {
    /// Every scenario, in the order of the checks.
    pub const ALL: [Self; 12] = [
        Self::Answers,
        Self::Talks,
        Self::Calls,
        Self::Structured,
        Self::Silent,
        Self::Empty,
        Self::Cut,
        Self::Unauthorized,
        Self::Unpaid,
        Self::Limited,
        Self::Overloaded,
        Self::Absent,
    ];
}

/// A place where providers can be had in the state a check needs.
pub trait Fixture {
    /// A provider in `scenario`; `None` where this fixture cannot show it.
    fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>>;

    /// A turn that leads to `scenario`, such as a question with a long answer for
    /// [`Scenario::Talks`]; the checks replace its limits.
    fn turn(&self, scenario: Scenario) -> Turn;

    /// The answer to expect in [`Scenario::Answers`], where it is known.
    fn answer(&self) -> Option<String> {
        None
    }

    /// Whether tokens are counted.
    fn counts_tokens(&self) -> bool {
        true
    }
}

/// The tool that is offered in [`Scenario::Calls`].
const TOOL: &str = "look_up";
/// How long anything may take that is not supposed to wait.
const PROMPT: Duration = Duration::from_secs(60);
/// The limit that is waited for.
const SHORT: Duration = Duration::from_millis(400);

/// Runs every check the fixture can show, and says which those were.
///
/// # Panics
///
/// Where the provider breaks the contract: this is a test.
pub async fn check(fixture: &mut dyn Fixture) -> Vec<Scenario> {
    let mut checked = Vec::new();
    for scenario in Scenario::ALL {
        let Some(provider) = fixture.provider(scenario) else { continue };
        match scenario {
            Scenario::Answers => check_answers(fixture, &*provider).await,
            Scenario::Talks => check_talks(fixture, &*provider).await,
            Scenario::Calls => check_calls(fixture, &*provider).await,
            Scenario::Structured => check_structured(fixture, &*provider).await,
            Scenario::Silent => check_silent(fixture, &*provider).await,
            failing => check_failure(fixture, &*provider, failing).await,
        }
        checked.push(scenario);
    }
    checked
}

async fn check_answers(fixture: &dyn Fixture, provider: &dyn Provider) {
    let taken = take(provider, fixture.turn(Scenario::Answers)).await;
    assert_eq!(taken.end, Some(Ok(StopReason::EndTurn)), "an answer ends well");
    assert!(!taken.text.trim().is_empty(), "an answer has text");
    if let Some(expected) = fixture.answer() {
        assert_eq!(taken.text, expected, "the pieces are the answer, in order");
    }
    if fixture.counts_tokens() {
        let usage = taken.usage.unwrap_or_default();
        assert!(usage.input > 0 && usage.output > 0, "tokens are counted: {usage:?}");
    }

    let mut tight = fixture.turn(Scenario::Answers);
    tight.limits.answer_bytes = 1;
    let taken = take(provider, tight).await;
    // A program's output has a limit of its own, which may be reached first.
    let is_too_long = matches!(taken.end, Some(Err(TurnError::TooLong { .. })));
    assert!(is_too_long, "the bound on the answer holds");
    assert!(taken.text.len() <= 1, "nothing beyond the bound is handed over");

    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let taken = take_until(provider, fixture.turn(Scenario::Answers), &cancelled, |_| false).await;
    assert_eq!(taken, Taken { end: Some(Err(TurnError::Cancelled)), ..Taken::default() }, "nothing is begun");
}

async fn check_talks(fixture: &dyn Fixture, provider: &dyn Provider) {
    let cancel = CancellationToken::new();
    let taken = take_until(provider, fixture.turn(Scenario::Talks), &cancel, |text| !text.is_empty()).await;
    assert_eq!(taken.end, Some(Err(TurnError::Cancelled)), "a cancelled turn says so");
    assert!(!taken.text.is_empty(), "text comes before the end");

    let mut short = fixture.turn(Scenario::Talks);
    short.limits.wall = SHORT;
    let taken = take(provider, short).await;
    assert_eq!(taken.end, Some(Err(TurnError::WallTimeout { limit: SHORT })), "the wall limit holds");
}

async fn check_calls(fixture: &dyn Fixture, provider: &dyn Provider) {
    assert!(provider.capabilities().tools, "it says that it can be offered tools");
    let mut turn = fixture.turn(Scenario::Calls);
    turn.tools = vec![ToolSpec {
        name: TOOL.to_owned(),
        description: "Looks a word up.".to_owned(),
        input_schema: json!({ "type": "object", "properties": { "word": { "type": "string" } } }),
    }];
    let taken = take(provider, turn.clone()).await;
    assert_eq!(taken.end, Some(Ok(StopReason::ToolUse)), "it waits for the results");
    assert!(!taken.calls.is_empty(), "it says what it calls");
    for call in &taken.calls {
        assert!(call.name == TOOL && !call.id.is_empty() && call.arguments.is_object(), "{call:?}");
    }
    turn.messages.push(Message::calling(taken.text, taken.calls.clone()));
    turn.messages.extend(taken.calls.into_iter().map(|call| Message::result(call, "a bird of the night")));
    let taken = take(provider, turn).await;
    assert_eq!(taken.end, Some(Ok(StopReason::EndTurn)), "it goes on with the results");
    assert!(!taken.text.trim().is_empty(), "it answers with the results");
}

async fn check_structured(fixture: &dyn Fixture, provider: &dyn Provider) {
    assert!(provider.capabilities().structured_output, "it says that it can be held to a schema");
    let mut turn = fixture.turn(Scenario::Structured);
    turn.output_schema = Some(json!({
        "type": "object",
        "properties": {
            "winner": { "enum": ["A", "B"] },
            "reason": { "type": "string", "maxLength": 40 },
        },
        "required": ["winner", "reason"],
        "additionalProperties": false,
    }));
    let taken = take(provider, turn).await;
    assert_eq!(taken.end, Some(Ok(StopReason::EndTurn)), "an answer held to a schema ends well");
    let answer: Result<Value, _> = serde_json::from_str(&taken.text);
    let Ok(Value::Object(answer)) = answer else { panic!("no object: {}", taken.text) };
    let kept = answer.len() == 2 && (answer["winner"] == "A" || answer["winner"] == "B");
    assert!(kept && answer["reason"].is_string(), "the schema is kept: {answer:?}");
}

async fn check_silent(fixture: &dyn Fixture, provider: &dyn Provider) {
    let mut short = fixture.turn(Scenario::Silent);
    short.limits.idle = SHORT;
    let taken = take(provider, short).await;
    let end = Some(Err(TurnError::IdleTimeout { limit: SHORT }));
    // One that is asked to stop may say what it has used.
    let usage = taken.usage;
    assert_eq!(taken, Taken { end, usage, ..Taken::default() }, "the idle limit holds");
}

async fn check_failure(fixture: &dyn Fixture, provider: &dyn Provider, scenario: Scenario) {
    let taken = take(provider, fixture.turn(scenario)).await;
    let Some(Err(error)) = taken.end else { panic!("{scenario:?} ended with {:?}", taken.end) };
    let expected = match scenario {
        Scenario::Empty => "empty",
        Scenario::Cut => "cut",
        Scenario::Unauthorized => "auth",
        Scenario::Unpaid => "billing",
        Scenario::Limited => "rate-limit",
        Scenario::Overloaded => "overloaded",
        Scenario::Absent => "unreachable",
        Scenario::Answers | Scenario::Talks | Scenario::Calls | Scenario::Structured | Scenario::Silent => {
            "no failure"
        }
    };
    assert_eq!(error.code(), expected, "{scenario:?}: {error}");
    if let TurnError::RateLimited { retry_after, .. } = error {
        assert!(retry_after.is_some(), "the wait that is asked for is handed on");
    }
}

/// A turn read to its end.
#[derive(Debug, Default, PartialEq)]
struct Taken {
    text: String,
    calls: Vec<ToolCall>,
    usage: Option<Usage>,
    end: Option<Result<StopReason, TurnError>>,
}

async fn take(provider: &dyn Provider, turn: Turn) -> Taken {
    take_until(provider, turn, &CancellationToken::new(), |_| false).await
}

/// Takes a turn, and cancels it once its text satisfies `enough`.
async fn take_until(
    provider: &dyn Provider,
    turn: Turn,
    cancel: &CancellationToken,
    enough: fn(&str) -> bool,
) -> Taken {
    let mut stream = provider.turn(turn, cancel.clone());
    let mut taken = Taken::default();
    loop {
        let next = tokio::time::timeout(PROMPT, stream.next()).await;
        let Ok(next) = next else { panic!("nothing came for {PROMPT:?} after {taken:?}") };
        assert!(taken.end.is_none() || next.is_none(), "{next:?} came after the end of {taken:?}");
        match next {
            None => return taken,
            Some(Ok(TurnEvent::Text(text))) => taken.text.push_str(&text),
            Some(Ok(TurnEvent::Retract)) => taken.text.clear(),
            Some(Ok(TurnEvent::Usage(usage))) => taken.usage = Some(usage),
            Some(Ok(TurnEvent::ToolCall(call))) => taken.calls.push(call),
            Some(Ok(TurnEvent::Working | TurnEvent::Waiting { .. })) => {}
            Some(Ok(TurnEvent::Stop(stop))) => taken.end = Some(Ok(stop)),
            Some(Err(error)) => taken.end = Some(Err(error)),
        }
        if enough(&taken.text) {
            cancel.cancel();
        }
    }
}
