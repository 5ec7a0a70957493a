//! Money held and spent by the runs in memory.

use std::collections::BTreeMap;

use cyberine_types::{Usd, UtcDay};

use super::{Entry, Runs};
use crate::charge::{Charge, charges};
use crate::money::{
    CallerSpending, Cap, DaySpending, DayTotals, MOST_LINES, ProviderSpending, Used, is_caller,
};

impl Runs {
    pub(super) fn under(&self, day: UtcDay, cap: &Cap) -> DayTotals {
        let mut totals = DayTotals::default();
        for entry in self.entries.iter().filter(|entry| entry.run.started_at.day() == day) {
            match cap {
                Cap::Day => add(&mut totals, entry.run.reserved, entry.spent),
                Cap::Provider(name) => {
                    let charges = charges(&entry.run).into_iter().filter(|charge| charge.provider == *name);
                    charges.for_each(|charge| add(&mut totals, charge.held, charge.spent));
                }
                Cap::Caller(name) if is_caller(name, &entry.run.requested_by) => {
                    add(&mut totals, entry.run.reserved, entry.spent);
                }
                Cap::Caller(_) => {}
            }
        }
        totals
    }

    pub(super) fn spending(&self, first: UtcDay, last: UtcDay) -> Vec<DaySpending> {
        let mut days: BTreeMap<UtcDay, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            let day = entry.run.started_at.day();
            if (first..=last).contains(&day) {
                days.entry(day).or_default().push(entry);
            }
        }
        days.into_iter().rev().map(|(day, entries)| spending(day, &entries)).collect()
    }
}

fn add(totals: &mut DayTotals, held: Usd, spent: Option<Usd>) {
    match spent {
        Some(spent) => totals.spent += spent,
        None => totals.reserved += held,
    }
}

fn spending(day: UtcDay, entries: &[&Entry]) -> DaySpending {
    let mut totals = DayTotals::default();
    let mut providers: Vec<ProviderSpending> = Vec::new();
    let mut callers: Vec<CallerSpending> = Vec::new();
    for entry in entries {
        add(&mut totals, entry.run.reserved, entry.spent);
        let caller = &entry.run.requested_by;
        let at = callers.iter().position(|known| known.caller == *caller).unwrap_or_else(|| {
            let totals = DayTotals::default();
            callers.push(CallerSpending { caller: caller.clone(), runs: 0, totals });
            callers.len() - 1
        });
        callers[at].runs += 1;
        add(&mut callers[at].totals, entry.run.reserved, entry.spent);
        for charge in charges(&entry.run) {
            count(&mut providers, charge);
        }
    }
    let worth = |totals: &DayTotals| std::cmp::Reverse(totals.spent + totals.reserved);
    let by_name =
        |one: &ProviderSpending| (worth(&one.totals), one.provider.clone(), format!("{:?}", one.billing));
    providers.sort_by_key(by_name);
    callers.sort_by_key(|one| (worth(&one.totals), one.caller.clone()));
    providers.truncate(MOST_LINES);
    callers.truncate(MOST_LINES);
    DaySpending { day, runs: entries.len() as u64, totals, providers, callers }
}

fn count(providers: &mut Vec<ProviderSpending>, charge: Charge) {
    let same =
        |known: &ProviderSpending| known.provider == charge.provider && known.billing == charge.billing;
    let at = providers.iter().position(same).unwrap_or_else(|| {
        let (totals, used) = (DayTotals::default(), Used::default());
        providers.push(ProviderSpending {
            provider: charge.provider.clone(),
            billing: charge.billing,
            totals,
            used,
        });
        providers.len() - 1
    });
    let known = &mut providers[at];
    add(&mut known.totals, charge.held, charge.spent);
    known.used.turns += charge.used.turns;
    known.used.unknown_cost += charge.used.unknown_cost;
    known.used.input = known.used.input.saturating_add(charge.used.input);
    known.used.output = known.used.output.saturating_add(charge.used.output);
}
