//! `cyberine spend`.

mod prices;
mod report;

use cyberine_app::{Budget, Exit, Problem, Workplace};
use cyberine_run_store::{Cap, DaySpending, DayTotals, Ledger as _, is_caller};
use cyberine_types::{Billing, Clock as _, SystemClock, Usd, UtcDay};
use serde::Serialize;

use crate::args::Spend;
use crate::out::Out;

/// What was spent and what is left, by day.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    /// Days, caps and times are in UTC.
    today: String,
    run_usd: Usd,
    caps: Vec<Standing>,
    days: Vec<Day>,
}

/// How a cap stands today.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    on: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    cap_usd: Usd,
    held_usd: Usd,
    spent_usd: Usd,
    left_usd: Usd,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Day {
    day: String,
    runs: u64,
    held_usd: Usd,
    spent_usd: Usd,
    providers: Vec<ProviderLine>,
    callers: Vec<CallerLine>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderLine {
    provider: String,
    billing: Billing,
    held_usd: Usd,
    spent_usd: Usd,
    turns: u64,
    unknown_cost: u64,
    input: u64,
    output: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallerLine {
    caller: String,
    runs: u64,
    held_usd: Usd,
    spent_usd: Usd,
}

/// Shows what was spent and is held, and what is left of every cap; or what the prices are.
pub(crate) async fn run(args: Spend, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    if args.prices {
        return prices::run(workplace, out).await;
    }
    workplace.supervisor.settle_dead_runs().await?;
    let today = SystemClock.now().day();
    let first = today.before(i64::from(args.days) - 1);
    let days = workplace.store.spending(first, today).await?;
    let budget = workplace.config()?.budget;
    let account = Account {
        today: today.to_string(),
        run_usd: budget.run_usd,
        caps: standings(workplace, &budget, today).await?,
        days: days.into_iter().map(Day::from).collect(),
    };
    if out.is_json() {
        out.json(&account);
    } else {
        report::print(&account, out);
    }
    Ok(Exit::Done)
}

async fn standings(workplace: &Workplace, budget: &Budget, today: UtcDay) -> Result<Vec<Standing>, Problem> {
    let day = budget.daily_usd.map(|cap| (Cap::Day, cap));
    let providers = budget.providers.iter().map(|(name, cap)| (Cap::Provider(name.clone()), *cap));
    let callers = budget.callers.iter().map(|(name, cap)| (Cap::Caller(name.clone()), *cap));
    let mut standings = Vec::new();
    for (of, cap) in day.into_iter().chain(providers).chain(callers) {
        let totals = workplace.store.under(today, of.clone()).await?;
        standings.push(Standing::of(of, cap, totals));
    }
    Ok(standings)
}

impl Standing {
    fn of(of: Cap, cap: Usd, DayTotals { reserved, spent }: DayTotals) -> Self {
        let (on, name) = match of {
            Cap::Day => ("day", None),
            Cap::Provider(name) => ("provider", Some(name)),
            Cap::Caller(name) => ("caller", Some(name)),
        };
        let left_usd = cap.saturating_sub(reserved + spent);
        Self { on, name, cap_usd: cap, held_usd: reserved, spent_usd: spent, left_usd }
    }

    /// Whether it is on this line of the report.
    fn is_on(&self, on: &str, name: &str) -> bool {
        let named = self.name.as_deref().unwrap_or_default();
        self.on == on && if on == "caller" { is_caller(named, name) } else { named == name }
    }
}

impl From<DaySpending> for Day {
    fn from(day: DaySpending) -> Self {
        let providers = day.providers.into_iter().map(|one| ProviderLine {
            provider: one.provider,
            billing: one.billing,
            held_usd: one.totals.reserved,
            spent_usd: one.totals.spent,
            turns: one.used.turns,
            unknown_cost: one.used.unknown_cost,
            input: one.used.input,
            output: one.used.output,
        });
        let callers = day.callers.into_iter().map(|one| CallerLine {
            caller: one.caller,
            runs: one.runs,
            held_usd: one.totals.reserved,
            spent_usd: one.totals.spent,
        });
        Self {
            day: day.day.to_string(),
            runs: day.runs,
            held_usd: day.totals.reserved,
            spent_usd: day.totals.spent,
            providers: providers.collect(),
            callers: callers.collect(),
        }
    }
}
