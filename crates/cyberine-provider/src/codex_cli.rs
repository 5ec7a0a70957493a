//! Codex, headless: `codex exec`, one process a turn.

mod failure;
mod parser;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;
use serde_json::Value;

pub(crate) use self::parser::ExecParser;
use crate::child_provider::Program;
use crate::config::{Check, CodexCliConfig, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::schema;
use crate::wire::Wire;

/// The variable from which `codex exec` takes a key to pay with.
const CODEX_KEY: &str = "CODEX_API_KEY";

/// The file with the schema that the answer is held to.
const SCHEMA: &str = "schema.json";

/// Headless, every event, nothing of the user's but the login, no trace, and commands that can only
/// read.
const BASE: &[&str] = &[
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--ephemeral",
    "--ignore-user-config",
    "--ignore-rules",
    "--sandbox=read-only",
    "--color=never",
    // The key is for the service; a command of the model's has no use for it.
    "--config=shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]",
];

/// The schema in the form the service enforces; `None` where it would enforce nothing.
fn enforceable(turn: &Turn) -> Option<Value> {
    turn.output_schema.as_ref().map(schema::enforced).filter(schema::is_total)
}

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

    fn files(&self, turn: &Turn) -> Vec<(&'static str, String)> {
        enforceable(turn).map(|schema| (SCHEMA, schema.to_string())).into_iter().collect()
    }

    fn args(&self, turn: &Turn, scratch: &Path) -> Vec<OsString> {
        let mut args: Vec<OsString> = BASE.iter().map(OsString::from).collect();
        // `--flag=value` for what is not ours, so that a value cannot become a flag.
        args.extend(self.model.iter().map(|model| format!("--model={model}").into()));
        if enforceable(turn).is_some() {
            let mut arg = OsString::from("--output-schema=");
            arg.push(scratch.join(SCHEMA));
            args.push(arg);
        }
        args.extend(self.args.iter().map(OsString::from));
        // The prompt is on the input.
        args.push("-".into());
        args
    }

    fn capabilities(&self) -> Capabilities {
        // Further arguments may let it change things.
        let read_only = self.args.is_empty();
        Capabilities { structured_output: true, read_only, ..Capabilities::default() }
    }

    fn wire(&self, _turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(ExecParser::new(answer_bytes, quoter))
    }
}
