//! Codex, headless, one process a turn: `codex exec`, or a dialogue with `codex app-server`.

mod app_server;
mod failure;
mod item;
mod parser;

use std::ffi::OsString;
use std::path::Path;

use cyberine_types::Billing;
use serde_json::Value;

pub(crate) use self::app_server::{AppServerParser, Opening};
pub(crate) use self::parser::ExecParser;
use crate::child::Home;
use crate::child_provider::{Input, Program};
use crate::config::{Check, CodexCliConfig, CodexForm, ConfigError, Profile};
use crate::port::{Capabilities, Turn};
use crate::prompt;
use crate::quote::Quoter;
use crate::schema;
use crate::wire::Wire;

/// The variable from which `codex exec` takes a key to pay with.
const CODEX_KEY: &str = "CODEX_API_KEY";

/// The file with the schema that the answer is held to.
const SCHEMA: &str = "schema.json";

/// The key is for the service; a command of the model's has no use for it.
const KEY_KEPT: &str = "--config=shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]";

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
    KEY_KEPT,
];

/// A dialogue, without what the account or the project would add to it, and without agents whose use
/// nobody counts. The rest of the user's is not there: the turn has a home of its own.
const APP_SERVER: &[&str] = &[
    "app-server",
    KEY_KEPT,
    "--config=features.apps=false",
    "--config=features.hooks=false",
    "--config=features.multi_agent=false",
    "--config=features.plugins=false",
    "--config=skills.include_instructions=false",
    "--config=analytics.enabled=false",
];

/// `app-server` takes a key from a login only, or for a provider that names the variable: this one is
/// its maker's service once more.
const WITH_KEY: &[&str] = &[
    "--config=model_provider=\"cyberine\"",
    "--config=model_providers.cyberine={name=\"OpenAI\",base_url=\"https://api.openai.com/v1\",wire_api=\"responses\",env_key=\"CODEX_API_KEY\"}",
];

/// The schema in the form the service enforces; `None` where it would enforce nothing.
fn enforceable(turn: &Turn) -> Option<Value> {
    turn.output_schema.as_ref().map(schema::enforced).filter(schema::is_total)
}

impl CodexCliConfig {
    fn is_dialogue(&self) -> bool {
        self.form == Some(CodexForm::AppServer)
    }
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

    fn home(&self) -> Option<Home> {
        let login = self.api_key_env.is_none().then_some("auth.json");
        self.is_dialogue().then_some(Home { variable: "CODEX_HOME", usual: ".codex", login })
    }

    fn input(&self, turn: &Turn) -> Input {
        if self.is_dialogue() { Input::Dialogue } else { Input::Text(prompt::render(&turn.messages)) }
    }

    fn files(&self, turn: &Turn) -> Vec<(&'static str, String)> {
        let schema = enforceable(turn).filter(|_| !self.is_dialogue());
        schema.map(|schema| (SCHEMA, schema.to_string())).into_iter().collect()
    }

    fn args(&self, turn: &Turn, scratch: &Path) -> Vec<OsString> {
        if self.is_dialogue() {
            let key = if self.api_key_env.is_some() { WITH_KEY } else { &[] };
            let ours = APP_SERVER.iter().chain(key).map(OsString::from);
            return ours.chain(self.args.iter().map(OsString::from)).collect();
        }
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

    fn wire(&self, turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        if self.is_dialogue() {
            let opening = Opening {
                cwd: turn.cwd.to_string_lossy().into_owned(),
                prompt: prompt::render(&turn.messages),
                model: self.model.clone(),
                schema: enforceable(turn),
            };
            return Box::new(AppServerParser::new(opening, answer_bytes, quoter));
        }
        Box::new(ExecParser::new(answer_bytes, quoter))
    }
}
