//! Answers from a script. No model is called.

use std::process::ExitCode;

fn main() -> ExitCode {
    cyberine_scripted_llm::run(std::env::args_os().skip(1))
}
