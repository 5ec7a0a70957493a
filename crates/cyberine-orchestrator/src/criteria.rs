//! The criteria of a rubric: what an answer is scored for, and how much each score counts.

use cyberine_run_store::CriterionScore;
use serde::{Deserialize, Deserializer, Serialize};

/// The most criteria of a rubric.
const MAX_CRITERIA: usize = 12;
/// The longest name, in characters.
const MAX_NAME: usize = 40;
/// The largest weight.
const MAX_WEIGHT: u32 = 100;

/// One thing that every answer is scored for, from 0 to 10.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name, and the name of its score in a judge's reply: 1 to 40 of a-z, A-Z, 0-9, `_` and `-`.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// How much its score counts beside the others: from 1 to 100.
    #[serde(default = "one", deserialize_with = "weight")]
    pub weight: u32,
    /// What it asks for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A rubric whose criteria are scored one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rubric {
    /// All of it in words, as judges are shown it.
    pub text: String,
    /// The criteria, in their order.
    pub criteria: Vec<Criterion>,
}

/// Criteria that cannot be scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RubricError {
    /// None, or more than a judge keeps apart.
    #[error("it has {0} criteria, and must have from 1 to {MAX_CRITERIA}")]
    Count(usize),
    /// A name that two of them have.
    #[error("two of its criteria are named `{0}`; give one of them another name")]
    Twice(String),
}

impl Rubric {
    /// A rubric of `criteria`, with `about` said before them.
    ///
    /// # Errors
    /// Where there is no criterion, there are more than 12, or two have the same name.
    pub fn new(about: Option<&str>, criteria: Vec<Criterion>) -> Result<Self, RubricError> {
        if !(1..=MAX_CRITERIA).contains(&criteria.len()) {
            return Err(RubricError::Count(criteria.len()));
        }
        let twice =
            criteria.iter().enumerate().find(|(at, one)| named(&criteria[..*at], &one.name).is_some());
        if let Some((_, one)) = twice {
            return Err(RubricError::Twice(one.name.clone()));
        }
        let about = about.map(|about| format!("{}\n\n", about.trim())).unwrap_or_default();
        let text = criteria.iter().fold(about, |text, one| text + &line(one));
        Ok(Self { text, criteria })
    }
}

/// The place of the criterion of this name.
pub(crate) fn named(criteria: &[Criterion], name: &str) -> Option<usize> {
    criteria.iter().position(|one| one.name == name)
}

/// The mean of `scores`, one for each criterion in their order, by weight: from 0 to 10, to a
/// hundredth, so that no sum of fractions decides.
pub(crate) fn total(criteria: &[Criterion], scores: &[f64]) -> f64 {
    let weights: u32 = criteria.iter().map(|one| one.weight).sum();
    let sum: f64 = criteria.iter().zip(scores).map(|(one, score)| f64::from(one.weight) * score).sum();
    (sum / f64::from(weights.max(1)) * 100.0).round() / 100.0
}

/// The place of the highest total; `None` where two share it.
pub(crate) fn highest(totals: &[f64]) -> Option<usize> {
    let most = totals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut best = totals.iter().enumerate().filter(|(_, total)| **total >= most).map(|(at, _)| at);
    best.next().filter(|_| best.next().is_none())
}

/// `scores` with what each is for, as a verdict keeps them.
pub(crate) fn told(criteria: &[Criterion], scores: &[f64]) -> Vec<CriterionScore> {
    let one = |(criterion, score): (&Criterion, &f64)| CriterionScore {
        name: criterion.name.clone(),
        weight: criterion.weight,
        score: *score,
    };
    criteria.iter().zip(scores).map(one).collect()
}

fn line(criterion: &Criterion) -> String {
    let description = criterion.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let description = description.map(|text| format!(": {text}")).unwrap_or_default();
    format!("- {} (weight {}){description}\n", criterion.name, criterion.weight)
}

const fn one() -> u32 {
    1
}

fn name<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let name = String::deserialize(input)?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(good) {
        return Ok(name);
    }
    Err(serde::de::Error::custom(format!(
        "the name of a criterion has from 1 to {MAX_NAME} of a-z, A-Z, 0-9, `_` and `-`; put other words into `description`"
    )))
}

fn weight<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    let weight = u32::deserialize(input)?;
    if (1..=MAX_WEIGHT).contains(&weight) {
        return Ok(weight);
    }
    Err(serde::de::Error::custom(format!(
        "`weight` is {weight}, and not from 1 to {MAX_WEIGHT}; leave out a criterion that does not count"
    )))
}

#[cfg(test)]
mod tests;
