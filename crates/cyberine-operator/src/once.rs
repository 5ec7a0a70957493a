//! Calls that carry a key: the work is done once, and whoever repeats the call gets the first
//! result.
//!
//! The key is opened with a draft, by which the work is named: a run's id, the id messages are
//! derived from. A call that was cut off, or that runs beside another of the same key, does the
//! work under the same draft, and the store and the bus see that it is done already.

use cyberine_run_store::{Begun, IdempotencyKey};
use cyberine_server::ToolResult;
use cyberine_types::{Caller, MessageId, RunId};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::services::Services;

/// By what a piece of work is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    text: String,
    /// Whether somebody else may do the work, or have done it, under this name.
    pub(crate) shared: bool,
}

/// A key as a caller gave it, and a digest of what it was given for.
pub(crate) struct Key {
    key: String,
    fingerprint: String,
}

/// The work of a call that nobody has a result of yet.
pub(crate) struct Once<'a> {
    services: &'a Services,
    key: Option<IdempotencyKey>,
    pub(crate) draft: Draft,
}

/// What to do for a call.
pub(crate) enum Turn<'a> {
    /// The work.
    Work(Once<'a>),
    /// Nothing: this is the first result.
    Done(ToolResult),
}

impl<'a> Once<'a> {
    /// A key, and what it is given for.
    pub(crate) fn key(key: String, tool: &str, arguments: &Map<String, Value>) -> Key {
        Key { key, fingerprint: fingerprint(tool, arguments) }
    }

    /// Opens `key`, where the call carries one.
    pub(crate) async fn begin(
        services: &'a Services,
        caller: &Caller,
        key: Option<Key>,
    ) -> Result<Turn<'a>, String> {
        let fresh = RunId::random().to_string();
        let Some(Key { key, fingerprint }) = key else {
            let draft = Draft { text: fresh, shared: false };
            return Ok(Turn::Work(Self { services, key: None, draft }));
        };
        let principal = &caller.principal;
        let scope = format!("{}/{}\n{}", principal.tenant, principal.name, services.project.name());
        let key = IdempotencyKey { scope, key, fingerprint };
        let begun = services.keys.begin(key.clone(), fresh.clone()).await;
        let text = match begun.map_err(|error| format!("{error}. {}", error.advice()))? {
            Begun::Fresh => fresh,
            Begun::Unfinished { draft } => draft,
            Begun::Finished(first) => return Ok(Turn::Done(ToolResult::ok(first))),
            Begun::Conflict => return Err(conflict()),
        };
        let draft = Draft { text, shared: true };
        Ok(Turn::Work(Self { services, key: Some(key), draft }))
    }

    /// Keeps the result of work that succeeded, and returns the one that stands.
    pub(crate) async fn finish(self, result: ToolResult) -> ToolResult {
        let succeeded = !result.is_error && result.structured["ok"] != Value::Bool(false);
        let Some(key) = self.key.filter(|_| succeeded) else { return result };
        if let Err(error) = self.services.keys.finish(key.clone(), result.structured.clone()).await {
            // The work is done, and is found under its draft should the call be repeated.
            tracing::warn!(%error, "the result of a call with a key could not be kept");
            return result;
        }
        match self.services.keys.begin(key, self.draft.text).await {
            Ok(Begun::Finished(first)) => ToolResult::ok(first),
            _ => result,
        }
    }
}

impl Draft {
    /// The id of the run that is the work.
    pub(crate) fn run(&self) -> Result<RunId, String> {
        self.text.parse().map_err(|_| unreadable())
    }

    /// The id of a message to `to`: one work may send several.
    pub(crate) fn message(&self, to: &cyberine_bus::Address) -> Result<MessageId, String> {
        let digest = digest(&[self.text.as_bytes(), to.kind().name().as_bytes(), to.id().as_bytes()]);
        // Version 4 and its variant, as every id of ours has them (RFC 9562, 5.4).
        let id = format!(
            "{}-{}-4{}-a{}-{}",
            &digest[..8],
            &digest[8..12],
            &digest[13..16],
            &digest[17..20],
            &digest[20..32]
        );
        id.parse().map_err(|_| unreadable())
    }
}

fn unreadable() -> String {
    "what the `idempotencyKey` was used for before cannot be read: use another key".to_owned()
}

fn conflict() -> String {
    "bad arguments: `idempotencyKey`: it was used for another call, or with other arguments; use a key of \
     its own for each call"
        .to_owned()
}

/// What a call is, its key and its token aside: the tool, and every argument, whatever their order.
fn fingerprint(tool: &str, arguments: &Map<String, Value>) -> String {
    digest(&[tool.as_bytes(), canonical(&Value::Object(arguments.clone())).to_string().as_bytes()])
}

/// The same value, the members of every object in the order of their names.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            Value::Object(
                names.into_iter().map(|name| (name.clone(), canonical(&members[name.as_str()]))).collect(),
            )
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// SHA-256 in hexadecimal, of parts that cannot run into each other.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_bus::{Address, AddressKind};

    fn print(tool: &str, arguments: &str) -> String {
        fingerprint(tool, serde_json::from_str::<Value>(arguments).unwrap().as_object().unwrap())
    }

    #[test]
    fn a_fingerprint_is_of_the_call_and_not_of_its_spelling() {
        let one = print("t", r#"{ "a": 1, "b": { "c": [1, 2], "d": "x" } }"#);
        assert_eq!(one, print("t", r#"{"b":{"d":"\u0078","c":[1,2]},"a":1}"#));
        for other in [r#"{"a":1}"#, r#"{ "a": 1, "b": { "c": [2, 1], "d": "x" } }"#, "{}"] {
            assert_ne!(one, print("t", other), "{other}");
        }
        assert_ne!(print("a", "{}"), print("b", "{}"));
    }

    #[test]
    fn messages_of_one_work_have_ids_of_their_own_that_stay() {
        let draft = |text: &str| Draft { text: text.to_owned(), shared: true };
        let to = |kind, id: &str| Address::new(kind, id).unwrap();
        let id = |text, kind, id: &str| draft(text).message(&to(kind, id)).unwrap();
        let one = id("d", AddressKind::Chat, "a");
        assert_eq!(one, id("d", AddressKind::Chat, "a"));
        for other in [
            id("d", AddressKind::Chat, "b"),
            id("d", AddressKind::Broadcast, "a"),
            id("e", AddressKind::Chat, "a"),
        ] {
            assert_ne!(one, other);
        }
        assert!(draft("no run").run().is_err());
    }
}
