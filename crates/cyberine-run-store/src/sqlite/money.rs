//! What is held and spent, by day, provider and caller.

use std::fmt;

use cyberine_types::{Billing, Usd, UtcDay};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::{database, int, uint};
use crate::charge::{self, Charge};
use crate::error::StoreError;
use crate::money::{
    CallerSpending, Cap, DaySpending, DayTotals, MOST_LINES, ProviderSpending, Reserve, Used, check_caps,
};
use crate::run::Run;

/// `total` adds in floating point, which does not overflow; micro-dollars stay exact up to nine
/// billion dollars.
const DAY: &str = "SELECT CAST(total(CASE WHEN spent IS NULL THEN held ELSE 0 END) AS INTEGER),
                          CAST(total(spent) AS INTEGER)
                   FROM reservations WHERE day = ?1";

/// A share is held as long as the whole reservation is: an older program settles that only.
const PROVIDER: &str = "SELECT CAST(total(CASE WHEN c.spent IS NULL AND EXISTS (
                            SELECT 1 FROM reservations r WHERE r.run = c.run AND r.spent IS NULL)
                          THEN c.held ELSE 0 END) AS INTEGER),
                          CAST(total(c.spent) AS INTEGER)
                        FROM charges c WHERE c.day = ?1 AND c.provider = ?2";

/// The name itself, and the name with a version: see [`crate::is_caller`].
const CALLER: &str = "SELECT CAST(total(CASE WHEN spent IS NULL THEN held ELSE 0 END) AS INTEGER),
                             CAST(total(spent) AS INTEGER)
                      FROM reservations
                      WHERE day = ?1 AND (caller = ?2 OR substr(caller, 1, length(?2) + 1) = ?2 || '@')";

/// The money under one cap.
pub(crate) fn under(conn: &Connection, day: UtcDay, cap: &Cap) -> Result<DayTotals, StoreError> {
    let failed = database("add up a day's money");
    match cap {
        Cap::Day => conn.query_row(DAY, [day.number()], totals),
        Cap::Provider(name) => conn.query_row(PROVIDER, params![day.number(), name], totals),
        Cap::Caller(name) => conn.query_row(CALLER, params![day.number(), name], totals),
    }
    .map_err(failed)
}

fn totals(row: &Row<'_>) -> rusqlite::Result<DayTotals> {
    Ok(DayTotals { reserved: usd(row, 0)?, spent: usd(row, 1)? })
}

fn usd(row: &Row<'_>, at: usize) -> rusqlite::Result<Usd> {
    Ok(Usd::from_micros(uint(row.get(at)?)))
}

/// Refuses where a cap leaves no room.
pub(crate) fn check(conn: &Connection, day: UtcDay, reserve: &Reserve) -> Result<(), StoreError> {
    check_caps(reserve, |cap| under(conn, day, cap))
}

/// Makes what is recorded of a run's money by provider what its events make of it.
pub(crate) fn set_charges(tx: &Transaction<'_>, n: i64, run: &Run) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM charges WHERE run = ?1", [n])?;
    let mut statement = tx.prepare(
        "INSERT INTO charges(run, provider, day, billing, held, spent, turns, unknown, input, output)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for Charge { provider, billing, held, spent, used } in charge::charges(run) {
        statement.execute(params![
            n,
            provider,
            run.started_at.day().number(),
            billing_name(billing),
            int(held.micros()),
            spent.map(|usd| int(usd.micros())),
            int(used.turns),
            int(used.unknown_cost),
            int(used.input),
            int(used.output),
        ])?;
    }
    Ok(())
}

/// What is recorded of a run's money by provider.
pub(crate) fn charges(conn: &Connection, n: i64) -> Result<Vec<Charge>, StoreError> {
    let failed = database("read a run's charges");
    let mut statement = conn
        .prepare(
            "SELECT provider, billing, held, spent, turns, unknown, input, output
             FROM charges WHERE run = ?1 ORDER BY provider",
        )
        .map_err(&failed)?;
    let rows = statement.query_map([n], |row| {
        let spent: Option<i64> = row.get(3)?;
        Ok(Charge {
            provider: row.get(0)?,
            billing: billing_of(row.get_ref(1)?.as_str()?),
            held: usd(row, 2)?,
            spent: spent.map(|micros| Usd::from_micros(uint(micros))),
            used: used(row, 4)?,
        })
    });
    rows.and_then(Iterator::collect).map_err(&failed)
}

fn used(row: &Row<'_>, at: usize) -> rusqlite::Result<Used> {
    Ok(Used {
        turns: uint(row.get(at)?),
        unknown_cost: uint(row.get(at + 1)?),
        input: uint(row.get(at + 2)?),
        output: uint(row.get(at + 3)?),
    })
}

/// As configurations and events spell it.
const BILLINGS: [(Billing, &str); 4] = [
    (Billing::Metered, "metered"),
    (Billing::Subscription, "subscription"),
    (Billing::Free, "free"),
    (Billing::Scripted, "scripted"),
];

fn billing_name(billing: Billing) -> &'static str {
    BILLINGS.iter().find(|(one, _)| *one == billing).map_or("metered", |(_, name)| name)
}

/// What cannot be read counts as what costs.
fn billing_of(name: &str) -> Billing {
    BILLINGS.iter().find(|(_, one)| *one == name).map_or(Billing::Metered, |(billing, _)| *billing)
}

/// What was held and spent in the days from `first` to `last`, the latest first.
pub(crate) fn spending(
    conn: &Connection,
    first: UtcDay,
    last: UtcDay,
) -> Result<Vec<DaySpending>, StoreError> {
    let failed = database("add up what was spent");
    let mut statement = conn
        .prepare(
            "SELECT day, count(*), CAST(total(CASE WHEN spent IS NULL THEN held ELSE 0 END) AS INTEGER),
                    CAST(total(spent) AS INTEGER)
             FROM reservations WHERE day BETWEEN ?1 AND ?2 GROUP BY day ORDER BY day DESC",
        )
        .map_err(&failed)?;
    let rows = statement.query_map([first.number(), last.number()], |row| {
        let (day, runs) = (UtcDay::from_number(row.get(0)?), uint(row.get(1)?));
        let totals = DayTotals { reserved: usd(row, 2)?, spent: usd(row, 3)? };
        Ok(DaySpending { day, runs, totals, providers: Vec::new(), callers: Vec::new() })
    });
    let mut days: Vec<DaySpending> = rows.and_then(Iterator::collect).map_err(&failed)?;
    for day in &mut days {
        day.providers = providers(conn, day.day).map_err(&failed)?;
        day.callers = callers(conn, day.day).map_err(&failed)?;
    }
    Ok(days)
}

fn providers(conn: &Connection, day: UtcDay) -> rusqlite::Result<Vec<ProviderSpending>> {
    let mut statement = conn.prepare(
        "SELECT provider, billing,
                CAST(total(CASE WHEN c.spent IS NULL AND EXISTS (
                    SELECT 1 FROM reservations r WHERE r.run = c.run AND r.spent IS NULL)
                  THEN c.held ELSE 0 END) AS INTEGER) AS holding,
                CAST(total(c.spent) AS INTEGER) AS gone,
                sum(turns), sum(unknown), CAST(total(input) AS INTEGER), CAST(total(output) AS INTEGER)
         FROM charges c WHERE c.day = ?1 GROUP BY provider, billing
         ORDER BY gone + holding DESC, provider, billing LIMIT ?2",
    )?;
    let rows = statement.query_map(params![day.number(), MOST_LINES as i64], |row| {
        Ok(ProviderSpending {
            provider: row.get(0)?,
            billing: billing_of(row.get_ref(1)?.as_str()?),
            totals: DayTotals { reserved: usd(row, 2)?, spent: usd(row, 3)? },
            used: used(row, 4)?,
        })
    })?;
    rows.collect()
}

fn callers(conn: &Connection, day: UtcDay) -> rusqlite::Result<Vec<CallerSpending>> {
    let mut statement = conn.prepare(
        "SELECT caller, count(*), CAST(total(CASE WHEN spent IS NULL THEN held ELSE 0 END) AS INTEGER) AS holding,
                CAST(total(spent) AS INTEGER) AS gone
         FROM reservations WHERE day = ?1 GROUP BY caller ORDER BY gone + holding DESC, caller LIMIT ?2",
    )?;
    let rows = statement.query_map(params![day.number(), MOST_LINES as i64], |row| {
        let totals = DayTotals { reserved: usd(row, 2)?, spent: usd(row, 3)? };
        Ok(CallerSpending { caller: row.get(0)?, runs: uint(row.get(1)?), totals })
    })?;
    rows.collect()
}

/// What is held for a run, or was spent by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// The number of the UTC day it counts for.
    pub(crate) day: i64,
    /// Who asked for the run.
    pub(crate) caller: String,
    pub(crate) held: Usd,
    pub(crate) spent: Option<Usd>,
}

impl fmt::Display for Reservation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} held", self.held)?;
        if let Some(spent) = self.spent {
            write!(out, ", {spent} spent")?;
        }
        write!(out, ", by `{}`, on {}", self.caller.escape_debug(), UtcDay::from_number(self.day))
    }
}

impl Reservation {
    /// What a run's events make of it.
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            day: run.started_at.day().number(),
            caller: run.requested_by.clone(),
            held: run.reserved,
            spent: run.state.is_terminal().then(|| charge::charge(run)),
        }
    }
}

/// Puts a run's reservation and charges as its events make them.
pub(crate) fn set_reservation(tx: &Transaction<'_>, n: i64, run: &Run) -> rusqlite::Result<()> {
    let Reservation { day, caller, held, spent } = Reservation::of(run);
    tx.execute(
        "INSERT INTO reservations(run, day, caller, held, spent) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT(run) DO UPDATE
         SET day = excluded.day, caller = excluded.caller, held = excluded.held, spent = excluded.spent",
        params![n, day, caller, int(held.micros()), spent.map(|usd| int(usd.micros()))],
    )?;
    set_charges(tx, n, run)
}

/// What a reservation row says.
pub(crate) fn reservation(conn: &Connection, n: i64) -> Result<Option<Reservation>, StoreError> {
    conn.query_row("SELECT day, caller, held, spent FROM reservations WHERE run = ?1", [n], |row| {
        let spent: Option<i64> = row.get(3)?;
        Ok(Reservation {
            day: row.get(0)?,
            caller: row.get(1)?,
            held: usd(row, 2)?,
            spent: spent.map(|micros| Usd::from_micros(uint(micros))),
        })
    })
    .optional()
    .map_err(database("read a reservation"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_billing_is_spelled_as_everywhere() {
        for (billing, name) in BILLINGS {
            assert_eq!(serde_json::to_value(billing).unwrap(), name);
            assert_eq!((billing_name(billing), billing_of(name)), (name, billing));
        }
        assert_eq!(billing_of("barter"), Billing::Metered);
    }

    #[test]
    fn what_a_row_says_is_told_in_words() {
        let (held, caller) = (Usd::from_micros(500_000), "host@1\u{1b}".to_owned());
        let row = Reservation { day: 0, caller, held, spent: Some(Usd::from_micros(20_000)) };
        assert_eq!(row.to_string(), "$0.50 held, $0.02 spent, by `host@1\\u{1b}`, on 1970-01-01");
        let used = Used { turns: 2, unknown_cost: 1, input: 3, output: 4 };
        let charge = Charge { provider: "a".into(), billing: Billing::Metered, held, spent: None, used };
        let want = "`a`: $0.50 held, turns 2 (1 of unknown cost), tokens 3 in and 4 out";
        assert_eq!(charge.to_string(), want);
    }

    /// A database with `runs` runs of each of `days` days, from day 1 on.
    fn filled(runs: u32, days: u32) -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut conn).unwrap();
        conn.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let numbers = "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?1)";
        let day = format!("1 + (n - 1) / {runs}");
        let reservations = format!(
            "{numbers} INSERT INTO reservations(run, day, held, spent, caller)
             SELECT n, {day}, 100, iif(n % 10 = 0, NULL, 50), 'host-' || (n % 5) || '@1' FROM k"
        );
        conn.execute(&reservations, [runs * days]).unwrap();
        for provider in ["a", "b"] {
            let charges = format!(
                "{numbers} INSERT INTO charges(run, provider, day, billing, held, spent, turns, unknown, input, output)
                 SELECT n, '{provider}', {day}, 'metered', 60, iif(n % 10 = 0, NULL, 25), 2, 0, 3, 4 FROM k"
            );
            conn.execute(&charges, [runs * days]).unwrap();
        }
        conn
    }

    #[test]
    fn a_day_among_100_000_runs_is_added_up_from_its_own_rows_in_an_index() {
        use rusqlite::StatementStatus;

        let (alone, among) = (filled(1_000, 1), filled(1_000, 100));
        let day = UtcDay::from_number(1);
        for cap in [Cap::Day, Cap::Provider("a".to_owned()), Cap::Caller("host-1".to_owned())] {
            assert_eq!(under(&alone, day, &cap).unwrap(), under(&among, day, &cap).unwrap(), "{cap:?}");
        }
        let steps = |conn: &Connection, sql: &str, name: Option<&str>| {
            let mut statement = conn.prepare(sql).unwrap();
            let read = match name {
                Some(name) => statement.query_row(params![1, name], totals),
                None => statement.query_row([1], totals),
            };
            read.unwrap();
            statement.get_status(StatementStatus::VmStep)
        };
        for (sql, name) in [(DAY, None), (PROVIDER, Some("a")), (CALLER, Some("host-1"))] {
            let (alone, among) = (steps(&alone, sql, name), steps(&among, sql, name));
            // One step tells the day's last row from the table's.
            assert!(alone.abs_diff(among) <= 2, "{alone} {among}: {sql}");
        }
        let told = spending(&among, day, UtcDay::from_number(2)).unwrap();
        assert_eq!(told, [told[0].clone(), spending(&alone, day, day).unwrap().remove(0)]);
        let first = &told[1];
        assert_eq!((first.runs, first.providers.len(), first.callers.len()), (1_000, 2, 5));
        let held = DayTotals { reserved: Usd::from_micros(10_000), spent: Usd::from_micros(45_000) };
        assert_eq!(first.totals, held);
        let of_a = DayTotals { reserved: Usd::from_micros(6_000), spent: Usd::from_micros(22_500) };
        assert_eq!(first.providers[0].totals, of_a);
        assert_eq!(
            first.providers[0].used,
            Used { turns: 2_000, unknown_cost: 0, input: 3_000, output: 4_000 }
        );
    }
}
