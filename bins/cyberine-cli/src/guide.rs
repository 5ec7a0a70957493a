//! `cyberine guide`: what there is, and what to do first.

use crate::out::{Out, Style};

const COMMANDS: &[(&str, &str, &str)] = &[
    ("guide", "", "this map"),
    ("demo", "", "one orchestration without account or key, on what is found"),
    ("init", "[--home] [--force]", "write a configuration from what is found on this machine"),
    ("trust", "[DIR] [--yes]", "show what a project's configuration would do, and ask whether to allow it"),
    (
        "install",
        "HOST [--uninstall]",
        "register the server with an MCP host; shows the change, keeps a backup",
    ),
    (
        "doctor",
        "[providers [NAME…]] [--rebuild]",
        "check home, database, configuration; settle dead runs; `providers`: who lets us in",
    ),
    (
        "orchestrate",
        "PROMPT [--no-wait]",
        "ask every provider, judge the answers; MAY SPEND MONEY; --dry-run only tells",
    ),
    ("runs", "[QUERY] [--limit N]", "list runs of all projects, newest first"),
    ("inspect", "RUN [--wait]", "show a run: candidates, verdict, winner"),
    ("cancel", "RUN [--reason TEXT]", "ask a run to stop"),
    ("approve", "RUN [--step S]", "let a run that waits for you go on, or record that it is good"),
    ("reject", "RUN [--step S]", "stop a run that waits for you, or record that it is not good"),
    ("watch", "[RUN | --all]", "follow runs and messages as they happen; Ctrl-C ends it"),
    ("send", "TO TEXT [--steer]", "message run:ID, chat:ID, team:NAME, role:ROLE, mcp:ID, broadcast:ID"),
    ("inbox", "[ADDRESS | --chat ID]", "read messages, or see which mailboxes have unread ones"),
    ("team", "[--runs]", "who is live: servers, runs, chats"),
    ("judge", "selftest [--judge NAME]", "whether judges can be trusted, by built-in cases"),
    ("spend", "[--days N] [--prices]", "what was spent, what is held, what is left of each cap"),
    ("token", "new NAME [--write]", "a token for somebody who calls the server over HTTP"),
    ("schema", "", "the JSON Schema of cyberine.toml, for editors"),
];

const TOOLS: &[(&str, &str)] = &[
    ("orchestrate", "dispatch a prompt; answers with a run id at once; ask before calling: it may spend"),
    ("inspect_run", "how a run stands; waitMs waits up to 45 s for news"),
    ("query_runs", "find runs by what was asked, where, or how they ended"),
    ("cancel_run", "stop a run of this project"),
    ("approve_run, reject_run", "decide on a run of this project, or on one of its steps"),
    ("send_message", "write to a run or a chat; topic steer guides a running run"),
    ("send_to_team, send_to_role", "write to a team's mailbox, or to everybody live with a role"),
    ("poll_inbox", "read a mailbox from a cursor; takes nothing away"),
    ("list_team", "who is live, and what their runs do"),
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
        let commands =
            COMMANDS.iter().map(|&(name, arguments, does)| Entry { name, arguments, does }).collect();
        let tools = TOOLS.iter().flat_map(|&(names, does)| {
            names.split(", ").map(move |name| Entry { name, arguments: "", does })
        });
        let tools = tools.collect();
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
        out.line(format_args!("  {:<38}  {does}", format!("{name} {arguments}")));
    }
    out.line("  Every command takes --project DIR, and --json where it prints data.");
    out.line("  Whether a run waits for you before its answers are judged, `[orchestrate] approval` says.");
    out.line("");
    out.line(out.paint(Style::Strong, "Tools of the MCP server `cyberine-mcp`"));
    for (name, does) in TOOLS {
        out.line(format_args!("  {name:<38}  {does}"));
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
        let mut named: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
        known.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, known);
    }
}
