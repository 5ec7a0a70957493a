//! Keys of `[orchestrate]` that could not do what they are there for: told, and never passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cyberine_provider::ProviderConfig;
use cyberine_run_store::Choice;

use super::{Approval, DEFAULT_APPROVAL_SECONDS, JudgeKind, OrchestrateConfig, RoleConfig};

/// A key of `[orchestrate]` that has no effect beside the others, or names what is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The key, below `orchestrate`: `["rounds"]`, `["roles", "a", "fallback_model"]`.
    pub key: Vec<String>,
    /// What is wrong with it and what to do, to follow the key in a sentence.
    pub problem: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tables, key) = self.key.split_at(self.key.len().saturating_sub(1));
        let tables: String = tables.iter().map(|table| format!(".{table}")).collect();
        write!(out, "`[orchestrate{tables}] {}` {}", key.join("."), self.problem)
    }
}

impl std::error::Error for Misfit {}

type Checked = Result<(), Misfit>;

fn misfit(key: &[&str], problem: impl Into<String>) -> Misfit {
    Misfit { key: key.iter().map(|part| (*part).to_owned()).collect(), problem: problem.into() }
}

/// An error where `wrong`.
fn refuse(wrong: bool, key: &[&str], problem: impl FnOnce() -> String) -> Checked {
    if wrong { Err(misfit(key, problem())) } else { Ok(()) }
}

impl OrchestrateConfig {
    /// Checks that every key can do what it is there for, with these providers. Where none is
    /// configured it is found out later whom there is, and nothing is said of names and numbers.
    ///
    /// # Errors
    /// The first key that could not.
    pub fn check(&self, providers: &BTreeMap<String, ProviderConfig>) -> Checked {
        if !providers.is_empty() {
            self.check_names(providers)?;
            self.check_roles(providers)?;
        }
        self.check_judges()?;
        self.check_numbers(providers)?;
        let waits = self.approval == Approval::Required;
        let unread = || {
            "has no effect: `approval` is \"never\"; set `approval = \"required\"`, or leave it out"
                .to_owned()
        };
        refuse(!waits && self.approval_seconds != DEFAULT_APPROVAL_SECONDS, &["approval_seconds"], unread)?;
        refuse(!waits && self.approval_default != Choice::Reject, &["approval_default"], unread)
    }

    fn check_names(&self, providers: &BTreeMap<String, ProviderConfig>) -> Checked {
        let roles: Vec<String> = self.roles.keys().cloned().collect();
        let lists =
            [("candidates", &self.candidates), ("judge_providers", &self.judge_providers), ("roles", &roles)];
        for (key, names) in lists {
            let mut seen = BTreeSet::new();
            for name in names {
                refuse(!providers.contains_key(name), &[key], || {
                    let known: Vec<&str> = providers.keys().map(String::as_str).collect();
                    let known = known.join(", ");
                    format!("names the provider `{name}`, which is not configured; known are: {known}")
                })?;
                refuse(!seen.insert(name), &[key], || format!("names `{name}` twice; name it once"))?;
            }
        }
        Ok(())
    }

    fn check_roles(&self, providers: &BTreeMap<String, ProviderConfig>) -> Checked {
        for (name, role) in &self.roles {
            let asked = self.candidates.is_empty() || self.candidates.contains(name);
            refuse(!asked, &["roles", name], || {
                "has no effect: the provider is not among `candidates`; add it there, or take the role out"
                    .to_owned()
            })?;
            let (Some(provider), Some(model)) = (providers.get(name), &role.fallback_model) else { continue };
            let key = ["roles", name, "fallback_model"];
            refuse(provider.with_model(model).is_none(), &key, || {
                let kind = provider.kind();
                format!(
                    "cannot be asked for: what kind `{kind}` starts chooses its model itself; leave it out, or configure a second provider"
                )
            })?;
            refuse(provider.profile().model == Some(model), &key, || {
                format!(
                    "is `{model}`, the provider's own model, which has failed by then; name another, or leave it out (`retries` asks the same one again)"
                )
            })?;
        }
        Ok(())
    }

    fn check_judges(&self) -> Checked {
        let names = |kind: JudgeKind| self.judges.contains(&kind);
        for (at, kind) in self.judges.iter().enumerate() {
            refuse(self.judges[..at].contains(kind), &["judges"], || {
                format!("names `{}` twice; each judge decides once", kind.name())
            })?;
        }
        let runs = names(JudgeKind::Command);
        refuse(runs && self.judge_command.is_none(), &["judges"], || {
            "names `command`, and there is nothing to run: add `[orchestrate.judge_command]` with `command = [\"program\", \"argument\"]`, or take `command` out".to_owned()
        })?;
        refuse(!runs && self.judge_command.is_some(), &["judge_command"], || {
            "has no effect: `judges` does not name `command`; add it there, or take the section out"
                .to_owned()
        })?;
        refuse(self.equivalence && !names(JudgeKind::Consensus), &["equivalence"], || {
            "has no effect: `judges` does not name `consensus`, which alone compares; add it there, or leave this out"
                .to_owned()
        })?;
        let mut later = self.judges.iter().skip(1);
        let decides = later.any(|kind| *kind != JudgeKind::Consensus || self.equivalence);
        refuse(self.judge_always && !decides, &["judge_always"], || {
            "has no effect: after the first of `judges` there is none that costs anything; add one, or leave this out"
                .to_owned()
        })?;
        for (key, is_set) in [("rubric", self.rubric.is_some()), ("rubric_text", self.rubric_text.is_some())]
        {
            refuse(is_set && !self.asks_models(), &[key], || {
                "is read by nobody: add `llm-judge` or `adversarial` to `judges`, or leave it out".to_owned()
            })?;
        }
        refuse(self.rubric_has_criteria() && !self.scores(), &["rubric"], || {
            "has criteria, being TOML, and no judge scores by them: add `llm-judge` or `adversarial` to `judges`, or name a text"
                .to_owned()
        })
    }

    /// Whether the rubric is a file of criteria, which is told by its name.
    #[must_use]
    pub fn rubric_has_criteria(&self) -> bool {
        let extension = self.rubric.as_ref().and_then(|path| path.extension());
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
    }

    /// Whether any of the judges scores what the candidates answer.
    fn scores(&self) -> bool {
        self.judges.iter().any(|kind| matches!(kind, JudgeKind::LlmJudge | JudgeKind::Adversarial))
    }

    /// Whether any of the judges puts questions to a model.
    #[must_use]
    pub fn asks_models(&self) -> bool {
        self.judges.iter().any(|kind| match kind {
            JudgeKind::LlmJudge | JudgeKind::Adversarial => true,
            JudgeKind::Consensus => self.equivalence,
            JudgeKind::Command => false,
        })
    }

    /// How many candidates there are with these providers; `None` where that is found out later.
    #[must_use]
    pub fn count(&self, providers: &BTreeMap<String, ProviderConfig>) -> Option<usize> {
        let samples = |name: &String| self.roles.get(name).map_or(1, |role: &RoleConfig| role.samples);
        match (providers.is_empty(), self.candidates.is_empty()) {
            (true, _) => None,
            (false, true) => Some(providers.keys().map(samples).sum()),
            (false, false) => Some(self.candidates.iter().map(samples).sum()),
        }
    }

    fn check_numbers(&self, providers: &BTreeMap<String, ProviderConfig>) -> Checked {
        let count = self.count(providers);
        if let Some(first) = self.first {
            refuse(count.is_some_and(|count| first > count), &["first"], || {
                let count = count.unwrap_or_default();
                format!(
                    "is {first}, and there are {count} candidates: so many answers never come; lower it, or leave it out to wait for all"
                )
            })?;
            let quorum = self.quorum.clamp(1, count.unwrap_or(usize::MAX).max(1));
            refuse(first < quorum && !self.judges.is_empty(), &["first"], || {
                format!(
                    "is {first} and `quorum` is {quorum}: so few answers are never judged; lower `quorum`, or raise `first`"
                )
            })?;
        }
        let rounds = self.rounds;
        let never =
            |why: &str| format!("is {rounds}, and there is never a second round: {why}, or leave it out");
        refuse(rounds > 1 && self.judges.is_empty(), &["rounds"], || {
            never("nobody judges whether the candidates agree; name a judge in `judges`")
        })?;
        refuse(rounds > 1 && count.is_some_and(|count| count < 2), &["rounds"], || {
            never("there is one candidate; add one, or `samples`")
        })?;
        refuse(rounds > 1 && self.first == Some(1), &["rounds"], || {
            never("`first` is 1, and one answer is compared with nothing; raise `first`")
        })
    }
}

#[cfg(test)]
mod tests;
