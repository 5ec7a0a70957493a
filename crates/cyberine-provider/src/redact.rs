//! A provider's own secrets, out of what it says as its answer: answers are stored and shown to
//! other providers.

use std::sync::Arc;

use cyberine_types::Secret;
use serde_json::Value;

use crate::port::ToolCall;

/// What stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";

/// The shortest secret that is taken out of answers, in bytes. What is shorter is no secret but a
/// word such as the `ollama` that some servers want as a key, and answers may use words.
const SECRET_BYTES: usize = 8;

/// Takes secrets out of text that arrives in pieces. The end of a piece is held back for as long
/// as it may be the beginning of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor {
    /// The longest first, so that one which begins like another is found whole.
    secrets: Arc<[Secret]>,
    held: String,
}

impl Redactor {
    /// A redactor of those of `secrets` that are long enough to be ones.
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let long = secrets.iter().filter(|secret| secret.expose().len() >= SECRET_BYTES);
        let mut secrets: Vec<Secret> = long.cloned().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self { secrets: secrets.into(), held: String::new() }
    }

    /// What can be shown once `text` has come.
    pub(crate) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        self.take(false)
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn finish(&mut self) -> String {
        self.take(true)
    }

    /// How many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Forgets what is held back.
    pub(crate) fn reset(&mut self) {
        self.held.clear();
    }

    /// A tool call without secrets.
    pub(crate) fn call(&self, call: ToolCall) -> ToolCall {
        let ToolCall { id, name, arguments } = call;
        ToolCall { id: self.whole(&id), name: self.whole(&name), arguments: self.value(arguments) }
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.whole(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (self.whole(&name), self.value(value))).collect()
            }
            other => other,
        }
    }

    fn whole(&self, text: &str) -> String {
        Self { secrets: Arc::clone(&self.secrets), held: text.to_owned() }.take(true)
    }

    fn take(&mut self, last: bool) -> String {
        let text = std::mem::take(&mut self.held);
        let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
        loop {
            let hold = if last { rest.len() } else { self.beginning(rest) };
            match self.first(rest) {
                // A longer secret may begin where this one stands: then it is waited for.
                Some((at, length)) if at < hold => {
                    out.push_str(&rest[..at]);
                    out.push_str(REDACTED);
                    rest = &rest[at + length..];
                }
                _ => {
                    out.push_str(&rest[..hold]);
                    rest[hold..].clone_into(&mut self.held);
                    return out;
                }
            }
        }
    }

    /// Where the first secret stands in `text`, and its length.
    fn first(&self, text: &str) -> Option<(usize, usize)> {
        let found = self.secrets.iter().filter_map(|secret| {
            let secret = secret.expose();
            Some((text.find(secret)?, secret.len()))
        });
        found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }

    /// Where the end of `text` begins that may be the beginning of a secret: its length for none.
    fn beginning(&self, text: &str) -> usize {
        let longest = self.secrets.first().map_or(0, |secret| secret.expose().len() - 1);
        let from = text.len().saturating_sub(longest);
        let mut ends = (from..text.len()).filter(|at| text.is_char_boundary(*at));
        let begins = |at: &usize| {
            let end = &text[*at..];
            self.secrets
                .iter()
                .any(|secret| secret.expose().len() > end.len() && secret.expose().starts_with(end))
        };
        ends.find(begins).unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(&secrets.iter().map(|secret| Secret::new(*secret)).collect::<Vec<_>>())
    }

    fn pieces(secrets: &[&str], pieces: &[&str]) -> String {
        let mut redactor = redactor(secrets);
        let shown: String = pieces.iter().map(|piece| redactor.push(piece)).collect();
        shown + &redactor.finish()
    }

    #[test]
    fn a_secret_never_passes_wherever_it_is_cut() {
        let text = "key: sk-hunter2-é!, again sk-hunter2-é!sk-hunter2-é!.";
        let clean = "key: [redacted], again [redacted][redacted].";
        let cuts: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for first in &cuts {
            for second in cuts.iter().filter(|second| *second >= first) {
                let cut = [&text[..*first], &text[*first..*second], &text[*second..]];
                assert_eq!(pieces(&["sk-hunter2-é!"], &cut), clean, "{cut:?}");
            }
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(pieces(&["sk-hunter2-é!"], &single), clean);
    }

    #[test]
    fn only_what_may_begin_a_secret_is_held_back() {
        let mut redactor = redactor(&["sk-hunter2"]);
        assert_eq!(redactor.push("all of it s"), "all of it ");
        assert_eq!((redactor.held(), redactor.push("ky ").as_str()), (1, "sky "));
        assert_eq!(redactor.push("sk-hunter"), "");
        assert_eq!(redactor.finish(), "sk-hunter");
    }

    #[test]
    fn a_secret_that_begins_like_a_longer_one_does_not_uncover_it() {
        let secrets = ["sk-hunter2", "sk-hunter2-admin"];
        for cut in 0..=18 {
            let text = "a sk-hunter2-admin";
            assert_eq!(pieces(&secrets, &[&text[..cut], &text[cut..]]), "a [redacted]", "{cut}");
        }
        assert_eq!(pieces(&secrets, &["sk-hunter2", "-added"]), "[redacted]-added");
        assert_eq!(pieces(&secrets, &["sk-hunter2"]), "[redacted]");
    }

    #[test]
    fn a_short_word_in_the_place_of_a_key_is_no_secret() {
        assert_eq!(pieces(&["ollama", ""], &["ask ollama"]), "ask ollama");
    }

    #[test]
    fn a_tool_call_is_clean_in_every_part() {
        let call = ToolCall {
            id: "sk-hunter2".into(),
            name: "x-sk-hunter2".into(),
            arguments: json!({"sk-hunter2": ["sk-hunter2", {"a": "=sk-hunter2="}, 7, null]}),
        };
        let clean = redactor(&["sk-hunter2"]).call(call);
        let expected = json!({"[redacted]": ["[redacted]", {"a": "=[redacted]="}, 7, null]});
        assert_eq!((clean.id.as_str(), clean.name.as_str()), ("[redacted]", "x-[redacted]"));
        assert_eq!(clean.arguments, expected);
    }
}
