//! `cyberine`: the command line of the human behind the runs.

mod args;
mod commands;
mod draft;
mod follow;
mod guide;
mod live;
mod out;
mod plain;
mod report;
mod scripted;
mod table;

use std::process::ExitCode;

use clap::Parser;
use cyberine_app::{Environment, Invocation, run_runner};

fn main() -> ExitCode {
    if let Some(run) = Invocation::runner_of_process() {
        return run_runner(run);
    }
    let cli = args::Cli::parse();
    let environment = Environment::read();
    cyberine_app::start_telemetry(&environment);
    let out = out::Out::new(if cli.json { out::Format::Json } else { out::Format::Text }, &environment);
    match cyberine_app::block_on(commands::run(cli, environment, &out)).and_then(|ended| ended) {
        Ok(exit) => exit.into(),
        Err(problem) => {
            out.problem(&problem);
            problem.exit.into()
        }
    }
}
