//! The fixture of the official conformance suite: an MCP server with the tools, resources, prompts and
//! tasks its scenarios name, of every revision at once.
//!
//! `--port N` serves Streamable HTTP on the loopback address and prints the URL; 0 takes any free port.
//! `--stdio` serves standard input and output.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that says where it is, and what is wrong"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cyberine_http::identity::{Door, Fixed};
use cyberine_http::{HttpServer, Settings};
use cyberine_protocol::model::ResourceContents;
use cyberine_server::{ContentBlock, ListSignal, ResourceBody, SealKey, Server, StdioGuard};
use cyberine_types::Identity;
use tokio_util::sync::CancellationToken;

mod prompts;
mod questions;
mod resources;
mod tasks;
mod tools;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// Below the time that `test_reconnection` takes, and above that of every other tool of a session.
const STREAM_LIFETIME: Duration = Duration::from_secs(2);

/// When an answer that is not there becomes a stream.
const QUIET: Duration = Duration::from_millis(500);

type Failure = Box<dyn std::error::Error>;

enum Wire {
    Http(u16),
    Stdio,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wire = match words[..] {
        ["--stdio"] => Some(Wire::Stdio),
        ["--port", port] => port.parse().ok().map(Wire::Http),
        _ => None,
    };
    let Some(wire) = wire else {
        eprintln!("usage: conformance_server --port N | --stdio");
        return ExitCode::from(2);
    };
    match serve(&wire) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance_server: {error}");
            ExitCode::from(70)
        }
    }
}

fn serve(wire: &Wire) -> Result<(), Failure> {
    // Before there is a thread that could print.
    let stdio = match wire {
        Wire::Stdio => Some(StdioGuard::take()?),
        Wire::Http(_) => None,
    };
    let server = Arc::new(server()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let serving = async {
            match (wire, stdio) {
                (Wire::Http(port), _) => over_http(server, *port, stop.clone()).await,
                (Wire::Stdio, Some(stdio)) => Ok(server.serve_stdio(stdio, stop.clone()).await.map(drop)?),
                (Wire::Stdio, None) => Ok(()),
            }
        };
        tokio::pin!(serving);
        tokio::select! {
            ended = &mut serving => return ended,
            _ = terminate.recv() => stop.cancel(),
        }
        serving.await
    })
}

async fn over_http(server: Arc<Server>, port: u16, stop: CancellationToken) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let settings = Settings { stream_lifetime: Some(STREAM_LIFETIME), quiet: QUIET, ..Settings::default() };
    println!("http://{}{}", listener.local_addr()?, settings.path);
    let door = Door::new(Arc::new(Fixed::new(identity())));
    HttpServer::new(server, door, settings)?.serve(listener, stop).await;
    Ok(())
}

fn identity() -> Identity {
    Identity::local("conformance")
}

fn server() -> Result<Server, Failure> {
    let tasks = Arc::new(tasks::Tasks::default());
    let prompt_changes = ListSignal::new();
    let tools = Arc::new(tools::Tools::new(Arc::clone(&tasks), prompt_changes.clone()));
    let version = env!("CARGO_PKG_VERSION");
    let server = Server::new("cyberine-conformance", version, tools, identity(), SealKey::random()?);
    Ok(server
        .with_resources(Arc::new(resources::Resources))
        .with_prompts(Arc::new(prompts::Prompts::new(prompt_changes)))
        .with_completions(Arc::new(prompts::Completions))
        .with_tasks(tasks)
        .with_logging())
}

fn image() -> ContentBlock {
    ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned(), annotations: None }
}

fn embedded(uri: &str, mime_type: &str, body: ResourceBody) -> ContentBlock {
    let (uri, mime_type) = (uri.to_owned(), Some(mime_type.to_owned()));
    let contents = ResourceContents { uri, mime_type, body, meta: serde_json::Map::new() };
    ContentBlock::Embedded { contents, annotations: None }
}
