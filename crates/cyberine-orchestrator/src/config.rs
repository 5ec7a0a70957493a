//! The `[orchestrate]` section of the configuration.

mod misfit;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cyberine_provider::Limits;
use cyberine_run_store::Choice;
use cyberine_types::is_blank;
use serde::{Deserialize, Deserializer, Serialize};

use crate::criteria::Criterion;
use crate::plan::Gate;
use crate::trial::JudgeCommand;
pub use misfit::Misfit;

/// The longest an approval can be waited for, in seconds: 30 days.
const MAX_APPROVAL_SECONDS: u64 = 30 * 24 * 60 * 60;
/// How long one is waited for where nobody says so.
const DEFAULT_APPROVAL_SECONDS: u64 = 3_600;

/// The most rounds.
const MAX_ROUNDS: usize = 5;
/// How often a turn is asked again where nobody says so.
pub(crate) const DEFAULT_RETRIES: u32 = 3;
/// The most often.
const MAX_RETRIES: u32 = 10;
/// The longest persona, in bytes.
const MAX_PERSONA: usize = 8 << 10;
/// The most samples of one provider.
const MAX_SAMPLES: usize = 8;

/// How one prompt is put to many providers and who judges. Every key has a default; an unknown
/// key is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrchestrateConfig {
    /// The providers to ask, by name. Empty: every configured provider.
    pub candidates: Vec<String>,
    /// The judges, in the order they decide. A majority found by `consensus` counts before any
    /// other verdict.
    pub judges: Vec<JudgeKind>,
    /// The providers that may judge, by name, in order of preference; those that are no
    /// candidates are asked first. Empty: the candidates themselves.
    pub judge_providers: Vec<String>,
    /// How many candidates must have answered for judging to take place: at least one, and never
    /// more than there are candidates.
    #[serde(deserialize_with = "quorum")]
    pub quorum: usize,
    /// How many answers suffice, at least 1 and at least the quorum: once they are there, the
    /// other candidates are stopped. Unset: every candidate is waited for.
    #[serde(deserialize_with = "first", skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// How often the candidates are asked at most, from 1 to 5: as long as there is neither a
    /// majority nor a winner, those that answered are shown each other's answers and asked again.
    #[serde(deserialize_with = "rounds")]
    pub rounds: usize,
    /// How many candidates are asked at once, at least one.
    #[serde(deserialize_with = "max_parallel")]
    pub max_parallel: usize,
    /// How often a turn is asked again that failed without having been let in: from 0 to 10.
    #[serde(deserialize_with = "retries")]
    pub retries: u32,
    /// Whether the later judges decide (and are paid for) also where there is a winner already.
    pub judge_always: bool,
    /// Whether `consensus` has a model compare the answers that are not equal word for word.
    pub equivalence: bool,
    /// A file with the criteria that take the place of the usual ones, at most 16 KiB; relative
    /// to the file that names it.
    pub rubric: Option<PathBuf>,
    /// The same criteria as text, in place of a file.
    pub rubric_text: Option<String>,
    /// What of the rubric is scored one by one: no key, but read from the file that `rubric` names.
    #[serde(skip)]
    pub criteria: Vec<Criterion>,
    /// What the judge `command` runs.
    pub judge_command: Option<JudgeCommand>,
    /// The longest silence of a provider, in seconds, at least one; a provider's own `idle_seconds` goes before.
    #[serde(deserialize_with = "idle_seconds")]
    pub idle_seconds: u64,
    /// The longest turn of a provider, in seconds, at least one; a provider's own `wall_seconds` goes before.
    #[serde(deserialize_with = "wall_seconds")]
    pub wall_seconds: u64,
    /// Whether somebody has to approve of a run before it is judged.
    pub approval: Approval,
    /// How long an approval is waited for, in seconds: from 1 to 2,592,000 (30 days).
    #[serde(deserialize_with = "approval_seconds")]
    pub approval_seconds: u64,
    /// What is taken for decided where nobody decides in that time.
    pub approval_default: Choice,
    /// How single providers are asked as candidates, by the providers' names.
    pub roles: BTreeMap<String, RoleConfig>,
}

/// How a provider is asked as a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleConfig {
    /// Standing instructions, put before the task; at most 8 KiB.
    #[serde(deserialize_with = "persona", skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// How many candidates it is, each asked for itself: from 1 to 8.
    #[serde(deserialize_with = "samples")]
    pub samples: usize,
    /// The model to ask, with the same credentials, where the provider's own does not answer.
    #[serde(deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
}

impl Default for RoleConfig {
    fn default() -> Self {
        Self { persona: None, samples: 1, fallback_model: None }
    }
}

impl OrchestrateConfig {
    pub(crate) fn gate(&self) -> Option<Gate> {
        let gate = Gate { seconds: self.approval_seconds, on_expiry: self.approval_default };
        (self.approval == Approval::Required).then_some(gate)
    }

    pub(crate) fn limits(&self) -> Limits {
        let seconds = |seconds: u64| Duration::from_secs(seconds.max(1));
        Limits { idle: seconds(self.idle_seconds), wall: seconds(self.wall_seconds), ..Limits::default() }
    }
}

impl Default for OrchestrateConfig {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            judges: vec![JudgeKind::Consensus, JudgeKind::LlmJudge],
            judge_providers: Vec::new(),
            quorum: 2,
            first: None,
            rounds: 1,
            max_parallel: 16,
            retries: DEFAULT_RETRIES,
            judge_always: false,
            equivalence: false,
            rubric: None,
            rubric_text: None,
            criteria: Vec::new(),
            judge_command: None,
            idle_seconds: Limits::default().idle.as_secs(),
            wall_seconds: Limits::default().wall.as_secs(),
            approval: Approval::Never,
            approval_seconds: DEFAULT_APPROVAL_SECONDS,
            approval_default: Choice::Reject,
            roles: BTreeMap::new(),
        }
    }
}

/// A number that must not be zero.
fn at_least_one<'de, D, N>(key: &str, input: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + PartialEq + Default,
{
    let number = N::deserialize(input)?;
    if number == N::default() {
        return Err(serde::de::Error::custom(format!(
            "`{key}` is 0, and must be at least 1; leave it out for the default"
        )));
    }
    Ok(number)
}

fn quorum<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    at_least_one("quorum", input)
}

fn max_parallel<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    at_least_one("max_parallel", input)
}

fn idle_seconds<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    at_least_one("idle_seconds", input)
}

fn wall_seconds<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    at_least_one("wall_seconds", input)
}

fn first<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(input)? {
        0 => Err(serde::de::Error::custom(
            "`first` is 0: at least one answer is needed; leave it out to wait for all",
        )),
        count => Ok(Some(count)),
    }
}

fn rounds<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    let count = usize::deserialize(input)?;
    if (1..=MAX_ROUNDS).contains(&count) {
        return Ok(count);
    }
    Err(serde::de::Error::custom(format!("`rounds` is {count}, and not from 1 to {MAX_ROUNDS}")))
}

fn retries<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    let count = u32::deserialize(input)?;
    if count <= MAX_RETRIES {
        return Ok(count);
    }
    Err(serde::de::Error::custom(format!("`retries` is {count}, and not from 0 to {MAX_RETRIES}")))
}

fn persona<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(input)?;
    if is_blank(&text) {
        return Err(serde::de::Error::custom("`persona` says nothing; leave it out"));
    }
    if text.len() > MAX_PERSONA {
        let said = format!("`persona` has {} bytes; it may have {MAX_PERSONA}", text.len());
        return Err(serde::de::Error::custom(said));
    }
    Ok(Some(text))
}

fn samples<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    let count = usize::deserialize(input)?;
    if (1..=MAX_SAMPLES).contains(&count) {
        return Ok(count);
    }
    Err(serde::de::Error::custom(format!("`samples` is {count}, and not from 1 to {MAX_SAMPLES}")))
}

fn named<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(input)?;
    if is_blank(&name) || name.chars().any(char::is_control) {
        return Err(serde::de::Error::custom(
            "`fallback_model` is no name of a model; leave it out to have none",
        ));
    }
    Ok(Some(name))
}

fn approval_seconds<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(input)?;
    if (1..=MAX_APPROVAL_SECONDS).contains(&seconds) {
        return Ok(seconds);
    }
    Err(serde::de::Error::custom(format!("{seconds} is not from 1 to {MAX_APPROVAL_SECONDS} seconds")))
}

/// Whether a run needs somebody's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// It goes on by itself.
    #[default]
    Never,
    /// Once its candidates are over and one of them has answered, it waits for a decision before
    /// anything is judged.
    Required,
}

/// A way to find the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgeKind {
    /// More than half say the same. Calls a model only where `equivalence` is on.
    Consensus,
    /// A model compares the answers, in both orders.
    LlmJudge,
    /// Models attack each answer; what survives is ranked.
    Adversarial,
    /// A program is run on each answer.
    Command,
}

impl JudgeKind {
    /// The name in configuration and verdicts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consensus => crate::consensus::CONSENSUS,
            Self::LlmJudge => crate::llm_judge::LLM_JUDGE,
            Self::Adversarial => crate::adversarial::ADVERSARIAL,
            Self::Command => crate::trial::COMMAND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_default_and_an_unknown_key_is_an_error() {
        assert_eq!(serde_json::from_str::<OrchestrateConfig>("{}").unwrap(), OrchestrateConfig::default());
        let config: OrchestrateConfig =
            serde_json::from_str(r#"{"judges":["llm-judge"],"quorum":1}"#).unwrap();
        assert_eq!((config.judges, config.quorum), (vec![JudgeKind::LlmJudge], 1));
        let error = serde_json::from_str::<OrchestrateConfig>(r#"{"quorom":1}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `quorom`"), "{error}");
    }

    #[test]
    fn an_approval_is_waited_for_at_least_a_second_and_at_most_thirty_days() {
        let config = |text: &str| serde_json::from_str::<OrchestrateConfig>(text);
        assert_eq!(config("{}").unwrap().gate(), None);
        let gate = config(r#"{"approval":"required"}"#).unwrap().gate();
        assert_eq!(gate, Some(Gate { seconds: 3_600, on_expiry: Choice::Reject }));
        let text = r#"{"approval":"required","approval_seconds":2592000,"approval_default":"approve"}"#;
        let gate = config(text).unwrap().gate();
        assert_eq!(gate, Some(Gate { seconds: 2_592_000, on_expiry: Choice::Approve }));
        for (wrong, said) in [
            (r#"{"approval_seconds":0}"#, "0 is not from 1 to 2592000 seconds"),
            (r#"{"approval_seconds":2592001}"#, "2592001 is not from 1"),
            (r#"{"approval_seconds":-1}"#, "u64"),
            (r#"{"approval":"sometimes"}"#, "unknown variant `sometimes`"),
            (r#"{"approval_default":"maybe"}"#, "unknown variant `maybe`"),
        ] {
            let error = config(wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_role_is_one_plain_candidate_unless_it_says_more_and_what_cannot_be_is_refused() {
        let config = |text: &str| serde_json::from_str::<OrchestrateConfig>(text);
        let plain = config(r#"{"roles":{"a":{}}}"#).unwrap();
        assert_eq!(plain.roles["a"], RoleConfig { persona: None, samples: 1, fallback_model: None });
        let text = r#"{"first":2,"roles":{"a":{"persona":"You doubt.","samples":8,"fallback_model":"m"}}}"#;
        let full = config(text).unwrap();
        assert_eq!((full.first, full.roles["a"].samples), (Some(2), 8));
        assert_eq!(full.roles["a"].persona.as_deref(), Some("You doubt."));
        assert_eq!(full.roles["a"].fallback_model.as_deref(), Some("m"));
        let again = serde_json::to_string(&full).unwrap();
        assert_eq!(config(&again).unwrap(), full);
        assert_eq!(config(&serde_json::to_string(&plain).unwrap()).unwrap(), plain);
        let role = |key: &str, value: &str| format!(r#"{{"roles":{{"a":{{"{key}":{value}}}}}}}"#);
        for (wrong, said) in [
            (r#"{"first":0}"#.to_owned(), "`first` is 0"),
            (r#"{"quorum":0}"#.to_owned(), "`quorum` is 0, and must be at least 1"),
            (r#"{"max_parallel":0}"#.to_owned(), "`max_parallel` is 0"),
            (r#"{"idle_seconds":0}"#.to_owned(), "`idle_seconds` is 0"),
            (r#"{"wall_seconds":0}"#.to_owned(), "`wall_seconds` is 0"),
            (r#"{"rounds":0}"#.to_owned(), "`rounds` is 0, and not from 1 to 5"),
            (r#"{"rounds":6}"#.to_owned(), "`rounds` is 6"),
            (r#"{"retries":11}"#.to_owned(), "`retries` is 11, and not from 0 to 10"),
            (role("samples", "0"), "`samples` is 0, and not from 1 to 8"),
            (role("samples", "9"), "`samples` is 9"),
            (role("persona", r#"" ""#), "`persona` says nothing"),
            (
                role("persona", &format!("\"{}\"", "x".repeat(8_193))),
                "`persona` has 8193 bytes; it may have 8192",
            ),
            (role("fallback_model", r#""""#), "no name of a model"),
            (role("sample", "2"), "unknown field `sample`"),
        ] {
            let error = config(&wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn a_judge_has_one_name_everywhere() {
        for kind in [JudgeKind::Consensus, JudgeKind::LlmJudge, JudgeKind::Adversarial, JudgeKind::Command] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
