//! `cyberine`: the command line of the human behind the runs.

mod args;
mod commands;
mod decision;
mod draft;
mod follow;
mod guide;
mod human;
mod input;
mod live;
mod mail;
mod message;
mod out;
mod plain;
mod report;
mod scripted;
mod table;
mod target;
mod unparsed;
mod waiting;

use std::process::ExitCode;

use clap::Parser as _;
use cyberine_app::{Environment, Invocation, run_guardian, run_runner};

use crate::out::{Format, Out};

fn main() -> ExitCode {
    match Invocation::internal_of_process() {
        Some(Invocation::Run(run)) => return run_runner(run),
        Some(Invocation::Guard(run)) => return run_guardian(run),
        _ => {}
    }
    let environment = Environment::read();
    cyberine_app::start_telemetry(&environment);
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed::say(&error, &environment).into(),
    };
    let out = Out::new(if cli.json { Format::Json } else { Format::Text }, &environment);
    let ended = match cyberine_app::block_on(commands::run(cli, environment, &out)).and_then(|ended| ended) {
        Ok(exit) => exit,
        Err(problem) => {
            out.problem(&problem);
            problem.exit
        }
    };
    out.end(ended).into()
}
