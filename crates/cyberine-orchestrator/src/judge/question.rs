//! One question to one juror.

use std::borrow::Cow;

use cyberine_provider::Message;
use serde_json::{Value, json};

use super::Guidance;
use super::prompt::{self, label};
use crate::consensus::CONSENSUS;
use crate::criteria::Criterion;
use crate::{adversarial, llm_judge};

/// The longest reason in a reply, in characters.
pub(crate) const REASON_CHARS: usize = 500;

/// What a juror is asked of the texts it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Which is the best?
    Rank,
    /// How good is each, by every criterion of the rubric?
    Score {
        /// What is scored.
        criteria: Vec<Criterion>,
    },
    /// Do both say the same?
    Same,
    /// What is wrong with it?
    Attack,
    /// Of which is this claim true, so that it makes them useless?
    Confirm {
        /// What somebody holds against one of them.
        claim: String,
    },
}

impl Form {
    /// The name of the judge whose form it is.
    pub(crate) const fn judge(&self) -> &'static str {
        match self {
            Self::Rank | Self::Score { .. } => llm_judge::LLM_JUDGE,
            Self::Same => CONSENSUS,
            Self::Attack | Self::Confirm { .. } => adversarial::ADVERSARIAL,
        }
    }

    /// The standing instructions.
    pub(super) const fn instructions(&self) -> &'static str {
        match self {
            Self::Rank => {
                "You are an impartial judge. You are shown a task and several candidate answers to it, \
                 under labels that say nothing about where they come from. Score every candidate from 0 to 10 for: correctness, \
                 whether it does all that the task asks and nothing it forbids, and clarity without padding. Then name the best one, \
                 or `tie` where no candidate is better than every other. Neither length nor the place in the list is a merit."
            }
            Self::Score { .. } => {
                "You are an impartial judge. You are shown a rubric, a task and several candidate answers to it, \
                 under labels that say nothing about where they come from. Score every candidate from 0 to 10 for every criterion of the \
                 rubric, each criterion for itself: 0 where nothing of what it asks for is there, 10 where nothing is missing. Name no \
                 winner and add nothing up. Neither length nor the place in the list is a merit."
            }
            Self::Same => {
                "You compare two candidate answers to a task, under labels that say nothing about where they come from. \
                 Decide whether both give the same answer: whoever acts on one of them would do and believe the same as with the other. \
                 Wording, order, length and explanations do not matter. A different result, number, unit, condition or recommendation \
                 does. Whether they are right does not matter either. In doubt they are not the same."
            }
            Self::Attack => {
                "You are a critic. You are shown a task and one candidate answer to it, and look for what is wrong with the \
                 answer: what is false, what the task asks for and is missing, what it forbids and is there, what would fail in use. \
                 `fatal`: whoever relies on the answer is led wrong in what the task is about. `major`: an important part is wrong or missing. \
                 `minor`: anything else. Do not attack style. An answer without a fault has no attacks: an empty list is a good reply. \
                 Where the fault stands in words of the answer, quote them exactly. Call it \"the answer\", never by its label."
            }
            Self::Confirm { .. } => {
                "You check a claim. You are shown a task, several candidate answers to it under labels that say nothing about \
                 where they come from, and a claim that somebody holds against one of them; which one is not said. Decide for each candidate \
                 whether the claim is true of it and leads whoever relies on it wrong in what the task is about. The claim may be \
                 wrong. In doubt it is not true."
            }
        }
    }

    /// The reply that is asked for, in words.
    pub(super) fn reply(&self) -> Cow<'static, str> {
        let fixed = match self {
            Self::Score { criteria } => return Cow::Owned(scores_asked_for(criteria)),
            Self::Rank => {
                "{\"winner\": \"<label or tie>\", \"scores\": [{\"label\": \"<label>\", \"score\": <0 to 10>, \"reason\": \"<one sentence>\"}, …], \
                 \"rationale\": \"<why the winner is better, in at most five sentences>\"}. \
                 Give exactly one score for each candidate; no candidate may score higher than the winner."
            }
            Self::Same => "{\"same\": <true or false>, \"reason\": \"<one sentence>\"}.",
            Self::Attack => {
                "{\"attacks\": [{\"severity\": \"<fatal, major or minor>\", \"claim\": \"<what is wrong, in at most three sentences>\", \
                 \"quote\": \"<three or more words of the answer, exactly, or all of it; null where nothing can be quoted>\"}, …]}. \
                 At most eight attacks, the worst first."
            }
            Self::Confirm { .. } => {
                "{\"true_of\": [\"<label>\", …], \"reason\": \"<one sentence>\"}. \
                 The list is empty where the claim is true of none."
            }
        };
        Cow::Borrowed(fixed)
    }

    /// What is scored one by one.
    pub(super) fn criteria(&self) -> &[Criterion] {
        match self {
            Self::Score { criteria } => criteria,
            Self::Rank | Self::Same | Self::Attack | Self::Confirm { .. } => &[],
        }
    }

    /// The last line of the prompt.
    pub(super) const fn call(&self) -> &'static str {
        match self {
            Self::Rank => "Judge the candidates now.",
            Self::Score { .. } => "Score the candidates now.",
            Self::Same => "Compare the candidates now.",
            Self::Attack => "Attack the candidate now.",
            Self::Confirm { .. } => "Check the claim now.",
        }
    }
}

/// The form of a reply that scores candidates by `criteria`.
fn scores_asked_for(criteria: &[Criterion]) -> String {
    let scores: Vec<String> = criteria.iter().map(|one| format!("\"{}\": <0 to 10>", one.name)).collect();
    format!(
        "{{\"scores\": [{{\"label\": \"<label>\", \"criteria\": {{{}}}, \"reason\": \"<one sentence>\"}}, …], \
         \"rationale\": \"<what sets the candidates apart, in at most five sentences>\"}}. \
         Give exactly one entry for each candidate, and in it exactly one score for each criterion.",
        scores.join(", ")
    )
}

/// One question to one juror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The provider to ask.
    pub(crate) provider: String,
    /// What is asked.
    pub(crate) form: Form,
    /// The candidates' texts in the order to show.
    pub(crate) texts: Vec<String>,
    /// What was sent to guide the run, oldest first.
    pub(crate) guidance: Vec<Guidance>,
    /// The operator's criteria, in place of the usual ones.
    pub(crate) rubric: Option<String>,
    /// The reply that was not accepted and why, where this is the second try.
    pub(crate) repair: Option<(String, String)>,
}

impl Question {
    /// A question about `texts`, without what only the run knows.
    pub(crate) fn new(
        provider: &str,
        form: Form,
        texts: Vec<String>,
        repair: Option<&(String, String)>,
    ) -> Self {
        let (guidance, rubric) = (Vec::new(), None);
        Self { provider: provider.to_owned(), form, texts, guidance, rubric, repair: repair.cloned() }
    }

    /// The conversation to send. `draw` gives random tokens; one that occurs in no text is used.
    pub(crate) fn messages(&self, task: &str, draw: impl FnMut() -> String) -> Vec<Message> {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let words = self.guidance.iter().flat_map(|word| [word.from.as_str(), word.text.as_str()]);
        let claim = match &self.form {
            Form::Confirm { claim } => claim.as_str(),
            Form::Rank | Form::Score { .. } | Form::Same | Form::Attack => "",
        };
        let beside = [task, claim, self.rubric.as_deref().unwrap_or_default()];
        let all: Vec<&str> = texts.iter().copied().chain(beside).chain(words).collect();
        let token = prompt::fence(draw, &all);
        let messages = prompt::messages(self, task, &token);
        match &self.repair {
            Some((reply, problem)) => prompt::with_repair(messages, &self.form, reply, problem),
            None => messages,
        }
    }

    /// The JSON Schema the reply must satisfy.
    pub(crate) fn schema(&self) -> Value {
        let labels: Vec<String> = (0..self.texts.len()).map(label).collect();
        let reason = json!({ "type": "string", "maxLength": REASON_CHARS });
        let (properties, required) = match &self.form {
            Form::Rank => return llm_judge::schema(self.texts.len()),
            Form::Score { criteria } => return llm_judge::schema_by_criteria(labels.len(), criteria),
            Form::Attack => return adversarial::schema(),
            Form::Same => {
                (json!({ "same": { "type": "boolean" }, "reason": reason }), json!(["same", "reason"]))
            }
            Form::Confirm { .. } => {
                let most = labels.len();
                let named = json!({ "type": "array", "maxItems": most, "items": { "type": "string", "enum": labels } });
                (json!({ "true_of": named, "reason": reason }), json!(["true_of", "reason"]))
            }
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}
