//! What can go wrong on purpose.

use serde::Deserialize;

/// A fault of the wire. The plain program has no wire and does not know them; in the lines of
/// `claude -p`, statuses and missing ends have their counterparts. Counts of events start at the first event of the stream; an answer that
/// is not streamed has one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// An HTTP failure instead of an answer.
    Status {
        /// The status, 400 to 599.
        code: u16,
        /// The `Retry-After` header.
        retry_after: Option<String>,
        /// The error type, where the usual one of the status is not meant. On the Gemini wire it is the
        /// status, or `API_KEY_INVALID`; the Ollama wire has none.
        kind: Option<String>,
        /// The message.
        message: Option<String>,
        /// A body that is not of the wire at all, such as a proxy's page.
        body: Option<String>,
    },
    /// An error object inside a stream that began with 200.
    StreamError {
        /// After so many events.
        #[serde(default)]
        after: usize,
        /// The error type (and, on the OpenAI wire, its code; of a response on the Responses wire, which
        /// then fails; on the Gemini wire its status; on the Ollama wire its text).
        kind: Option<String>,
    },
    /// The connection breaks.
    Disconnect {
        /// After so many events.
        after: usize,
    },
    /// The stream ends in order, but too soon.
    EndEarly {
        /// After so many events.
        after: usize,
    },
    /// A character that begins at the end of one piece and never goes on.
    BrokenUtf8,
    /// The last event (`[DONE]`, `message_stop`) is missing.
    NoTerminator,
    /// A line that is not JSON among the events.
    Garbage,
    /// Silence.
    Hang {
        /// After so many events.
        #[serde(default)]
        after: usize,
    },
    /// A text that never ends, one piece at a time.
    Drip {
        /// The pause between the pieces, in milliseconds.
        every_ms: u64,
    },
}

/// What a program does besides answering, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Program {
    /// Answers without having read the prompt. Only a rule that does not look at the prompt can
    /// say so.
    pub ignore_stdin: bool,
    /// Does not die of SIGTERM and SIGINT.
    pub ignore_term: bool,
    /// Leaves a process behind that has left the session twice.
    pub escape: Option<Escape>,
    /// Writes this to standard error.
    pub stderr: String,
    /// Prints so many bytes after the answer.
    pub flood_bytes: u64,
    /// Prints the first half of a character after the answer.
    pub half_character: bool,
    /// Then does nothing for ever.
    pub hang: bool,
    /// Then sends itself this signal.
    pub signal: Option<i32>,
    /// Then ends with this code.
    pub exit: u8,
}

/// What an escaped process holds on to while it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Escape {
    /// Nothing: only a search by process finds it.
    Quiet,
    /// The program's standard output: who waits for its end waits for ever.
    HoldingStdout,
}
