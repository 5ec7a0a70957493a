//! `cargo xtask demo`: the main job, without an account or a key.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::{local_llm, proc};

/// `[--real] [QUESTION ...]`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (real_model, question) = match words {
        ["--real", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let bins = proc::build_binaries()?;
    if real_model {
        return with_real_model(&bins, question);
    }
    proc::run(demo(&bins).args(question), Duration::from_secs(600))
}

/// The demo on the small real model, with the question it ships with; says so and is content
/// where the model cannot be had.
pub(crate) fn real() -> Result<()> {
    match with_real_model(&proc::build_binaries()?, &[]) {
        Err(error) if error.is::<local_llm::Unavailable>() => {
            println!("real model: skipped: {error:#}");
            Ok(())
        }
        outcome => outcome,
    }
}

fn demo(bins: &Path) -> Command {
    let mut command = Command::new(bins.join("cyberine"));
    command.arg("demo");
    command
}

fn with_real_model(bins: &Path, question: &[&str]) -> Result<()> {
    let model = local_llm::up()?;
    let mut command = demo(bins);
    command.args(["--base-url", &model.base_url, "--label", "SmolLM2-135M via llama.cpp"]).args(question);
    proc::run(&mut command, Duration::from_secs(600))
}
