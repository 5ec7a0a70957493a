//! What a run used, and what of it costs money.

use std::collections::BTreeMap;
use std::fmt;

use cyberine_types::{Billing, CostBasis, Usage, Usd};

use crate::event::RunState;
use crate::money::{Share, Used};
use crate::run::{CandidateError, Run};

/// The largest amount a run's record holds, about a billion dollars. Up to here an amount is the
/// same after a way through JSON, where it is a number of dollars in double precision, and it fits
/// the database's integers; a provider that claims to have used more is mistaken.
const MOST: Usd = Usd::from_micros(1 << 50);

/// Failures for which no provider charges where it told no tokens: the request was not made
/// (`budget`, `unreachable`), or turned away before a model read it. Whatever else ends a turn
/// (`cut`, `timeout-idle`, `cancelled`, `superseded`, `truncated`, `protocol`, `crashed`, `empty`,
/// `refused`, `too-long`) may have been billed.
const NOT_BILLED: [&str; 7] =
    ["unreachable", "auth", "billing", "rate-limit", "overloaded", "rejected", "budget"];

/// Whether a turn that failed like this, and told no use, was not charged for: its request was not
/// made, or not accepted.
#[must_use]
pub fn is_unbilled(code: &str) -> bool {
    NOT_BILLED.contains(&code)
}

/// One turn of a provider, of a candidate or of a judge.
struct Turn<'a> {
    provider: &'a str,
    billing: Billing,
    state: RunState,
    usage: &'a Usage,
    error: Option<&'a CandidateError>,
}

impl Turn<'_> {
    /// Whether it costs money per token: it is paid for like that, or has a price of its own, as
    /// that of a program has which went past its subscription to a key.
    fn is_metered(&self) -> bool {
        let refused = self.error.is_some_and(|error| is_unbilled(&error.code));
        let priced = matches!(self.usage.basis, CostBasis::Reported | CostBasis::Computed);
        match self.billing {
            Billing::Metered => !(refused && *self.usage == Usage::default()),
            Billing::Subscription | Billing::Free => priced,
            Billing::Scripted => false,
        }
    }

    /// What is known of its cost, and whether that is all of it.
    fn cost(&self) -> (Usd, bool) {
        match (self.usage.basis, self.usage.usd) {
            (CostBasis::Included | CostBasis::Scripted, _) => (Usd::ZERO, true),
            (CostBasis::Reported | CostBasis::Computed, Some(usd)) => (usd, true),
            // A sum of known and unknown costs carries the weaker basis: its amount is a lower bound.
            (_, usd) => (usd.unwrap_or_default(), false),
        }
    }
}

fn turns(run: &Run) -> impl Iterator<Item = Turn<'_>> {
    run.steps.iter().flat_map(|step| {
        let candidates = step.candidates.iter().map(|candidate| Turn {
            provider: &candidate.provider,
            billing: candidate.billing,
            state: candidate.state,
            usage: &candidate.usage,
            error: candidate.error.as_ref(),
        });
        let before = step.candidates.iter().filter_map(|candidate| {
            let failed = candidate.fell_back.as_ref()?;
            let (billing, state) = (candidate.billing, RunState::Error);
            let (provider, usage) = (candidate.provider.as_str(), &failed.usage);
            Some(Turn { provider, billing, state, usage, error: Some(&failed.error) })
        });
        let judging = step.judge_calls.iter().map(|call| Turn {
            provider: &call.judge,
            billing: call.billing,
            state: call.state,
            usage: &call.usage,
            error: call.error.as_ref(),
        });
        candidates.chain(before).chain(judging)
    })
}

/// What a settled run is charged: the sum of what it is charged by provider, see [`charges`].
#[must_use]
pub fn charge(run: &Run) -> Usd {
    bounded(by_provider(run, true).into_iter().filter_map(|charge| charge.spent).sum())
}

/// Of how many turns that are over nobody knows what they cost.
#[must_use]
pub fn unknown_turns(run: &Run) -> u64 {
    let unknown = |turn: &Turn<'_>| turn.state.is_terminal() && turn.is_metered() && !turn.cost().1;
    turns(run).filter(unknown).count() as u64
}

/// What a run holds, or was charged, at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The provider's name.
    pub provider: String,
    /// How it is paid for.
    pub billing: Billing,
    /// What is held until the run settles.
    pub held: Usd,
    /// What it was charged, once the run is over.
    pub spent: Option<Usd>,
    /// What was used, once the run is over.
    pub used: Used,
}

impl fmt::Display for Charge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}`: {} held", self.provider.escape_debug(), self.held)?;
        if let Some(spent) = self.spent {
            write!(out, ", {spent} spent")?;
        }
        let Used { turns, unknown_cost, input, output } = self.used;
        write!(out, ", turns {turns} ({unknown_cost} of unknown cost), tokens {input} in and {output} out")
    }
}

/// What a run holds and was charged, by provider, in the order of their names. Metered use, of
/// candidates and of judges, costs what is known of it; where some of a provider's has no known cost,
/// at least what was held there. A run that does not tell its reservation apart is charged at least
/// all of it, at the first such provider. Everything else costs no money.
#[must_use]
pub fn charges(run: &Run) -> Vec<Charge> {
    by_provider(run, run.state.is_terminal())
}

fn by_provider(run: &Run, over: bool) -> Vec<Charge> {
    let mut all: BTreeMap<&str, Charge> = BTreeMap::new();
    let new = |provider: &str, billing| Charge {
        provider: provider.to_owned(),
        billing,
        held: Usd::ZERO,
        spent: over.then_some(Usd::ZERO),
        used: Used::default(),
    };
    for share in &run.shares {
        let charge = all.entry(&share.provider).or_insert_with(|| new(&share.provider, share.billing));
        charge.held = bounded(charge.held + share.amount);
    }
    if !over {
        return all.into_values().collect();
    }
    for turn in turns(run) {
        let charge = all.entry(turn.provider).or_insert_with(|| new(turn.provider, turn.billing));
        let used = &mut charge.used;
        used.turns += 1;
        used.input = used.input.saturating_add(turn.usage.input);
        used.output = used.output.saturating_add(turn.usage.output);
        if turn.is_metered() {
            let (cost, known) = turn.cost();
            charge.spent = charge.spent.map(|spent| bounded(spent + cost));
            used.unknown_cost += u64::from(!known);
        }
    }
    let known: Usd = all.values().filter_map(|charge| charge.spent).sum();
    let mut untold = if run.shares.is_empty() { run.reserved.saturating_sub(known) } else { Usd::ZERO };
    for charge in all.values_mut().filter(|charge| charge.used.unknown_cost > 0) {
        let least = std::mem::take(&mut untold);
        charge.spent = charge.spent.map(|spent| bounded((spent + least).max(charge.held)));
    }
    all.into_values().collect()
}

/// What the turns of a run have used so far. A metered turn that is over and whose cost is not
/// known makes the cost of all of them unknown.
pub(crate) fn total(run: &Run) -> Usage {
    let mut total = turns(run).fold(Usage::default(), |sum, turn| sum.plus(turn.usage));
    if unknown_turns(run) > 0 {
        total.basis = CostBasis::Unknown;
    }
    total
}

/// An amount that a record can hold.
pub(crate) fn bounded(amount: Usd) -> Usd {
    amount.min(MOST)
}

/// A share whose amount a record can hold.
pub(crate) fn bounded_share(share: &Share) -> Share {
    Share { amount: bounded(share.amount), ..share.clone() }
}

/// A use whose cost a record can hold.
pub(crate) fn bounded_use(usage: &Usage) -> Usage {
    Usage { usd: usage.usd.map(bounded), ..*usage }
}
