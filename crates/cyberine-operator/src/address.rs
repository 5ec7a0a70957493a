//! The mailboxes a caller can name, by whatever way it calls.

use cyberine_bus::{Address, AddressKind};
use cyberine_types::{InstanceId, RunId, is_blank};

/// The longest team, role or name, in characters.
pub(crate) const MAX_LABEL: usize = 128;

/// The mailbox of that kind and id. What has ids of its own form is held to it, and spelled as the
/// one who reads the mailbox spells it.
///
/// # Errors
/// What is wrong with the id: one sentence without its full stop.
pub fn mailbox(kind: AddressKind, id: &str) -> Result<Address, String> {
    let id = match kind {
        AddressKind::Run => run(id)?.to_string(),
        AddressKind::Mcp => {
            let instance: InstanceId = id
                .parse()
                .map_err(|_| "the id of an MCP server is a UUID, as the team lists it".to_owned())?;
            instance.to_string()
        }
        AddressKind::Worker => {
            let (of, candidate) = id.split_once('/').unwrap_or((id, ""));
            if is_blank(candidate) {
                return Err("the id of a worker is `<runId>/<candidate>`".to_owned());
            }
            format!("{}/{candidate}", run(of)?)
        }
        AddressKind::Chat | AddressKind::Broadcast => id.to_owned(),
    };
    Address::new(kind, id).map_err(|error| error.to_string())
}

/// The mailbox of a team.
///
/// # Errors
/// As [`mailbox`]; a name has at most 128 characters.
pub fn team_mailbox(name: &str) -> Result<Address, String> {
    if is_longer(name, MAX_LABEL) {
        return Err(too_long(MAX_LABEL));
    }
    if is_blank(name) {
        return Err("the name of the team is empty".to_owned());
    }
    Address::team(name).map_err(|error| error.to_string())
}

pub(crate) fn is_longer(text: &str, limit: usize) -> bool {
    text.chars().nth(limit).is_some()
}

pub(crate) fn too_long(limit: usize) -> String {
    format!("it may have {limit} characters")
}

fn run(text: &str) -> Result<RunId, String> {
    text.parse().map_err(|error| format!("{error}"))
}
