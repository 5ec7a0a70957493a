//! Aider, one message a process. It is asked, never let edit: its `ask` mode answers and touches no
//! file, and it works in a directory of the turn's own, where neither a project's files nor its
//! settings are and what it leaves goes with the turn.

mod parser;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;

pub(crate) use self::parser::AiderParser;
use crate::child_provider::{Input, Program};
use crate::config::{AiderConfig, Check, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::prompt;
use crate::quote::Quoter;
use crate::wire::Wire;

/// The file that holds the prompt.
const MESSAGE: &str = "message.md";

/// One answer as plain text, without a question to a person, an edit, a command, a page it fetches
/// or a word home.
const BASE: &[&str] = &[
    "--chat-mode=ask",
    "--yes-always",
    "--no-pretty",
    "--no-stream",
    "--no-fancy-input",
    "--no-git",
    "--map-tokens=0",
    "--no-suggest-shell-commands",
    "--no-detect-urls",
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--analytics-disable",
];

/// It breaks lines at the width of a terminal, and knows none.
const FIXED_ENV: &[(&str, &str)] = &[("COLUMNS", "1000000")];

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

    fn fixed_env(&self) -> &'static [(&'static str, &'static str)] {
        FIXED_ENV
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        Some(&["--version"])
    }

    fn args(&self, _turn: &Turn, scratch: &Path) -> Vec<OsString> {
        let mut message = OsString::from("--message-file=");
        message.push(scratch.join(MESSAGE));
        let base = BASE.iter().map(OsString::from).chain([message]);
        let model = self.model.iter().map(|model| format!("--model={model}").into());
        base.chain(model).chain(self.args.iter().map(OsString::from)).collect()
    }

    fn files(&self, turn: &Turn) -> Vec<(&'static str, String)> {
        vec![(MESSAGE, prompt::render(&turn.messages))]
    }

    fn works_apart(&self) -> bool {
        true
    }

    fn input(&self, _turn: &Turn) -> Input {
        Input::Text(String::new())
    }

    fn capabilities(&self) -> Capabilities {
        // Further arguments may let it change things.
        Capabilities { read_only: self.args.is_empty(), ..Capabilities::default() }
    }

    fn wire(&self, _turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(AiderParser::new(answer_bytes, quoter))
    }
}
