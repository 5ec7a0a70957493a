//! `cyberine-mcp`: the server that MCP hosts spawn, and the runner of every run.

use std::process::ExitCode;

use cyberine_app::{Exit, Invocation, StdioGuard, run_guardian, run_runner, say, serve_http, serve_stdio};

fn main() -> ExitCode {
    match Invocation::of_process() {
        // Nothing may print before the guard holds the host's stream.
        Ok(Invocation::Serve(options)) => match StdioGuard::take() {
            Ok(stdio) => serve_stdio(stdio, &options),
            Err(error) => {
                say(Exit::Internal, &format!("cyberine-mcp: no stdin or stdout to serve on: {error}\n"))
            }
        },
        Ok(Invocation::ServeHttp(address, options)) => serve_http(address, &options),
        Ok(Invocation::Run(id)) => run_runner(id),
        Ok(Invocation::Guard(id)) => run_guardian(id),
        Ok(Invocation::Say(text)) => say(Exit::Done, &text),
        Err(error) => say(Exit::Usage, &format!("cyberine-mcp: {error}\n")),
    }
}
