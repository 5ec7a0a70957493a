//! The arguments of `cyberine judge`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Judge {
    #[command(subcommand)]
    pub(crate) command: JudgeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JudgeCommand {
    /// Put built-in cases to the judges and show whether they can be trusted. May spend money.
    Selftest(Selftest),
}

#[derive(Debug, Args)]
pub(crate) struct Selftest {
    /// The judge to examine, by name; may be repeated (else all that may judge).
    #[arg(long = "judge", value_name = "NAME")]
    pub(crate) judges: Vec<String>,
    /// At most so many cases of each group (else all: 8, 12, 4 and 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cases: Option<u32>,
    /// Do not ask, whatever it may cost.
    #[arg(long)]
    pub(crate) yes: bool,
}
