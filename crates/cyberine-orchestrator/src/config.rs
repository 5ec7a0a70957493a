//! The `[orchestrate]` section of the configuration.

use std::time::Duration;

use cyberine_provider::Limits;
use serde::{Deserialize, Serialize};

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
}

impl OrchestrateConfig {
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
        }
    }
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
    fn a_judge_has_one_name_everywhere() {
        for kind in [JudgeKind::Consensus, JudgeKind::LlmJudge] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
