//! Any program: what it writes is the answer, and its exit status says whether it is one.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::child_provider::Program;
use crate::config::CommandConfig;
use crate::error::TurnError;
use crate::port::{Capabilities, StopReason, Turn};
use crate::quote::Quoter;
use crate::text::Utf8Decoder;
use crate::wire::{Edges, End, Wire, WireEvent};

impl Program for CommandConfig {
    fn program(&self) -> OsString {
        self.command.first().map(OsString::from).unwrap_or_default()
    }

    fn args(&self, _turn: &Turn) -> Vec<OsString> {
        self.command.iter().skip(1).map(OsString::from).collect()
    }

    fn cwd(&self, turn: &Turn) -> PathBuf {
        self.cwd.as_ref().map_or_else(|| turn.cwd.clone(), |cwd| turn.cwd.join(cwd))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn edges(&self) -> Edges {
        Edges::Trimmed
    }

    fn wire(&self, _answer_bytes: usize, _quoter: Quoter) -> Box<dyn Wire> {
        Box::new(PlainText::default())
    }
}

/// Reads plain text.
#[derive(Default)]
struct PlainText(Utf8Decoder);

impl Wire for PlainText {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let mut text = String::new();
        self.0.push(bytes, &mut text);
        out.push(WireEvent::Text(text));
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let mut text = String::new();
        self.0.finish(&mut text);
        out.push(WireEvent::Text(text));
        match end {
            End::Exit(exit) if exit.success => Ok(StopReason::EndTurn),
            End::Exit(exit) => Err(TurnError::Crashed { status: exit.status, stderr: exit.stderr }),
            End::Closed => Err(TurnError::Cut { detail: "the program did not end".to_owned() }),
        }
    }
}
