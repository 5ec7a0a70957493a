//! The text that aider prints: a few lines about itself, the answer, and what was used.

use cyberine_types::{Usage, Usd};

use crate::cost::Counted;
use crate::error::TurnError;
use crate::fault::Fault;
use crate::port::StopReason;
use crate::quote::Quoter;
use crate::wire::{End, Wire, WireEvent};

/// The first line about itself; what comes before it is other people's.
const BANNER: &str = "Aider v";
/// How its account of a failed request begins.
const FAILURE: &str = "litellm.";
/// What it says before it asks again.
const RETRYING: &str = "Retrying in ";
/// What it says where it was given nothing.
const EMPTY: &str = "Empty response received from LLM.";
/// How it says that an answer was cut off.
const LIMIT: &str = " has hit a token limit!";

/// Where in its text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before its first line about itself.
    Before,
    /// Among them: an empty line ends them.
    Banner,
    /// In the answer.
    Answer,
    /// In what it says of a failure.
    Failure,
    /// In what it says of an answer that hit a limit.
    Limit,
}

/// Reads one answer. A line is only shown once it is known what it is, which the next one tells.
pub(crate) struct AiderParser {
    /// The longest answer, in bytes.
    limit: usize,
    /// A line that has not ended.
    pending: Vec<u8>,
    quoter: Quoter,
    place: Place,
    /// The answer has begun.
    begun: bool,
    /// Empty lines that are part of the answer only if more of it follows.
    blank: usize,
    /// A line about use and the empty ones before it, which are part of the answer if more of it follows.
    used: Option<(usize, String, Counted)>,
    /// What it says of a failure.
    failure: String,
}

impl AiderParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            limit: answer_bytes,
            pending: Vec::new(),
            quoter,
            place: Place::Before,
            begun: false,
            blank: 0,
            used: None,
            failure: String::new(),
        }
    }

    /// Takes the line that has ended.
    fn end_line(&mut self, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let line = std::mem::take(&mut self.pending);
        self.line(String::from_utf8_lossy(&line).trim_end_matches('\r'), out)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TurnError> {
        if self.pending.len() + bytes.len() > crate::http::event_limit(self.limit) {
            return Err(TurnError::TooLong { limit: self.limit });
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, line: &str, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match self.place {
            Place::Before if line.starts_with(BANNER) => self.place = Place::Banner,
            Place::Banner if line.trim().is_empty() => self.place = Place::Answer,
            Place::Before | Place::Banner | Place::Limit => {}
            Place::Answer if !self.begun && line.starts_with(FAILURE) => self.fail(line),
            Place::Answer if line.starts_with("Model ") && line.ends_with(LIMIT) => self.place = Place::Limit,
            Place::Answer => self.answer(line, out),
            // Asking again is decided in one place, and that is not here.
            Place::Failure if line.starts_with(RETRYING) => return Err(self.failed()),
            Place::Failure => self.fail(line),
        }
        Ok(())
    }

    fn fail(&mut self, line: &str) {
        self.place = Place::Failure;
        self.failure.push_str(line);
        self.failure.push(' ');
    }

    fn answer(&mut self, line: &str, out: &mut Vec<WireEvent>) {
        if line.trim().is_empty() {
            self.blank += 1;
            return;
        }
        if !self.begun && line.starts_with(EMPTY) {
            return;
        }
        if let Some((blank, line, _)) = self.used.take() {
            self.show(blank, &line, out);
        }
        let blank = std::mem::take(&mut self.blank);
        match used(line) {
            Some(counted) => self.used = Some((blank, line.to_owned(), counted)),
            None => self.show(blank, line, out),
        }
    }

    /// Shows a line of the answer and the empty ones before it.
    fn show(&mut self, blank: usize, line: &str, out: &mut Vec<WireEvent>) {
        let ends = if std::mem::replace(&mut self.begun, true) { blank + 1 } else { 0 };
        out.push(WireEvent::Text(format!("{}{line}", "\n".repeat(ends))));
    }

    /// The failure it tells of, by the name its library has for it.
    fn failed(&self) -> TurnError {
        let words = self.failure.trim();
        let name = words.strip_prefix(FAILURE).unwrap_or_default();
        let name = name.split(':').next().unwrap_or_default();
        let detail = self.quoter.head(words);
        let kind = match name {
            "AuthenticationError" | "PermissionDeniedError" => return TurnError::Auth { detail },
            "RateLimitError" => "rate_limit",
            "ServiceUnavailableError" | "InternalServerError" | "BadGatewayError" | "Timeout" => {
                "unavailable"
            }
            "APIConnectionError" => {
                let target = "the API that aider uses".to_owned();
                return TurnError::Unreachable { target, detail };
            }
            "ContextWindowExceededError" => return TurnError::Truncated { detail },
            "ContentPolicyViolationError" => return TurnError::Refused { detail },
            _ => "",
        };
        Fault { kind: kind.to_owned(), message: words.to_owned(), ..Fault::default() }.classify(&self.quoter)
    }
}

impl Wire for AiderParser {
    fn push(&mut self, mut bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend_line(&bytes[..end])?;
            self.end_line(out)?;
            bytes = &bytes[end + 1..];
        }
        self.extend_line(bytes)
    }

    fn is_over(&self) -> bool {
        false
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.end_line(out)?;
        if let Some((_, _, counted)) = self.used.take() {
            out.push(WireEvent::Usage(counted));
        }
        let exit = match end {
            End::Exit(exit) => exit,
            End::Closed => return Err(TurnError::Cut { detail: "aider did not end".to_owned() }),
        };
        match self.place {
            Place::Failure => Err(self.failed()),
            _ if !exit.success => Err(TurnError::Crashed { status: exit.status, stderr: exit.stderr }),
            Place::Before => {
                let detail = format!("it did not begin with `{BANNER}`, as aider does: {}", exit.stderr);
                Err(TurnError::Protocol { detail })
            }
            Place::Limit => Err(TurnError::Truncated { detail: "a limit on tokens".to_owned() }),
            Place::Banner | Place::Answer => Ok(StopReason::EndTurn),
        }
    }

    fn complaint(&self) -> Option<TurnError> {
        (self.place == Place::Failure).then(|| self.failed())
    }
}

/// `Tokens: 12k sent, 1.5k cache write, 3k cache hit, 650 received. Cost: $0.04 message, $0.11 session.`
fn used(line: &str) -> Option<Counted> {
    let line = line.strip_prefix("Tokens: ")?;
    let (tokens, cost) = line.split_once(" Cost: $").unwrap_or((line, ""));
    let mut usage = Usage::default();
    let mut received = false;
    for part in tokens.strip_suffix('.')?.split(", ") {
        let (count, what) = part.split_once(' ')?;
        let count = figure(count)?;
        match what {
            "sent" => usage.input = count,
            "cache write" => usage.cache_write = count,
            "cache hit" => usage.cached_read = count,
            "received" => (usage.output, received) = (count, true),
            _ => return None,
        }
    }
    let told = cost.split_once(" message").and_then(|(dollars, _)| dollars.parse::<f64>().ok());
    let sensible = told.filter(|usd| usd.is_finite() && *usd >= 0.0);
    let whole = cost.is_empty() || sensible.is_some();
    let reported = sensible.map(Usd::from_dollars).filter(|usd| *usd > Usd::ZERO);
    received.then_some(Counted { tokens: usage, reported, whole, ..Counted::default() })
}

/// `650`, `1.5k` or `2M`.
fn figure(text: &str) -> Option<u64> {
    let (number, scale) = match text.strip_suffix('k') {
        Some(number) => (number, 1_000_u64),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1_000_000)),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let part = match part {
        "" => 0,
        part if part.len() > 6 => return None,
        part => {
            let unit = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
            part.parse::<u64>().ok()?.checked_mul(scale)? / unit
        }
    };
    whole.checked_mul(scale)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_use_is_read_and_nothing_like_it() {
        let read = |line: &str| {
            used(line).map(|c| {
                let t = c.tokens;
                (t.input, t.cached_read, t.cache_write, t.output, c.reported.map(Usd::micros))
            })
        };
        assert_eq!(read("Tokens: 595 sent, 9 received."), Some((595, 0, 0, 9, None)));
        let cost = "Tokens: 12k sent, 650 received. Cost: $0.04 message, $0.11 session.";
        assert_eq!(read(cost), Some((12_000, 0, 0, 650, Some(40_000))));
        let cached = "Tokens: 1.5k sent, 2.3M cache write, 3k cache hit, 4 received. Cost: $0.0012 message, $1 session.";
        assert_eq!(read(cached), Some((1_500, 3_000, 2_300_000, 4, Some(1_200))));
        for other in [
            "Tokens: many",
            "Tokens: 5 sent.",
            "Tokens: x sent, 1 received.",
            "tokens: 1 sent, 1 received.",
            "Tokens: 5 sent, 6 received. And more",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn figures_are_bounded() {
        for text in ["", "k", "1.", "99999999999999999999", "99999999999999999k", "1.1234567k", "-1"] {
            let read = figure(text);
            assert!(read.is_none() || text == "1.", "{text}: {read:?}");
        }
    }
}
