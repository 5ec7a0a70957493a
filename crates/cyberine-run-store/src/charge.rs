//! What a run used, and what of it costs money.

use cyberine_types::{Billing, CostBasis, Usage, Usd};

use crate::event::RunState;
use crate::run::{CandidateError, Run};

/// The largest amount a run's record holds, about a billion dollars. Up to here an amount is the
/// same after a way through JSON, where it is a number of dollars in double precision, and it fits
/// the database's integers; a provider that claims to have used more is mistaken.
const MOST: Usd = Usd::from_micros(1 << 50);

/// Failures for which no provider charges: the request was not made, or not accepted.
const NOT_BILLED: [&str; 5] = ["unreachable", "auth", "billing", "rate-limit", "rejected"];

/// One turn of a provider, of a candidate or of a judge.
struct Turn<'a> {
    billing: Billing,
    state: RunState,
    usage: &'a Usage,
    error: Option<&'a CandidateError>,
}

impl Turn<'_> {
    /// Whether it costs money per token.
    fn is_metered(&self) -> bool {
        let refused = self.error.is_some_and(|error| NOT_BILLED.contains(&error.code.as_str()));
        self.billing == Billing::Metered && !(refused && *self.usage == Usage::default())
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
            billing: candidate.billing,
            state: candidate.state,
            usage: &candidate.usage,
            error: candidate.error.as_ref(),
        });
        let judging = step.judge_calls.iter().map(|call| Turn {
            billing: call.billing,
            state: call.state,
            usage: &call.usage,
            error: call.error.as_ref(),
        });
        candidates.chain(judging)
    })
}

/// What a settled run is charged. Metered use, of candidates and of judges, costs what is known of
/// it; where some metered use has no known cost, at least the whole reservation. Everything else
/// costs no money.
#[must_use]
pub fn charge(run: &Run) -> Usd {
    let (mut known, mut complete) = (Usd::ZERO, true);
    for turn in turns(run).filter(Turn::is_metered) {
        let (cost, all) = turn.cost();
        known += cost;
        complete &= all;
    }
    bounded(if complete { known } else { known.max(run.reserved) })
}

/// What the turns of a run have used so far. A metered turn that is over and whose cost is not
/// known makes the cost of all of them unknown.
pub(crate) fn total(run: &Run) -> Usage {
    let mut total = turns(run).fold(Usage::default(), |sum, turn| sum.plus(turn.usage));
    let unknown = |turn: Turn<'_>| turn.state.is_terminal() && turn.is_metered() && !turn.cost().1;
    if turns(run).any(unknown) {
        total.basis = CostBasis::Unknown;
    }
    total
}

/// An amount that a record can hold.
pub(crate) fn bounded(amount: Usd) -> Usd {
    amount.min(MOST)
}

/// A use whose cost a record can hold.
pub(crate) fn bounded_use(usage: &Usage) -> Usage {
    Usage { usd: usage.usd.map(bounded), ..*usage }
}
