//! Claude Code, headless: `claude -p`, one process a turn.

mod lines;
mod parser;
mod result;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

pub(crate) use self::lines::LineSplitter;
pub(crate) use self::parser::StreamJsonParser;
use crate::anthropic::ANTHROPIC_KEY;
use crate::child_provider::Program;
use crate::config::{Check, ClaudeCliConfig, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

/// The longest schema that is passed as an argument; Linux takes 128 KiB.
const SCHEMA_BYTES: usize = 64 << 10;

/// Headless, every event, and nothing of the user's: no MCP server, no setting, no hook, no trace.
const BASE: &[&str] = &[
    "-p",
    "--output-format",
    "stream-json",
    "--setting-sources",
    "",
    "--strict-mcp-config",
    "--no-session-persistence",
    "--include-partial-messages",
];

impl Program for ClaudeCliConfig {
    fn profile(&self) -> Profile<'_> {
        let usual = if self.api_key_env.is_some() { Billing::Metered } else { Billing::Subscription };
        Profile {
            kind: "claude-cli",
            model: self.model.as_deref(),
            program: Some(self.program.as_deref().unwrap_or_else(|| Path::new("claude"))),
            args: &self.args,
            tools: &self.tools,
            key_env: self.api_key_env.as_deref(),
            env: &self.env,
            configured_billing: self.billing,
            usual_billing: Some(usual),
            max_parallel: self.max_parallel,
            idle_seconds: self.idle_seconds,
            wall_seconds: self.wall_seconds,
            ..Profile::default()
        }
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.path("program", self.program.as_deref())?;
        self.tools.iter().try_for_each(|tool| check.filled("tools", tool))?;
        self.args.iter().try_for_each(|arg| check.plain("args", arg))?;
        check.no_key_in(&self.env, ANTHROPIC_KEY)
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some(ANTHROPIC_KEY)
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        Some(&["--version"])
    }

    fn login_args(&self) -> Option<&'static [&'static str]> {
        Some(&["auth", "status"])
    }

    fn args(&self, turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        let mut args: Vec<String> = BASE.iter().map(|arg| (*arg).to_owned()).collect();
        args.push("--tools".to_owned());
        args.push(self.tools.join(","));
        if !self.tools.is_empty() {
            // Nobody is there to be asked: what plan mode does not allow is denied.
            args.extend(["--permission-mode", "plan", "--permission-prompts", "none"].map(str::to_owned));
        }
        // `--flag=value` for what is not ours, so that a value cannot become a flag.
        args.extend(self.model.iter().map(|model| format!("--model={model}")));
        let schema = turn.output_schema.as_ref().map(ToString::to_string);
        let schema = schema.filter(|schema| schema.len() <= SCHEMA_BYTES);
        args.extend(schema.map(|schema| format!("--json-schema={schema}")));
        args.push("--verbose".to_owned());
        args.extend(self.args.iter().cloned());
        args.into_iter().map(OsString::from).collect()
    }

    fn capabilities(&self) -> Capabilities {
        // Further arguments may let it change things.
        let read_only = self.args.is_empty();
        Capabilities { tools: false, structured_output: true, resume: false, read_only }
    }

    fn wire(&self, _turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(StreamJsonParser::new(answer_bytes, quoter))
    }
}
