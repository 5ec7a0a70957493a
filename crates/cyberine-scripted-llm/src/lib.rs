//! Answers from a script, over the wires of real models. No model is called.
//!
//! The crate owns a loopback server that speaks OpenAI chat completions and Responses, Anthropic
//! Messages, Gemini and Ollama, a program that answers a prompt on its standard input, and the script
//! both answer from: ordered rules with texts, judges, holds and faults. It must never pass for a
//! model: every model id is `scripted/<name>`, every response carries `x-scripted: no model was
//! called`, and its usage costs nothing. It depends on no other crate of this workspace, so that what
//! it checks cannot lean on what it is checked with.
//!
//! ```
//! use cyberine_scripted_llm::{Script, ScriptedServer};
//!
//! let server = ScriptedServer::start(Script::parse("[[rule]]\nhold = 'gate'\ntext = 'hello'")?)?;
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! // … three clients ask; once `server.wait(…, |state| state.held.len() == 3)` says so:
//! server.release("gate");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod body;
mod call;
mod cli;
mod control;
mod deliver;
mod judge;
mod program;
mod route;
mod script;
mod seed;
mod serve;
mod server;
mod wire;

pub use cli::run;
pub use control::{Held, Phase, Seen, State};
pub use script::{
    Escape, Fault, JudgeKind, Pattern, Program, Rule, Script, ScriptError, Stop, Texts, Tokens, ToolUse,
    UsageFault, UsageSpec, When,
};
pub use server::{ScriptedServer, StartError};

/// What is said wherever a scripted answer might pass for a model's.
pub const LABEL: &str = "scripted answers, no model was called";
