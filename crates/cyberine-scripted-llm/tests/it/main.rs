//! The server over real connections and the program as a real process.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and starts the program it tests, which nothing else owns"
)]

mod client;
mod faults;
mod holds;
mod programs;
mod wires;

use std::time::Duration;

use cyberine_scripted_llm::{Script, ScriptedServer};

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(20);

fn serve(script: &str) -> ScriptedServer {
    ScriptedServer::start(Script::parse(script).unwrap()).unwrap()
}
