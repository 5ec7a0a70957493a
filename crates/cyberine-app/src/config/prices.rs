//! Price tables: the one in the home, which goes first, and the one that is built in.

use std::path::PathBuf;

use cyberine_orchestrator::Plan;
use cyberine_provider::{BUILT_IN_PRICES, PriceEntry, PriceTable, Prices, ProviderConfig};
use serde::Serialize;

use super::document::{Document, Place};
use super::money::{exceeds, too_much};
use super::{ConfigError, ConfigSource};
use crate::home::Home;

/// What the built-in table is called where its name is told.
const BUILT_IN: &str = "built in";
/// The one key of the file: its entries.
const ENTRIES: &str = "model";

/// The price tables that hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceBook {
    own: Option<(PathBuf, PriceTable)>,
    built_in: PriceTable,
}

/// Where a provider's prices come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceSource {
    /// `provider` (its own `prices`), `built in`, or the path of the home's table.
    pub table: String,
    /// When the prices were last seen to hold, as the table says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Where they are published, as the table says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The prices.
    pub prices: Prices,
}

impl PriceBook {
    /// Reads the home's table, where there is one.
    ///
    /// # Errors
    /// [`ConfigError`], with the file and, where there is one, the place in it.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        let own = ConfigSource::read(&home.prices_file())?;
        let own = own.map(|source| Ok((source.path().to_owned(), parse(&source)?))).transpose()?;
        Ok(Self { own, built_in: parse(&ConfigSource::of("prices.toml (built in)", BUILT_IN_PRICES))? })
    }

    /// What `provider` costs on the day `today` (as `2026-11-30`), and who says so: its own
    /// `prices`, else the home's table, else the one that is built in. `None` where nobody knows, or
    /// nothing is paid by the token.
    #[must_use]
    pub fn find(&self, provider: &ProviderConfig, today: &str) -> Option<PriceSource> {
        if let Some(prices) = provider.profile().prices {
            return Some(PriceSource { table: "provider".to_owned(), date: None, source: None, prices });
        }
        let own = self
            .own
            .as_ref()
            .and_then(|(path, table)| Some((path.display().to_string(), table.find(provider, today)?)));
        let built_in = || Some((BUILT_IN.to_owned(), self.built_in.find(provider, today)?));
        let (table, entry) = own.or_else(built_in)?;
        let source = Some(entry.source.clone()).filter(|source| !source.is_empty());
        Some(PriceSource { table, date: Some(entry.date.clone()), source, prices: entry.prices() })
    }

    /// Freezes into `plan` what its providers cost today.
    pub(crate) fn apply(&self, plan: &mut Plan, today: &str) {
        for planned in plan.candidates.iter_mut().chain(&mut plan.judge_providers) {
            if let Some(model) = planned.fallback_model.as_deref()
                && let Some(mut fallback) = planned.provider.with_model(model)
            {
                // The provider's own prices are those of its own model.
                fallback.set_prices(None);
                planned.fallback_prices = self.find(&fallback, today).map(|found| found.prices);
            }
            if let Some(found) = self.find(&planned.provider, today) {
                planned.provider.set_prices(Some(found.prices));
            }
        }
    }
}

fn parse(source: &ConfigSource) -> Result<PriceTable, ConfigError> {
    let document = Document::parse(source)?;
    document.only(&[ENTRIES])?;
    let entries: Vec<PriceEntry> = document.section(ENTRIES)?.unwrap_or_default();
    for (place, entry) in (1..).zip(&entries) {
        if let Some(fault) = fault(entry) {
            let at = document.place_of_root(ENTRIES).unwrap_or_else(|| Place {
                path: source.path().to_owned(),
                line: 1,
                column: 1,
            });
            let name = entry.names.first().map_or("", String::as_str);
            let message = format!("[[model]] number {place} (`{name}`): {fault}");
            return Err(ConfigError::Invalid { at, message });
        }
    }
    Ok(PriceTable { entries })
}

fn fault(entry: &PriceEntry) -> Option<String> {
    if entry.names.is_empty() || entry.names.iter().any(|name| name.trim().is_empty()) {
        return Some("`names` must name the models it is for".to_owned());
    }
    let days = [("date", Some(&entry.date)), ("from", entry.from.as_ref()), ("until", entry.until.as_ref())];
    for (key, day) in days {
        if day.is_some_and(|day| !is_day(day)) {
            return Some(format!("`{key}` must be a day such as `\"2026-11-30\"`, as a text"));
        }
    }
    if let (Some(from), Some(until)) = (&entry.from, &entry.until)
        && until < from
    {
        return Some(format!("it holds on no day: `until` ({until}) is before `from` ({from})"));
    }
    let (key, _) = entry.prices().all().into_iter().find(|(_, price)| exceeds(Some(*price)))?;
    Some(format!("`{key}` {}", too_much()))
}

/// Whether it is written like a day; days in this form are in the order of their texts.
fn is_day(text: &str) -> bool {
    let form = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    let form = form.eq(*b"0000-00-00");
    let year = text.get(..4).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or_default();
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match number(text, 5) {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    form && (1..=days).contains(&number(text, 8))
}

fn number(text: &str, at: usize) -> u32 {
    text.get(at..at + 2).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PriceTable, String> {
        parse(&ConfigSource::of("prices.toml", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_built_in_table_holds_together_and_says_where_each_price_is_published() {
        let table = read(BUILT_IN_PRICES).unwrap();
        assert!(table.entries.len() > 20, "{}", table.entries.len());
        for entry in &table.entries {
            assert!(entry.source.starts_with("https://") && !entry.hosts.is_empty(), "{entry:?}");
            let (input, output) = (entry.input_usd_per_mtok, entry.output_usd_per_mtok);
            assert!(output > input && output.dollars() < 200.0, "{entry:?}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let fine = "[[model]]\nnames = [\"m\"]\ndate = \"2026-11-30\"\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 2\n";
        assert_eq!(read(fine).unwrap().entries.len(), 1);
        assert_eq!(read("").unwrap(), PriceTable::default());
        assert_eq!(read(&fine.replace("2026-11-30", "2028-02-29")).unwrap().entries.len(), 1);
        for (from, to, said) in [
            ("names", "name", ":2:1: unknown key `name` in [model]; did you mean `names`?"),
            ("[[model]]", "[[models]]", ":1:3: unknown key `models` in the file"),
            ("2026-11-30", "30.11.2026", ":1:3: [[model]] number 1 (`m`): `date` must be a day such as"),
            ("2026-11-30", "2026-13-30", "`date` must be a day"),
            ("2026-11-30", "2026-02-29", "`date` must be a day"),
            ("\"2026-11-30\"", "2026-11-30", "a day in quotes, such as \"2026-11-30\""),
            (
                "\"2026-11-30\"",
                "\"2026-11-30\"\nfrom = \"2026-12-02\"\nuntil = \"2026-12-01\"",
                "`until` (2026-12-01) is before `from` (2026-12-02)",
            ),
            ("[\"m\"]", "[]", "`names` must name the models"),
            ("= 1", "= 1e9", "`input_usd_per_mtok` is more than"),
            ("= 1", "= -1", "must be a number that is zero or more"),
            ("input_usd_per_mtok = 1\n", "", "missing field `input_usd_per_mtok`"),
        ] {
            let error = read(&fine.replace(from, to)).unwrap_err();
            assert!(error.contains(said), "{to}: {error}");
        }
    }

    #[test]
    fn the_provider_goes_before_the_home_and_the_home_before_what_is_built_in() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path());
        let asked = |prices: &str| -> ProviderConfig {
            let text = format!(
                r#"{{"kind":"anthropic","model":"claude-haiku-4-5-20251001","api_key_env":"K"{prices}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let found =
            |prices: &str| PriceBook::load(&home).unwrap().find(&asked(prices), "2026-12-01").unwrap();
        let built_in = found("");
        assert_eq!(
            (built_in.table.as_str(), built_in.prices.output_usd_per_mtok.dollars()),
            ("built in", 5.0)
        );
        assert_eq!(built_in.date.as_deref(), Some("2026-10-24"));
        let own = "[[model]]\nnames = [\"claude-*\"]\ndate = \"2026-11-30\"\nsource = \"my contract\"\ninput_usd_per_mtok = 0.5\noutput_usd_per_mtok = 2\n";
        std::fs::write(home.prices_file(), own).unwrap();
        let home_s = found("");
        assert_eq!(
            (home_s.table, home_s.source),
            (home.prices_file().display().to_string(), Some("my contract".into()))
        );
        let provider_s = found(r#","prices":{"input_usd_per_mtok":7,"output_usd_per_mtok":8}"#);
        assert_eq!(
            (provider_s.table.as_str(), provider_s.prices.input_usd_per_mtok.dollars()),
            ("provider", 7.0)
        );
        std::fs::write(home.prices_file(), "[[model]]\nx = 1").unwrap();
        assert!(PriceBook::load(&home).unwrap_err().to_string().contains("prices.toml:2:1"));
    }
}
