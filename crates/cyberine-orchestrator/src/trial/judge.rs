//! One trial after the other, and what their exit codes say.

use cyberine_run_store::{Verdict, VerdictOutcome, Vote};
use cyberine_types::Usage;

use super::extract::extract;
use super::{COMMAND, Extract, TrialError, TrialReport};
use crate::judge::{Attempt, Contender, Judge, Next, RATIONALE_CHARS, Ruling};
use crate::text::{capped, preview};

/// The longest tail of output in a vote, in characters.
const TAIL_CHARS: usize = 500;

/// Tries every answer. Exit code 0 is a pass: one pass wins, several are a tie among themselves,
/// and where there is none nobody wins. A trial that could not be held decides nothing.
#[derive(Debug)]
pub(crate) struct CommandJudge {
    contenders: Vec<Contender>,
    part: Option<Extract>,
    reports: Vec<TrialReport>,
    failure: Option<String>,
}

impl Judge for CommandJudge {
    fn name(&self) -> &'static str {
        COMMAND
    }

    fn next(&self) -> Next {
        match self.contenders.get(self.reports.len()) {
            Some(contender) if self.failure.is_none() => Next::Try(Attempt {
                candidate: contender.id.clone(),
                text: extract(self.part, &contender.text).to_owned(),
            }),
            _ => Next::Decided(Box::new(self.ruling())),
        }
    }

    fn replied(&mut self, _reply: Result<String, String>, _usage: &Usage) {}

    fn tried(&mut self, outcome: Result<TrialReport, TrialError>) {
        match outcome {
            Ok(report) => self.reports.push(report),
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    fn asked(&self) -> Option<&str> {
        None
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

impl CommandJudge {
    pub(crate) const fn new(contenders: Vec<Contender>, part: Option<Extract>) -> Self {
        Self { contenders, part, reports: Vec::new(), failure: None }
    }

    fn ruling(&self) -> Ruling {
        let tried = || self.contenders.iter().zip(&self.reports);
        if let Some(failure) = &self.failure {
            let verdict = self.verdict(VerdictOutcome::Unjudged, None, failure);
            return Ruling { verdict, left: None };
        }
        let passed = tried().filter(|(_, report)| report.passed).map(|(contender, _)| contender.id.clone());
        let passed: Vec<String> = passed.collect();
        let (outcome, winner) = match passed.as_slice() {
            [] => (VerdictOutcome::Unjudged, None),
            [one] => (VerdictOutcome::Winner, Some(one.clone())),
            _ => (VerdictOutcome::Tie, None),
        };
        let named = passed.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        let rationale = match passed.len() {
            0 => format!("the command passes none of the {} answers", self.contenders.len()),
            1 => format!("the command passes {named} alone, of {} answers", self.contenders.len()),
            count => format!("the command passes {count} of {} answers: {named}", self.contenders.len()),
        };
        Ruling { verdict: self.verdict(outcome, winner, &rationale), left: Some(passed) }
    }

    fn verdict(&self, outcome: VerdictOutcome, winner: Option<String>, rationale: &str) -> Verdict {
        let votes = self.contenders.iter().zip(&self.reports).map(|(contender, report)| Vote {
            voter: format!("{COMMAND}: {}", if report.passed { "pass" } else { "fail" }),
            candidate: Some(contender.id.clone()),
            score: None,
            criteria: Vec::new(),
            reason: Some(reason(report)),
        });
        Verdict {
            kind: COMMAND.to_owned(),
            outcome,
            winner,
            rationale: capped(rationale, RATIONALE_CHARS),
            votes: votes.collect(),
            attacks: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// How a trial ended, with the last of its output.
fn reason(report: &TrialReport) -> String {
    let line = preview(&report.tail, usize::MAX);
    let count = line.chars().count();
    let tail: String = line.chars().skip(count.saturating_sub(TAIL_CHARS)).collect();
    match (tail.is_empty(), count > TAIL_CHARS) {
        (true, _) => report.end.clone(),
        (false, false) => format!("{}: {tail}", report.end),
        (false, true) => format!("{}: …{tail}", report.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(id: &str) -> Contender {
        let (id, text) = (id.to_owned(), format!("Look:\n```\ncode of {id}\n```\n"));
        Contender { provider: id.clone(), id, family: None, model: None, text }
    }

    /// Tries `a`, `b` and `c`; `passes` says which pass.
    fn judged(passes: &[&str]) -> Ruling {
        let contenders = ["a", "b", "c"].map(contender).to_vec();
        let mut judge = CommandJudge::new(contenders, Some(Extract::Code));
        loop {
            match judge.next() {
                Next::Try(Attempt { candidate, text }) => {
                    assert_eq!(text, format!("code of {candidate}\n"));
                    let passed = passes.contains(&candidate.as_str());
                    let end = if passed { "exit 0" } else { "exit 1" };
                    judge.tried(Ok(TrialReport { passed, end: end.into(), tail: "w ".repeat(900) }));
                }
                Next::Decided(ruling) => return *ruling,
                Next::Ask(_) => panic!("it asks nobody"),
            }
        }
    }

    #[test]
    fn one_pass_wins_several_stay_and_without_any_nobody_is_left() {
        for (passes, outcome, winner) in [
            (vec!["b"], VerdictOutcome::Winner, Some("b")),
            (vec!["a", "c"], VerdictOutcome::Tie, None),
            (vec![], VerdictOutcome::Unjudged, None),
        ] {
            let ruling = judged(&passes);
            assert_eq!((ruling.verdict.outcome, ruling.verdict.winner.as_deref()), (outcome, winner));
            assert_eq!(ruling.left, Some(passes.iter().map(|id| (*id).to_owned()).collect()));
            assert_eq!(ruling.verdict.votes.len(), 3);
            assert!(ruling.verdict.votes[0].reason.as_ref().unwrap().chars().count() < 520);
        }
    }

    #[test]
    fn a_trial_that_could_not_be_held_says_nothing_of_the_answers() {
        let mut judge = CommandJudge::new(vec![contender("a"), contender("b")], None);
        judge.tried(Ok(TrialReport { passed: true, end: "exit 0".into(), tail: String::new() }));
        judge.tried(Err(TrialError { detail: "no program `x`".into() }));
        let Next::Decided(ruling) = judge.next() else { panic!("it is over") };
        assert_eq!(
            (ruling.verdict.outcome, ruling.verdict.winner, ruling.left),
            (VerdictOutcome::Unjudged, None, None)
        );
        assert!(ruling.verdict.rationale.contains("no program `x`"));
    }
}
