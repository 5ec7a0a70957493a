//! What a dispatch would do and cost, without doing it.

use cyberine_run_store::{Cap, Capped, DayTotals, Ledger, Reserve, StoreError};
use cyberine_types::{Billing, Usd, UtcDay};
use serde::Serialize;

use crate::estimate::Estimate;
use crate::plan::Plan;
use crate::purse::Purse;
use crate::supervisor::Supervisor;

/// What a dispatch would do and cost, as far as it can be told before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Who would be asked, by the candidates' ids.
    pub candidates: Vec<String>,
    /// The judges, in the order they would decide.
    pub judges: Vec<&'static str>,
    /// Who might judge.
    pub judge_providers: Vec<String>,
    /// What each of them may cost.
    pub providers: Vec<ProviderForecast>,
    /// The most that is known the run can cost; never less than `likely_usd`, and no bound where it is
    /// not `complete`.
    pub at_most_usd: Usd,
    /// What is known the run is likely to cost.
    pub likely_usd: Usd,
    /// Whether that is all of it: of some provider nobody may know what it costs.
    pub complete: bool,
    /// What the run would hold until it settles, and could not go beyond as far as costs are known.
    pub holds_usd: Usd,
    /// The caps it would have to fit under.
    pub caps: Vec<CapForecast>,
    /// Why it would be refused now, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What there is to know beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the turns of one provider may cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderForecast {
    /// The provider's name.
    pub provider: String,
    /// Its model, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is paid for.
    pub billing: Billing,
    /// How often it is asked as a candidate.
    pub candidate_turns: u64,
    /// How often it is asked as a judge at most.
    pub judge_turns: u64,
    /// The most it can cost; absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_usd: Option<Usd>,
    /// What it is likely to cost; absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_usd: Option<Usd>,
}

/// How one cap stands before the dispatch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapForecast {
    /// `day`, `provider` or `caller`.
    pub on: &'static str,
    /// The provider or caller it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The cap of one UTC day.
    pub cap_usd: Usd,
    /// What runs that are not over hold under it.
    pub held_usd: Usd,
    /// What runs that are over have spent under it.
    pub spent_usd: Usd,
    /// What is left.
    pub left_usd: Usd,
    /// What this run would hold under it.
    pub holds_usd: Usd,
}

impl CapForecast {
    fn of(capped: &Capped, totals: DayTotals) -> Self {
        let (on, name) = match &capped.of {
            Cap::Day => ("day", None),
            Cap::Provider(name) => ("provider", Some(name.clone())),
            Cap::Caller(name) => ("caller", Some(name.clone())),
        };
        Self {
            on,
            name,
            cap_usd: capped.cap,
            held_usd: totals.reserved,
            spent_usd: totals.spent,
            left_usd: capped.cap.saturating_sub(totals.reserved + totals.spent),
            holds_usd: capped.wanted,
        }
    }
}

impl Forecast {
    /// What a run of `plan` for a prompt of so many bytes, which would hold `reserve`, may cost, and
    /// how the caps stand on `day`.
    ///
    /// # Errors
    /// [`StoreError`] where the ledger cannot be read.
    pub async fn of(
        plan: &Plan,
        prompt_bytes: usize,
        estimate: &Estimate,
        reserve: &Reserve,
        ledger: &dyn Ledger,
        day: UtcDay,
    ) -> Result<Self, StoreError> {
        let (mut caps, mut refusal) = (Vec::new(), None);
        for capped in reserve.caps() {
            let totals = ledger.under(day, capped.of.clone()).await?;
            caps.push(CapForecast::of(&capped, totals));
            if let (None, Err(error)) = (&refusal, capped.check(totals)) {
                refusal = Some(format!("{error}. {}", error.advice()));
            }
        }
        if refusal.is_none() {
            refusal =
                Supervisor::afford(plan, estimate).err().map(|error| format!("{error}. {}", error.advice()));
        }
        if refusal.is_none() {
            let bars = Purse::bars(plan, prompt_bytes, reserve.amount, &reserve.shares);
            refusal = bars.map(|bars| format!("no candidate could be asked: {bars}"));
        }
        let ((at_most_usd, complete), (likely_usd, _)) = (estimate.at_most(), estimate.likely());
        let names = |all: &[crate::plan::Planned]| all.iter().map(|one| one.name.clone()).collect();
        Ok(Self {
            candidates: names(&plan.candidates),
            judges: plan.judges.iter().map(|kind| kind.name()).collect(),
            judge_providers: names(&plan.judge_providers),
            providers: estimate
                .providers
                .iter()
                .map(|one| ProviderForecast {
                    provider: one.provider.clone(),
                    model: one.model.clone(),
                    billing: one.billing,
                    candidate_turns: one.candidate_turns,
                    judge_turns: one.judge_turns,
                    at_most_usd: one.at_most,
                    likely_usd: one.likely,
                })
                .collect(),
            at_most_usd,
            likely_usd,
            complete,
            holds_usd: reserve.amount,
            caps,
            refusal,
            note: None,
        })
    }
}
