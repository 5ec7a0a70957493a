//! One turn over `codex app-server`: `initialize`, `thread/start`, `turn/start`, and notices until
//! `turn/completed`.

mod message;

use cyberine_types::Usage;
use serde_json::Value;

use super::failure;
use super::item::{Items, text};
use crate::cost::Counted;
use crate::error::TurnError;
use crate::lenient::Figures;
use crate::lines::{MessageLines, MessageWire};
use crate::port::StopReason;
use crate::quote::Quoter;
use crate::rpc::{Message, protocol, say};
use crate::said::Answer;
use crate::wire::{End, Exit, Wire, WireEvent};

/// The id of the request to stop. Its answer is not waited for: the turn's end is.
const INTERRUPT: u64 = 3;

/// How the program begins to say that it tries again; why stands beside it.
const RECONNECTING: &str = "Reconnecting...";

/// What a turn begins with.
pub(crate) struct Opening {
    /// The directory the agent works in: an absolute path.
    pub(crate) cwd: String,
    pub(crate) prompt: String,
    pub(crate) model: Option<String>,
    /// The schema that the answer is held to.
    pub(crate) schema: Option<Value>,
}

/// What the program is to answer next; its number is the id of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    Initialize = 0,
    Thread = 1,
    Turn = 2,
    /// Nothing more: the turn is told of by notices until its end.
    Nothing = 4,
}

/// Holds one turn of dialogue. The last message of the model is the answer, and those before it are
/// remarks on the way. Whatever the program asks is answered at once: nothing is approved.
pub(crate) struct AppServerParser {
    lines: MessageLines,
    quoter: Quoter,
    opening: Opening,
    awaited: Awaited,
    thread: String,
    turn: String,
    stopping: bool,
    answer: Answer,
    /// The message that is being said; empty between messages.
    message: String,
    items: Items,
    /// What has been used so far, as the program counts it.
    used: Option<Usage>,
    figures: Figures,
    /// The model has done something that is not counted yet.
    uncounted: bool,
    /// Something that was done broke off and will never be counted.
    lost: bool,
    complaint: Option<TurnError>,
    outcome: Option<Result<StopReason, TurnError>>,
}

impl AppServerParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(opening: Opening, answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            opening,
            awaited: Awaited::Initialize,
            thread: String::new(),
            turn: String::new(),
            stopping: false,
            answer: Answer::new(answer_bytes),
            message: String::new(),
            items: Items::default(),
            used: None,
            figures: Figures::default(),
            uncounted: false,
            lost: false,
            complaint: None,
            outcome: None,
        }
    }

    fn hear(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match Message::of(message) {
            Message::Request { method: "initialize", .. } => {
                let detail = "it says back what it is told: it is no `codex app-server`; check `program`";
                self.outcome = Some(Err(protocol(detail)));
            }
            Message::Request { id, method, .. } => say(&message::answer(id, method, self.stopping), out),
            Message::Notice { method, params }
                if self.awaited >= Awaited::Turn && !self.is_another(params) =>
            {
                self.notice(method, params, out)?;
            }
            Message::Answer { id, outcome }
                if id == self.awaited as u64 && self.awaited != Awaited::Nothing =>
            {
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

    /// Whether `params` tell of another thread or turn than this one, such as one of an agent that
    /// the model has started.
    fn is_another(&self, params: &Value) -> bool {
        let differs =
            |told: &Value, ours: &str| !ours.is_empty() && told.as_str().is_some_and(|told| told != ours);
        differs(&params["threadId"], &self.thread)
            || differs(&params["turnId"], &self.turn)
            || differs(&params["turn"]["id"], &self.turn)
    }

    fn answered(&mut self, result: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match self.awaited {
            Awaited::Initialize => {
                say(&message::initialized(), out);
                self.awaited = Awaited::Thread;
                say(&message::start_thread(Awaited::Thread as u64, &self.opening), out);
            }
            Awaited::Thread => {
                let thread = text(&result["thread"]["id"]);
                if thread.is_empty() {
                    return Err(protocol("it started a thread without an id"));
                }
                if let Some(differs) = message::is_not_as_asked(result) {
                    let told = self.quoter.head(&differs);
                    let detail = format!(
                        "it was told to let nothing be changed, and answers {told}: see what of its configuration says so"
                    );
                    return Err(TurnError::Rejected { detail });
                }
                thread.clone_into(&mut self.thread);
                self.awaited = Awaited::Turn;
                say(&message::start_turn(Awaited::Turn as u64, thread, &mut self.opening), out);
            }
            Awaited::Turn => {
                self.awaited = Awaited::Nothing;
                self.begin_turn(&result["turn"]);
            }
            Awaited::Nothing => {}
        }
        Ok(())
    }

    /// Takes down which turn it is, once: what comes later has to be of that one.
    fn begin_turn(&mut self, turn: &Value) {
        if self.turn.is_empty() {
            text(&turn["id"]).clone_into(&mut self.turn);
        }
    }

    fn notice(&mut self, method: &str, params: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match method {
            "turn/started" => self.begin_turn(&params["turn"]),
            "item/agentMessage/delta" => {
                self.begin_message(text(&params["itemId"]), false);
                self.uncounted = true;
                self.answer.push(text(&params["delta"]), out)?;
            }
            "item/started" => self.item(&params["item"], false, out)?,
            "item/completed" => {
                self.complaint = None;
                self.item(&params["item"], true, out)?;
            }
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" | "item/plan/delta" => {
                self.uncounted = true;
                out.push(WireEvent::Work);
            }
            "thread/tokenUsage/updated" => self.count(&params["tokenUsage"]["total"], out),
            "error" => self.complain(params, out)?,
            "turn/completed" => {
                let outcome = self.verdict(&params["turn"], out)?;
                self.outcome = Some(outcome);
            }
            _ => {}
        }
        Ok(())
    }

    /// What is said next is the message `id`. A message that is begun `anew` says nothing of before.
    fn begin_message(&mut self, id: &str, anew: bool) {
        if anew || self.message != id {
            self.answer.turn_away();
            id.clone_into(&mut self.message);
        }
    }

    fn item(&mut self, item: &Value, whole: bool, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let before = out.len();
        self.items.told(item, out);
        self.uncounted |= out.len() > before;
        if item["type"] == "agentMessage" {
            self.begin_message(text(&item["id"]), !whole);
            if whole {
                self.answer.settle(text(&item["text"]), out)?;
                self.message.clear();
            }
        }
        Ok(())
    }

    /// Counts `total`, the sums over the turn's thread, which holds no other turn. A failure may come
    /// with figures of nothing, which are none.
    fn count(&mut self, total: &Value, out: &mut Vec<WireEvent>) {
        self.uncounted = false;
        let tokens = usage(total, &mut self.figures);
        if tokens.input > 0 || tokens.output > 0 {
            self.used = Some(tokens);
            out.push(WireEvent::Usage(Counted { tokens, ..Counted::default() }));
        }
    }

    /// It goes on trying after this, or says why it does not and then ends the turn.
    fn complain(&mut self, params: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let failure = self.failure(&params["error"]);
        if params["willRetry"] == true {
            // It would try five times more; neither gets better by that.
            if matches!(failure, TurnError::Auth { .. } | TurnError::Billing { .. }) {
                return Err(failure);
            }
            out.push(WireEvent::Step(format!("reconnect {}", failure.code())));
            self.lost |= self.uncounted;
            if !self.message.is_empty() {
                self.message.clear();
                self.answer.retract(out);
            }
        }
        self.complaint = Some(failure);
        Ok(())
    }

    fn failure(&self, error: &Value) -> TurnError {
        let (said, beside) = (text(&error["message"]), text(&error["additionalDetails"]));
        let why = if said.starts_with(RECONNECTING) && !beside.is_empty() { beside } else { said };
        failure::named(&error["codexErrorInfo"], why, &self.quoter)
    }

    /// How the turn went, by its own account; an `Err` where its answer is none.
    fn verdict(
        &mut self,
        turn: &Value,
        out: &mut Vec<WireEvent>,
    ) -> Result<Result<StopReason, TurnError>, TurnError> {
        match text(&turn["status"]) {
            "completed" => {
                let items = turn["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let last = items.iter().rfind(|item| item["type"] == "agentMessage");
                if let Some(whole) = last.map(|item| text(&item["text"])).filter(|text| !text.is_empty()) {
                    self.answer.settle(whole, out)?;
                }
                if let Some(tokens) = self.used {
                    let whole = self.figures.sound && !self.lost;
                    out.push(WireEvent::Usage(Counted { tokens, whole, ..Counted::default() }));
                }
                Ok(Ok(StopReason::EndTurn))
            }
            "failed" => Ok(Err(self.failure(&turn["error"]))),
            "interrupted" if self.stopping => Ok(Err(TurnError::Cancelled)),
            "interrupted" => {
                let detail = "the turn was interrupted, and nobody asked for it";
                Ok(Err(TurnError::Cut { detail: detail.to_owned() }))
            }
            other => {
                let detail = format!("the turn ended with the status `{}`", self.quoter.head(other));
                Ok(Err(TurnError::Protocol { detail }))
            }
        }
    }

    /// The failure of a request that was answered with `error`.
    fn complained(&self, error: &Value) -> TurnError {
        let said = text(&error["message"]);
        if self.awaited == Awaited::Initialize {
            let said = self.quoter.head(&failure::masked(said));
            return protocol(&format!("it refused `initialize`: {said}"));
        }
        failure::named(&error["data"]["codexErrorInfo"], said, &self.quoter)
    }

    /// Why the turn has no end of its own.
    fn missing(&self, end: End) -> TurnError {
        if let Some(complaint) = self.complaint() {
            return complaint;
        }
        match end {
            End::Exit(Exit { status, stderr, .. }) if self.awaited == Awaited::Initialize => {
                let said = failure::masked(&stderr);
                protocol(&format!(
                    "the program ended with {status} before it answered `initialize`: has it `app-server`? It said: {said}"
                ))
            }
            End::Exit(Exit { success: false, status, stderr }) => {
                TurnError::Crashed { status, stderr: failure::masked(&stderr) }
            }
            _ => TurnError::Cut { detail: format!("{} lines, no `turn/completed`", self.lines.seen()) },
        }
    }
}

/// The input holds what came from and went to a cache, the output the reasoning.
fn usage(total: &Value, figures: &mut Figures) -> Usage {
    let mut count = |key: &str| figures.count(total, key);
    Usage {
        input: count("inputTokens"),
        cached_read: count("cachedInputTokens"),
        cache_write: count("cacheWriteInputTokens"),
        output: count("outputTokens"),
        reasoning: count("reasoningOutputTokens"),
        ..Usage::default()
    }
}

impl MessageWire for AppServerParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.hear(message, out)
    }
}

impl Wire for AppServerParser {
    fn begin(&mut self, out: &mut Vec<WireEvent>) {
        say(&message::initialize(Awaited::Initialize as u64), out);
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    fn is_greeting(&self) -> bool {
        self.awaited < Awaited::Turn && self.outcome.is_none()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => Err(self.missing(end)),
        }
    }

    fn interrupt(&mut self, out: &mut Vec<WireEvent>) -> bool {
        if self.turn.is_empty() || self.outcome.is_some() {
            return false;
        }
        self.stopping = true;
        say(&message::interrupt(INTERRUPT, &self.thread, &self.turn), out);
        true
    }

    fn complaint(&self) -> Option<TurnError> {
        self.complaint.clone()
    }
}
