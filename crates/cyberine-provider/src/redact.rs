//! A provider's own secrets, out of what it says as its answer: answers are stored and shown to
//! other providers. A secret is found however the text spells it, since whoever decodes an answer
//! (a judge's is JSON) would bring it out again.

mod base64;
mod spelling;

use std::sync::Arc;

use cyberine_types::Secret;
use serde_json::Value;

use self::spelling::Found;
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
    secrets: Arc<[Secret]>,
    held: String,
}

impl Redactor {
    /// A redactor of those of `secrets` that are long enough to be ones.
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let long = secrets.iter().filter(|secret| secret.expose().len() >= SECRET_BYTES);
        Self::of(long.cloned().collect())
    }

    /// A redactor of all of `secrets`, for complaints: what they say is no answer.
    pub(crate) fn of(mut secrets: Vec<Secret>) -> Self {
        secrets.retain(|secret| !secret.is_empty());
        let long = secrets.iter().filter(|secret| secret.expose().len() >= SECRET_BYTES);
        let looks: Vec<Secret> =
            long.flat_map(|secret| base64::looks(secret.expose())).map(Secret::new).collect();
        secrets.extend(looks);
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
        let (id, name) = (self.whole(&call.id), self.whole(&call.name));
        ToolCall { id, name, arguments: self.value(call.arguments), signature: call.signature }
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

    /// A text that is all there, without secrets.
    pub(crate) fn whole(&self, text: &str) -> String {
        Self { secrets: Arc::clone(&self.secrets), held: text.to_owned() }.take(true)
    }

    fn take(&mut self, last: bool) -> String {
        let text = std::mem::take(&mut self.held);
        let mut out = String::with_capacity(text.len());
        // Up to where the text has been handed out, and up to where it has been looked at.
        let (mut shown, mut at) = (0, 0);
        while let Some(next) = self.next(&text, at) {
            let found = self.found(&text[next..]);
            if found.begun && !last {
                // This may be a secret, or a longer one than it is so far: it is waited for.
                out.push_str(&text[shown..next]);
                text[next..].clone_into(&mut self.held);
                return out;
            }
            match found.whole {
                Some(length) => {
                    out.push_str(&text[shown..next]);
                    out.push_str(REDACTED);
                    (shown, at) = (next + length, next + length);
                }
                None => at = text.ceil_char_boundary(next + 1),
            }
        }
        out.push_str(&text[shown..]);
        out
    }

    /// The next place in `text`, from `at` on, where a secret may begin.
    fn next(&self, text: &str, at: usize) -> Option<usize> {
        let begins =
            |byte: &u8| self.secrets.iter().any(|secret| spelling::may_begin(secret.expose(), *byte));
        text.as_bytes()[at..].iter().position(begins).map(|ahead| at + ahead)
    }

    /// What stands at the beginning of `text`: the longest of all secrets.
    fn found(&self, text: &str) -> Found {
        let found = self.secrets.iter().map(|secret| spelling::find(secret.expose(), text));
        found.fold(Found::default(), |all, one| Found {
            whole: all.whole.max(one.whole),
            begun: all.begun || one.begun,
        })
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
    fn a_secret_in_entities_or_across_a_line_is_one() {
        for text in ["sk&#45;hun&#x2F;ter2", "sk-hun&#x2f;te\nr2", "s&#107;-hun/\r\nter2"] {
            for cut in 0..=text.len() {
                assert_eq!(
                    pieces(&["sk-hun/ter2"], &[&text[..cut], &text[cut..]]),
                    "[redacted]",
                    "{text} {cut}"
                );
            }
        }
        assert_eq!(pieces(&["sk-hun/ter2"], &["sk&#45; and\nsk\n"]), "sk&#45; and\nsk\n");
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
    fn a_secret_in_base64_is_one_wherever_it_stands_and_however_it_is_cut() {
        // `sk-hunt?r2>~` alone, after one byte and after two, in both alphabets, padded and not.
        for (text, clean) in [
            ("c2staHVudD9yMj5+", "[redacted]"),
            ("c2staHVudD9yMj5-", "[redacted]"),
            ("eHNrLWh1bnQ/cjI+fg==", "eH[redacted]g=="),
            ("eHNrLWh1bnQ_cjI-fg", "eH[redacted]g"),
            ("eHlzay1odW50P3IyPn4=", "eHl[redacted]4="),
            ("Authorization: Basic dXNlcjpzay1odW50P3IyPn46eA", "Authorization: Basic dXNlcjp[redacted]46eA"),
        ] {
            for cut in 0..=text.len() {
                assert_eq!(pieces(&["sk-hunt?r2>~"], &[&text[..cut], &text[cut..]]), clean, "{text} {cut}");
            }
        }
        assert_eq!(pieces(&["ollama"], &["b2xsYW1h"]), "b2xsYW1h", "a word is no secret in Base64 either");
    }

    #[test]
    fn a_short_word_in_the_place_of_a_key_is_no_secret() {
        assert_eq!(pieces(&["ollama", ""], &["ask ollama"]), "ask ollama");
    }

    #[test]
    fn a_tool_call_is_clean_in_every_part() {
        let arguments = json!({"sk-hunter2": ["sk-hunter2", {"a": "=sk-hunter2="}, 7, null]});
        let call = ToolCall::new("sk-hunter2", "x-sk-hunter2", arguments);
        let clean = redactor(&["sk-hunter2"]).call(call);
        let expected = json!({"[redacted]": ["[redacted]", {"a": "=[redacted]="}, 7, null]});
        assert_eq!((clean.id.as_str(), clean.name.as_str()), ("[redacted]", "x-[redacted]"));
        assert_eq!(clean.arguments, expected);
    }

    /// A key with everything that is spelled in more than one way.
    const KEY: &str = "k\"/\\é🦉\\n-sk";

    /// The spellings of `text` that programs write: as it is, as JSON in several styles, as JSON
    /// within JSON, as a URL.
    fn spellings(text: &str) -> Vec<String> {
        let json = |text: &str| {
            let quoted = serde_json::to_string(text).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let units = |upper: bool| -> String {
            let unit = |unit: u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            text.encode_utf16().map(unit).collect()
        };
        let ascii: String =
            json(text).chars().map(|c| if c.is_ascii() { c.into() } else { escaped(c) }).collect();
        let percent: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        vec![
            text.to_owned(),
            json(text),
            json(text).replace('/', "\\/"),
            ascii,
            json(&json(text)),
            json(&json(&json(text))),
            units(true),
            units(false),
            json(&units(false)),
            percent.to_lowercase(),
            percent,
        ]
    }

    fn escaped(c: char) -> String {
        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    }

    #[test]
    fn no_spelling_of_a_secret_passes_wherever_it_is_cut() {
        for spelled in spellings(KEY) {
            let text = format!("say \"{spelled}\" é.");
            for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let shown = pieces(&[KEY], &[&text[..cut], &text[cut..]]);
                assert_eq!(shown, "say \"[redacted]\" é.", "{spelled} cut at {cut}");
            }
            let single: Vec<String> = text.chars().map(String::from).collect();
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(pieces(&[KEY], &single), "say \"[redacted]\" é.", "{spelled}");
        }
    }

    #[test]
    fn a_reply_that_is_decoded_holds_no_secret() {
        for spelled in spellings(KEY).into_iter().skip(1) {
            let reply = format!("{{\"reason\":\"the key {spelled} is shown\"}}");
            for cut in (0..=reply.len()).filter(|at| reply.is_char_boundary(*at)) {
                let shown = pieces(&[KEY], &[&reply[..cut], &reply[cut..]]);
                let decoded: Value = serde_json::from_str(&shown).unwrap();
                assert_eq!(
                    decoded,
                    json!({"reason": "the key [redacted] is shown"}),
                    "{spelled} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn escapes_that_spell_no_secret_are_kept() {
        let text = r#"{"a":"\u0041\n\\ 100%25 \"k\" \ud83e\udd89","b":"k\"\/\\é🦉 and more \"}"#;
        for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(pieces(&[KEY], &[&text[..cut], &text[cut..]]), text, "{cut}");
        }
    }

    #[test]
    fn what_is_held_back_is_bounded_by_the_secret() {
        let longest = KEY.chars().count() * 26;
        for piece in ["\\", "%", "k", "\\u006b", "k\\\"", "\\\\", "\\u"] {
            let mut redactor = redactor(&[KEY]);
            for _ in 0..1_000 {
                redactor.push(piece);
                assert!(redactor.held() <= longest, "{piece}: {}", redactor.held());
            }
        }
    }
}
