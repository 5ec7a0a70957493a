//! Codex, headless: `codex exec`, one process a turn.

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::child_provider::Program;
use crate::command::PlainText;
use crate::config::{Check, CodexCliConfig, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

/// The variable from which `codex exec` takes a key to pay with.
const CODEX_KEY: &str = "CODEX_API_KEY";

impl Program for CodexCliConfig {
    fn profile(&self) -> Profile<'_> {
        Profile {
            kind: "codex-cli",
            model: self.model.as_deref(),
            program: Some(self.program.as_deref().unwrap_or_else(|| Path::new("codex"))),
            args: &self.args,
            env: &self.env,
            key_env: self.api_key_env.as_deref(),
            prices: self.prices,
            configured_billing: self.billing,
            usual_billing: Some(if self.api_key_env.is_some() {
                Billing::Metered
            } else {
                Billing::Subscription
            }),
            max_parallel: self.max_parallel,
            idle_seconds: self.idle_seconds,
            wall_seconds: self.wall_seconds,
            ..Profile::default()
        }
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.path("program", self.program.as_deref())?;
        self.args.iter().try_for_each(|arg| check.plain("args", arg))?;
        check.no_key_in(&self.env, CODEX_KEY)
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some(CODEX_KEY)
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        Some(&["--version"])
    }

    fn login_args(&self) -> Option<&'static [&'static str]> {
        Some(&["login", "status"])
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
