//! What a run may still spend: asked before each request that can cost money. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cyberine_run_store::{Share, is_unbilled};
use cyberine_types::{CostBasis, Usage, Usd};

use crate::estimate::Rate;
use crate::judge::Question;
use crate::plan::Plan;

/// What a judge is told beside the task and what the run says, in bytes.
pub(crate) const INSTRUCTIONS: usize = 4 << 10;
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
    /// Requests under way.
    open: BTreeMap<String, Open>,
    /// Providers whose subscription has given way to a key in this run.
    past: BTreeSet<String>,
}

/// A request under way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    provider: String,
    /// The most that it can cost, or what it is likely to, where nobody knows that.
    counted: Usd,
    /// Whether nobody knows what it costs, and it is paid for.
    unknown: bool,
}

/// Why a request is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Not so much is left.
    Dear {
        at_most: Option<Usd>,
        likely: Option<Usd>,
        left: Usd,
        limit: Usd,
        /// The provider whose cap it is; `None` where it is the run's.
        provider: Option<String>,
    },
    /// Nobody knows what it costs, nor what another one costs that is under way.
    Alone,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Dear { at_most, likely, left, limit, provider } = self else {
            return out.write_str("another request is under way of which nobody knows what it costs");
        };
        match (at_most, likely) {
            (Some(at_most), _) => write!(out, "the next request can cost {at_most}")?,
            (None, Some(likely)) => write!(out, "the next request is likely to cost {likely}")?,
            (None, None) => out.write_str("nobody knows what the next request costs")?,
        }
        write!(out, ", and {left} of the {limit} that this run holds")?;
        match provider {
            Some(provider) => {
                write!(out, " at `{provider}` are left; raise its cap in `[budget.providers]`")?
            }
            None => out.write_str(" are left; raise `[budget] run_usd`")?,
        }
        if at_most.is_some() { out.write_str(", or lower the provider's `max_tokens`") } else { Ok(()) }
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

    /// Why none of the candidates of `plan` could be asked; `None` where one could.
    pub(crate) fn bars(plan: &Plan, task: usize, reserved: Usd, shares: &[Share]) -> Option<Refused> {
        let whole = Self::new(plan, task, reserved, shares);
        let mut refused = plan
            .candidates
            .iter()
            .map(|planned| whole.clone().take_candidate(&planned.name, planned.provider_name(), 0).err());
        refused.next()?.filter(|_| refused.all(|refused| refused.is_some()))
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
    /// cost nobody knows is made as long as anything is left, or what it is likely to cost where that
    /// is known, and while no other such request is under way.
    fn take(&mut self, key: &str, provider: &str, rate: Rate, bytes: usize) -> Result<(), Refused> {
        if rate == Rate::Free {
            return Ok(());
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let (at_most, likely) = (rate.at_most(bytes), rate.likely(bytes));
        let under_way = |at: Option<&str>| -> Usd {
            let open = self.open.values().filter(|open| at.is_none_or(|at| at == open.provider));
            open.map(|open| open.counted).sum()
        };
        let here = self.spent_at.get(provider).copied().unwrap_or_default();
        let limits = [
            (self.limit, self.spent + under_way(None), None),
            (self.shares.get(provider).copied(), here + under_way(Some(provider)), Some(provider)),
        ];
        for (limit, used, of) in limits {
            let Some(limit) = limit else { continue };
            let left = limit.saturating_sub(used);
            if left == Usd::ZERO || at_most.or(likely).is_some_and(|cost| cost > left) {
                return Err(Refused::Dear { at_most, likely, left, limit, provider: of.map(str::to_owned) });
            }
        }
        let limited = self.limit.is_some() || self.shares.contains_key(provider);
        let paid = rate != Rate::Subscription || self.past.contains(provider);
        let unknown = limited && paid && at_most.is_none();
        if unknown && self.open.values().any(|open| open.unknown) {
            return Err(Refused::Alone);
        }
        let counted = at_most.or(likely).unwrap_or_default();
        self.open.insert(key.to_owned(), Open { provider: provider.to_owned(), counted, unknown });
        Ok(())
    }

    /// Whether requests are under way that may come out cheaper than they can, or whose cost is
    /// known once they are over.
    pub(crate) fn waits(&self) -> bool {
        self.open.values().any(|open| open.unknown || open.counted > Usd::ZERO)
    }

    /// Settles a request with what it used and, where it failed, how. What a request used that nobody
    /// told is taken for the most it can be.
    pub(crate) fn settle(&mut self, key: &str, usage: &Usage, failure: Option<&str>) {
        let Some(Open { provider, counted, .. }) = self.open.remove(key) else { return };
        let refused = failure.is_some_and(is_unbilled) && *usage == Usage::default();
        let cost = match usage.basis {
            CostBasis::Included | CostBasis::Scripted => Usd::ZERO,
            CostBasis::Reported | CostBasis::Computed => usage.usd.unwrap_or_default(),
            CostBasis::Unknown if refused => Usd::ZERO,
            CostBasis::Unknown => usage.usd.unwrap_or_default().max(counted),
        };
        self.spent += cost;
        *self.spent_at.entry(provider.clone()).or_default() += cost;
        if cost > Usd::ZERO {
            self.past.insert(provider);
        }
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

    /// Nobody knows what a turn costs that reads more than two thousand tokens.
    const LONG: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m","max_tokens":10,
        "prices":{"input_usd_per_mtok":100.0,"output_usd_per_mtok":10000.0,"long":{"above_tokens":2000}}}"#;
    const COVERED: &str = r#"{"kind":"claude-cli","billing":"subscription"}"#;

    fn planned() -> Plan {
        let all = [
            ("a", PRICED),
            ("b", PRICED),
            ("c", UNPRICED),
            ("f", FREE),
            ("l", LONG),
            ("s", COVERED),
            ("u", UNPRICED),
        ];
        let all = all.map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
        plan(&OrchestrateConfig::default(), &all.into(), 7).unwrap()
    }

    fn purse(reserved: f64, share: Option<f64>) -> Purse {
        let plan = planned();
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
        let said = "the next request can cost $0.10, and $0.05 of the $0.25 that this run holds are left";
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
        assert!(purse.take_candidate("3", "u", 0).unwrap_err().to_string().starts_with("nobody knows"));
    }

    #[test]
    fn requests_of_unknown_cost_are_made_one_after_another_until_what_is_held_is_spent() {
        let mut purse = purse(0.50, None);
        purse.take_candidate("1", "u", 0).unwrap();
        assert_eq!(purse.take_candidate("2", "u", 0), Err(Refused::Alone));
        assert_eq!(purse.take_candidate("2", "c", 0), Err(Refused::Alone));
        assert!(purse.waits());
        purse.take_candidate("3", "a", 0).unwrap();
        purse.settle("3", &used(0.05), None);
        purse.settle("1", &used(0.25), None);
        purse.take_candidate("2", "u", 0).unwrap();
        purse.settle("2", &used(0.25), None);
        assert!(matches!(purse.take_candidate("4", "u", 0), Err(Refused::Dear { .. })) && !purse.waits());
    }

    #[test]
    fn turns_of_a_subscription_go_together_until_one_has_cost_money() {
        let mut purse = purse(0.50, None);
        purse.take_candidate("1", "s", 0).unwrap();
        purse.take_candidate("2", "s", 0).unwrap();
        purse.settle("1", &used(0.10), None);
        purse.take_candidate("3", "s", 0).unwrap();
        assert_eq!(purse.take_candidate("4", "s", 0), Err(Refused::Alone));
    }

    #[test]
    fn a_request_of_which_only_the_likely_cost_is_known_is_counted_for_that() {
        let mut purse = purse(0.30, None);
        // A thousand tokens are likely, and nobody knows the price of more than two thousand.
        purse.task = 4_000;
        purse.take_candidate("1", "l", 0).unwrap();
        purse.settle("1", &used(0.20), None);
        let refused = purse.take_candidate("2", "l", 0).unwrap_err().to_string();
        assert!(refused.starts_with("the next request is likely to cost $0.20, and $0.10 of"), "{refused}");
    }

    #[test]
    fn what_bars_every_candidate_is_told_before_one_is_asked() {
        let bars = |reserved: f64, cap: Option<f64>| {
            let mut plan = planned();
            plan.candidates.retain(|one| matches!(one.name.as_str(), "a" | "u"));
            plan.run_cap = cap.map(Usd::from_dollars);
            Purse::bars(&plan, 9, Usd::from_dollars(reserved), &[]).map(|refused| refused.to_string())
        };
        assert_eq!(bars(0.05, None), None, "`u` can be asked");
        let none = bars(0.0, Some(0.0)).unwrap();
        assert!(none.starts_with("the next request can cost $0.10, and $0.00 of the $0.00"), "{none}");
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
