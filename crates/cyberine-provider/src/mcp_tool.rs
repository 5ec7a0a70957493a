//! A tool of another MCP server.

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::child_provider::Program;
use crate::command::{PlainText, split};
use crate::config::{Check, ConfigError, McpConfig, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

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
            idle_seconds: self.idle_seconds,
            wall_seconds: self.wall_seconds,
            ..Profile::default()
        }
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.command(&self.command)?;
        check.filled("tool", &self.tool)
    }

    fn args(&self, _turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        split(&self.command).1.iter().map(OsString::from).collect()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn wire(&self, _turn: &Turn, _answer_bytes: usize, _quoter: Quoter) -> Box<dyn Wire> {
        Box::new(PlainText::default())
    }
}
