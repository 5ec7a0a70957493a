//! Mailboxes as people spell them.

use cyberine_app::{Exit, Problem};
use cyberine_bus::{Address, AddressKind};

/// What a person named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A run, by its id or the beginning of it.
    Run(String),
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
        let mailbox = |kind| Address::new(kind, id).map(Self::Mailbox);
        let parsed = match kind {
            "run" => Ok(Self::Run(id.to_owned())),
            "chat" => mailbox(AddressKind::Chat),
            "worker" => mailbox(AddressKind::Worker),
            "mcp" => mailbox(AddressKind::Mcp),
            "broadcast" => mailbox(AddressKind::Broadcast),
            "team" => Address::team(id).map(Self::Mailbox),
            "role" if !cyberine_types::is_blank(id) => Ok(Self::Role(id.to_owned())),
            _ => return Err(unknown(text)),
        };
        parsed.map_err(|error| Problem::of(Exit::Usage, &error))
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
        check("mcp:x", "mcp:x");
        check("worker:r/a", "worker:r/a");
        check("run:5b1e", "Run(\"5b1e\")");
        check("5b1e7c0a-8f0b", "Run(\"5b1e7c0a-8f0b\")");
        check("role:reviewer", "Role(\"reviewer\")");
    }

    #[test]
    fn what_names_nobody_is_told_what_would() {
        for text in
            ["", "bob", "abc", "human:alice", "role:", "chat:", "team: ", "chat:a\u{1b}[2J", "a b c d"]
        {
            let problem = Target::parse(text).unwrap_err();
            assert_eq!(problem.exit, Exit::Usage, "{text:?}");
        }
        assert!(Target::parse("human:alice").unwrap_err().message.contains("chat:ID"));
    }
}
