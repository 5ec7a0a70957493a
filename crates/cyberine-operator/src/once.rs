//! Calls that carry a key: the work is done once, and whoever repeats the call gets the first
//! result.
//!
//! The key is opened with a draft, by which the work is named: a run's id, the id messages are
//! derived from. A call that was cut off, or that runs beside another of the same key, does the
//! work under the same draft, and the store and the bus see that it is done already. The draft
//! also says how far the mailboxes had come before the key was opened: what the work has published
//! lies beyond, so that nobody looks through old mail for it.

use std::collections::BTreeMap;

use cyberine_bus::{Address, ReadRequest};
use cyberine_run_store::{Begun, IdempotencyKey, ProjectId};
use cyberine_server::ToolResult;
use cyberine_types::{Caller, MessageId, RunId};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::services::Services;

/// Of so many mailboxes a draft says how far they had come; any more are looked through whole.
const ENDS: usize = 128;

/// By what a piece of work is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    name: String,
    /// The last sequence number of each mailbox before the work, by the digest of its address.
    ends: BTreeMap<String, u64>,
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

    /// Opens `key`, where the call carries one. `mailboxes` are those that the work writes to, as
    /// far as they are known.
    pub(crate) async fn begin(
        services: &'a Services,
        caller: &Caller,
        key: Option<Key>,
        mailboxes: Vec<Address>,
    ) -> Result<Turn<'a>, String> {
        let fresh = Draft { name: RunId::random().to_string(), ends: BTreeMap::new(), shared: false };
        let Some(Key { key, fingerprint }) = key else {
            return Ok(Turn::Work(Self { services, key: None, draft: fresh }));
        };
        let fresh = Draft { ends: ends(services, mailboxes).await, shared: true, ..fresh };
        let principal = caller.principal();
        let ProjectId { device, inode } = services.project.id();
        let scope = format!("{}/{}\n{device}:{inode}", principal.tenant, principal.name);
        let key = IdempotencyKey { scope, key, fingerprint };
        let begun = services.keys.begin(key.clone(), fresh.to_string()).await;
        let draft = match begun.map_err(|error| format!("{error}. {}", error.advice()))? {
            Begun::Fresh => fresh,
            Begun::Unfinished { draft } => Draft::of_another(&draft),
            Begun::Finished(first) => return Ok(Turn::Done(ToolResult::ok(first))),
            Begun::Conflict => return Err(conflict()),
        };
        Ok(Turn::Work(Self { services, key: Some(key), draft }))
    }

    /// Names the work anew, after what it is named by has come to nothing. Some other call may have
    /// done so already, and may be done: then there is the first result.
    pub(crate) async fn anew(&mut self) -> Result<Option<ToolResult>, String> {
        let Some(key) = &self.key else { return Ok(None) };
        let next = Draft { name: RunId::random().to_string(), ends: BTreeMap::new(), shared: true };
        let begun = self.services.keys.redraft(key.clone(), self.draft.to_string(), next.to_string()).await;
        match begun.map_err(|error| format!("{error}. {}", error.advice()))? {
            Begun::Fresh => self.draft = next,
            Begun::Unfinished { draft } => self.draft = Draft::of_another(&draft),
            Begun::Finished(first) => return Ok(Some(ToolResult::ok(first))),
            Begun::Conflict => return Err(conflict()),
        }
        Ok(None)
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
        match self.services.keys.begin(key, self.draft.to_string()).await {
            Ok(Begun::Finished(first)) => ToolResult::ok(first),
            _ => result,
        }
    }
}

/// How far each of the mailboxes has come. Of one that cannot be read nothing is said.
async fn ends(services: &Services, mailboxes: Vec<Address>) -> BTreeMap<String, u64> {
    let mut ends = BTreeMap::new();
    for mailbox in mailboxes.into_iter().take(ENDS) {
        let mark = mark(&mailbox);
        let request = ReadRequest { newest: true, limit: 0, ..ReadRequest::default() };
        if let Ok(page) = services.bus.read(mailbox, request).await {
            // Of two that share a mark, whatever their addresses, the lower holds for both.
            let end = ends.entry(mark).or_insert(page.last);
            *end = page.last.min(*end);
        }
    }
    ends.retain(|_, last| *last > 0);
    ends
}

/// A short digest of an address.
fn mark(mailbox: &Address) -> String {
    let mut digest = digest(&[mailbox.kind().name().as_bytes(), mailbox.id().as_bytes()]);
    digest.truncate(16);
    digest
}

impl std::fmt::Display for Draft {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.name)?;
        self.ends.iter().try_for_each(|(mark, last)| write!(out, " {mark}:{last}"))
    }
}

impl Draft {
    /// The draft of whoever opened the key.
    fn of_another(text: &str) -> Self {
        let mut parts = text.split(' ');
        let name = parts.next().unwrap_or_default().to_owned();
        let ends = parts.filter_map(|part| {
            let (mark, last) = part.split_once(':')?;
            Some((mark.to_owned(), last.parse().ok()?))
        });
        Self { name, ends: ends.collect(), shared: true }
    }

    /// Beyond which sequence number of the mailbox `to` the work may have published before; `None`
    /// where nobody but this call has done any of it.
    pub(crate) fn again(&self, to: &Address) -> Option<u64> {
        self.shared.then(|| self.ends.get(&mark(to)).copied().unwrap_or(0))
    }

    /// The id of the run that is the work.
    pub(crate) fn run(&self) -> Result<RunId, String> {
        self.name.parse().map_err(|_| unreadable())
    }

    /// The id of a message to `to`: one work may send several.
    pub(crate) fn message(&self, to: &Address) -> Result<MessageId, String> {
        let digest = digest(&[self.name.as_bytes(), to.kind().name().as_bytes(), to.id().as_bytes()]);
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
    use cyberine_bus::AddressKind;

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
        let draft = Draft::of_another;
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

    #[test]
    fn a_draft_says_how_far_mailboxes_had_come_and_comes_back_as_it_was() {
        let to = |id: &str| Address::new(AddressKind::Chat, id).unwrap();
        let ends = (0..ENDS).map(|at| (mark(&to(&at.to_string())), u64::MAX - at as u64)).collect();
        let draft = Draft { name: RunId::random().to_string(), ends, shared: true };
        let text = draft.to_string();
        assert!(text.len() < 8 << 10, "a store keeps it: {}", text.len());
        let back = Draft::of_another(&text);
        assert_eq!((&back, back.run()), (&draft, draft.run()));
        assert_eq!((back.again(&to("7")), back.again(&to("unknown"))), (Some(u64::MAX - 7), Some(0)));
        // One that says nothing of mailboxes names the same work.
        let plain = Draft::of_another(&draft.name);
        assert_eq!(plain.message(&to("7")), draft.message(&to("7")));
        assert_eq!(plain.again(&to("7")), Some(0));
        assert_eq!(Draft { shared: false, ..draft }.again(&to("7")), None);
    }
}
