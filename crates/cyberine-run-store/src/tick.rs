//! Ticks: fast news about a live run, for whoever watches it. Not part of the log, dropped when
//! the run is over.

use cyberine_types::Usage;
use serde::{Deserialize, Serialize};

/// One piece of fast news, one line of `stream.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tick {
    /// The candidate it is about; empty for the run itself.
    pub candidate: String,
    /// What happened.
    pub kind: TickKind,
    /// How many bytes of answer there are so far.
    pub text_bytes: u64,
    /// What has been used so far.
    pub usage: Usage,
    /// A few words, such as the tool's name or the error.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

/// What a tick tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TickKind {
    /// The candidate has been asked.
    Started,
    /// It has said more.
    Text,
    /// It calls a tool.
    Tool,
    /// Its use is known better.
    Usage,
    /// It waits before it is asked, or asked again; the note says how long and why.
    Waiting,
    /// It has answered.
    Done,
    /// It has failed.
    Error,
    /// The run is over.
    Settled,
}
