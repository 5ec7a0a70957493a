//! What the configuration calls somebody, and other words of `[identity]`.

use std::fmt;

use cyberine_http::identity::{
    DigestError, NameError, SignatureAlgorithm, TokenDigest, UnknownAlgorithm, checked_name, checked_tenant,
};
use serde::Deserialize;

/// The name of a user, an audience or a part of an organisation: one visible line of at most 128
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl Name {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = Misnamed;

    fn try_from(text: String) -> Result<Self, Misnamed> {
        match checked_name(&text) {
            Ok(_) => Ok(Self(text)),
            Err(why) => Err(Misnamed { text, why }),
        }
    }
}

/// The name of a tenant: as [`Name`], without a slash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Tenant(String);

impl Tenant {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Tenant {
    type Error = Misnamed;

    fn try_from(text: String) -> Result<Self, Misnamed> {
        match checked_tenant(&text) {
            Ok(_) => Ok(Self(text)),
            Err(why) => Err(Misnamed { text, why }),
        }
    }
}

/// A text that names nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be used: {why}")]
pub struct Misnamed {
    text: String,
    why: NameError,
}

/// The SHA-256 of a token, in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(pub TokenDigest);

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}

/// An algorithm a token may be signed with, by its name in RFC 7518.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Algorithm(pub SignatureAlgorithm);

impl TryFrom<String> for Algorithm {
    type Error = UnknownAlgorithm;

    fn try_from(text: String) -> Result<Self, UnknownAlgorithm> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
