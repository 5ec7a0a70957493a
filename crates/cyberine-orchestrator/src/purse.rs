//! What a run may still spend: asked before each request that can cost money. Pure.

use std::collections::BTreeMap;
use std::fmt;

use cyberine_run_store::{Share, is_unbilled};
use cyberine_types::{CostBasis, Usage, Usd};

use crate::estimate::Rate;
use crate::judge::Question;
use crate::plan::Plan;

/// What a judge is told beside the task and what the run says, in bytes.
const INSTRUCTIONS: usize = 4 << 10;
/// The key of a judge's turn, of which there is one at a time. No candidate is called so.
const JUDGE: &str = "";

/// The money of one run, as far as it is known while the run runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Purse {
    /// What the run holds; `None` where it is not limited by what it holds.
    limit: Option<Usd>,
    /// What it holds at providers that have a cap of their own.
    shares: BTreeMap<String, Usd>,
    rates: BTreeMap<String, Rate>,
    /// What candidates that have a fallback model may cost with that, by their ids.
    fallbacks: BTreeMap<String, Rate>,
    /// The prompt's length in bytes, and what stands before it for each candidate.
    task: usize,
    personas: BTreeMap<String, usize>,
    spent: Usd,
    spent_at: BTreeMap<String, Usd>,
    /// Requests under way: at which provider, and the most that each can cost.
    open: BTreeMap<String, (String, Usd)>,
}

/// Why a request is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    at_most: Option<Usd>,
    left: Usd,
    limit: Usd,
    /// The provider whose cap it is; `None` where it is the run's.
    provider: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_most {
            Some(at_most) => write!(out, "budget: the next request can cost {at_most}")?,
            None => out.write_str("budget: nobody knows what the next request costs")?,
        }
        write!(out, ", and {} of the {} that this run holds", self.left, self.limit)?;
        match &self.provider {
            Some(provider) => {
                write!(out, " at `{provider}` are left; raise its cap in `[budget.providers]`")?
            }
            None => out.write_str(" are left; raise `[budget] run_usd`")?,
        }
        if self.at_most.is_some() { out.write_str(", or lower the provider's `max_tokens`") } else { Ok(()) }
    }
}

impl Purse {
    /// The purse of a run with a prompt of `task` bytes that holds `reserved`, of which `shares` say
    /// what is held where.
    pub(crate) fn new(plan: &Plan, task: usize, reserved: Usd, shares: &[Share]) -> Self {
        let all = plan.candidates.iter().chain(&plan.judge_providers);
        let rates =
            all.map(|planned| (planned.provider_name().to_owned(), Rate::of(&planned.provider, plan.limits)));
        let capped = shares.iter().filter(|share| share.daily_cap.is_some());
        Self {
            limit: [(reserved > Usd::ZERO).then_some(reserved), plan.run_cap].into_iter().flatten().min(),
            shares: capped.map(|share| (share.provider.clone(), share.amount)).collect(),
            rates: rates.collect(),
            fallbacks: plan
                .candidates
                .iter()
                .filter_map(|planned| {
                    Some((planned.name.clone(), Rate::of(&planned.fallback()?, plan.limits)))
                })
                .collect(),
            task,
            personas: plan
                .candidates
                .iter()
                .filter_map(|planned| Some((planned.name.clone(), planned.persona.as_ref()?.len())))
                .collect(),
            ..Self::default()
        }
    }

    /// Takes out what a candidate's turn can cost at most, where it is shown so many bytes beside
    /// the task.
    pub(crate) fn take_candidate(&mut self, id: &str, provider: &str, beside: usize) -> Result<(), Refused> {
        let bytes = self.prompt_of(id).saturating_add(beside);
        self.take(id, provider, self.rate(provider), bytes)
    }

    /// Takes out what its turn with the fallback model can cost at most.
    pub(crate) fn take_fallback(&mut self, id: &str, provider: &str, beside: usize) -> Result<(), Refused> {
        let (rate, bytes) = (self.fallbacks.get(id).copied(), self.prompt_of(id).saturating_add(beside));
        self.take(id, provider, rate.unwrap_or(Rate::Unknown), bytes)
    }

    /// Takes out what a judge's turn can cost at most.
    pub(crate) fn take_judge(&mut self, question: &Question) -> Result<(), Refused> {
        let texts: usize = question.texts.iter().map(String::len).sum();
        let words = question.guidance.iter().map(|word| word.from.len() + word.text.len()).sum::<usize>();
        let rubric = question.rubric.as_ref().map_or(0, String::len);
        let repair = question.repair.as_ref().map_or(0, |(reply, problem)| reply.len() + problem.len());
        let bytes =
            [texts, words, rubric, repair, INSTRUCTIONS].into_iter().fold(self.task, usize::saturating_add);
        self.take(JUDGE, &question.provider, self.rate(&question.provider), bytes)
    }

    /// As [`take_judge`](Self::take_judge), for a prompt of so many bytes outside of a run's course.
    pub(crate) fn take_inquiry(&mut self, provider: &str, bytes: usize) -> Result<(), Refused> {
        self.take(JUDGE, provider, self.rate(provider), bytes)
    }

    /// Settles the turn of a judge.
    pub(crate) fn settle_judge(&mut self, usage: &Usage, failure: Option<&str>) {
        self.settle(JUDGE, usage, failure);
    }

    fn rate(&self, provider: &str) -> Rate {
        self.rates.get(provider).copied().unwrap_or(Rate::Unknown)
    }

    fn prompt_of(&self, id: &str) -> usize {
        self.task.saturating_add(self.personas.get(id).copied().unwrap_or_default())
    }

    /// Takes out the most that a request with so many bytes of prompt can cost, under `key`. One whose
    /// cost nobody knows is made as long as anything is left.
    fn take(&mut self, key: &str, provider: &str, rate: Rate, bytes: usize) -> Result<(), Refused> {
        if rate == Rate::Free {
            return Ok(());
        }
        let at_most = rate.at_most(u64::try_from(bytes).unwrap_or(u64::MAX));
        let under_way = |at: Option<&str>| -> Usd {
            self.open.values().filter(|(name, _)| at.is_none_or(|at| at == name)).map(|(_, most)| *most).sum()
        };
        let here = self.spent_at.get(provider).copied().unwrap_or_default();
        let limits = [
            (self.limit, self.spent + under_way(None), None),
            (self.shares.get(provider).copied(), here + under_way(Some(provider)), Some(provider)),
        ];
        for (limit, used, of) in limits {
            let Some(limit) = limit else { continue };
            let left = limit.saturating_sub(used);
            if left == Usd::ZERO || at_most.is_some_and(|at_most| at_most > left) {
                return Err(Refused { at_most, left, limit, provider: of.map(str::to_owned) });
            }
        }
        self.open.insert(key.to_owned(), (provider.to_owned(), at_most.unwrap_or_default()));
        Ok(())
    }

    /// Whether requests are under way that may come out cheaper than they can.
    pub(crate) fn waits(&self) -> bool {
        self.open.values().any(|(_, at_most)| *at_most > Usd::ZERO)
    }

    /// Settles a request with what it used and, where it failed, how. What a request used that nobody
    /// told is taken for the most it can be.
    pub(crate) fn settle(&mut self, key: &str, usage: &Usage, failure: Option<&str>) {
        let Some((provider, at_most)) = self.open.remove(key) else { return };
        let refused = failure.is_some_and(is_unbilled) && *usage == Usage::default();
        let cost = match usage.basis {
            CostBasis::Included | CostBasis::Scripted => Usd::ZERO,
            CostBasis::Reported | CostBasis::Computed => usage.usd.unwrap_or_default(),
            CostBasis::Unknown if refused => Usd::ZERO,
            CostBasis::Unknown => usage.usd.unwrap_or_default().max(at_most),
        };
        self.spent += cost;
        *self.spent_at.entry(provider).or_default() += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OrchestrateConfig;
    use crate::plan::plan;

    /// A token costs a cent, and an answer has at most ten.
    const PRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m","max_tokens":10,
        "prices":{"input_usd_per_mtok":0.0,"output_usd_per_mtok":10000.0}}"#;
    const FREE: &str = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#;
    const UNPRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m"}"#;

    fn purse(reserved: f64, share: Option<f64>) -> Purse {
        let all = [("a", PRICED), ("b", PRICED), ("f", FREE), ("u", UNPRICED)]
            .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
        let plan = plan(&OrchestrateConfig::default(), &all.into(), 7).unwrap();
        let share = share.map(|amount| Share {
            provider: "a".to_owned(),
            billing: cyberine_types::Billing::Metered,
            amount: Usd::from_dollars(amount),
            daily_cap: Some(Usd::from_dollars(9.0)),
        });
        Purse::new(&plan, 9, Usd::from_dollars(reserved), share.as_slice())
    }

    fn used(dollars: f64) -> Usage {
        let usd = Some(Usd::from_dollars(dollars));
        Usage { output: 1, usd, basis: CostBasis::Computed, ..Usage::default() }
    }

    #[test]
    fn a_request_is_made_only_where_the_most_it_can_cost_is_left() {
        let mut purse = purse(0.25, None);
        purse.take_candidate("1", "a", 0).unwrap();
        purse.take_candidate("2", "b", 0).unwrap();
        let refused = purse.take_candidate("3", "a", 0).unwrap_err();
        let said =
            "budget: the next request can cost $0.10, and $0.05 of the $0.25 that this run holds are left";
        assert!(refused.to_string().starts_with(said), "{refused}");
        assert!(purse.waits());
        // One comes out cheaper than it could.
        purse.settle("1", &used(0.05), None);
        purse.take_candidate("3", "a", 0).unwrap();
        purse.settle("2", &used(0.10), None);
        purse.settle("3", &used(0.10), None);
        assert!(purse.take_candidate("4", "a", 0).is_err() && !purse.waits());
        assert_eq!(purse.take_candidate("5", "f", 0), Ok(()), "what is free is never refused");
    }

    #[test]
    fn what_nobody_knows_is_asked_as_long_as_anything_is_left() {
        let mut purse = purse(0.10, None);
        purse.take_candidate("1", "u", 0).unwrap();
        purse.settle("1", &Usage { output: 1, ..Usage::default() }, None);
        purse.take_candidate("2", "a", 0).unwrap();
        assert!(
            purse.take_candidate("3", "u", 0).unwrap_err().to_string().starts_with("budget: nobody knows")
        );
    }

    #[test]
    fn what_was_not_told_counts_for_the_most_it_can_be_unless_nothing_was_billed() {
        for (failure, left) in [(Some("timeout-wall"), false), (None, false), (Some("auth"), true)] {
            let mut purse = purse(0.15, None);
            purse.take_candidate("1", "a", 0).unwrap();
            purse.settle("1", &Usage::default(), failure);
            assert_eq!(purse.take_candidate("2", "a", 0).is_ok(), left, "{failure:?}");
        }
    }

    #[test]
    fn a_provider_with_a_cap_is_held_to_its_share() {
        let mut purse = purse(1.0, Some(0.15));
        purse.take_candidate("1", "a", 0).unwrap();
        let refused = purse.take_candidate("2", "a", 0).unwrap_err().to_string();
        assert!(
            refused.contains("$0.05 of the $0.15 that this run holds at `a` are left; raise its cap"),
            "{refused}"
        );
        purse.take_candidate("2", "b", 0).unwrap();
    }

    #[test]
    fn a_run_that_holds_nothing_is_not_limited_by_it() {
        let mut purse = purse(0.0, None);
        for key in ["1", "2", "3"] {
            purse.take_candidate(key, "a", 0).unwrap();
        }
    }
}
