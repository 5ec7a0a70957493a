//! What all judges have in common: a pure step from one question, or one trial, to the next.

pub(crate) mod appeal;
pub(crate) mod bench;
pub(crate) mod family;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod reply;

use cyberine_run_store::Verdict;
use cyberine_types::Usage;

use crate::trial::{TrialError, TrialReport};
pub(crate) use bench::{Bench, Heard};
pub(crate) use question::{Form, Question};

/// The longest rationale of a verdict, in characters.
pub(crate) const RATIONALE_CHARS: usize = 4_000;

/// A candidate that answered, as the judge will be shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    /// The candidate's id. Judges never see it.
    pub(crate) id: String,
    /// The provider that wrote it.
    pub(crate) provider: String,
    /// The family of the model that wrote it, where known.
    pub(crate) family: Option<String>,
    /// The model that wrote it, where known.
    pub(crate) model: Option<String>,
    /// What it said. Not empty.
    pub(crate) text: String,
}

/// A provider that may judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Juror {
    /// The provider's name.
    pub(crate) provider: String,
    /// The family of its model, where known.
    pub(crate) family: Option<String>,
    /// Its model, where known.
    pub(crate) model: Option<String>,
    /// What is asked in the end: its program or address, and its model.
    pub(crate) source: Option<String>,
    /// What it has to do with the candidates.
    pub(crate) standing: Standing,
}

/// What a juror has to do with candidates, the least first: models favour what they have written
/// themselves, and what is written as they would.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Nothing that is known.
    Outside,
    /// Its model is of the same family as that of the candidate of this name.
    SameFamily(String),
    /// It uses the same model as the candidate of this name.
    SameModel(String),
    /// It is a candidate itself.
    Candidate,
}

impl Standing {
    /// How near, as a number to sort by.
    pub(crate) const fn nearness(&self) -> u8 {
        match self {
            Self::Outside => 0,
            Self::SameFamily(_) => 1,
            Self::SameModel(_) => 2,
            Self::Candidate => 3,
        }
    }
}

impl Juror {
    /// Whether this juror and `other` are one under two names.
    pub(crate) fn is_twin_of(&self, other: &Self) -> bool {
        self.provider == other.provider || (self.source.is_some() && self.source == other.source)
    }

    /// What this juror has to do with one candidate.
    pub(crate) fn standing_to(&self, contender: &Contender) -> Standing {
        let same = |own: &Option<String>, other: &Option<String>| own.is_some() && own == other;
        if self.provider == contender.provider {
            Standing::Candidate
        } else if same(&self.model, &contender.model) {
            Standing::SameModel(contender.id.clone())
        } else if same(&self.family, &contender.family) {
            Standing::SameFamily(contender.id.clone())
        } else {
            Standing::Outside
        }
    }

    /// What has to be said of it wherever it judges; empty where it is outside.
    pub(crate) fn caveat(&self, role: &str) -> String {
        let name = &self.provider;
        match &self.standing {
            Standing::Outside => String::new(),
            Standing::SameFamily(candidate) => {
                let family = self.family.as_deref().unwrap_or("unknown");
                format!(
                    "The model of the {role} `{name}` is of the same family ({family}) as that of `{candidate}`. "
                )
            }
            Standing::SameModel(candidate) => {
                format!("The {role} `{name}` uses the same model as `{candidate}`. ")
            }
            Standing::Candidate => format!("The {role} `{name}` is itself a candidate. "),
        }
    }
}

/// A word that was sent while the run ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guidance {
    /// Who claims to have sent it.
    pub(crate) from: String,
    pub(crate) text: String,
}

/// What judging needs next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Put this question to its provider.
    Ask(Question),
    /// Try the answer of the candidate with this id.
    Try(Attempt),
    /// It is over.
    Decided(Box<Ruling>),
}

/// One candidate's answer to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) candidate: String,
    pub(crate) text: String,
}

/// What a judge has come to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruling {
    pub(crate) verdict: Verdict,
    /// The candidates that later judges may still choose among; `None` for all of them.
    pub(crate) left: Option<Vec<String>>,
}

impl Ruling {
    /// A verdict that leaves everyone in.
    pub(crate) fn on_all(verdict: Verdict) -> Next {
        Next::Decided(Box::new(Self { verdict, left: None }))
    }
}

/// Judging in progress: pure, driven by the replies it is given.
pub(crate) trait Judge: std::fmt::Debug + Send {
    /// The judge's name in configuration and verdicts.
    fn name(&self) -> &'static str;

    /// What to do now. Guidance and rubric are the run's: whoever asks adds them.
    fn next(&self) -> Next;

    /// Takes the reply to the last question: its text, or how the turn failed.
    fn replied(&mut self, reply: Result<String, String>, usage: &Usage);

    /// Takes the outcome of the last trial.
    fn tried(&mut self, _outcome: Result<TrialReport, TrialError>) {}

    /// The provider that is asked, as long as one is.
    fn asked(&self) -> Option<&str>;

    /// What the judging has cost so far.
    fn usage(&self) -> Usage;
}
