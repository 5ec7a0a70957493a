//! One turn over the Agent Client Protocol: `initialize`, `session/new`, `session/prompt`.

use std::collections::HashMap;

use cyberine_types::{Usage, Usd};
use serde_json::{Value, json};

use super::message::{self, PROTOCOL};
use super::{permission, words};
use crate::cost::Counted;
use crate::error::TurnError;
use crate::lenient::Figures;
use crate::lines::{MessageLines, MessageWire};
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::rpc::{Message, protocol, say};
use crate::said::{Answer, Fruitless};
use crate::wire::{End, Wire, WireEvent};

/// JSON-RPC's code for an agent that wants a login first.
const LOGIN_FIRST: i64 = -32000;

/// What a turn begins with.
pub(crate) struct Opening {
    /// The directory the agent works in: an absolute path.
    pub(crate) cwd: String,
    pub(crate) prompt: String,
    /// The model to ask for.
    pub(crate) model: Option<String>,
    /// It was named on the command line already.
    pub(crate) model_given: bool,
}

/// What the agent is to answer next; its number is the id of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Initialize = 0,
    Session = 1,
    Answer = 2,
    Model = 3,
}

/// Holds one turn of dialogue with an agent. Whatever the agent asks is answered: permissions are
/// denied, everything else is not offered.
pub(crate) struct AcpParser {
    lines: MessageLines,
    quoter: Quoter,
    opening: Opening,
    awaited: Awaited,
    session: String,
    /// The agent is opencode: its count of tokens is of its last step only, and it asks again for ever
    /// where a stream is cut, which only the ids of its messages tell.
    is_opencode: bool,
    /// The id of the message that is being said.
    said_in: String,
    fruitless: Fruitless,
    stopping: bool,
    answer: Answer,
    /// The tool calls, by id: the kind of those that are not told yet, as their input has not come.
    calls: HashMap<String, Option<String>>,
    /// What the session has cost so far, by the agent's own account.
    cost: Option<Usd>,
    figures: Figures,
    stderr: String,
    outcome: Option<Result<StopReason, TurnError>>,
}

impl AcpParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(opening: Opening, answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            opening,
            awaited: Awaited::Initialize,
            session: String::new(),
            is_opencode: false,
            said_in: String::new(),
            fruitless: Fruitless::default(),
            stopping: false,
            answer: Answer::new(answer_bytes),
            calls: HashMap::new(),
            cost: None,
            figures: Figures::default(),
            stderr: String::new(),
            outcome: None,
        }
    }

    fn message(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match Message::of(message) {
            Message::Notice { method: "session/update", params }
                if !self.is_another(&params["sessionId"]) =>
            {
                self.update(&params["update"], out)?;
            }
            Message::Request { id, method, params } => self.request(id, method, params, out),
            Message::Answer { id, outcome } if id == self.awaited as u64 => {
                let answered = match outcome {
                    Ok(result) => self.answered(result, out),
                    Err(error) => Err(self.complained(error)),
                };
                if let Err(error) = answered {
                    self.outcome = Some(Err(error));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether `session` is not the one of this turn, such as one the agent opened for itself.
    fn is_another(&self, session: &Value) -> bool {
        session.as_str().is_some_and(|session| session != self.session)
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value, out: &mut Vec<WireEvent>) {
        if method == "initialize" {
            let detail = "it says back what it is told: it is no agent of the protocol; check `command`";
            self.outcome = Some(Err(protocol(detail)));
            return;
        }
        let reply = if method == "session/request_permission" {
            self.call(&params["toolCall"], out);
            message::reply(id, &permission::reply(params, self.stopping))
        } else {
            message::no_method(id, method)
        };
        say(&reply, out);
    }

    fn answered(&mut self, result: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match self.awaited {
            Awaited::Initialize => {
                let version = &result["protocolVersion"];
                if version.as_u64() != Some(PROTOCOL) {
                    return Err(protocol(&format!(
                        "it speaks version {} of the Agent Client Protocol, not {PROTOCOL}",
                        self.quoter.head(&version.to_string())
                    )));
                }
                self.is_opencode = result["agentInfo"]["name"] == "OpenCode";
                self.ask(Awaited::Session, &message::new_session(1, &self.opening.cwd), out);
            }
            Awaited::Session => {
                let session = result["sessionId"].as_str().filter(|id| !id.is_empty());
                session
                    .ok_or_else(|| protocol("it opened a session without an id"))?
                    .clone_into(&mut self.session);
                let model = self.opening.model.as_deref();
                match model.and_then(|model| message::choose_model(3, &self.session, result, model)) {
                    Some(choice) => self.ask(Awaited::Model, &choice, out),
                    None => self.prompt(out)?,
                }
            }
            Awaited::Model => self.prompt_chosen(out),
            Awaited::Answer => {
                self.count(result, out);
                self.outcome = Some(self.verdict(result, out));
            }
        }
        Ok(())
    }

    /// Asks the question with the agent's own choice of model, if that may be.
    fn prompt(&mut self, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if let Some(model) = self.opening.model.as_ref().filter(|_| !self.opening.model_given) {
            let model = self.quoter.head(model);
            let detail =
                format!("the agent offers no choice of a model: name `{model}` in `command` instead");
            return Err(TurnError::Rejected { detail });
        }
        self.prompt_chosen(out);
        Ok(())
    }

    fn prompt_chosen(&mut self, out: &mut Vec<WireEvent>) {
        let prompt = message::prompt(2, &self.session, &std::mem::take(&mut self.opening.prompt));
        self.ask(Awaited::Answer, &prompt, out);
    }

    fn ask(&mut self, awaited: Awaited, request: &Value, out: &mut Vec<WireEvent>) {
        self.awaited = awaited;
        say(request, out);
    }

    fn update(&mut self, update: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match update["sessionUpdate"].as_str() {
            // What it says before it is asked, such as a greeting, is no answer.
            Some("agent_message_chunk") if self.awaited == Awaited::Answer => {
                self.begin_message(update["messageId"].as_str().unwrap_or_default())?;
                let text = update["content"]["text"].as_str().unwrap_or_default();
                self.answer.push(text, out)?;
            }
            Some("agent_thought_chunk") if self.awaited == Awaited::Answer => out.push(WireEvent::Work),
            Some("tool_call") => self.call(update, out),
            Some("tool_call_update")
                if self.calls.contains_key(update["toolCallId"].as_str().unwrap_or_default()) =>
            {
                self.call(update, out);
            }
            Some("usage_update") => {
                self.cost = cost(&update["cost"], &mut self.figures).or(self.cost);
            }
            _ => {}
        }
        Ok(())
    }

    /// A message begins where its id is another: after a tool call the next, else the last once more.
    fn begin_message(&mut self, id: &str) -> Result<(), TurnError> {
        if !self.is_opencode || id == self.said_in {
            return Ok(());
        }
        if self.answer.has_turned_away() || self.said_in.is_empty() {
            self.fruitless.got_on();
        } else {
            self.fruitless.count()?;
            self.answer.turn_away();
        }
        id.clone_into(&mut self.said_in);
        Ok(())
    }

    /// A tool is called, or more is told of a call. The first word of a call may come without its input.
    fn call(&mut self, call: &Value, out: &mut Vec<WireEvent>) {
        let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
        let id = text("toolCallId");
        let begins = !self.calls.contains_key(&id);
        let kind = call["kind"].as_str().map(str::to_owned);
        let kind = match self.calls.get(&id) {
            Some(None) => return,
            Some(Some(told)) => kind.unwrap_or_else(|| told.clone()),
            None => kind.unwrap_or_else(|| "other".to_owned()),
        };
        if begins {
            self.answer.turn_away();
            out.push(WireEvent::Work);
        }
        let input = &call["rawInput"];
        if begins && input.is_object() && call["status"] == "pending" {
            self.calls.insert(id, Some(kind));
            return;
        }
        self.calls.insert(id.clone(), None);
        let arguments = if input.is_null() { json!({ "title": text("title") }) } else { input.clone() };
        out.push(WireEvent::ToolCall(ToolCall::new(id, kind, arguments)));
    }

    fn count(&mut self, result: &Value, out: &mut Vec<WireEvent>) {
        let all = !self.is_opencode || self.calls.is_empty() || self.cost.is_some();
        if let Some(tokens) = tokens(result, &mut self.figures).filter(|_| all) {
            let (reported, whole) = (self.cost, self.figures.sound);
            out.push(WireEvent::Usage(Counted { tokens, reported, whole, ..Counted::default() }));
        }
    }

    fn verdict(&mut self, result: &Value, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let reason = result["stopReason"].as_str().unwrap_or_default();
        let detail = format!("the agent stopped with `{}`", self.quoter.head(reason));
        match reason {
            "end_turn" if self.is_cut(result) => {
                self.answer.fold_copies(out);
                let detail = "the agent counted no token for what it said: its own stream broke off";
                Err(TurnError::Cut { detail: detail.to_owned() })
            }
            "end_turn" => Ok(StopReason::EndTurn),
            "max_tokens" | "max_turn_requests" => Err(TurnError::Truncated { detail }),
            "refusal" => Err(TurnError::Refused { detail }),
            "cancelled" if self.stopping => Err(TurnError::Cancelled),
            "cancelled" => Err(TurnError::Cut {
                detail: "the agent says that it was cancelled, and nobody asked it to stop".to_owned(),
            }),
            _ => Err(TurnError::Protocol { detail }),
        }
    }

    /// Gemini CLI reports a stream that was cut as an end like any other, and counts nothing.
    fn is_cut(&self, result: &Value) -> bool {
        let count = &result["_meta"]["quota"]["token_count"];
        !self.answer.is_empty() && count["input_tokens"] == 0 && count["output_tokens"] == 0
    }

    fn complained(&self, error: &Value) -> TurnError {
        let code = error["code"].as_i64().unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_default();
        if code == LOGIN_FIRST {
            let said = self.quoter.head(message);
            let detail = format!(
                "{said}; log in with the program itself, or hand on the variable with its key in `env`"
            );
            return TurnError::Auth { detail };
        }
        if self.awaited == Awaited::Initialize {
            return protocol(&format!("it refused `initialize`: {}", self.quoter.head(message)));
        }
        let status = u16::try_from(code).ok().filter(|code| (400..600).contains(code));
        words::failure(status, message, &self.quoter)
    }

    /// Why there is no outcome.
    fn missing(&self, end: End) -> TurnError {
        let early = self.awaited == Awaited::Initialize;
        match end {
            End::Exit(exit) if early => protocol(&format!(
                "the program ended with {} before it answered `initialize`: is it an agent that speaks the Agent Client Protocol? It said: {}",
                exit.status, exit.stderr
            )),
            End::Exit(exit) if !exit.success => words::in_stderr(&exit.stderr, &self.quoter)
                .unwrap_or(TurnError::Crashed { status: exit.status, stderr: exit.stderr }),
            _ => TurnError::Cut {
                detail: format!("the agent ended while it was to answer {:?}", self.awaited),
            },
        }
    }
}

impl MessageWire for AcpParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.message(message, out)
    }
}

impl Wire for AcpParser {
    fn begin(&mut self, out: &mut Vec<WireEvent>) {
        say(&message::initialize(0), out);
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    fn is_greeting(&self) -> bool {
        self.awaited != Awaited::Answer && self.outcome.is_none()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => Err(self.missing(end)),
        }
    }

    fn interrupt(&mut self, out: &mut Vec<WireEvent>) -> bool {
        if self.awaited != Awaited::Answer || self.outcome.is_some() {
            return false;
        }
        self.stopping = true;
        say(&message::cancel(&self.session), out);
        true
    }

    fn overhear(&mut self, stderr: &str) {
        stderr.clone_into(&mut self.stderr);
    }

    fn complaint(&self) -> Option<TurnError> {
        // What it says once it has begun to answer is about something else.
        let told = self.answer.is_empty().then(|| words::in_stderr(&self.stderr, &self.quoter));
        told.flatten()
    }
}

/// The tokens of a turn: as the protocol has them, or as Gemini CLI has them, which leaves out what the
/// model thought.
fn tokens(result: &Value, figures: &mut Figures) -> Option<Usage> {
    let mut count = |of: &Value, key: &str| figures.count(of, key);
    let usage = &result["usage"];
    if usage.is_object() {
        let (input, output) = (count(usage, "inputTokens"), count(usage, "outputTokens"));
        let (read, written) = (count(usage, "cachedReadTokens"), count(usage, "cachedWriteTokens"));
        let thought = count(usage, "thoughtTokens");
        // The total tells whether what came from a cache is part of the input.
        let sum = [input, output, read, written].into_iter().fold(0, u64::saturating_add);
        let apart = count(usage, "totalTokens") >= sum;
        let more = if apart { read.saturating_add(written) } else { 0 };
        let thought_apart = count(usage, "totalTokens") >= sum.saturating_add(thought);
        return Some(Usage {
            input: input.saturating_add(more),
            cached_read: read,
            cache_write: written,
            output: output.saturating_add(if thought_apart { thought } else { 0 }),
            reasoning: thought,
            ..Usage::default()
        });
    }
    let quota = &result["_meta"]["quota"]["token_count"];
    let (input, output) = (count(quota, "input_tokens"), count(quota, "output_tokens"));
    quota.is_object().then(|| Usage { input, output, ..Usage::default() })
}

/// A cost in dollars; nothing is what an agent says that knows no price.
fn cost(cost: &Value, figures: &mut Figures) -> Option<Usd> {
    let amount = figures.dollars(&cost["amount"])?;
    (cost["currency"] == "USD" && amount > Usd::ZERO).then_some(amount)
}
