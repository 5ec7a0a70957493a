//! Arguments of the tools. The rail checks them against the schemas; what is checked again here
//! holds for embedders that call the tools themselves.

use cyberine_run_store::{Choice, DeciderKind, Wish};
use cyberine_types::RunId;
use serde_json::{Map, Number, Value};

mod mail;

pub(crate) use mail::{Letter, ListTeam, Poll, SendMessage, SendToRole, SendToTeam};

/// The longest a call may wait, in milliseconds.
pub(crate) const MAX_WAIT_MS: u64 = 45_000;
/// The most runs one query returns.
pub(crate) const MAX_RUNS: u64 = 200;
/// The largest whole number that every reader of JSON keeps exact (RFC 8259, section 6).
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;
/// The longest comment on a decision, in characters.
pub(crate) const MAX_COMMENT: usize = 4_000;
/// The longest idempotency key, in characters.
pub(crate) const MAX_KEY: usize = 200;

/// Runs a query returns where nothing is said.
const RUNS: u64 = 20;

pub(crate) struct Orchestrate {
    pub(crate) prompt: String,
    /// Only tells what would be done, and what that may cost.
    pub(crate) dry_run: bool,
}

pub(crate) struct Inspect {
    pub(crate) run: RunId,
    pub(crate) since_seq: Option<u64>,
    pub(crate) wait_ms: u64,
}

pub(crate) struct Query {
    pub(crate) query: String,
    pub(crate) limit: u32,
}

pub(crate) struct Cancel {
    pub(crate) run: RunId,
    pub(crate) reason: Option<String>,
}

pub(crate) struct Decide {
    pub(crate) run: RunId,
    pub(crate) step: Option<String>,
    pub(crate) comment: Option<String>,
}

impl Decide {
    pub(crate) fn wish(self, choice: Choice, by: String) -> Wish {
        Wish { choice, step: self.step, comment: self.comment, by, kind: DeciderKind::Mcp }
    }
}

/// The arguments of one tool.
pub(crate) trait Arguments: Sized {
    /// Takes the fields of the tool.
    fn take(fields: &mut Fields) -> Result<Self, String>;
}

impl Arguments for Orchestrate {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let dry_run = fields.flag("dryRun")?.unwrap_or_default();
        Ok(Self { prompt: fields.required("prompt", Fields::text)?, dry_run })
    }
}

impl Arguments for Inspect {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let wait_ms = fields.count("waitMs")?.unwrap_or_default().min(MAX_WAIT_MS);
        Ok(Self { run: fields.run()?, since_seq: fields.count("sinceSeq")?, wait_ms })
    }
}

impl Arguments for Query {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let limit = fields.count("limit")?.unwrap_or(RUNS).clamp(1, MAX_RUNS);
        // Clamped to what fits.
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        Ok(Self { query: fields.text("query")?.unwrap_or_default(), limit })
    }
}

impl Arguments for Cancel {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        Ok(Self { run: fields.run()?, reason: fields.text("reason")? })
    }
}

impl Arguments for Decide {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let comment = fields.text("comment")?;
        if comment.as_ref().is_some_and(|comment| comment.chars().nth(MAX_COMMENT).is_some()) {
            return Err(bad("comment", &format!("it may have {MAX_COMMENT} characters")));
        }
        Ok(Self { run: fields.run()?, step: fields.text("stepId")?, comment })
    }
}

/// Takes the idempotency key out of the arguments of a tool that changes something.
pub(crate) fn take_key(arguments: &mut Map<String, Value>) -> Result<Option<String>, String> {
    const NAME: &str = "idempotencyKey";
    let Some(value) = arguments.remove(NAME) else { return Ok(None) };
    let length = value.as_str().map(|key| key.chars().take(MAX_KEY + 1).count());
    match value {
        Value::String(key) if length.is_some_and(|length| (1..=MAX_KEY).contains(&length)) => Ok(Some(key)),
        other => {
            Err(bad(NAME, &format!("it must be a string of 1 to {MAX_KEY} characters, not {}", kind(&other))))
        }
    }
}

/// Reads the arguments of a tool; the error names the field.
pub(crate) fn read<T: Arguments>(arguments: Map<String, Value>) -> Result<T, String> {
    let mut fields = Fields(arguments);
    let taken = T::take(&mut fields)?;
    match fields.0.keys().next() {
        None => Ok(taken),
        Some(unknown) => Err(bad(unknown, "there is no such argument")),
    }
}

/// Arguments that have not been taken yet.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    fn required<T>(
        &mut self,
        name: &str,
        take: impl FnOnce(&mut Self, &str) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        take(self, name)?.ok_or_else(|| bad(name, "it is missing"))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(bad(name, &format!("it must be a string, not {}", kind(&other)))),
        }
    }

    /// A whole number that is not negative, however it is written: to JSON Schema `20.0` and `2e1`
    /// are integers (draft 2020-12, core, section 4.2.3).
    fn count(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let whole = value.as_number().and_then(whole).filter(|number| *number <= MAX_COUNT);
        let wanted = || format!("it must be a whole number from 0 to {MAX_COUNT}, not {}", kind(&value));
        whole.map(Some).ok_or_else(|| bad(name, &wanted()))
    }

    fn run(&mut self) -> Result<RunId, String> {
        const NAME: &str = "runId";
        let text = self.required(NAME, Self::text)?;
        text.parse().map_err(|error| bad(NAME, &format!("{error}")))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float in this range that has no fraction is that integer"
)]
fn whole(number: &Number) -> Option<u64> {
    /// `MAX_COUNT + 1`, the first that is not exact any more.
    const END: f64 = 9_007_199_254_740_992.0;
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        ((0.0..END).contains(&float) && float.fract() == 0.0).then_some(float as u64)
    })
}

/// What a value is, in few words: it may be long.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

pub(crate) fn bad(name: &str, what: &str) -> String {
    format!("bad arguments: `{}`: {what}", crate::bounded::cut(name, 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn count(text: &str) -> Result<Option<u64>, String> {
        let value: Value = serde_json::from_str(text).unwrap();
        Fields(Map::from_iter([("n".to_owned(), value)])).count("n")
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (text, number) in [
            ("20", 20),
            ("20.0", 20),
            ("2e1", 20),
            ("1e2", 100),
            ("0.5e1", 5),
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("9007199254740991", MAX_COUNT),
            ("9007199254740991.0", MAX_COUNT),
        ] {
            assert_eq!(count(text), Ok(Some(number)), "{text}");
        }
        for text in
            ["20.5", "-1", "-1.0", "9007199254740992", "9007199254740992.0", "1e300", "\"20\"", "null"]
        {
            let error = count(text).unwrap_err();
            assert!(error.starts_with("bad arguments: `n`: it must be a whole number"), "{text}: {error}");
        }
    }

    #[test]
    fn every_refusal_names_its_field_and_stays_short() {
        let refused = |arguments: Value| {
            let Value::Object(arguments) = arguments else { unreachable!() };
            read::<Query>(arguments).map(drop).unwrap_err()
        };
        assert!(refused(json!({ "limit": "9".repeat(9_000) })).starts_with("bad arguments: `limit`: "));
        assert!(refused(json!({ "query": [] })).starts_with("bad arguments: `query`: "));
        let long = refused(json!({ "k".repeat(9_000): 1 }));
        assert!(long.starts_with("bad arguments: `kkk") && long.len() < 300, "{long}");
    }
}
