//! What a wire must say, and when: the `>> ` lines of a sample.

use serde_json::Value;

use crate::wire::{Said, Session};

/// How a sample writes that the input is ended.
const END: &str = "(end of input)";

/// What the wire has said and no line of the sample has asked for yet.
#[derive(Default)]
pub(super) struct Heard {
    lines: Vec<String>,
    partial: String,
}

impl Heard {
    /// Takes the next line said, which must be `expected`. What a wire does not say of itself it must
    /// say when it is asked to stop.
    pub(super) fn expect(&mut self, name: &str, expected: &str, session: &mut Session) {
        self.take(session);
        if self.lines.is_empty() {
            assert!(session.interrupt(), "{name}: `{expected}` was not said");
            self.take(session);
        }
        assert!(!self.lines.is_empty(), "{name}: `{expected}` was not said when asked to stop");
        let line = self.lines.remove(0);
        assert!(matches(&line, expected), "{name}: said `{line}`, not `{expected}`");
    }

    /// Demands that nothing was said beyond the lines of the sample.
    pub(super) fn expect_silence(&mut self, name: &str, session: &mut Session) {
        self.take(session);
        assert!(self.lines.is_empty() && self.partial.is_empty(), "{name}: said {:?} too", self.lines);
    }

    fn take(&mut self, session: &mut Session) {
        for said in session.said() {
            match said {
                Said::Text(text) => self.partial.push_str(&text),
                Said::End => self.lines.push(END.to_owned()),
            }
            while let Some((line, rest)) = self.partial.split_once('\n') {
                self.lines.push(line.to_owned());
                self.partial = rest.to_owned();
            }
        }
    }
}

/// Whether `line` says `expected`: the same text, or JSON with every member that is expected.
fn matches(line: &str, expected: &str) -> bool {
    match (serde_json::from_str(line), serde_json::from_str(expected)) {
        (Ok(line), Ok(expected)) => holds(&line, &expected),
        _ => line == expected,
    }
}

fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(members), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| members.get(name).is_some_and(|member| holds(member, expected))),
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len() && items.iter().zip(expected).all(|(item, e)| holds(item, e))
        }
        _ => value == expected,
    }
}
