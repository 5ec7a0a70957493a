//! Any program: what it writes is the answer, and its exit status says whether it is one.

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::child_provider::Program;
use crate::config::{Check, CommandConfig, ConfigError, Profile};
use crate::error::TurnError;
use crate::port::{Capabilities, StopReason, Turn};
use crate::quote::Quoter;
use crate::text::Utf8Decoder;
use crate::wire::{Edges, End, Wire, WireEvent};

impl Program for CommandConfig {
    fn profile(&self) -> Profile<'_> {
        let (program, args) = split(&self.command);
        Profile {
            kind: "command",
            model: self.model.as_deref(),
            program: Some(program),
            args,
            cwd: self.cwd.as_deref(),
            env: &self.env,
            configured_billing: self.billing,
            usual_billing: Some(Billing::Free),
            max_parallel: self.max_parallel,
            idle_seconds: self.idle_seconds,
            wall_seconds: self.wall_seconds,
            ..Profile::default()
        }
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.command(&self.command)
    }

    fn args(&self, _turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        split(&self.command).1.iter().map(OsString::from).collect()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn edges(&self) -> Edges {
        Edges::Trimmed
    }

    fn wire(&self, _turn: &Turn, _answer_bytes: usize, _quoter: Quoter) -> Box<dyn Wire> {
        Box::new(PlainText::default())
    }
}

/// A command line: the program, and its arguments.
pub(crate) fn split(command: &[String]) -> (&Path, &[String]) {
    match command.split_first() {
        Some((program, args)) => (Path::new(program), args),
        None => (Path::new(""), &[]),
    }
}

/// Reads plain text.
#[derive(Default)]
pub(crate) struct PlainText(Utf8Decoder);

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
