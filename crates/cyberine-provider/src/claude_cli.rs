//! Claude Code, headless: `claude -p` over its control channel, one process a turn.

mod control;
mod parser;
mod result;
mod tally;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

pub(crate) use self::parser::StreamJsonParser;
use crate::anthropic::ANTHROPIC_KEY;
use crate::child_provider::{Input, Program};
use crate::config::{Check, ClaudeCliConfig, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::prompt;
use crate::quote::Quoter;
use crate::wire::Wire;

/// The longest schema that is passed as an argument; Linux takes 128 KiB.
const SCHEMA_BYTES: usize = 64 << 10;

/// Headless, a dialogue, every event, and nothing of the user's: no MCP server, no setting, no hook,
/// no command of its own, no trace.
const BASE: &[&str] = &[
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--permission-prompt-tool",
    "stdio",
    "--setting-sources",
    "",
    "--strict-mcp-config",
    "--no-session-persistence",
    "--disable-slash-commands",
    "--include-partial-messages",
];

/// What it may do with tools: its file tools stay within the directory, and whatever could change
/// something is asked about first, which [`control`] denies. Plan mode would not do: there the model
/// is told to write a plan in place of an answer, and commands are let through by the judgement of
/// another model.
const WITH_TOOLS: &[&str] = &["--restricted", "--permission-mode", "default"];

/// What it is told by its environment.
///
/// A turn is tried again by us, and only where nothing was delivered; within a turn of several
/// requests only the program can try one again. Its own count is 10, over three minutes.
///
/// A prompt that says `@/some/file` would hold that file, whatever tools there are: what a candidate
/// wrote could show a judge, and the service, any file of the user's.
const FIXED: &[(&str, &str)] = &[("CLAUDE_CODE_MAX_RETRIES", "2"), ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")];

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

    fn fixed_env(&self) -> &'static [(&'static str, &'static str)] {
        FIXED
    }

    fn args(&self, turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        let mut args: Vec<String> = BASE.iter().map(|arg| (*arg).to_owned()).collect();
        args.push("--tools".to_owned());
        args.push(self.tools.join(","));
        if !self.tools.is_empty() {
            args.extend(WITH_TOOLS.iter().map(|arg| (*arg).to_owned()));
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

    fn input(&self, _turn: &Turn) -> Input {
        Input::Dialogue
    }

    fn wire(&self, turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        let prompt = prompt::render(&turn.messages);
        Box::new(StreamJsonParser::new(prompt, self.tools.clone(), answer_bytes, quoter))
    }
}
