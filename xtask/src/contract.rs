//! `cargo xtask contract --real`: the contract of the providers over a small real model, whose server
//! knows nothing of this project.

use std::time::Duration;

use anyhow::Result;

use crate::{local_llm, proc};

/// The test is built, and three wires are talked to at the pace of one busy core.
const LIMIT: Duration = Duration::from_secs(900);

/// Says so and is content where the model cannot be had.
pub(crate) fn real() -> Result<()> {
    match over_real_model() {
        Err(error) if error.is::<local_llm::Unavailable>() => {
            println!("contract: skipped: {error:#}");
            Ok(())
        }
        outcome => outcome,
    }
}

fn over_real_model() -> Result<()> {
    let model = local_llm::up_steady()?;
    let mut command = proc::cargo();
    command.env("CYBERINE_REAL_MODEL", &model.base_url);
    // With the features of the whole workspace, so that nothing is built a second time.
    command.args(["test", "--quiet", "--workspace", "--all-features", "--test", "it", "--"]);
    command.args(["--ignored", "--nocapture", "a_real_model_keeps_the_contract"]);
    proc::run(&mut command, LIMIT)
}
