//! A wire whose stream is one of events.

use cyberine_protocol::sse::{SseDecoder, SseEvent};

use crate::error::TurnError;
use crate::port::StopReason;
use crate::quote::Quoter;
use crate::wire::{End, Wire, WireEvent};

/// What sets one stream of events apart from another.
pub(crate) trait EventParser: Send {
    /// Takes the data of one event; says whether it was the provider's own last one.
    fn event(&mut self, data: &str, out: &mut Vec<WireEvent>) -> Result<bool, TurnError>;

    /// Whether the data of an event that the end of the connection ended are all of it.
    fn is_whole(&self, data: &str) -> bool;

    /// Whether the end of the connection may be the end of the answer as it stands, though no event
    /// said that it was the last.
    fn may_end(&self) -> bool {
        false
    }

    /// Says how the turn went, once the provider's own last event has come.
    fn stop(&mut self, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError>;

    /// The failure of a stream that ended without that event.
    fn cut(&self) -> TurnError;
}

/// Reads a stream of events for `P`, up to the provider's own last one.
pub(crate) struct SseWire<P> {
    sse: SseDecoder,
    quoter: Quoter,
    answer_bytes: usize,
    parser: P,
    done: bool,
}

impl<P: EventParser> SseWire<P> {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter, parser: P) -> Self {
        let sse = SseDecoder::new(crate::http::event_limit(answer_bytes));
        Self { sse, quoter, answer_bytes, parser, done: false }
    }

    /// What comes after the provider's own end is not looked at.
    fn events(&mut self, events: &[SseEvent], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        for event in events {
            if self.done {
                break;
            }
            self.done = self.parser.event(&String::from_utf8_lossy(&event.data), out)?;
        }
        Ok(())
    }
}

impl<P: EventParser> Wire for SseWire<P> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let mut events = Vec::new();
        let size = self.sse.push(bytes, &mut events);
        self.events(&events, out)?;
        if self.done { Ok(()) } else { size.map_err(|_| TurnError::TooLong { limit: self.answer_bytes }) }
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn finish(&mut self, _end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let mut events = Vec::new();
        // What the connection cut in half is no event; the missing end tells of it.
        if self.sse.finish(&mut events).is_ok() {
            events.retain(|event| self.parser.is_whole(&String::from_utf8_lossy(&event.data)));
            self.events(&events, out)?;
        }
        match self.sse.foreign() {
            _ if self.done || self.parser.may_end() => self.parser.stop(out),
            Some(line) => Err(crate::fault::foreign_fault(line, &self.quoter)),
            None => Err(self.parser.cut()),
        }
    }
}
