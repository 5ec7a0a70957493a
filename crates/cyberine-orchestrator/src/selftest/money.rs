//! What an examination may cost, and what is left for it.

use cyberine_provider::{Limits, ProviderConfig};
use cyberine_run_store::Reserve;
use cyberine_types::{Usage, Usd};

use super::{Case, Examination, Group, Inquiry};
use crate::estimate::{Estimate, ProviderEstimate, Rate};
use crate::plan::{Plan, Planned};
use crate::purse::Purse;

/// What a judge is told beside the task and the answers, in bytes.
const FRAME: u64 = 4 << 10;
/// How long an answer of its own usually is, in bytes.
const OWN: u64 = 1 << 10;

/// What examining `judges` with `cases` may cost.
#[must_use]
pub fn estimate(judges: &[Planned], cases: &[Case], limits: Limits) -> Estimate {
    Estimate {
        providers: judges.iter().map(|judge| of(&judge.name, &judge.provider, cases, limits)).collect(),
    }
}

fn of(name: &str, provider: &ProviderConfig, cases: &[Case], limits: Limits) -> ProviderEstimate {
    let rate = Rate::of(provider, limits);
    let (least, most) = Examination::calls(cases);
    let bytes: u64 = cases.iter().map(bytes).max().unwrap_or_default();
    let times = |cost: Option<Usd>, calls: usize| {
        let calls = u64::try_from(calls).unwrap_or(u64::MAX);
        cost.map(|cost| Usd::from_micros(cost.micros().saturating_mul(calls)))
    };
    ProviderEstimate {
        provider: name.to_owned(),
        model: provider.profile().model.map(str::to_owned),
        billing: provider.billing(),
        candidate_turns: 0,
        judge_turns: u64::try_from(most).unwrap_or(u64::MAX),
        at_most: times(rate.at_most(bytes), most),
        likely: times(rate.likely(bytes), least.saturating_add(cases.len())),
    }
}

fn bytes(case: &Case) -> u64 {
    let own = if case.group == Group::Own { OWN } else { 0 };
    FRAME + own + (case.task.len() + case.good.len() + case.bad.len()) as u64
}

/// What an examination may still spend: asked before each question.
#[derive(Debug, Clone)]
pub struct Allowance {
    purse: Purse,
}

impl Allowance {
    /// What `reserve` holds, for the judges of `plan`.
    #[must_use]
    pub fn new(plan: &Plan, reserve: &Reserve) -> Self {
        Self { purse: Purse::new(plan, 0, reserve.amount, &reserve.shares) }
    }

    /// Takes out what `inquiry` can cost at most at this provider.
    ///
    /// # Errors
    /// Where so much is not left; the words say what is.
    pub fn take(&mut self, provider: &str, inquiry: &Inquiry) -> Result<(), String> {
        let bytes = inquiry.messages.iter().map(|message| message.text.len()).sum();
        self.purse.take_inquiry(provider, bytes).map_err(|refused| refused.to_string())
    }

    /// Settles the last question with what it used and, where it failed, how.
    pub fn settle(&mut self, usage: &Usage, failure: Option<&str>) {
        self.purse.settle_judge(usage, failure);
    }
}
