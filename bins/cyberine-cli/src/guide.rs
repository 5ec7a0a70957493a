//! `cyberine guide`: what there is, and what to do first.

use crate::out::{Out, Style};

const COMMANDS: [(&str, &str, &str); 9] = [
    ("guide", "", "this map"),
    ("demo", "", "one orchestration without account or key, on what is found"),
    ("init", "[--home] [--force]", "write a configuration from what is found on this machine"),
    ("trust", "[DIR] [--yes]", "show what a project's configuration would do, and ask whether to allow it"),
    ("doctor", "[--rebuild]", "check home, database, configuration, providers; settle dead runs"),
    ("orchestrate", "PROMPT [--no-wait]", "ask every provider, judge the answers; MAY SPEND MONEY"),
    ("runs", "[QUERY] [--limit N]", "list runs of all projects, newest first"),
    ("inspect", "RUN [--wait]", "show a run: candidates, verdict, winner"),
    ("cancel", "RUN [--reason TEXT]", "ask a run to stop"),
];

const TOOLS: [(&str, &str); 4] = [
    ("orchestrate", "dispatch a prompt; answers with a run id at once; ask before calling: it may spend"),
    ("inspect_run", "how a run stands; waitMs waits up to 45 s for news"),
    ("query_runs", "find runs by what was asked, where, or how they ended"),
    ("cancel_run", "stop a run of this project"),
];

#[derive(serde::Serialize)]
struct Map {
    commands: Vec<Entry>,
    tools: Vec<Entry>,
}

#[derive(serde::Serialize)]
struct Entry {
    name: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    arguments: &'static str,
    does: &'static str,
}

/// Prints the map.
pub(crate) fn run(out: &Out) {
    if out.is_json() {
        let commands = COMMANDS.map(|(name, arguments, does)| Entry { name, arguments, does }).into();
        let tools = TOOLS.map(|(name, does)| Entry { name, arguments: "", does }).into();
        return out.json(&Map { commands, tools });
    }
    out.line("Cyberine puts one prompt to several models or agents at once and judges their answers.");
    out.line("");
    out.line(out.paint(Style::Strong, "First"));
    for line in [
        "  1. cyberine demo      see a run from end to end",
        "  2. cyberine init      write cyberine.toml; then `cyberine trust` (it asks), `cyberine doctor`",
        "  3. cyberine orchestrate \"…\"",
    ] {
        out.line(line);
    }
    out.line("");
    out.line(out.paint(Style::Strong, "Commands"));
    for (name, arguments, does) in COMMANDS {
        out.line(format_args!("  {:<32}{does}", format!("{name} {arguments}")));
    }
    out.line("  Every command takes --project DIR, and --json where it prints data.");
    out.line("");
    out.line(out.paint(Style::Strong, "Tools of the MCP server `cyberine-mcp`"));
    for (name, does) in TOOLS {
        out.line(format_args!("  {name:<32}{does}"));
    }
    out.line("  Resource: cyberine://runs/{runId}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_map_names_every_command_and_no_other() {
        let command = Cli::command();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut named = COMMANDS.map(|(name, ..)| name).to_vec();
        known.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, known);
    }
}
