//! An MCP server of fixture tools over stdio, for benches and interop: what the rail costs and
//! does, without a product behind it. `--token TEXT` puts it behind a gate.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "fixture tools fail and print on purpose"
)]

use std::process::ExitCode;
use std::sync::Arc;

use cyberine_server::{Gate, SealKey, Server, StdioGuard};
use cyberine_types::{Identity, Secret};
use tokio_util::sync::CancellationToken;

#[path = "../tests/it/fixture.rs"]
mod fixture;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(70),
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let stdio = StdioGuard::take()?;
    let mut arguments = std::env::args().skip(1);
    let token =
        arguments.next().filter(|flag| flag == "--token").and_then(|_| arguments.next()).map(Secret::new);
    let things = fixture::Things::default();
    let tools = Arc::new(Gate::new(fixture::FixtureTools::new(&things), token.clone()));
    let resources = Arc::new(Gate::new(fixture::FixtureResources::new(&things), token));
    let identity = Identity::local(std::env::var("USER").unwrap_or_default());
    let server =
        Server::new("fixture", "0.1.0", tools, identity, SealKey::random()?).with_resources(resources);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let serving = Arc::new(server).serve_stdio(stdio, stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            ended = &mut serving => return ended.map(drop),
            _ = terminate.recv() => stop.cancel(),
        }
        serving.await.map(drop)
    });
    // What a handler left in a blocking thread does not hold up the end.
    runtime.shutdown_background();
    ended?;
    Ok(())
}
