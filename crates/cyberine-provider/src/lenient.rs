//! Parts of an answer that must not spoil it.

use std::fmt::Write as _;

use cyberine_types::Usd;
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

/// `text`, which is not quite JSON, with every number that is none in quotes, such as `NaN` or `1e400`:
/// it is there, and it is no figure. `None` where there is none.
pub(crate) fn quoted(text: &str) -> Option<String> {
    let (mut out, mut rest, mut found) = (String::with_capacity(text.len() + 16), text, false);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = match first {
            '"' => end_of_string(rest),
            first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        let (part, after) = rest.split_at(end);
        // Whatever else is no JSON stays none.
        if part.parse::<f64>().is_ok() && serde_json::from_str::<Value>(part).is_err() {
            found = true;
            let _ = write!(out, "\"{part}\"");
        } else {
            out.push_str(part);
        }
        rest = after;
    }
    found.then_some(out)
}

/// Where the string ends with which `text` begins.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// Reads figures, and remembers whether there was one that made no sense.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// All of them made sense.
    pub(crate) sound: bool,
}

impl Default for Figures {
    fn default() -> Self {
        Self { sound: true }
    }
}

impl Figures {
    /// The count `of[key]`; zero where it is left out or makes no sense.
    pub(crate) fn count(&mut self, of: &Value, key: &str) -> u64 {
        match &of[key] {
            Value::Null => 0,
            value => value.as_u64().unwrap_or_else(|| {
                self.sound = false;
                0
            }),
        }
    }

    /// An amount of dollars; `None` where it is left out or makes no sense. What is more than nothing is a
    /// micro-dollar at least.
    pub(crate) fn dollars(&mut self, value: &Value) -> Option<Usd> {
        let least = |usd: f64| if usd > 0.0 { Usd::from_micros(1) } else { Usd::ZERO };
        let amount = value.as_f64().filter(|usd| usd.is_finite() && *usd >= 0.0);
        let usd = amount.map(|usd| Usd::from_dollars(usd).max(least(usd)));
        self.sound &= usd.is_some() || value.is_null();
        usd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use serde_json::json;

    #[test]
    fn a_number_that_is_none_spoils_nothing_else() {
        let text = r#"{"a":NaN,"b":[-Infinity,1e400,-5,2.5e1],"c":"NaN \" 1e400","d":true,"e":null}"#;
        let read: Value = json::read(text).unwrap();
        assert_eq!(
            read,
            json!({ "a": "NaN", "b": ["-Infinity", "1e400", -5, 25.0], "c": "NaN \" 1e400", "d": true, "e": null })
        );
        for broken in ["{\"a\":NaN", "{a:1}", "NaN NaN", "{\"a\":nothing}", "\"NaN", "é\\"] {
            assert!(json::read::<Value>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_figure_that_makes_no_sense_is_none_and_is_remembered() {
        let read = |value: Value| {
            let (mut count, mut dollars) = (Figures::default(), Figures::default());
            let of = json!({ "n": value });
            let read = (count.count(&of, "n"), dollars.dollars(&value).map(Usd::micros));
            (read.0, count.sound, read.1, dollars.sound)
        };
        assert_eq!(read(json!(2)), (2, true, Some(2_000_000), true));
        assert_eq!(read(Value::Null), (0, true, None, true));
        assert_eq!(read(json!(0.5)), (0, false, Some(500_000), true));
        assert_eq!(read(json!(1e-9)), (0, false, Some(1), true));
        assert_eq!(read(json!(-0.0)), (0, false, Some(0), true));
        for senseless in [json!(-5), json!("NaN"), json!([1])] {
            assert_eq!(read(senseless), (0, false, None, false));
        }
    }
}
