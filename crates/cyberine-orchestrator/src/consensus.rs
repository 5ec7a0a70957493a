//! The consensus judge: no model, only equality of what answers say.

mod decimal;
pub(crate) mod equivalence;
mod key;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cyberine_run_store::{Verdict, VerdictOutcome, Vote};
use cyberine_types::Usage;

use crate::text::preview;
use key::Key;

/// A candidate that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The candidate's id.
    pub candidate: &'a str,
    /// What it said. Not empty.
    pub text: &'a str,
}

/// The name of this judge.
pub const CONSENSUS: &str = "consensus";

/// Looks for an answer that more than half of the candidates give, and at least two of them.
///
/// Answers are the same when they are equal without their dressing (the case of a plain word, white
/// space, quotation marks and emphasis around all of it, "the answer is") or as exact decimal
/// numbers with the same unit. Whatever is in doubt counts as different.
/// Of a majority the text that most have written wins, as it is written; between those that as many
/// have, the first in the order of `answers`.
#[must_use]
pub fn consensus(answers: &[Answer<'_>]) -> Verdict {
    tally(&clusters(answers), answers.len())
}

/// The verdict on `count` answers in clusters, the largest first.
fn tally(clusters: &[Vec<Answer<'_>>], count: usize) -> Verdict {
    let (outcome, winner, rationale) = match majority(clusters, count) {
        Some(members) => (
            VerdictOutcome::Majority,
            members.first().map(|answer| answer.candidate.to_owned()),
            format!(
                "{} of {count} candidates that answered say the same: “{}”",
                members.len(),
                members.first().map(|answer| preview(answer.text, 200)).unwrap_or_default()
            ),
        ),
        None => (
            VerdictOutcome::Tie,
            None,
            format!(
                "no answer is shared by more than half of the {count} candidates that answered; there are {} different answers",
                clusters.len()
            ),
        ),
    };
    Verdict {
        kind: CONSENSUS.to_owned(),
        outcome,
        winner,
        rationale,
        votes: votes(clusters),
        attacks: Vec::new(),
        usage: Usage::default(),
    }
}

/// The largest cluster, where it is more than half of `count` and more than one.
fn majority<'c, 'a>(clusters: &'c [Vec<Answer<'a>>], count: usize) -> Option<&'c Vec<Answer<'a>>> {
    clusters.first().filter(|members| members.len() >= 2 && members.len() * 2 > count)
}

/// Answers that say the same, the largest cluster first, each with its best member first.
fn clusters<'a>(answers: &[Answer<'a>]) -> Vec<Vec<Answer<'a>>> {
    let mut by_key: BTreeMap<Key, Vec<Answer<'a>>> = BTreeMap::new();
    for answer in answers {
        by_key.entry(key::key(answer.text)).or_default().push(*answer);
    }
    let mut clusters: Vec<_> = by_key.into_values().collect();
    sort(&mut clusters);
    clusters
}

/// Sorts the members of each cluster, which are in the candidates' order, and the clusters.
fn sort(clusters: &mut [Vec<Answer<'_>>]) {
    for members in clusters.iter_mut() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for answer in members.iter() {
            *counts.entry(answer.text.trim()).or_default() += 1;
        }
        members.sort_by_key(|answer| Reverse(counts.get(answer.text.trim()).copied()));
    }
    clusters.sort_by(|one, other| {
        let order = |members: &[Answer<'_>]| {
            let least = members.iter().map(|answer| (answer.text.trim().to_owned(), answer.candidate)).min();
            (Reverse(members.len()), least.map(|(text, id)| (text.chars().count(), text, id.to_owned())))
        };
        order(one).cmp(&order(other))
    });
}

fn votes(clusters: &[Vec<Answer<'_>>]) -> Vec<Vote> {
    let numbered = clusters.iter().zip(1..);
    numbered
        .flat_map(|(members, number)| {
            members.iter().map(move |answer| Vote {
                voter: format!("cluster {number}"),
                candidate: Some(answer.candidate.to_owned()),
                score: None,
                criteria: Vec::new(),
                reason: Some(preview(answer.text, 80)),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(answers: &[(&str, &str)]) -> (VerdictOutcome, Option<String>) {
        let answers: Vec<_> = answers.iter().map(|(candidate, text)| Answer { candidate, text }).collect();
        let verdict = consensus(&answers);
        (verdict.outcome, verdict.winner)
    }

    #[test]
    fn two_of_three_that_say_the_same_are_a_majority() {
        let verdict = judge(&[("a", "The answer is 42."), ("b", "41"), ("c", "**42**")]);
        assert_eq!(verdict, (VerdictOutcome::Majority, Some("a".into())));
    }

    #[test]
    fn of_a_majority_the_text_that_most_have_written_wins() {
        let answers = [("a", "2"), ("b", "2.0"), ("c", "**2.0**"), ("d", "2.0\n"), ("e", "7")];
        assert_eq!(judge(&answers), (VerdictOutcome::Majority, Some("b".into())));
    }

    #[test]
    fn half_is_no_majority_and_neither_is_one() {
        assert_eq!(judge(&[("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")]), (VerdictOutcome::Tie, None));
        assert_eq!(judge(&[("a", "1"), ("b", "2")]), (VerdictOutcome::Tie, None));
        assert_eq!(judge(&[("a", "1")]), (VerdictOutcome::Tie, None));
    }

    #[test]
    fn every_candidate_is_in_the_tally_with_its_cluster() {
        let answers = [
            Answer { candidate: "a", text: "so" },
            Answer { candidate: "b", text: "y" },
            Answer { candidate: "c", text: "so." },
        ];
        let votes: Vec<_> =
            consensus(&answers).votes.into_iter().map(|vote| (vote.voter, vote.candidate)).collect();
        let expected = [("cluster 1", "a"), ("cluster 1", "c"), ("cluster 2", "b")];
        assert_eq!(votes, expected.map(|(voter, candidate)| (voter.to_owned(), Some(candidate.to_owned()))));
    }

    const WORDS: [&str; 14] = [
        "42",
        "42.0",
        "**42**",
        "The answer is 42.",
        "So it is.\nFinal answer: 42",
        "Answer: 1\nAnswer: 42",
        "43",
        "3.1",
        "3.10",
        "Paris",
        "paris.",
        "5 mW",
        "5 MW",
        "London\nand more",
    ];

    proptest! {
        #[test]
        fn the_order_of_the_answers_decides_at_most_between_spellings(
            texts in proptest::collection::vec((0..WORDS.len()).prop_map(|at| WORDS[at].to_owned()), 1..7),
            seed in any::<u64>(),
        ) {
            let named: Vec<_> = texts.into_iter().enumerate().map(|(at, text)| (format!("c{at}"), text)).collect();
            let answers: Vec<_> = named.iter().map(|(candidate, text)| Answer { candidate, text }).collect();
            let shuffled: Vec<_> = crate::shuffle::order(answers.len(), seed).into_iter().map(|at| answers[at]).collect();
            let (one, other) = (consensus(&answers), consensus(&shuffled));
            prop_assert_eq!(one.outcome, other.outcome);
            let said = |winner: &Option<String>| {
                answers.iter().find(|one| Some(one.candidate) == winner.as_deref()).map(|one| key::key(one.text))
            };
            prop_assert_eq!(said(&one.winner), said(&other.winner));
            let of = |mut votes: Vec<Vote>| {
                votes.sort_by(|one, other| one.candidate.cmp(&other.candidate));
                votes
            };
            prop_assert_eq!(of(one.votes), of(other.votes));
        }

        #[test]
        fn any_text_is_clustered_with_itself(text in "\\PC{1,60}") {
            let answers = [Answer { candidate: "a", text: &text }, Answer { candidate: "b", text: &text }];
            prop_assert_eq!(consensus(&answers).outcome, VerdictOutcome::Majority);
        }
    }
}
