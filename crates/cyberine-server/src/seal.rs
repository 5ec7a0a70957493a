//! Request state that a client carries and cannot change.
//!
//! The protocol (2026-07-28, multi round-trip requests) treats `requestState` as written by an
//! attacker. A sealed state is bound to the principal, the method, the tool and its arguments,
//! and expires. It is authenticated, not encrypted: what must stay hidden from the client does
//! not belong in it. That a state is used once is for the store behind a tool to enforce.

use std::fmt::Write as _;
use std::time::Duration;

use cyberine_types::{Principal, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// How long a client may take to answer.
pub(crate) const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

const VERSION: &str = "v1";

/// The key that seals request state: 32 random bytes. Processes that share it accept each
/// other's states.
#[derive(Clone)]
pub struct SealKey([u8; 32]);

/// What a state is bound to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
}

/// A state that was not sealed for this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// It has been changed, or belongs to another request, tool, caller or key.
    #[error("requestState is not one this server gave for this call; call again without it")]
    Invalid,
    /// It is too old.
    #[error("requestState has expired; call again without it")]
    Expired,
}

/// The operating system has no random bytes to give.
#[derive(Debug, thiserror::Error)]
#[error("the operating system's random source failed")]
pub struct RandomError;

impl SealKey {
    /// A key from 32 bytes that are kept elsewhere.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A key of this process alone: states it seals die with it.
    ///
    /// # Errors
    /// [`RandomError`] where the operating system has no random bytes.
    pub fn random() -> Result<Self, RandomError> {
        random_bytes().map(Self)
    }

    /// Seals `state` for a retry of the request `binding` names.
    pub(crate) fn seal(
        &self,
        binding: Binding<'_>,
        state: &Value,
        now: Timestamp,
    ) -> Result<String, RandomError> {
        let nonce: [u8; 16] = random_bytes()?;
        let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        let expires = now.unix_ms().saturating_add(lifetime);
        let body = format!("{expires}.{}.{state}", hex(&nonce));
        let code = self.code(binding, &body).finalize().into_bytes();
        Ok(format!("{VERSION}.{}.{body}", hex(&code)))
    }

    /// Verifies `sealed` and gives back the state.
    pub(crate) fn open(
        &self,
        binding: Binding<'_>,
        sealed: &str,
        now: Timestamp,
    ) -> Result<Value, SealError> {
        let mut parts = sealed.splitn(3, '.');
        let (Some(VERSION), Some(code), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SealError::Invalid);
        };
        let code = unhex(code).ok_or(SealError::Invalid)?;
        self.code(binding, body).verify_slice(&code).map_err(|_| SealError::Invalid)?;
        let mut fields = body.splitn(3, '.');
        let expires: i64 = fields.next().and_then(|text| text.parse().ok()).ok_or(SealError::Invalid)?;
        if expires < now.unix_ms() {
            return Err(SealError::Expired);
        }
        let state = fields.nth(1).ok_or(SealError::Invalid)?;
        serde_json::from_str(state).map_err(|_| SealError::Invalid)
    }

    /// The code over every field, each with its length before it, so that no two lists of fields
    /// give the same bytes.
    fn code(&self, binding: Binding<'_>, body: &str) -> Hmac<Sha256> {
        let arguments = serde_json::to_vec(binding.arguments).unwrap_or_default();
        let digest = hex(&Sha256::digest(&arguments));
        let Principal { tenant, name } = binding.principal;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("RFC 2104 takes keys of any length");
        for field in [VERSION, tenant, name, binding.method, binding.name, &digest, body] {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field.as_bytes());
        }
        mac
    }
}

fn random_bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_796_000_000_000);

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_state_opens_for_the_request_it_was_sealed_for_and_for_no_other() {
        let key = SealKey::random().unwrap();
        let (user, other) = (Principal::local("u"), Principal::local("v"));
        let (args, changed) = (arguments(json!({"runId": "1.2"})), arguments(json!({"runId": "1.3"})));
        let binding = Binding { principal: &user, method: "tools/call", name: "approve", arguments: &args };
        let state = json!({"step": "a.b", "n": 3});
        let sealed = key.seal(binding, &state, NOW).unwrap();
        assert_eq!(key.open(binding, &sealed, NOW), Ok(state.clone()));
        assert_ne!(key.seal(binding, &state, NOW).unwrap(), sealed, "a nonce makes each its own");

        for wrong in [
            Binding { principal: &other, ..binding },
            Binding { method: "resources/read", ..binding },
            Binding { name: "reject", ..binding },
            Binding { arguments: &changed, ..binding },
        ] {
            assert_eq!(key.open(wrong, &sealed, NOW), Err(SealError::Invalid), "{wrong:?}");
        }
        assert_eq!(SealKey::from_bytes([7; 32]).open(binding, &sealed, NOW), Err(SealError::Invalid));
    }

    #[test]
    fn every_changed_character_is_seen() {
        let key = SealKey::from_bytes([1; 32]);
        let user = Principal::local("u");
        let args = Map::new();
        let binding = Binding { principal: &user, method: "tools/call", name: "a", arguments: &args };
        let sealed = key.seal(binding, &json!({"n": 1}), NOW).unwrap();
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let tampered = String::from_utf8(bytes).unwrap();
            assert_eq!(key.open(binding, &tampered, NOW), Err(SealError::Invalid), "{tampered}");
        }
        for text in ["", "v1", "v1..", "v1.zz.1", "v1.é.1.2.3"] {
            assert_eq!(key.open(binding, text, NOW), Err(SealError::Invalid), "{text}");
        }
    }

    #[test]
    fn a_state_expires() {
        let key = SealKey::from_bytes([1; 32]);
        let user = Principal::local("u");
        let args = Map::new();
        let binding = Binding { principal: &user, method: "tools/call", name: "a", arguments: &args };
        let sealed = key.seal(binding, &json!(null), NOW).unwrap();
        let end = NOW.unix_ms() + i64::try_from(LIFETIME.as_millis()).unwrap();
        assert_eq!(key.open(binding, &sealed, Timestamp::from_unix_ms(end)), Ok(json!(null)));
        assert_eq!(key.open(binding, &sealed, Timestamp::from_unix_ms(end + 1)), Err(SealError::Expired));
    }
}
