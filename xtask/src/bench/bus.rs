//! Mail and presence beside the least that they can cost: examples of the crates themselves, since
//! the chores depend on none of them.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::proc;

/// The measuring programs: crate and example. Each prints its table.
const PARTS: &[(&str, &str)] = &[("cyberine-bus", "bus_bench"), ("cyberine-presence", "roster_bench")];

const BUILD: Duration = Duration::from_secs(1500);
const MEASURE: Duration = Duration::from_secs(600);

pub(crate) fn run() -> Result<()> {
    for (package, example) in PARTS {
        let mut build = proc::cargo();
        build.args(["build", "--quiet", "--release", "-p", package, "--example", example]);
        proc::run(&mut build, BUILD)?;
        println!("== {package} ==");
        proc::run(&mut Command::new(super::release_dir()?.join("examples").join(example)), MEASURE)?;
    }
    Ok(())
}
