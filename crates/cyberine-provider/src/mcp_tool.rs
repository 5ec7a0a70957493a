//! A tool of another MCP server: one server a turn, one call of it, and its result is the answer.

mod answer;
mod drive;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::child_provider::{Input, Program};
use crate::command::{PlainText, split};
use crate::config::{Check, ConfigError, McpConfig, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;
pub(crate) use drive::{drive, probe};

/// The argument that gets the prompt where the configuration names none.
const ARGUMENT: &str = "prompt";

impl McpConfig {
    fn argument(&self) -> &str {
        self.argument.as_deref().unwrap_or(ARGUMENT)
    }
}

impl Program for McpConfig {
    fn profile(&self) -> Profile<'_> {
        let (program, args) = split(&self.command);
        Profile {
            kind: "mcp",
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
        check.command(&self.command)?;
        check.filled("tool", &self.tool)?;
        check.filled("argument", self.argument())?;
        if self.arguments.contains_key(self.argument()) {
            let problem = format!("must not set `{}`: it gets the prompt", self.argument());
            return Err(check.value("arguments", problem));
        }
        Ok(())
    }

    fn args(&self, _turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        split(&self.command).1.iter().map(OsString::from).collect()
    }

    fn input(&self, _turn: &Turn) -> Input {
        Input::Dialogue
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Takes the answer, once there is one: what goes over the wire before is the client's.
    fn wire(&self, _turn: &Turn, _answer_bytes: usize, _quoter: Quoter) -> Box<dyn Wire> {
        Box::new(PlainText::default())
    }
}
