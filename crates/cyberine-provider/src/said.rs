//! What an agent has said so far, and when a word of it counts no more.

use crate::error::TurnError;
use crate::wire::WireEvent;

/// The most copies of a text that are looked for.
const COPIES: usize = 10;

/// How many steps in a row may come to nothing. Each is a paid request, and opencode asks again for
/// ever where a stream is cut.
const FRUITLESS: usize = 3;

/// Counts steps in a row that came to nothing.
#[derive(Debug, Default)]
pub(crate) struct Fruitless(usize);

impl Fruitless {
    pub(crate) fn count(&mut self) -> Result<(), TurnError> {
        self.0 += 1;
        if self.0 < FRUITLESS {
            return Ok(());
        }
        let detail = format!("{FRUITLESS} steps in a row came to nothing, and more would have been paid for");
        Err(TurnError::Cut { detail })
    }

    /// Whether the next is one too many.
    pub(crate) fn is_last(&self) -> bool {
        self.0 + 1 >= FRUITLESS
    }

    pub(crate) fn got_on(&mut self) {
        self.0 = 0;
    }
}

/// The answer of an agent that works in steps: what it says after a tool call takes the place of
/// what it said before, as the agents' own printing forms have it.
#[derive(Debug)]
pub(crate) struct Answer {
    text: String,
    limit: usize,
    /// What comes next is a new beginning.
    anew: bool,
}

impl Answer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit, anew: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The agent has turned to something else since it last spoke.
    pub(crate) fn has_turned_away(&self) -> bool {
        self.anew
    }

    /// The agent turns to something else: what it says next is another answer.
    pub(crate) fn turn_away(&mut self) {
        self.anew = true;
    }

    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if text.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.anew) && !self.text.is_empty() {
            self.text.clear();
            out.push(WireEvent::Remarked);
        }
        if self.text.len() + text.len() > self.limit {
            return Err(TurnError::TooLong { limit: self.limit });
        }
        self.text.push_str(text);
        out.push(WireEvent::Text(text.to_owned()));
        Ok(())
    }

    /// What is said now is `whole`, and whatever was heard of it was a part of it or is not it.
    pub(crate) fn settle(&mut self, whole: &str, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if self.anew {
            return self.push(whole, out);
        }
        if let Some(rest) = whole.strip_prefix(&*self.text) {
            return self.push(rest, out);
        }
        self.retract(out);
        self.push(whole, out)
    }

    /// Takes back everything.
    pub(crate) fn retract(&mut self, out: &mut Vec<WireEvent>) {
        if !self.text.is_empty() {
            self.text.clear();
            out.push(WireEvent::Retract);
        }
    }

    /// A stream that was cut and begun anew says the same again and again: keeps one copy.
    pub(crate) fn fold_copies(&mut self, out: &mut Vec<WireEvent>) {
        let length = self.text.len();
        let folded = (2..=COPIES).rev().find_map(|copies| {
            let once = self.text.get(..length / copies).filter(|_| length.is_multiple_of(copies))?;
            (!once.is_empty() && once.repeat(copies) == self.text).then(|| once.to_owned())
        });
        if let Some(once) = folded {
            self.retract(out);
            out.push(WireEvent::Text(once.clone()));
            self.text = once;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answer: &mut Answer, pieces: &[&str]) -> Vec<WireEvent> {
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| answer.push(piece, &mut out).unwrap());
        out
    }

    fn text(text: &str) -> WireEvent {
        WireEvent::Text(text.to_owned())
    }

    #[test]
    fn what_follows_a_tool_call_takes_the_place_of_what_was_before() {
        let mut answer = Answer::new(99);
        assert_eq!(said(&mut answer, &["Looking.", " Still."]), [text("Looking."), text(" Still.")]);
        answer.turn_away();
        assert_eq!(said(&mut answer, &["", "Done."]), [WireEvent::Remarked, text("Done.")]);
        assert_eq!(said(&mut answer, &["!"]), [text("!")]);
    }

    #[test]
    fn copies_of_a_text_are_folded_into_one_and_nothing_else_is() {
        let folded = |pieces: &[&str]| {
            let (mut answer, mut out) = (Answer::new(99), Vec::new());
            said(&mut answer, pieces);
            answer.fold_copies(&mut out);
            out
        };
        assert_eq!(folded(&["half", "half", "half", "half"]), [WireEvent::Retract, text("half")]);
        assert_eq!(folded(&["é", "é"]), [WireEvent::Retract, text("é")]);
        for pieces in [&["half", "hal"][..], &["a"], &[]] {
            assert_eq!(folded(pieces), []);
        }
    }

    #[test]
    fn a_whole_text_is_held_against_what_was_heard_of_it() {
        let settled = |pieces: &[&str], turned: bool, whole: &str| {
            let (mut answer, mut out) = (Answer::new(99), Vec::new());
            said(&mut answer, pieces);
            if turned {
                answer.turn_away();
            }
            answer.settle(whole, &mut out).unwrap();
            out
        };
        assert_eq!(settled(&["a", "b"], false, "ab"), []);
        assert_eq!(settled(&["a"], false, "ab"), [text("b")]);
        assert_eq!(settled(&[], false, "ab"), [text("ab")]);
        assert_eq!(settled(&["x"], false, "ab"), [WireEvent::Retract, text("ab")]);
        assert_eq!(settled(&["a"], true, "ab"), [WireEvent::Remarked, text("ab")]);
        assert_eq!(settled(&["a"], false, ""), [WireEvent::Retract]);
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut answer = Answer::new(3);
        said(&mut answer, &["abc"]);
        assert_eq!(answer.push("d", &mut Vec::new()), Err(TurnError::TooLong { limit: 3 }));
    }
}
