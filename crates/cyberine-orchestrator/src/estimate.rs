//! What a run may cost, before it is dispatched.

use std::collections::BTreeMap;

use cyberine_provider::{Limits, Prices, ProviderConfig};
use cyberine_run_store::{CallerCap, Reserve, Share, is_caller};
use cyberine_types::{Billing, Usage, Usd};

use crate::config::JudgeKind;
use crate::plan::{Plan, Planned};

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
    /// Nobody knows: no price is known, or a program decides itself how often it asks.
    Unknown,
    /// They cost nothing as long as the subscription lasts; nobody knows what they cost on the key it
    /// may give way to.
    Subscription,
}

impl Rate {
    pub(crate) fn of(provider: &ProviderConfig, limits: Limits) -> Self {
        let profile = provider.profile();
        match (provider.billing(), profile.prices, profile.program) {
            (Billing::Free | Billing::Scripted, ..) => Self::Free,
            (Billing::Metered, Some(prices), None) => {
                Self::Priced(prices, provider.limits(limits).max_tokens)
            }
            (Billing::Metered, ..) => Self::Unknown,
            (Billing::Subscription, ..) => Self::Subscription,
        }
    }

    /// The most that one turn with so many bytes of prompt can cost; `None` where nobody knows. No
    /// token is shorter than a byte, and some tokenizers take every digit for one.
    pub(crate) fn at_most(&self, bytes: u64) -> Option<Usd> {
        let input = bytes.saturating_add(FRAME_TOKENS);
        self.cost(input, u64::MAX, |prices| dearest(prices, input))
    }

    /// What one turn is likely to cost.
    pub(crate) fn likely(&self, bytes: u64) -> Option<Usd> {
        self.cost(bytes.div_ceil(BYTES_USUALLY), USUAL_ANSWER, |prices| Some(*prices))
    }

    fn cost(&self, input: u64, output: u64, at: impl Fn(&Prices) -> Option<Prices>) -> Option<Usd> {
        match self {
            Self::Free => Some(Usd::ZERO),
            Self::Priced(prices, max_tokens) => at(prices)?.of(&Usage {
                input,
                output: output.min(u64::from(*max_tokens)),
                ..Usage::default()
            }),
            Self::Unknown | Self::Subscription => None,
        }
    }

    /// The most bytes of an answer that anybody may be shown.
    fn shown(&self) -> u64 {
        match self {
            Self::Priced(_, max_tokens) => SHOWN_BYTES.min(u64::from(*max_tokens) * 8),
            Self::Free | Self::Unknown | Self::Subscription => SHOWN_BYTES,
        }
    }
}

/// The dearest that a token of up to `input` can cost, whether it is read plainly or through a cache,
/// and whichever tier it comes to; `None` where nobody knows one of them.
fn dearest(prices: &Prices, input: u64) -> Option<Prices> {
    let long = prices.long.filter(|long| input > long.above_tokens);
    let long_input = match long {
        Some(long) => Some(long.input_usd_per_mtok?),
        None => None,
    };
    let read = [
        Some(prices.input_usd_per_mtok),
        prices.cached_read_usd_per_mtok,
        prices.cache_write_usd_per_mtok,
        long_input,
        long.and_then(|long| long.cached_read_usd_per_mtok),
        long.and_then(|long| long.cache_write_usd_per_mtok),
    ];
    let written = [Some(prices.output_usd_per_mtok), long.and_then(|long| long.output_usd_per_mtok)];
    Some(Prices {
        input_usd_per_mtok: read.into_iter().flatten().max()?,
        output_usd_per_mtok: written.into_iter().flatten().max()?,
        cached_read_usd_per_mtok: None,
        cache_write_usd_per_mtok: None,
        long: None,
    })
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
        let mut providers: Vec<ProviderEstimate> = all.into_values().collect();
        for one in &mut providers {
            // Where answers can only be short, a usual one is none that may come.
            one.likely = one.likely.map(|likely| one.at_most.map_or(likely, |most| likely.min(most)));
        }
        Self { providers }
    }

    /// The most that is known the run can cost, and whether that is all of it. What is only known to
    /// be likely is in it, and is not all.
    #[must_use]
    pub fn at_most(&self) -> (Usd, bool) {
        let (known, all) = sum(self.providers.iter().map(|one| one.at_most));
        (known + self.likely_unbounded(), all)
    }

    /// What is likely at providers of which nobody knows what they cost at most.
    fn likely_unbounded(&self) -> Usd {
        let unbounded = self.providers.iter().filter(|one| one.at_most.is_none());
        unbounded.map(|one| one.likely.unwrap_or_default()).sum()
    }

    /// What the run is likely to cost where nobody knows what at most, if that alone is more than it
    /// may spend: `cap`.
    #[must_use]
    pub fn beyond(&self, cap: Option<Usd>) -> Option<Usd> {
        let likely = self.likely_unbounded();
        cap.is_some_and(|cap| likely > cap).then_some(likely)
    }

    /// What is known the run is likely to cost, and whether that is all of it.
    #[must_use]
    pub fn likely(&self) -> (Usd, bool) {
        sum(self.providers.iter().map(|one| one.likely))
    }

    /// What a run of `caller` holds under `caps`: at each provider that can cost money the most it
    /// can come to, and `caps.unknown` where nobody knows that; together at most the larger of
    /// `caps.run` and what it holds where nobody knows. What is known is nowhere more than a whole
    /// cap: the run stops itself there. What nobody knows is cut to the home's own caps only, so that
    /// a cap which a project has lowered below it refuses the run.
    #[must_use]
    pub fn reserve(&self, caps: &Caps, caller: &str) -> Reserve {
        let paid = self.providers.iter().filter(|one| one.can_cost());
        let mut most = caps.run;
        let shares: Vec<Share> = paid
            .map(|one| {
                let daily_cap = caps.providers.get(&one.provider).copied();
                let amount = match one.at_most {
                    Some(estimate) => within(estimate.max(LEAST_HOLD).min(caps.run), daily_cap),
                    None => {
                        most = most.max(caps.unknown);
                        within(caps.unknown, caps.own.providers.get(&one.provider).copied())
                    }
                };
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
        let unknown = self.providers.iter().any(|one| one.can_cost() && one.at_most.is_none());
        let limits = caller_caps.iter().map(|one| {
            if unknown { caps.own.callers.get(&one.caller).copied() } else { Some(one.daily_cap) }
        });
        let day = if unknown { None } else { caps.daily };
        let amount = limits.chain([day]).fold(together.min(most), within);
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
    /// The home's own caps.
    pub own: OwnCaps,
}

/// The caps of a home, before a project has lowered any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnCaps {
    /// The most in one UTC day by provider.
    pub providers: BTreeMap<String, Usd>,
    /// The most in one UTC day by caller.
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
            // An attack on each answer, three second looks at each in two orders, and a ranking; all with
            // repairs.
            JudgeKind::Adversarial => (14 * count + 6, if place < 3 { count } else { 0 } + 2 * first),
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
        // 4,000 + 300 tokens at two dollars, 1,000 at ten; usually 1,000 and 1,000.
        assert_eq!(estimate.at_most(), (dollars(0.0186), true));
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
        let again = 2 * (4_000 + shown) + 2 * 300;
        let judging = 2 * 6 * (4_000 + 8_000 + 96_000 + JUDGE_FRAME + 300);
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
    fn the_most_is_of_the_dearest_way_to_read_and_of_every_tier_that_may_be_reached() {
        let rate = |prices: &str| {
            let text = PRICED.replace(r#""output_usd_per_mtok":10.0"#, prices);
            Rate::of(&serde_json::from_str(&text).unwrap(), Limits::default())
        };
        let written = r#""output_usd_per_mtok":10.0,"cache_write_usd_per_mtok":8.0"#;
        assert_eq!(rate(written).at_most(700), Some(dollars(0.018)), "1,000 tokens at eight dollars");
        let long = |price| format!(r#""output_usd_per_mtok":10.0,"long":{{"above_tokens":2000{price}}}"#);
        let (cheap, dear, none) = (
            rate(&long(r#","input_usd_per_mtok":1.0,"output_usd_per_mtok":1.0"#)),
            rate(&long(r#","input_usd_per_mtok":4.0,"output_usd_per_mtok":20.0"#)),
            rate(&long("")),
        );
        assert_eq!(cheap.at_most(2_700), Some(dollars(0.016)), "a prompt may come to fewer tokens");
        assert_eq!(dear.at_most(2_700), Some(dollars(0.032)));
        assert_eq!(dear.at_most(1_700), Some(dollars(0.014)), "what is not reached does not count");
        assert_eq!((none.at_most(1_700), none.at_most(2_700)), (Some(dollars(0.014)), None));
        assert_eq!(none.likely(2_700), Some(dollars(0.01135)));
    }

    #[test]
    fn the_most_is_never_less_than_what_is_likely() {
        let long = PRICED.replace(
            r#""output_usd_per_mtok":10.0"#,
            r#""output_usd_per_mtok":10.0,"long":{"above_tokens":2000}"#,
        );
        let plan = planned(&[("a", &long)], &OrchestrateConfig::default());
        let estimate = Estimate::of(&plan, 4_000);
        assert_eq!(
            (estimate.at_most(), estimate.likely()),
            ((dollars(0.012), false), (dollars(0.012), true))
        );
        assert_eq!(estimate.beyond(Some(dollars(0.01))), Some(dollars(0.012)));
        assert_eq!((estimate.beyond(Some(dollars(0.012))), estimate.beyond(None)), (None, None));
        let short = PRICED.replace("1000,", "1,");
        let config = OrchestrateConfig { judges: vec![JudgeKind::LlmJudge], ..OrchestrateConfig::default() };
        let names: Vec<String> = (0..60).map(|n| format!("c{n}")).collect();
        let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), short.as_str())).collect();
        let estimate = Estimate::of(&planned(&all, &config), 10);
        assert!(estimate.providers.iter().all(|one| one.likely <= one.at_most), "{estimate:?}");
    }

    #[test]
    fn a_run_holds_its_estimate_and_never_more_than_a_cap() {
        let estimate = |providers: &[(&str, &str)]| {
            Estimate::of(&planned(providers, &OrchestrateConfig::default()), 4_000)
        };
        let caps = |run: f64| Caps { run: dollars(run), unknown: dollars(run), ..Caps::default() };
        let priced = estimate(&[("a", PRICED)]);
        assert_eq!(priced.reserve(&caps(1.0), "cli").amount, dollars(0.0186));
        assert_eq!(priced.reserve(&caps(0.01), "cli").amount, dollars(0.01));
        assert_eq!(estimate(&[("b", FREE)]).reserve(&caps(1.0), "cli"), Reserve::default());
        let unknown = estimate(&[("c", UNPRICED)]);
        assert_eq!(unknown.reserve(&caps(1.0), "cli").amount, dollars(1.0));
        let mut tight = caps(1.0);
        tight.providers.insert("c".to_owned(), dollars(0.4));
        tight.callers.insert("host".to_owned(), dollars(0.3));
        let lowered = unknown.reserve(&tight, "host@2");
        assert_eq!((lowered.amount, lowered.shares[0].amount), (dollars(1.0), dollars(1.0)));
        let wanted: Vec<bool> = lowered.caps().iter().map(|one| one.wanted > one.cap).collect();
        assert_eq!(wanted, [true, true], "a project that lowers a cap has such runs refused");
        let known = priced.reserve(&tight, "host@2");
        assert_eq!(known.amount, dollars(0.0186));
        tight.daily = Some(dollars(0.01));
        assert_eq!(priced.reserve(&tight, "host@2").amount, dollars(0.01), "it stops itself there");
        tight.own = OwnCaps { providers: tight.providers.clone(), callers: tight.callers.clone() };
        let held = unknown.reserve(&tight, "host@2");
        assert_eq!((held.amount, held.shares[0].amount), (dollars(0.3), dollars(0.4)));
        assert_eq!(unknown.reserve(&tight, "cli").amount, dollars(0.4));
        // A cap of nothing is one that nothing fits under, and not one that nothing is held under.
        tight.callers.insert("host".to_owned(), Usd::ZERO);
        tight.own.callers.insert("host".to_owned(), Usd::ZERO);
        assert_eq!(unknown.reserve(&tight, "host@2").amount, dollars(0.4));
    }
}
