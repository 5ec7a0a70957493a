use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use serde_json::{Map, Value};

use super::SignatureAlgorithm;
use super::keys::KeyError;

/// The longest key set that is read, in bytes.
pub const LARGEST_KEY_SET: usize = 256 * 1024;

/// The most keys that are held of one set.
const MOST_KEYS: usize = 64;

/// The longest name of a key, in bytes.
const LONGEST_ID: usize = 256;

/// A key that verifies, and what with.
pub(super) struct Key {
    id: Option<String>,
    algorithms: Vec<SignatureAlgorithm>,
    pub(super) decoding: DecodingKey,
}

/// How many keys of `json`, a JWK set (RFC 7517, 5), can verify a token.
///
/// # Errors
/// Where it is too long, no key set, or has no key that can.
pub fn keys_in(json: &[u8]) -> Result<usize, KeyError> {
    parse(json).map(|keys| keys.len())
}

/// The keys of a set that can verify. Others (of another use, of another kind, symmetric) are left
/// out, and what cannot be read does not spoil the rest.
pub(super) fn parse(json: &[u8]) -> Result<Vec<Key>, KeyError> {
    if json.len() > LARGEST_KEY_SET {
        return Err(KeyError(format!("the key set is longer than {} KiB", LARGEST_KEY_SET / 1024)));
    }
    let set: Value =
        serde_json::from_slice(json).map_err(|error| KeyError(format!("the key set is no JSON: {error}")))?;
    let listed = set.get("keys").and_then(Value::as_array);
    let listed = listed.ok_or_else(|| KeyError("the key set has no list of `keys`".to_owned()))?;
    let keys: Vec<Key> = listed.iter().filter_map(Value::as_object).filter_map(key).take(MOST_KEYS).collect();
    if keys.is_empty() {
        return Err(KeyError("the key set has no key that can verify a token".to_owned()));
    }
    Ok(keys)
}

/// The key named `id`, where it is for `algorithm`. A token without a name of a key is one of the
/// only key there is for its algorithm.
pub(super) fn pick<'a>(
    keys: &'a [Arc<Key>],
    id: Option<&str>,
    algorithm: SignatureAlgorithm,
) -> Option<&'a Arc<Key>> {
    let mut fitting = keys.iter().filter(|key| key.algorithms.contains(&algorithm));
    match id {
        Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

fn key(jwk: &Map<String, Value>) -> Option<Key> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    if let Some(Value::Array(operations)) = jwk.get("key_ops")
        && !operations.iter().any(|operation| operation == "verify")
    {
        return None;
    }
    let id = text("kid").map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
        return None;
    }
    let (decoding, mut algorithms) = match (text("kty")?, text("crv")) {
        ("RSA", None) => {
            (DecodingKey::from_rsa_components(text("n")?, text("e")?).ok()?, SignatureAlgorithm::RSA.to_vec())
        }
        ("EC", Some("P-256")) => {
            (DecodingKey::from_ec_components(text("x")?, text("y")?).ok()?, vec![SignatureAlgorithm::Es256])
        }
        ("EC", Some("P-384")) => {
            (DecodingKey::from_ec_components(text("x")?, text("y")?).ok()?, vec![SignatureAlgorithm::Es384])
        }
        ("OKP", Some("Ed25519")) => {
            (DecodingKey::from_ed_components(text("x")?).ok()?, vec![SignatureAlgorithm::EdDsa])
        }
        _ => return None,
    };
    if let Some(only) = text("alg") {
        let only: SignatureAlgorithm = only.parse().ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    (!algorithms.is_empty()).then_some(Key { id, algorithms, decoding })
}
