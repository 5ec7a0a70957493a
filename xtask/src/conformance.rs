//! `cargo xtask conformance`: the official conformance suite against the fixtures, over HTTP and over
//! stdio, and against the real server. Nothing is expected to fail.

mod checks;
mod legs;
mod subject;
mod suite;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use self::checks::Scenario;
use self::legs::{LEGS, Leg};
use self::subject::Subjects;
use self::suite::Suite;
use crate::proc::Scratch;

/// How many faults of one scenario are printed.
const SHOWN: usize = 5;

/// What was asked for.
struct Wish<'a> {
    /// Names of legs or beginnings of such; none means all.
    only: Vec<&'a str>,
    /// Where the suite's results stay.
    keep: Option<PathBuf>,
    /// A server that already runs, in the place of the fixture over HTTP.
    url: Option<&'a str>,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if words == ["list"] {
        for leg in LEGS {
            println!("{:<22} {:>2} scenarios", leg.name, leg.scenarios);
        }
        return Ok(());
    }
    let wish = Wish::read(words)?;
    let legs: Vec<&Leg> = LEGS.iter().filter(|leg| wish.takes(leg)).collect();
    ensure!(!legs.is_empty(), "there is no such leg; `cargo xtask conformance list` names them");
    let suite = Suite::install()?;
    let mut subjects = Subjects::new(wish.url);
    let scratch = Scratch::new("conformance")?;
    let out = wish.keep.as_deref().unwrap_or(scratch.path());
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for leg in legs {
        let start = Instant::now();
        let scenarios = subjects
            .get(leg.subject)
            .and_then(|subject| suite.run(leg, &subject, &fresh(&out.join(leg.name))?));
        let scenarios = scenarios.unwrap_or_else(|error| vec![checks::fault("(all)", format!("{error:#}"))]);
        for Scenario { name, faults, .. } in &scenarios {
            for fault in faults.iter().take(SHOWN) {
                println!("{} {name}: {fault}", leg.name);
            }
            if faults.len() > SHOWN {
                println!("{} {name}: and {} more", leg.name, faults.len() - SHOWN);
            }
        }
        if scenarios.iter().any(|scenario| !scenario.faults.is_empty()) {
            failed.push(leg.name);
        }
        rows.push(row(leg, &scenarios, start.elapsed().as_secs_f64()));
    }
    println!("\n| leg | good scenarios | of them scored | checks passed | reference | s |");
    println!("|---|---|---|---|---|---|\n{}", rows.join("\n"));
    ensure!(failed.is_empty(), "not conformant: {}", failed.join(", "));
    Ok(())
}

impl<'a> Wish<'a> {
    fn read(words: &[&'a str]) -> Result<Self> {
        let mut wish = Self { only: Vec::new(), keep: None, url: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("`{word}` wants a value"))?;
            match *word {
                "--only" => wish.only.push(value),
                "--keep" => wish.keep = Some(std::path::absolute(value)?),
                "--url" => wish.url = Some(value),
                _ => bail!("`{word}` is unknown: --only LEG, --keep DIR, --url URL"),
            }
        }
        Ok(wish)
    }

    fn takes(&self, leg: &Leg) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| leg.name.starts_with(only))
    }
}

/// An empty directory.
fn fresh(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("emptying {}", path.display()))?;
    }
    std::fs::create_dir_all(path)?;
    Ok(path.to_path_buf())
}

fn row(leg: &Leg, scenarios: &[Scenario], seconds: f64) -> String {
    let good: Vec<&Scenario> = scenarios.iter().filter(|scenario| scenario.faults.is_empty()).collect();
    let scored = good.iter().filter(|scenario| legs::scored(&scenario.name)).count();
    let checks: usize = good.iter().map(|scenario| scenario.passed).sum();
    format!(
        "| {} | {}/{} | {scored} | {checks} | {} | {seconds:.1} |",
        leg.name,
        good.len(),
        leg.scenarios,
        leg.reference,
    )
}
