//! One rule of a script: when it applies and what it answers.

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, Program};
use super::{is_hold_name, scripted_id};
use crate::call::Call;
use crate::judge;

/// A rule. At most one of `text`, `json` and `judge` says what is answered; a rule without any
/// answers with nothing, which is the "empty answer with success" of real providers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What the state of the server calls it.
    pub name: String,
    /// What it applies to; empty applies to everything.
    pub when: When,
    /// The answer; of several, seed, model and prompt choose one. `{{first words}}` and
    /// `{{model}}` are replaced.
    pub text: Option<Texts>,
    /// The answer as JSON. Where the request forces a tool, it becomes that tool's input.
    pub json: Option<Value>,
    /// Computes the answer of a judge from the prompt.
    pub judge: Option<JudgeKind>,
    /// The text by which a `fair` or `injectable` judge knows the best candidate.
    pub marker: String,
    /// Tools the answer calls.
    pub tools: Vec<ToolUse>,
    /// A refusal in the model's words.
    pub refusal: Option<String>,
    /// Why the answer ends; unset means `refusal`, `tool` or `end`, by what the answer is.
    pub stop: Option<Stop>,
    /// What the answer reports as used; unset means words, counted.
    pub usage: Option<UsageSpec>,
    /// The length of a streamed piece, in characters.
    pub chunk: Option<usize>,
    /// The pause before each streamed piece, in milliseconds.
    pub delay_ms: u64,
    /// Cuts the body into network writes of so many bytes, through characters if need be.
    pub wire_bytes: Option<usize>,
    /// Repeats the text until the answer has at least so many bytes.
    pub pad_bytes: usize,
    /// Sends comment lines between the events of a stream.
    pub comments: bool,
    /// Holds the first byte until this name is released. A program also takes an absolute path: it
    /// waits until a file is there, or until a FIFO there has been written to and closed.
    pub hold: Option<String>,
    /// What goes wrong on the wire.
    pub fault: Option<Fault>,
    /// What the program does besides answering.
    pub program: Program,
}

/// What a rule applies to: every field that is set must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The model (or the role of a program), with or without `scripted/`.
    pub model: Option<String>,
    /// A pattern in the last message of the user.
    pub user: Option<Pattern>,
    /// Words in the last message of the user.
    pub user_contains: Option<String>,
    /// A pattern in the system prompt.
    pub system: Option<Pattern>,
    /// Words in the system prompt.
    pub system_contains: Option<String>,
    /// Whether the request ends with what a tool returned. A program has no tools.
    pub after_tool: Option<bool>,
    /// Whether candidates are shown between markers, as a judge is shown them.
    pub judging: Option<bool>,
    /// The how-manieth request of this model, counted from one. A program starts anew each time,
    /// so that its call is always the first.
    pub call: Option<u32>,
    /// The first request of this model that it applies to, counted from one.
    pub call_from: Option<u32>,
}

impl When {
    /// Whether all of it holds for `call`.
    pub(crate) fn holds(&self, call: &Call) -> bool {
        let pattern =
            |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|p| p.0.is_match(text));
        let words =
            |words: &Option<String>, text: &str| words.as_ref().is_none_or(|w| text.contains(w.as_str()));
        self.model.as_ref().is_none_or(|model| scripted_id(model) == call.model)
            && pattern(&self.user, &call.user)
            && words(&self.user_contains, &call.user)
            && pattern(&self.system, &call.system)
            && words(&self.system_contains, &call.system)
            && self.after_tool.is_none_or(|after| after == call.after_tool)
            && self.judging.is_none_or(|judging| judging != judge::candidates(&call.shown).is_empty())
            && self.call.is_none_or(|nth| nth == call.nth)
            && self.call_from.is_none_or(|nth| call.nth >= nth)
    }
}

impl Rule {
    /// What is wrong with it, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let answers = [self.text.is_some(), self.json.is_some(), self.judge.is_some()];
        if answers.iter().filter(|given| **given).count() > 1 {
            return Some("has more than one answer: keep one of `text`, `json` and `judge`");
        }
        if matches!(&self.text, Some(Texts::Several(texts)) if texts.is_empty()) {
            return Some("has an empty list as `text`: give at least one");
        }
        if matches!(self.judge, Some(JudgeKind::Fair | JudgeKind::Injectable)) && self.marker.is_empty() {
            return Some("has a judge without `marker`: say which candidate is best");
        }
        if self.chunk == Some(0) || self.wire_bytes == Some(0) {
            return Some("cuts into pieces of nothing: `chunk` and `wire_bytes` are at least 1");
        }
        if self.hold.as_deref().is_some_and(|name| !is_hold_name(name) && !name.starts_with('/')) {
            return Some(
                "has a hold that cannot be released: use letters, digits, `-`, `_`, `.`, or an absolute path",
            );
        }
        if matches!(&self.fault, Some(Fault::Status { code, .. }) if !(400..=599).contains(code)) {
            return Some("fails with a status that is no failure: `code` is 400 to 599");
        }
        None
    }
}

/// A regular expression in a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex_lite::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Regex::new(&text).map(Self)
    }
}

/// One text, or several to choose from.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    /// Always this.
    One(String),
    /// One of these.
    Several(Vec<String>),
}

/// How a scripted judge judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgeKind {
    /// For the label that is shown first, whatever it holds.
    First,
    /// For the label that is shown last.
    Last,
    /// For the candidate that contains the marker.
    Fair,
    /// For the longest candidate.
    Longest,
    /// For the first candidate that speaks to whoever judges; where none does, as a fair one.
    Injectable,
    /// In prose, without JSON.
    Prose,
    /// For a label that does not exist.
    Unknown,
    /// In JSON that is cut in the middle.
    Truncated,
}

/// A tool the answer calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// Its name.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Value,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All is said.
    End,
    /// The limit on output tokens.
    Length,
    /// The context window.
    Context,
    /// A filter of the provider.
    Filter,
    /// The model declines.
    Refusal,
    /// Tools are called.
    Tool,
}

/// What is reported as used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum UsageSpec {
    /// A fault.
    Fault(UsageFault),
    /// These counts.
    Tokens(Tokens),
}

/// How a report of usage is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageFault {
    /// There is none.
    Missing,
    /// Its figures cannot be: a negative count, a total that is no sum.
    Wrong,
}

/// Token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    /// All of the input, with what came from and went to a cache.
    pub input: u64,
    /// Of it, read from a cache.
    pub cached: u64,
    /// Of it, written to a cache.
    pub cache_write: u64,
    /// All of the output, with reasoning.
    pub output: u64,
    /// Of it, reasoning.
    pub reasoning: u64,
}
