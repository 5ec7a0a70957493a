//! Notices a provider that goes round in circles.

use crate::error::TurnError;

/// How many equal steps in a row are too many.
const EQUAL: usize = 20;
/// How many steps of any kind in a row are too many.
const ANY: usize = 200;
/// How many times an answer may begin anew without a call of a tool.
const ANEW: usize = 20;
/// How much of a step's name is told, in characters.
const SHOWN: usize = 120;

/// Counts what a provider does without getting on: steps that bring no word of an answer and no
/// call of a tool, and answers that are taken back.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    last: String,
    equal: usize,
    any: usize,
    anew: usize,
}

impl LoopDetector {
    /// A step that brought nothing, such as a retry or a round of an agent that ended empty. Two
    /// steps are equal where `fingerprint` is: what differs from one to the next by itself, such as
    /// a time, an id or the number of an attempt, does not belong to it.
    ///
    /// # Errors
    /// Where that is one step too many.
    pub(crate) fn step(&mut self, fingerprint: &str) -> Result<(), TurnError> {
        self.equal = if self.last == fingerprint { self.equal + 1 } else { 1 };
        self.any += 1;
        if self.equal > 1 || self.any >= ANY {
            return self.verdict(fingerprint);
        }
        fingerprint.clone_into(&mut self.last);
        Ok(())
    }

    fn verdict(&self, fingerprint: &str) -> Result<(), TurnError> {
        let shown: String = fingerprint.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
        let how = match (self.equal >= EQUAL, self.any >= ANY) {
            (true, _) => format!("took the same step {} times in a row", self.equal),
            (false, true) => format!("took {} steps in a row", self.any),
            (false, false) => return Ok(()),
        };
        let detail = format!("it {how} without a word of an answer, and was stopped; the last was: {shown}");
        Err(TurnError::Protocol { detail })
    }

    /// It has said something, or called a tool.
    pub(crate) fn got_on(&mut self) {
        (self.equal, self.any) = (0, 0);
    }

    /// It has called a tool: what it says next is another matter.
    pub(crate) fn called(&mut self) {
        self.got_on();
        self.anew = 0;
    }

    /// It has taken back what it had said.
    ///
    /// # Errors
    /// Where that is once too many.
    pub(crate) fn begun_anew(&mut self) -> Result<(), TurnError> {
        self.anew += 1;
        if self.anew < ANEW {
            return Ok(());
        }
        let detail =
            format!("it began its answer anew {} times without a call of a tool, and was stopped", self.anew);
        Err(TurnError::Protocol { detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(outcome: Result<(), TurnError>) -> String {
        match outcome {
            Err(TurnError::Protocol { detail }) => detail,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn equal_steps_in_a_row_are_too_many_and_no_other_count() {
        let mut detector = LoopDetector::default();
        for _ in 1..EQUAL {
            assert_eq!(detector.step("retry 529"), Ok(()));
        }
        assert_eq!(
            message(detector.step("retry 529")),
            "it took the same step 20 times in a row without a word of an answer, and was stopped; the last was: retry 529"
        );

        let mut detector = LoopDetector::default();
        for round in 0..3 {
            for _ in 1..EQUAL {
                assert_eq!(detector.step("a"), Ok(()), "round {round}");
            }
            assert_eq!(detector.step("b"), Ok(()), "another step breaks the row");
        }
    }

    #[test]
    fn steps_of_any_kind_are_too_many_unless_it_gets_on_in_between() {
        let mut detector = LoopDetector::default();
        for step in 1..ANY {
            assert_eq!(detector.step(&step.to_string()), Ok(()));
        }
        detector.got_on();
        for step in 1..ANY {
            assert_eq!(detector.step(&step.to_string()), Ok(()));
        }
        let said = message(detector.step("a\nb"));
        assert_eq!(
            said,
            "it took 200 steps in a row without a word of an answer, and was stopped; the last was: ab"
        );
    }

    #[test]
    fn getting_on_ends_a_row_of_equal_steps() {
        let mut detector = LoopDetector::default();
        for _ in 0..5 * EQUAL {
            assert_eq!(detector.step("a"), Ok(()));
            detector.got_on();
        }
    }

    #[test]
    fn an_answer_that_begins_anew_again_and_again_is_a_circle_too() {
        let mut detector = LoopDetector::default();
        for _ in 1..ANEW {
            detector.got_on();
            assert_eq!(detector.begun_anew(), Ok(()));
        }
        let said = "it began its answer anew 20 times without a call of a tool, and was stopped";
        assert_eq!(message(detector.begun_anew()), said);
        detector.called();
        for _ in 1..ANEW {
            assert_eq!(detector.begun_anew(), Ok(()));
        }
    }
}
