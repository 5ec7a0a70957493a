//! Any agent that speaks the Agent Client Protocol, and the one-shot forms of two of them.

mod gemini;
mod message;
mod opencode;
mod parser;
mod permission;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cyberine_types::Billing;

pub(crate) use self::gemini::GeminiParser;
pub(crate) use self::opencode::OpencodeParser;
pub(crate) use self::parser::{AcpParser, Opening};
use crate::build::names_secret;
use crate::child_provider::{Input, Program};
use crate::command::split;
use crate::config::{AcpConfig, AcpForm, Check, ConfigError, Profile};
use crate::covered::Covered;
use crate::port::{Capabilities, Turn};
use crate::prompt;
use crate::quote::Quoter;
use crate::wire::Wire;

/// What the agents that are known look at, and no other: one process instead of two, and nothing
/// of the user's project that could run, ask or leave a trace.
const FIXED_ENV: &[(&str, &str)] = &[
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true"),
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "true"),
    ("OPENCODE_DISABLE_SHARE", "true"),
    ("OPENCODE_PERMISSION", permission::OPENCODE),
];

/// Arguments that make an agent speak the protocol.
const PROTOCOL_ARGS: &[&str] = &["acp", "--acp", "--experimental-acp"];

impl AcpConfig {
    /// As configured, else as the command has it: Gemini CLI and opencode that are not told to speak the
    /// protocol answer one shot.
    fn form(&self) -> AcpForm {
        self.form.unwrap_or_else(|| {
            let (program, args) = split(&self.command);
            let protocol = args.iter().any(|arg| PROTOCOL_ARGS.contains(&arg.as_str()));
            match program.file_stem().and_then(OsStr::to_str).filter(|_| !protocol) {
                Some("gemini") => AcpForm::Gemini,
                Some("opencode") => AcpForm::Opencode,
                _ => AcpForm::Acp,
            }
        })
    }

    /// The arguments that the configuration gives, without those that choose a form where it is ours
    /// to choose.
    fn given_args(&self) -> impl Iterator<Item = &String> {
        let ours = self.form() != AcpForm::Acp;
        split(&self.command).1.iter().filter(move |arg| !(ours && PROTOCOL_ARGS.contains(&arg.as_str())))
    }
}

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

    fn fixed_env(&self) -> &'static [(&'static str, &'static str)] {
        FIXED_ENV
    }

    fn version_args(&self) -> Option<&'static [&'static str]> {
        // Any other program could take the word for a prompt, and work.
        let known = Covered::of("acp", split(&self.command).0);
        known.map(|_| &["--version"] as &'static [&'static str])
    }

    fn args(&self, _turn: &Turn, _scratch: &Path) -> Vec<OsString> {
        let ours: &[&str] = match self.form() {
            AcpForm::Acp => &[],
            AcpForm::Gemini => &["--output-format=stream-json", "--skip-trust"],
            AcpForm::Opencode => &["run", "--format=json"],
        };
        // `--flag=value`, so that a value cannot become a flag.
        let model = self.model.iter().filter(|_| self.form() != AcpForm::Acp);
        let model = model.map(|model| format!("--model={model}").into());
        let given = self.given_args().map(OsString::from);
        // It takes one word about what it may do, and the user's settings are not it.
        let chosen =
            self.given_args().any(|arg| arg.starts_with("--approval-mode") || arg == "--yolo" || arg == "-y");
        let careful = (self.form() == AcpForm::Gemini && !chosen).then(|| "--approval-mode=default".into());
        given.chain(ours.iter().map(OsString::from)).chain(careful).chain(model).collect()
    }

    fn input(&self, turn: &Turn) -> Input {
        match self.form() {
            AcpForm::Acp => Input::Dialogue,
            AcpForm::Gemini | AcpForm::Opencode => Input::Text(prompt::render(&turn.messages)),
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn wire(&self, turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        match self.form() {
            AcpForm::Acp => {
                let cwd = self.cwd.as_ref().map_or_else(|| turn.cwd.clone(), |cwd| turn.cwd.join(cwd));
                let named = self.model.as_ref();
                let opening = Opening {
                    cwd: cwd.to_string_lossy().into_owned(),
                    prompt: prompt::render(&turn.messages),
                    model: self.model.clone(),
                    model_given: named.is_some_and(|model| self.given_args().any(|arg| arg.contains(model))),
                };
                Box::new(AcpParser::new(opening, answer_bytes, quoter))
            }
            AcpForm::Gemini => Box::new(GeminiParser::new(answer_bytes, quoter)),
            AcpForm::Opencode => Box::new(OpencodeParser::new(answer_bytes, quoter)),
        }
    }
}
