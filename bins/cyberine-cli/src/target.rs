//! Mailboxes as people spell them.

use cyberine_app::{Exit, Problem};
use cyberine_bus::{Address, AddressKind};
use cyberine_types::is_blank;

/// What a person named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A run, by its id or the beginning of it.
    Run(String),
    /// A candidate of a run: the run as above, and its name.
    Worker(String, String),
    /// Any other mailbox.
    Mailbox(Address),
    /// Everybody live who has this role.
    Role(String),
}

impl Target {
    /// Reads `run:ID`, `chat:ID`, `team:NAME` and the like; a run's id needs no word before it.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let Some((kind, id)) = text.split_once(':') else {
            let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
            return if text.len() >= 4 && hexadecimal {
                Ok(Self::Run(text.to_owned()))
            } else {
                Err(unknown(text))
            };
        };
        let mailbox = |kind| cyberine_operator::mailbox(kind, id).map(Self::Mailbox);
        let parsed = match kind {
            "run" => Ok(Self::Run(id.to_owned())),
            "chat" => mailbox(AddressKind::Chat),
            "worker" => match id.split_once('/') {
                Some((run, name)) if !is_blank(name) => Ok(Self::Worker(run.to_owned(), name.to_owned())),
                _ => Err("a worker is named by its run and its own name: worker:RUN/NAME".to_owned()),
            },
            "mcp" => mailbox(AddressKind::Mcp),
            "broadcast" => mailbox(AddressKind::Broadcast),
            "team" => cyberine_operator::team_mailbox(id).map(Self::Mailbox),
            "role" if !is_blank(id) => Ok(Self::Role(id.to_owned())),
            _ => return Err(unknown(text)),
        };
        parsed.map_err(|error| Problem::new(Exit::Usage, format!("`{text}` cannot be used: {error}")))
    }
}

fn unknown(text: &str) -> Problem {
    Problem::new(
        Exit::Usage,
        format!(
            "`{text}` names nobody: write run:ID, chat:ID, team:NAME, mcp:INSTANCE, worker:RUN/NAME, broadcast:ID, or role:ROLE \
             for everybody live who has it; `cyberine team` shows who is there"
        ),
    )
}

/// A mailbox as [`Target::parse`] takes it.
pub(crate) fn spelled(address: &Address) -> String {
    let team = address.id().strip_prefix("team-").filter(|_| address.kind() == AddressKind::Broadcast);
    match team {
        Some(team) => format!("team:{team}"),
        None => format!("{}:{}", address.kind().name(), address.id()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_named_by_its_kind_and_a_run_by_its_id_alone_too() {
        let check = |text: &str, want: &str| match Target::parse(text).unwrap() {
            Target::Mailbox(address) => {
                assert_eq!(format!("{}:{}", address.kind().name(), address.id()), want);
                assert_eq!(Target::parse(&spelled(&address)).unwrap(), Target::Mailbox(address));
            }
            other => assert_eq!(format!("{other:?}"), want),
        };
        check("chat:a b:c", "chat:a b:c");
        check("team:core", "broadcast:team-core");
        check("broadcast:all", "broadcast:all");
        check("mcp:5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11", "mcp:5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11");
        check("worker:5b1e/a/b", "Worker(\"5b1e\", \"a/b\")");
        check("run:5b1e", "Run(\"5b1e\")");
        check("5b1e7c0a-8f0b", "Run(\"5b1e7c0a-8f0b\")");
        check("role:reviewer", "Role(\"reviewer\")");
    }

    #[test]
    fn what_names_nobody_is_told_what_would() {
        for text in [
            "",
            "bob",
            "abc",
            "human:alice",
            "role:",
            "chat:",
            "team: ",
            "chat:a\u{1b}[2J",
            "a b c d",
            "mcp:z",
            "worker:5b1e",
            "worker:5b1e/",
        ] {
            let problem = Target::parse(text).unwrap_err();
            assert_eq!(problem.exit, Exit::Usage, "{text:?}");
        }
        assert!(Target::parse(&format!("team:{}", "x".repeat(128))).is_ok());
        let long = Target::parse(&format!("team:{}", "x".repeat(129))).unwrap_err();
        assert!(long.message.contains("128 characters"), "{long}");
        assert!(Target::parse("human:alice").unwrap_err().message.contains("chat:ID"));
    }
}
