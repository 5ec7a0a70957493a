//! What all replies have in common: one JSON object, and nothing else.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::prompt::label;
use crate::text::preview;

/// Why a reply does not hold. The text goes back to the judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplyError {
    #[error("it is not one JSON object of the required form ({0})")]
    Form(String),
    #[error("`{0}` is not the label of a candidate")]
    Label(String),
    #[error("candidate `{0}` must have exactly one score")]
    Scores(String),
    #[error("the score of candidate `{0}` is not between 0 and 10")]
    Range(String),
    #[error("`{0}` is not a criterion of the rubric")]
    Criterion(String),
    #[error("candidate `{label}` must have exactly one score for `{criterion}`")]
    CriterionScores { label: String, criterion: String },
    #[error("the score of candidate `{label}` for `{criterion}` is not between 0 and 10")]
    CriterionRange { label: String, criterion: String },
    #[error("`{winner}` is named the winner, and `{better}` scores higher")]
    Inconsistent { winner: String, better: String },
    #[error("it holds {count} attacks, and at most {most} are heard")]
    TooMany { count: usize, most: usize },
}

/// Reads a reply: the whole text is the object, bare or in one fenced block. Prose around it and
/// unknown or repeated members are refused.
pub(crate) fn object<T: DeserializeOwned>(text: &str) -> Result<T, ReplyError> {
    let object: Object<T> =
        serde_json::from_str(unfenced(text.trim())).map_err(|error| ReplyError::Form(error.to_string()))?;
    Ok(object.0)
}

/// A `T` that is written as an object, and not as the list of its members.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

/// The inside of a text that is one fenced block and nothing else.
fn unfenced(text: &str) -> &str {
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    inner.filter(|inner| !inner.contains("\n```")).unwrap_or(text)
}

/// The position a label stands for.
pub(crate) fn position(name: &str, count: usize) -> Result<usize, ReplyError> {
    (0..count).find(|at| label(*at) == name).ok_or_else(|| ReplyError::Label(preview(name, 40)))
}
