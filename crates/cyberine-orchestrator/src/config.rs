//! The `[orchestrate]` section of the configuration.

use std::time::Duration;

use cyberine_provider::Limits;
use cyberine_run_store::Choice;
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan::Gate;

/// The longest an approval can be waited for, in seconds: 30 days.
const MAX_APPROVAL_SECONDS: u64 = 30 * 24 * 60 * 60;

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
    /// How many candidates must have answered for judging to take place; never more than there
    /// are candidates.
    pub quorum: usize,
    /// How many candidates are asked at once.
    pub max_parallel: usize,
    /// Whether `llm-judge` decides (and is paid for) also where `consensus` has found a majority.
    pub judge_always: bool,
    /// The longest silence of a provider, in seconds; a provider's own `idle_seconds` goes before.
    pub idle_seconds: u64,
    /// The longest turn of a provider, in seconds; a provider's own `wall_seconds` goes before.
    pub wall_seconds: u64,
    /// Whether somebody has to approve of a run before it is judged.
    pub approval: Approval,
    /// How long an approval is waited for, in seconds: from 1 to 2,592,000 (30 days).
    #[serde(deserialize_with = "approval_seconds")]
    pub approval_seconds: u64,
    /// What is taken for decided where nobody decides in that time.
    pub approval_default: Choice,
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
            max_parallel: 16,
            judge_always: false,
            idle_seconds: Limits::default().idle.as_secs(),
            wall_seconds: Limits::default().wall.as_secs(),
            approval: Approval::Never,
            approval_seconds: 3_600,
            approval_default: Choice::Reject,
        }
    }
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
    /// More than half say the same. Calls no model.
    Consensus,
    /// A model compares the answers, in both orders.
    LlmJudge,
}

impl JudgeKind {
    /// The name in configuration and verdicts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consensus => crate::consensus::CONSENSUS,
            Self::LlmJudge => crate::llm_judge::LLM_JUDGE,
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
    fn a_judge_has_one_name_everywhere() {
        for kind in [JudgeKind::Consensus, JudgeKind::LlmJudge] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
