//! What a critic may reply.

use cyberine_run_store::Severity;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::judge::question::REASON_CHARS;
use crate::judge::reply::{Object, ReplyError, object, position};
use crate::text::preview;

/// The most attacks of one critic on one answer.
const MOST: usize = 8;
/// The longest claim, in characters.
const CLAIM_CHARS: usize = 300;

/// A quote of fewer words than this and fewer characters than that occurs by chance.
const QUOTED_WORDS: usize = 3;
const QUOTED_CHARS: usize = 12;

/// An attack as a critic wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    pub(super) severity: Severity,
    pub(super) claim: String,
    pub(super) quote: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attacks {
    attacks: Vec<Object<Found>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrueOf {
    true_of: Vec<String>,
    reason: String,
}

/// Of which places a claim is true.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) places: Vec<usize>,
    pub(super) reason: String,
}

/// The JSON Schema of a critic's reply.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "attacks": {
                "type": "array",
                "maxItems": MOST,
                "items": {
                    "type": "object",
                    "properties": {
                        "severity": { "type": "string", "enum": ["fatal", "major", "minor"] },
                        "claim": { "type": "string", "maxLength": REASON_CHARS },
                        "quote": { "type": ["string", "null"], "maxLength": REASON_CHARS },
                    },
                    "required": ["severity", "claim", "quote"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["attacks"],
        "additionalProperties": false,
    })
}

/// Reads a critic's reply; a long claim is cut.
pub(super) fn attacks(text: &str) -> Result<Vec<Found>, ReplyError> {
    let Attacks { attacks } = object(text)?;
    if attacks.len() > MOST {
        return Err(ReplyError::TooMany { count: attacks.len(), most: MOST });
    }
    let cut = |Object(found): Object<Found>| Found { claim: preview(&found.claim, CLAIM_CHARS), ..found };
    Ok(attacks.into_iter().map(cut).collect())
}

/// Reads the reply to a second look at an attack, beside `count` answers.
pub(super) fn true_of(text: &str, count: usize) -> Result<Named, ReplyError> {
    let TrueOf { true_of, reason } = object(text)?;
    let places = true_of.iter().map(|name| position(name, count)).collect::<Result<_, _>>()?;
    Ok(Named { places, reason })
}

/// Whether a quote stands in `text`, white space aside. No quote stands anywhere. One that is too
/// short to show anything stands nowhere, unless it is all of the text.
pub(super) fn stands_in(quote: Option<&str>, text: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    quote.is_none_or(|quote| {
        let (quote, text) = (words(quote), words(text));
        let tells = quote.split(' ').count() >= QUOTED_WORDS || quote.chars().count() >= QUOTED_CHARS;
        quote == text || (tells && text.contains(&quote))
    })
}
