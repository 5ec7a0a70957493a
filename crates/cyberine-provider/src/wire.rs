//! A turn without its I/O: bytes in, events out.
//!
//! A [`Wire`] knows one provider's stream and nothing else. [`Session`] adds what holds for every
//! wire: safe text without the provider's own secrets, a bound on the answer, its cost, and that
//! success needs an answer.

use cyberine_types::is_blank;

use crate::cost::{Counted, Meter, Tariff};
use crate::error::TurnError;
use crate::loop_detector::LoopDetector;
use crate::port::{StopReason, ToolCall, TurnEvent};
use crate::redact::Redactor;
use crate::text::EscapeStripper;

/// What a wire reads from its stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireEvent {
    /// More of the answer, as it came.
    Text(String),
    /// The answer begins anew: what was said broke off, or was not it.
    Retract,
    /// What was said was a remark on the way, and the answer is still to come. Agents remark as often as
    /// they like: it is no circle.
    Remarked,
    /// A whole tool call.
    ToolCall(ToolCall),
    /// The model works on what is no part of the answer, or not yet: a thought, a piece of a call.
    Work,
    /// The use so far, in total.
    Usage(Counted),
    /// A step that brought nothing, such as a retry or a round that ended empty: the same name for
    /// the same step, without what differs by itself. Too many end the turn (`LoopDetector`).
    Step(String),
    /// Something to say to the program.
    Say(Said),
}

/// What a wire says to its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// This text.
    Text(String),
    /// That nothing more comes.
    End,
}

/// How an input ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection was closed, or nothing more is wanted of it.
    Closed,
    /// The program ended.
    Exit(Exit),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// It ended with status 0.
    pub(crate) success: bool,
    /// The status or the signal, for people.
    pub(crate) status: String,
    /// The tail of its standard error, already quoted.
    pub(crate) stderr: String,
}

/// One provider's stream. Total: whatever the bytes, it answers with events or with an error.
pub(crate) trait Wire: Send {
    /// What is said to the program first, where the turn is a dialogue.
    fn begin(&mut self, _out: &mut Vec<WireEvent>) {}

    /// Takes the next bytes. Events pushed before an error count.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError>;

    /// Whether the provider's own last event has been read, so that nothing more is waited for.
    fn is_over(&self) -> bool;

    /// Whether the program has yet to answer what is asked before the prompt is sent.
    fn is_greeting(&self) -> bool {
        false
    }

    /// Takes the tail of the program's standard error, already quoted, where it did not end by itself.
    fn overhear(&mut self, _stderr: &str) {}

    /// Ends the input and says how the turn went.
    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError>;

    /// Asks the program to stop; whatever it still says is pushed. `false` where nothing can be said
    /// that would stop it.
    fn interrupt(&mut self, _out: &mut Vec<WireEvent>) -> bool {
        false
    }

    /// What the provider last complained of, where it went on trying: a better account of a
    /// silence than the silence.
    fn complaint(&self) -> Option<TurnError> {
        None
    }
}

/// Whether the white space around an answer belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edges {
    /// It is the model's own.
    Kept,
    /// It is the program's way to end a line.
    Trimmed,
}

/// The answer so far: counted, not kept.
#[derive(Debug)]
struct Answer {
    limit: usize,
    edges: Edges,
    stripper: EscapeStripper,
    redactor: Redactor,
    bytes: usize,
    blank: bool,
    /// White space that is part of the answer only if more text follows.
    held: String,
}

impl Answer {
    fn new(limit: usize, edges: Edges, redactor: Redactor) -> Self {
        let (stripper, held) = (EscapeStripper::default(), String::new());
        Self { limit, edges, stripper, redactor, bytes: 0, blank: true, held }
    }

    fn retract(&mut self) {
        let mut redactor = std::mem::take(&mut self.redactor);
        redactor.reset();
        *self = Self::new(self.limit, self.edges, redactor);
    }

    /// What may be shown of `raw`.
    fn push(&mut self, raw: &str) -> Result<String, TurnError> {
        let mut plain = String::with_capacity(raw.len());
        self.stripper.push(raw, &mut plain);
        // After the escapes are out, so that one inside a secret does not save it.
        let clean = self.redactor.push(&plain);
        self.show(&clean)
    }

    /// What had been held back, once the answer is whole.
    fn finish(&mut self) -> Result<String, TurnError> {
        let clean = self.redactor.finish();
        self.show(&clean)
    }

    fn show(&mut self, clean: &str) -> Result<String, TurnError> {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(clean);
        if self.edges == Edges::Trimmed {
            if self.bytes == 0 {
                text.drain(..text.len() - text.trim_start().len());
            }
            self.held = text.split_off(text.trim_end().len());
        }
        self.bytes += text.len();
        self.blank &= is_blank(&text);
        if self.bytes + self.held.len() + self.redactor.held() > self.limit {
            return Err(TurnError::TooLong { limit: self.limit });
        }
        Ok(text)
    }
}

/// A turn that is being read.
pub(crate) struct Session {
    wire: Box<dyn Wire>,
    answer: Answer,
    meter: Meter,
    circles: LoopDetector,
    calls: usize,
    /// It has been told that the model works.
    worked: bool,
    /// What is to be said to the program.
    said: Vec<Said>,
}

impl Session {
    /// A session over `wire` whose answer may have `limit` bytes and shows nothing that `redactor`
    /// takes out.
    pub(crate) fn new(
        wire: Box<dyn Wire>,
        limit: usize,
        edges: Edges,
        tariff: Tariff,
        redactor: Redactor,
    ) -> Self {
        Self {
            wire,
            answer: Answer::new(limit, edges, redactor),
            meter: Meter::new(tariff),
            circles: LoopDetector::default(),
            calls: 0,
            worked: false,
            said: Vec::new(),
        }
    }

    /// Begins a dialogue.
    pub(crate) fn begin(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let mut read = Vec::new();
        self.wire.begin(&mut read);
        self.take(read, out)
    }

    /// Asks the program to stop; `false` where it cannot be asked.
    pub(crate) fn interrupt(&mut self) -> bool {
        let mut read = Vec::new();
        let asked = self.wire.interrupt(&mut read);
        self.said.extend(read.into_iter().filter_map(|event| match event {
            WireEvent::Say(said) => Some(said),
            _ => None,
        }));
        asked
    }

    /// What is to be said to the program by now, in this order.
    pub(crate) fn said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    /// Takes the next bytes. Events in `out` count, also beside an error.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let mut read = Vec::new();
        let outcome = self.wire.push(bytes, &mut read);
        self.take(read, out)?;
        outcome
    }

    /// Whether nothing more is to come.
    pub(crate) fn is_over(&self) -> bool {
        self.wire.is_over()
    }

    /// Whether the program has yet to answer what comes before the prompt.
    pub(crate) fn is_greeting(&self) -> bool {
        self.wire.is_greeting()
    }

    /// Takes the tail of the standard error of a program that did not end by itself.
    pub(crate) fn overhear(&mut self, stderr: &str) {
        self.wire.overhear(stderr);
    }

    /// What the provider last complained of.
    pub(crate) fn complaint(&self) -> Option<TurnError> {
        self.wire.complaint()
    }

    /// Ends the turn.
    pub(crate) fn finish(mut self, end: End, out: &mut Vec<TurnEvent>) -> Result<StopReason, TurnError> {
        let mut read = Vec::new();
        let outcome = self.wire.finish(end, &mut read);
        self.take(read, out)?;
        append(self.answer.finish()?, out);
        out.extend(self.meter.uncounted().map(TurnEvent::Usage));
        match outcome? {
            StopReason::EndTurn if self.answer.blank => Err(TurnError::Empty),
            StopReason::ToolUse if self.calls == 0 => {
                Err(TurnError::Protocol { detail: "it stopped for tool calls and made none".to_owned() })
            }
            stop => Ok(stop),
        }
    }

    fn retract(&mut self, out: &mut Vec<TurnEvent>) {
        self.answer.retract();
        out.push(TurnEvent::Retract);
    }

    fn take(&mut self, read: Vec<WireEvent>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        for event in read {
            match event {
                WireEvent::Text(raw) => {
                    if !is_blank(&raw) {
                        self.circles.got_on();
                    }
                    if !raw.is_empty() {
                        self.work(out);
                    }
                    append(self.answer.push(&raw)?, out);
                }
                WireEvent::Work => self.work(out),
                WireEvent::Retract => {
                    self.retract(out);
                    self.circles.begun_anew()?;
                }
                WireEvent::Remarked => self.retract(out),
                WireEvent::ToolCall(call) => {
                    self.calls += 1;
                    self.work(out);
                    self.circles.called();
                    out.push(TurnEvent::ToolCall(self.answer.redactor.call(call)));
                }
                WireEvent::Usage(counted) => {
                    out.push(TurnEvent::Usage(self.meter.count(counted)));
                }
                WireEvent::Step(fingerprint) => self.circles.step(&fingerprint)?,
                WireEvent::Say(said) => self.said.push(said),
            }
        }
        Ok(())
    }

    /// Tells of the first that the model does, whether or not it can be shown.
    fn work(&mut self, out: &mut Vec<TurnEvent>) {
        if !std::mem::replace(&mut self.worked, true) {
            out.push(TurnEvent::Working);
            out.extend(self.meter.work().map(TurnEvent::Usage));
        }
    }
}

/// Adds text to the text event before it, so that one read makes one event.
fn append(text: String, out: &mut Vec<TurnEvent>) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(TurnEvent::Text(last)) => last.push_str(&text),
        _ => out.push(TurnEvent::Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trimmed(limit: usize, pieces: &[&str]) -> Result<String, TurnError> {
        let mut answer = Answer::new(limit, Edges::Trimmed, Redactor::default());
        pieces.iter().map(|piece| answer.push(piece)).collect()
    }

    #[test]
    fn white_space_around_an_answer_is_held_back_and_within_it_kept() {
        assert_eq!(trimmed(99, &[" \n", "a ", " ", "b", "\n", "\n"]).unwrap(), "a  b");
        assert_eq!(trimmed(99, &["a\n"]).unwrap(), "a");
        assert_eq!(trimmed(99, &[" ", "\n"]).unwrap(), "");
    }

    #[test]
    fn an_answer_one_byte_too_long_is_refused_held_or_not() {
        assert_eq!(trimmed(4, &["abcd"]).unwrap(), "abcd");
        assert_eq!(trimmed(4, &["abc", "de"]), Err(TurnError::TooLong { limit: 4 }));
        assert_eq!(trimmed(4, &["abc", "  "]), Err(TurnError::TooLong { limit: 4 }));
    }

    #[test]
    fn a_retracted_answer_does_not_count() {
        let mut answer = Answer::new(4, Edges::Kept, Redactor::default());
        assert_eq!(answer.push("abcd").unwrap(), "abcd");
        answer.retract();
        assert!(answer.blank);
        assert_eq!(answer.push("efgh").unwrap(), "efgh");
    }

    /// Reads a letter as an event.
    struct Letters;

    impl Wire for Letters {
        fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
            out.extend(bytes.iter().map(|byte| match byte {
                b't' => WireEvent::Text("text".into()),
                b' ' => WireEvent::Text(" ".into()),
                b'r' => WireEvent::Retract,
                b'm' => WireEvent::Remarked,
                b'c' => WireEvent::ToolCall(ToolCall::new("1", "look", serde_json::Value::Null)),
                _ => WireEvent::Step("retry".into()),
            }));
            Ok(())
        }

        fn is_over(&self) -> bool {
            false
        }

        fn finish(&mut self, _end: End, _out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
            Ok(StopReason::EndTurn)
        }
    }

    #[test]
    fn a_provider_that_goes_round_in_circles_is_stopped_and_one_that_gets_on_is_not() {
        let read = |letters: &str| {
            let tariff =
                Tariff { billing: cyberine_types::Billing::Free, prices: None, trusts_script: false };
            let mut session =
                Session::new(Box::new(Letters), 1 << 20, Edges::Kept, tariff, Redactor::default());
            session.push(letters.as_bytes(), &mut Vec::new())
        };
        let steps = "s".repeat(19);
        assert_eq!(read(&format!("{steps}t{steps}t{steps}")), Ok(()));
        assert!(
            matches!(read(&format!("{steps} s")), Err(TurnError::Protocol { .. })),
            "white space is no answer"
        );
        assert_eq!(read(&"tr".repeat(19)), Ok(()));
        assert!(matches!(read(&"tr".repeat(20)), Err(TurnError::Protocol { .. })));
        assert_eq!(read(&"trc".repeat(200)), Ok(()), "it calls tools in between");
        assert_eq!(read(&"tm".repeat(200)), Ok(()), "remarks on the way");
    }

    #[test]
    fn a_secret_in_an_answer_is_gone_before_anybody_sees_it() {
        let redactor = Redactor::new(&[cyberine_types::Secret::new("sk-hunter2")]);
        let mut answer = Answer::new(99, Edges::Trimmed, redactor);
        let mut shown = String::new();
        for piece in ["\n my key: sk-h", "\u{1b}[0mun", "ter2\n"] {
            shown.push_str(&answer.push(piece).unwrap());
            assert!(!shown.contains("sk-"), "{shown}");
        }
        shown.push_str(&answer.finish().unwrap());
        assert_eq!(shown, "my key: [redacted]");
        answer.push("sk-hunt").unwrap();
        answer.retract();
        assert_eq!(answer.push("er2").unwrap() + &answer.finish().unwrap(), "er2");
    }
}
