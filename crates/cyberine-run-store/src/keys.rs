//! The rules of keys: how long one is kept, how much is kept under it, and how it stands.

use cyberine_types::Timestamp;
use serde_json::Value;

use crate::error::StoreError;
use crate::port::{Begun, IdempotencyKey};

/// How long a key is known after it was opened: 30 days.
const KEPT_MS: i64 = 30 * 86_400_000;
/// How many keys that are older are dropped whenever one is opened. More than one, so that they
/// become fewer; not all, so that no caller waits for it.
pub(crate) const DROPPED: u32 = 64;
/// The most that is kept of a result, as JSON.
const RESULT_MAX: usize = 64 << 10;
/// The most that a key, its scope, its fingerprint or a draft may take, each.
const TEXT_MAX: usize = 8 << 10;

const BYTES: &str = "bytes";

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) fingerprint: String,
    pub(crate) draft: String,
    /// As JSON.
    pub(crate) result: Option<String>,
    pub(crate) begun_at: Timestamp,
}

impl Entry {
    /// A key that is opened now.
    pub(crate) fn open(key: &IdempotencyKey, draft: String, begun_at: Timestamp) -> Self {
        Self { fingerprint: key.fingerprint.clone(), draft, result: None, begun_at }
    }

    /// Whether its work is named `draft` and has no result, for a caller who shows `fingerprint`.
    pub(crate) fn is_open(&self, fingerprint: &str, draft: &str) -> bool {
        matches!(self.begun(fingerprint), Begun::Unfinished { draft: known } if known == draft)
    }

    /// How the key stands for a caller who shows `fingerprint`.
    pub(crate) fn begun(&self, fingerprint: &str) -> Begun {
        if self.fingerprint != fingerprint {
            return Begun::Conflict;
        }
        // A result that cannot be read is none: the work is looked for under its draft.
        match self.result.as_ref().and_then(|result| serde_json::from_str(result).ok()) {
            Some(result) => Begun::Finished(result),
            None => Begun::Unfinished { draft: self.draft.clone() },
        }
    }
}

/// What was opened before this moment is known no longer.
pub(crate) fn oldest(now: Timestamp) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_sub(KEPT_MS))
}

/// Refuses a key that is too long to be kept.
pub(crate) fn check(key: &IdempotencyKey, draft: &str) -> Result<(), StoreError> {
    let texts = [
        ("key", key.key.as_str()),
        ("scope", &key.scope),
        ("fingerprint", &key.fingerprint),
        ("draft", draft),
    ];
    match texts.into_iter().find(|(_, text)| text.len() > TEXT_MAX) {
        Some((what, text)) => {
            Err(StoreError::TooLarge { what, found: text.len(), limit: TEXT_MAX, unit: BYTES })
        }
        None => Ok(()),
    }
}

/// A result as it is kept.
pub(crate) fn kept(result: &Value) -> Result<String, StoreError> {
    let text = result.to_string();
    if text.len() > RESULT_MAX {
        return Err(StoreError::TooLarge {
            what: "result",
            found: text.len(),
            limit: RESULT_MAX,
            unit: BYTES,
        });
    }
    Ok(text)
}
