//! Aider, one message a process.

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::child_provider::Program;
use crate::command::PlainText;
use crate::config::{AiderConfig, Check, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

impl Program for AiderConfig {
    fn profile(&self) -> Profile<'_> {
        Profile {
            kind: "aider",
            model: self.model.as_deref(),
            program: Some(self.program.as_deref().unwrap_or_else(|| Path::new("aider"))),
            args: &self.args,
            env: &self.env,
            prices: self.prices,
            configured_billing: self.billing,
            usual_billing: Some(Billing::Metered),
            max_parallel: self.max_parallel,
            idle_seconds: self.idle_seconds,
            wall_seconds: self.wall_seconds,
            ..Profile::default()
        }
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.path("program", self.program.as_deref())?;
        self.args.iter().try_for_each(|arg| check.plain("args", arg))
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        Some(&["--version"])
    }

    fn args(&self, _turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        self.args.iter().map(OsString::from).collect()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn wire(&self, _turn: &Turn, _answer_bytes: usize, _quoter: Quoter) -> Box<dyn Wire> {
        Box::new(PlainText::default())
    }
}
