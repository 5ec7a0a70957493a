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

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser;
use cyberine_app::{Environment, Exit, Invocation, Problem, run_runner};

use crate::out::{Format, Out};

fn main() -> ExitCode {
    if let Some(run) = Invocation::runner_of_process() {
        return run_runner(run);
    }
    let environment = Environment::read();
    cyberine_app::start_telemetry(&environment);
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, &environment).into(),
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

/// Says what was asked for in place of a command (help, version), or what is wrong with the
/// command line: in words, and as a document where the command line asks for one.
fn not_understood(error: &clap::Error, environment: &Environment) -> Exit {
    let text = error.render().to_string();
    if !error.use_stderr() {
        let out = Out::new(Format::Text, environment);
        out.raw(&text);
        return out.end(Exit::Done);
    }
    let mut arguments = std::env::args_os().skip(1).take_while(|argument| argument != OsStr::new("--"));
    if arguments.any(|argument| argument == OsStr::new("--json")) {
        let out = Out::new(Format::Json, environment);
        out.document_of(&Problem::new(Exit::Usage, text.trim_start_matches("error: ").trim_end()));
        out.end(Exit::Usage);
    }
    // Nobody is left to tell where stderr fails.
    let _ = error.print();
    Exit::Usage
}
