//! What the HTTP wires have in common in how they are asked.

use crate::config::HttpConfig;
use crate::port::{Message, Role, Turn};

/// The standing instructions of `turn` as one text; `None` where there are none.
pub(crate) fn instructions(turn: &Turn) -> Option<String> {
    let texts: Vec<&str> =
        turn.messages.iter().filter(|m| m.role == Role::System).map(|m| &*m.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The conversation of `turn` without its standing instructions, in groups: the results of tools
/// that were called together are one, everything else stands alone.
pub(crate) fn exchanges(turn: &Turn) -> Vec<Vec<&Message>> {
    let mut groups: Vec<Vec<&Message>> = Vec::new();
    for message in turn.messages.iter().filter(|message| message.role != Role::System) {
        match groups.last_mut() {
            Some(group) if message.role == Role::Tool && group[0].role == Role::Tool => group.push(message),
            _ => groups.push(vec![message]),
        }
    }
    groups
}

/// The id of the call whose result `message` is.
pub(crate) fn answered(message: &Message) -> &str {
    message.calls.first().map_or("", |call| &call.id)
}

/// The name of the tool whose result `message` is.
pub(crate) fn answering(message: &Message) -> &str {
    message.calls.first().map_or("", |call| &call.name)
}

/// Whether the service is the maker's own at `url`, and not one that speaks the same wire.
pub(crate) fn is_makers(config: &HttpConfig, url: &str) -> bool {
    config.base_url.as_deref().is_none_or(|base| {
        base.strip_prefix(url).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
