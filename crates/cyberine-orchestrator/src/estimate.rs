//! What a run may cost, before it is dispatched.

use std::collections::BTreeMap;

use cyberine_provider::{Limits, Prices, ProviderConfig};
use cyberine_run_store::{CallerCap, Reserve, Share, is_caller};
use cyberine_types::{Billing, Usage, Usd};

use crate::config::JudgeKind;
use crate::plan::{Plan, Planned};

/// A token is at least this many bytes of text, on an average over a whole prompt: the upper side.
/// English has about four, code about three; other scripts have two to three bytes a character.
const BYTES_AT_LEAST: u64 = 2;
/// How many bytes of text a token usually has.
const BYTES_USUALLY: u64 = 4;
/// Tokens that frame a conversation, whatever is in it.
const FRAME_TOKENS: u64 = 300;
/// An answer that is as long as answers usually are, in tokens.
const USUAL_ANSWER: u64 = 1_000;
/// What a judge is told beside the task and the answers, guidance among it, in bytes.
const JUDGE_FRAME: u64 = 24 << 10;
/// What a candidate that is asked again is told beside the task and the answers, in bytes, and what
/// frames each answer.
const REVISION_FRAME: u64 = 4 << 10;
const ANSWER_FRAME: u64 = 256;
/// The most of one answer that anybody is shown, in bytes: 32,000 characters of a wide script.
const SHOWN_BYTES: u64 = 96_000;
/// The least a run that can cost money holds under a cap.
const LEAST_HOLD: Usd = Usd::from_micros(10_000);

/// What is known of the price of a provider's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    /// They cost nothing.
    Free,
    /// So much a token, and so many tokens of output at most.
    Priced(Prices, u32),
    /// Nobody knows: no price is known, or a program decides itself how often it asks, or its
    /// subscription may give way to a key.
    Unknown,
}

impl Rate {
    pub(crate) fn of(provider: &ProviderConfig, limits: Limits) -> Self {
        let profile = provider.profile();
        match (provider.billing(), profile.prices, profile.program) {
            (Billing::Free | Billing::Scripted, ..) => Self::Free,
            (Billing::Metered, Some(prices), None) => {
                Self::Priced(prices, provider.limits(limits).max_tokens)
            }
            (Billing::Metered | Billing::Subscription, ..) => Self::Unknown,
        }
    }

    /// The most that one turn with so many bytes of prompt can cost; `None` where nobody knows.
    pub(crate) fn at_most(&self, bytes: u64) -> Option<Usd> {
        self.cost(bytes.div_ceil(BYTES_AT_LEAST).saturating_add(FRAME_TOKENS), u64::MAX)
    }

    /// What one turn is likely to cost.
    pub(crate) fn likely(&self, bytes: u64) -> Option<Usd> {
        self.cost(bytes.div_ceil(BYTES_USUALLY), USUAL_ANSWER)
    }

    fn cost(&self, input: u64, output: u64) -> Option<Usd> {
        match self {
            Self::Free => Some(Usd::ZERO),
            Self::Priced(prices, max_tokens) => {
                prices.of(&Usage { input, output: output.min(u64::from(*max_tokens)), ..Usage::default() })
            }
            Self::Unknown => None,
        }
    }

    /// The most bytes of an answer that anybody may be shown.
    fn shown(&self) -> u64 {
        match self {
            Self::Priced(_, max_tokens) => SHOWN_BYTES.min(u64::from(*max_tokens) * 8),
            Self::Free | Self::Unknown => SHOWN_BYTES,
        }
    }
}

/// What the turns of one provider may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderEstimate {
    /// The provider's configured name.
    pub provider: String,
    /// Its model, where known.
    pub model: Option<String>,
    /// How it is paid for.
    pub billing: Billing,
    /// How often it is asked as a candidate at most, fallbacks and further rounds among it.
    pub candidate_turns: u64,
    /// How often it is asked as a judge at most, where every judge before it fails.
    pub judge_turns: u64,
    /// The most it can cost; `None` where nobody knows.
    pub at_most: Option<Usd>,
    /// What it is likely to cost; `None` where nobody knows.
    pub likely: Option<Usd>,
}

impl ProviderEstimate {
    /// Counts the turns of one candidate's model: one with so many bytes of prompt, and one with
    /// `again` more for every further round.
    fn take_candidate(&mut self, rate: Rate, bytes: u64, again: u64, rounds: u64) {
        self.candidate_turns += rounds;
        self.at_most = plus(self.at_most, rate.at_most(bytes), 1);
        if rounds > 1 {
            self.at_most = plus(self.at_most, rate.at_most(bytes.saturating_add(again)), rounds - 1);
        }
    }

    const fn can_cost(&self) -> bool {
        matches!(self.billing, Billing::Metered | Billing::Subscription)
    }
}

/// What a run may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// By provider, in the order of their names.
    pub providers: Vec<ProviderEstimate>,
}

impl Estimate {
    /// What `plan` may cost for a prompt of so many bytes: at most where every round takes place, and
    /// likely where the first decides.
    #[must_use]
    pub fn of(plan: &Plan, prompt_bytes: usize) -> Self {
        let prompt = u64::try_from(prompt_bytes).unwrap_or(u64::MAX);
        let mut all: BTreeMap<&str, ProviderEstimate> = BTreeMap::new();
        let rate = |planned: &Planned| Rate::of(&planned.provider, plan.limits);
        let rounds = u64::try_from(plan.most_rounds()).unwrap_or(u64::MAX);
        let shown: u64 = plan.candidates.iter().map(|planned| rate(planned).shown()).sum();
        let again = shown
            .saturating_add(REVISION_FRAME)
            .saturating_add((plan.candidates.len() as u64).saturating_mul(ANSWER_FRAME));
        for planned in &plan.candidates {
            let persona = planned.persona.as_ref().map_or(0, |persona| persona.len() as u64);
            let known = entry(&mut all, planned);
            let bytes = prompt.saturating_add(persona);
            known.take_candidate(rate(planned), bytes, again, rounds);
            known.likely = plus(known.likely, rate(planned).likely(bytes), 1);
            if let Some(fallback) = planned.fallback() {
                known.take_candidate(Rate::of(&fallback, plan.limits), bytes, again, rounds);
            }
        }
        let most = prompt.saturating_add(shown).saturating_add(JUDGE_FRAME);
        let likely = prompt.saturating_add(
            (plan.candidates.len() as u64).saturating_mul(USUAL_ANSWER * BYTES_USUALLY).saturating_add(2_000),
        );
        let is_candidate =
            |juror: &Planned| plan.candidates.iter().any(|one| one.provider_name() == juror.name);
        let mut jurors: Vec<&Planned> = plan.judge_providers.iter().collect();
        jurors.sort_by_key(|juror| is_candidate(juror));
        for (place, juror) in jurors.iter().enumerate() {
            let (turns, usual) = judge_turns(plan, place);
            let known = entry(&mut all, juror);
            let turns = turns.saturating_mul(rounds);
            known.judge_turns += turns;
            if turns > 0 {
                known.at_most = plus(known.at_most, rate(juror).at_most(most), turns);
                known.likely = plus(known.likely, rate(juror).likely(likely), usual);
            }
        }
        Self { providers: all.into_values().collect() }
    }

    /// The most that is known the run can cost, and whether that is all of it.
    #[must_use]
    pub fn at_most(&self) -> (Usd, bool) {
        sum(self.providers.iter().map(|one| one.at_most))
    }

    /// What is known the run is likely to cost, and whether that is all of it.
    #[must_use]
    pub fn likely(&self) -> (Usd, bool) {
        sum(self.providers.iter().map(|one| one.likely))
    }

    /// What a run of `caller` holds under `caps`: at each provider that can cost money the most it
    /// can come to, and `caps.unknown` where nobody knows that; together at most the larger of
    /// `caps.run` and what it holds where nobody knows; and nowhere more than a whole cap.
    #[must_use]
    pub fn reserve(&self, caps: &Caps, caller: &str) -> Reserve {
        let paid = self.providers.iter().filter(|one| one.can_cost());
        let mut most = caps.run;
        let shares: Vec<Share> = paid
            .map(|one| {
                let daily_cap = caps.providers.get(&one.provider).copied();
                let amount = match one.at_most {
                    Some(estimate) => estimate.max(LEAST_HOLD).min(caps.run),
                    None => {
                        most = most.max(caps.unknown);
                        caps.unknown
                    }
                };
                let amount = within(amount, daily_cap);
                Share { provider: one.provider.clone(), billing: one.billing, amount, daily_cap }
            })
            .collect();
        if shares.is_empty() {
            return Reserve::default();
        }
        let caller_caps: Vec<CallerCap> = caps
            .callers
            .iter()
            .filter(|(named, _)| is_caller(named, caller))
            .map(|(named, cap)| CallerCap { caller: named.clone(), daily_cap: *cap })
            .collect();
        let together: Usd = shares.iter().map(|share| share.amount).sum();
        let amount =
            caller_caps.iter().fold(together.min(most), |amount, one| within(amount, Some(one.daily_cap)));
        Reserve { amount, daily_cap: caps.daily, shares, caller_caps }
    }
}

/// What limits the money of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caps {
    /// The most that one run may spend.
    pub run: Usd,
    /// What a run holds at a provider of which nobody knows what it costs.
    pub unknown: Usd,
    /// The most in one UTC day. `None`: no cap.
    pub daily: Option<Usd>,
    /// The most in one UTC day by provider.
    pub providers: BTreeMap<String, Usd>,
    /// The most in one UTC day by caller: see [`is_caller`].
    pub callers: BTreeMap<String, Usd>,
}

/// `amount`, or all of a cap that is smaller. A cap of nothing refuses whatever is held.
fn within(amount: Usd, cap: Option<Usd>) -> Usd {
    cap.filter(|cap| *cap > Usd::ZERO).map_or(amount, |cap| amount.min(cap))
}

fn entry<'all, 'plan>(
    all: &'all mut BTreeMap<&'plan str, ProviderEstimate>,
    planned: &'plan Planned,
) -> &'all mut ProviderEstimate {
    let name = planned.provider_name();
    all.entry(name).or_insert_with(|| ProviderEstimate {
        provider: name.to_owned(),
        model: planned.provider.profile().model.map(str::to_owned),
        billing: planned.provider.billing(),
        candidate_turns: 0,
        judge_turns: 0,
        at_most: Some(Usd::ZERO),
        likely: Some(Usd::ZERO),
    })
}

fn plus(known: Option<Usd>, turn: Option<Usd>, turns: u64) -> Option<Usd> {
    Some(known? + Usd::from_micros(turn?.micros().saturating_mul(turns)))
}

fn sum(costs: impl Iterator<Item = Option<Usd>>) -> (Usd, bool) {
    costs.fold((Usd::ZERO, true), |(sum, all), cost| (sum + cost.unwrap_or_default(), all && cost.is_some()))
}

/// How often the juror at `place` is asked at most, and how often it usually is.
fn judge_turns(plan: &Plan, place: usize) -> (u64, u64) {
    let count = plan.candidates.len() as u64;
    if count < 2 {
        return (0, 0);
    }
    let first = u64::from(place == 0);
    plan.judges.iter().fold((0, 0), |(most, usual), kind| {
        let (more, often) = match kind {
            JudgeKind::Consensus if plan.equivalence => (24, 4 * first),
            JudgeKind::Consensus | JudgeKind::Command => (0, 0),
            // Three showings, each with one repair; two are usual.
            JudgeKind::LlmJudge => (6, 2 * first),
            // An attack on each answer, three second looks at each, and a ranking; all with repairs.
            JudgeKind::Adversarial => (8 * count + 6, if place < 3 { count } else { 0 } + 2 * first),
        };
        (most + more, usual + often)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OrchestrateConfig;
    use crate::plan::plan;

    const PRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m","max_tokens":1000,
        "prices":{"input_usd_per_mtok":2.0,"output_usd_per_mtok":10.0}}"#;
    const FREE: &str = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#;
    const UNPRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m"}"#;

    fn planned(providers: &[(&str, &str)], config: &OrchestrateConfig) -> Plan {
        let all = providers
            .iter()
            .map(|(name, text)| ((*name).to_owned(), serde_json::from_str::<ProviderConfig>(text).unwrap()));
        plan(config, &all.collect(), 7).unwrap()
    }

    fn dollars(dollars: f64) -> Usd {
        Usd::from_dollars(dollars)
    }

    #[test]
    fn one_candidate_costs_its_prompt_and_its_longest_answer() {
        let plan = planned(&[("a", PRICED)], &OrchestrateConfig::default());
        let estimate = Estimate::of(&plan, 4_000);
        // 2,000 + 300 tokens at two dollars, 1,000 at ten; usually 1,000 and 1,000.
        assert_eq!(estimate.at_most(), (dollars(0.0146), true));
        assert_eq!(estimate.likely(), (dollars(0.012), true));
        assert_eq!((estimate.providers[0].candidate_turns, estimate.providers[0].judge_turns), (1, 0));
    }

    #[test]
    fn every_further_round_costs_the_answers_that_are_shown_and_a_judging() {
        let told = |rounds| {
            let config = OrchestrateConfig { rounds, ..OrchestrateConfig::default() };
            let plan = planned(&[("a", PRICED), ("b", FREE)], &config);
            Estimate::of(&plan, 4_000).providers.swap_remove(0)
        };
        let (one, three) = (told(1), told(3));
        assert_eq!((three.candidate_turns, three.judge_turns), (3, 3 * one.judge_turns));
        assert_eq!(three.likely, one.likely, "the first round is likely to decide");
        // An answer of `a` has 8,000 bytes at most and one of `b` as much as is shown.
        let shown = 8_000 + 96_000 + REVISION_FRAME + 2 * ANSWER_FRAME;
        let again = 2 * (4_000 + shown).div_ceil(2) + 2 * 300;
        let judging = 2 * 6 * ((4_000 + 8_000 + 96_000 + JUDGE_FRAME).div_ceil(2) + 300);
        let turns = Usd::from_micros(2 * (again + judging) + 10 * 1_000 * (2 + 2 * 6));
        assert_eq!(three.at_most, Some(one.at_most.unwrap() + turns));
    }

    #[test]
    fn what_nobody_knows_is_told_as_that() {
        let plan = planned(&[("a", PRICED), ("b", FREE), ("c", UNPRICED)], &OrchestrateConfig::default());
        let estimate = Estimate::of(&plan, 400);
        let told: Vec<_> = estimate.providers.iter().map(|one| one.at_most.is_some()).collect();
        assert_eq!((told, estimate.at_most().1), (vec![true, true, false], false));
        assert_eq!(estimate.providers[1].at_most, Some(Usd::ZERO));
        assert!(estimate.providers[0].judge_turns == 6, "{estimate:?}");
    }

    #[test]
    fn a_run_holds_its_estimate_and_never_more_than_a_cap() {
        let estimate = |providers: &[(&str, &str)]| {
            Estimate::of(&planned(providers, &OrchestrateConfig::default()), 4_000)
        };
        let caps = |run: f64| Caps { run: dollars(run), unknown: dollars(run), ..Caps::default() };
        let priced = estimate(&[("a", PRICED)]);
        assert_eq!(priced.reserve(&caps(1.0), "cli").amount, dollars(0.0146));
        assert_eq!(priced.reserve(&caps(0.01), "cli").amount, dollars(0.01));
        assert_eq!(estimate(&[("b", FREE)]).reserve(&caps(1.0), "cli"), Reserve::default());
        let unknown = estimate(&[("c", UNPRICED)]);
        assert_eq!(unknown.reserve(&caps(1.0), "cli").amount, dollars(1.0));
        let mut tight = caps(1.0);
        tight.providers.insert("c".to_owned(), dollars(0.4));
        tight.callers.insert("host".to_owned(), dollars(0.3));
        let held = unknown.reserve(&tight, "host@2");
        assert_eq!((held.amount, held.shares[0].amount), (dollars(0.3), dollars(0.4)));
        assert_eq!(unknown.reserve(&tight, "cli").amount, dollars(0.4));
        // A cap of nothing is one that nothing fits under, and not one that nothing is held under.
        tight.callers.insert("host".to_owned(), Usd::ZERO);
        assert_eq!(unknown.reserve(&tight, "host@2").amount, dollars(0.4));
    }
}
