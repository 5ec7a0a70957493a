//! Claude Code, headless: `claude -p`, one process a turn.

mod lines;
mod parser;
mod result;

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use self::parser::StreamJsonParser;
use crate::child_provider::Program;
use crate::config::ClaudeCliConfig;
use crate::port::{Capabilities, Turn};
use crate::quote::Quoter;
use crate::wire::{Edges, Wire};

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
    fn program(&self) -> OsString {
        self.program.as_ref().map_or_else(|| OsString::from("claude"), |program| program.clone().into())
    }

    fn args(&self, turn: &Turn) -> Vec<OsString> {
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

    fn cwd(&self, turn: &Turn) -> PathBuf {
        turn.cwd.clone()
    }

    fn capabilities(&self) -> Capabilities {
        // Further arguments may let it change things.
        let read_only = self.args.is_empty();
        Capabilities { tools: false, structured_output: true, resume: false, read_only }
    }

    fn edges(&self) -> Edges {
        Edges::Kept
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(StreamJsonParser::new(answer_bytes, quoter))
    }
}
