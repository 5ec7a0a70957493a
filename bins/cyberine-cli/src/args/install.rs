//! The arguments of `cyberine install`.

use clap::Args;
use cyberine_install::{Host, Scope};

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// claude-code, claude-desktop, cursor, vscode, codex, gemini or zed.
    #[arg(value_parser = host)]
    pub(crate) host: Host,
    /// For whom: `user` (every project) or `project` (everyone in this one).
    #[arg(long, value_name = "WHOM", default_value = "user", value_parser = scope)]
    pub(crate) scope: Scope,
    /// Take the server out again.
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// Replace, or take out, an entry of the name that is something else.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print what belongs into the host's file, for pasting; writes nothing.
    #[arg(long, conflicts_with_all = ["uninstall", "force", "dry_run"])]
    pub(crate) print: bool,
    /// Show the change and do not make it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Have the host set CYBERINE_HOME to the home as it is now.
    #[arg(long)]
    pub(crate) pin_home: bool,
    /// Have the host set CYBERINE_PROJECT to the project as it is now.
    #[arg(long)]
    pub(crate) pin_project: bool,
    /// Arguments for the server, behind `--`.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) server_args: Vec<String>,
}

fn host(word: &str) -> Result<Host, String> {
    Host::ALL.into_iter().find(|host| host.word() == word).ok_or_else(|| {
        let known: Vec<&str> = Host::ALL.iter().map(|host| host.word()).collect();
        format!("the hosts are {}", known.join(", "))
    })
}

fn scope(word: &str) -> Result<Scope, String> {
    match word {
        "user" => Ok(Scope::User),
        "project" => Ok(Scope::Project),
        _ => Err("it is `user` or `project`".to_owned()),
    }
}
