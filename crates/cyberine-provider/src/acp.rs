//! Any agent that speaks the Agent Client Protocol.

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

use crate::build::names_secret;
use crate::child_provider::Program;
use crate::command::{PlainText, split};
use crate::config::{AcpConfig, Check, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

impl Program for AcpConfig {
    fn profile(&self) -> Profile<'_> {
        let (program, args) = split(&self.command);
        Profile {
            kind: "acp",
            model: self.model.as_deref(),
            program: Some(program),
            args,
            cwd: self.cwd.as_deref(),
            env: &self.env,
            prices: self.prices,
            configured_billing: self.billing,
            usual_billing: Some(if self.env.iter().any(|name| names_secret(name)) {
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
        check.command(&self.command)
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        // Of another agent nobody knows what it takes `--version` for.
        let program = split(&self.command).0.file_stem()?;
        ["gemini", "opencode"].iter().any(|known| program == *known).then_some(&["--version"])
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
