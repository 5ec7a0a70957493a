//! The command line.

mod install;
mod judge;
mod mail;
mod token;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cyberine_app::Exit;

pub(crate) use install::Install;
pub(crate) use judge::{Judge, JudgeCommand, Selftest};
pub(crate) use mail::{Decide, Importance, Inbox, Send, Team, Watch};
pub(crate) use token::{NewToken, Token, TokenCommand};

/// What the demo asks unless told otherwise: a question with one right answer.
pub(crate) const DEMO_PROMPT: &str =
    "How many minutes are there in a week? End with one line: Final answer: the number.";

/// Puts one prompt to several providers and judges their answers; shows and stops runs.
#[derive(Debug, Parser)]
#[command(name = "cyberine", version, after_help = Exit::TABLE, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The project's directory (else CYBERINE_PROJECT, else the working directory).
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,

    /// Print one JSON document for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The map of all commands, and what to do first.
    Guide,
    /// Run one orchestration without account or key, on what is found.
    Demo(Demo),
    /// Write a commented configuration from what is found on this machine.
    Init(Init),
    /// Show what a project's configuration would do, and ask whether to allow it.
    Trust(TrustArgs),
    /// Register the server with an MCP host: shows the change, and makes it with a backup. Claude Code's
    /// own command makes it where that is on the PATH.
    Install(Install),
    /// Check the home, the database, the configuration and the providers.
    Doctor(Doctor),
    /// Put one prompt to every configured provider and judge the answers. May spend money.
    Orchestrate(Orchestrate),
    /// List runs of all projects, newest first.
    Runs(Runs),
    /// Show a run: candidates, verdict, winner.
    Inspect(Inspect),
    /// Ask a run to stop.
    Cancel(Cancel),
    /// Let a run that waits for you go on; or record that you find it good.
    Approve(Decide),
    /// Stop a run that waits for you; or record that you do not find it good.
    Reject(Decide),
    /// Follow runs and messages in one terminal, until interrupted.
    Watch(Watch),
    /// Send a message to a run, a chat, a team or a role.
    Send(Send),
    /// Read messages; reading takes none away.
    Inbox(Inbox),
    /// Who is live: servers, runs, chats.
    Team(Team),
    /// What was spent and is held, by day, provider and caller; what is left of each cap.
    Spend(Spend),
    /// Examine the judges: whom can you trust with a verdict?
    Judge(Judge),
    /// Tokens of those who call over HTTP.
    Token(Token),
    /// Print the JSON Schema of `cyberine.toml`, for editors.
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The scripted provider program, where it is not installed beside this one.
    #[arg(long, value_name = "PATH", conflicts_with = "base_url")]
    pub(crate) scripted: Option<PathBuf>,
    /// A model server that speaks both the OpenAI and the Anthropic wire.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What to call that server.
    #[arg(long, value_name = "TEXT", requires = "base_url", conflicts_with = "scripted")]
    pub(crate) label: Option<String>,
    /// What to ask.
    #[arg(default_value = DEMO_PROMPT)]
    pub(crate) prompt: String,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write the home's configuration, which holds in every project.
    #[arg(long)]
    pub(crate) home: bool,
    /// Overwrite what is there.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project (else --project, else the working directory).
    pub(crate) dir: Option<PathBuf>,
    /// Allow it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Doctor {
    /// Build a lost database again from the files in the projects.
    #[arg(long)]
    pub(crate) rebuild: bool,
    #[command(subcommand)]
    pub(crate) part: Option<DoctorPart>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DoctorPart {
    /// Look at each provider: is it there, does it let us in, is its version known to work? Calls no
    /// model, unless --spend.
    Providers(DoctorProviders),
}

#[derive(Debug, Args)]
pub(crate) struct DoctorProviders {
    /// The providers to look at, by name (else all).
    pub(crate) names: Vec<String>,
    /// Put one short question to each of them, too. This can cost money; it counts under the budget.
    #[arg(long)]
    pub(crate) spend: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Orchestrate {
    /// The prompt; `-` reads it from stdin.
    pub(crate) prompt: String,
    /// Return as soon as the run is on record.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Only tell who would be asked, what it may cost and what is left of each cap.
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Spend {
    /// How many days, today among them, by UTC.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// Show what each provider's tokens cost instead, and who says so.
    #[arg(long)]
    pub(crate) prices: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Only runs whose prompt, workflow, directory, state, id or winner contains this. How the
    /// judges decided is not searched.
    #[arg(default_value = "")]
    pub(crate) query: String,
    /// How many to list.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The run's id, or the beginning of it.
    pub(crate) run: String,
    /// Wait until the run is over.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run's id, or the beginning of it.
    pub(crate) run: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_holds_together_and_tells_of_exit_codes() {
        Cli::command().debug_assert();
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("78  the configuration is wrong"), "{help}");
    }
}
