//! Parts of an answer that must not spoil it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a member that may be left out, and leaves it out where it is not of its form: figures that
/// make no sense are no figures, and the answer beside them stands.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Value::deserialize(deserializer).map(|value| serde_json::from_value(value).ok())
}
