//! A table of list prices: which of them is a provider's.

use std::fmt;

use cyberine_types::{Billing, Usd};
use serde::{Deserialize, Deserializer};

use super::{LongPrices, Prices};
use crate::config::ProviderConfig;

/// The table that is built in, as TOML: a snapshot of what makers publish. See [`PriceTable`].
pub const BUILT_IN_PRICES: &str = include_str!("prices.toml");

/// Who is behind a program that is told no address.
const CODEX_HOST: &str = "api.openai.com";

/// Prices by model, as a file of them is written. The first entry that fits counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The entries, in the order they are looked at.
    #[serde(default, rename = "model")]
    pub entries: Vec<PriceEntry>,
}

/// The prices of some models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// The models' names as servers know them; `*` stands for anything.
    pub names: Vec<String>,
    /// The hosts at which they cost this; empty: wherever they are asked.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// When the prices were last seen to hold, as `2026-11-30`.
    #[serde(deserialize_with = "day")]
    pub date: String,
    /// Where they are published, or who says so.
    #[serde(default)]
    pub source: String,
    /// The first day on which they hold.
    #[serde(default, deserialize_with = "some_day")]
    pub from: Option<String>,
    /// The last day on which they hold.
    #[serde(default, deserialize_with = "some_day")]
    pub until: Option<String>,
    /// Tokens read by the model.
    pub input_usd_per_mtok: Usd,
    /// Tokens written by the model, reasoning included.
    pub output_usd_per_mtok: Usd,
    /// Tokens read from a cache; unset means the price of input.
    #[serde(default)]
    pub cached_read_usd_per_mtok: Option<Usd>,
    /// Tokens written to a cache; unset means the price of input.
    #[serde(default)]
    pub cache_write_usd_per_mtok: Option<Usd>,
    /// What a turn costs that reads more than so many tokens.
    #[serde(default)]
    pub long: Option<LongPrices>,
}

/// A day as a text. TOML has dates of its own, which are written without quotes.
fn day<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    struct Day;
    impl serde::de::Visitor<'_> for Day {
        type Value = String;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a day in quotes, such as \"2026-11-30\"")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    input.deserialize_str(Day)
}

fn some_day<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    day(input).map(Some)
}

impl PriceEntry {
    /// Its prices.
    #[must_use]
    pub const fn prices(&self) -> Prices {
        Prices {
            input_usd_per_mtok: self.input_usd_per_mtok,
            output_usd_per_mtok: self.output_usd_per_mtok,
            cached_read_usd_per_mtok: self.cached_read_usd_per_mtok,
            cache_write_usd_per_mtok: self.cache_write_usd_per_mtok,
            long: self.long,
        }
    }

    fn fits(&self, host: Option<&str>, model: &str, today: &str) -> bool {
        let here = self.hosts.is_empty()
            || host.is_some_and(|host| self.hosts.iter().any(|one| one.eq_ignore_ascii_case(host)));
        let holds = self.from.as_deref().is_none_or(|from| from <= today)
            && self.until.as_deref().is_none_or(|until| today <= until);
        here && holds && self.names.iter().any(|name| matches(name, model))
    }
}

impl PriceTable {
    /// The entry for a provider on the day `today` (as `2026-11-30`); `None` where its price is not
    /// known, or nothing is paid by the token.
    #[must_use]
    pub fn find(&self, provider: &ProviderConfig, today: &str) -> Option<&PriceEntry> {
        if provider.billing() != Billing::Metered {
            return None;
        }
        let profile = provider.profile();
        let host = match profile.kind {
            "codex-cli" => Some(CODEX_HOST),
            _ => host(profile.url),
        };
        let model = profile.model?;
        self.entries.iter().find(|entry| entry.fits(host, model, today))
    }
}

/// The host of an address, without user, port and path.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = if host.starts_with('[') { host.find(']').map(|at| at + 1) } else { host.find(':') };
    Some(end.map_or(host, |end| &host[..end])).filter(|host| !host.is_empty())
}

/// Whether `name` is `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_nothing_else_does() {
        for (pattern, name, fits) in [
            ("gpt-5", "gpt-5", true),
            ("gpt-5", "gpt-5-mini", false),
            ("gpt-5-20*", "gpt-5-2025-08-07", true),
            ("gpt-5-20*", "gpt-5-mini", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "ab", false),
            ("a*a", "a", false),
            ("*-x", "y-x", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_host_has_neither_user_nor_port_nor_path() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Some("api.openai.com")),
            ("https://u@api.openai.com:443", Some("api.openai.com")),
            ("http://[::1]:80/x", Some("[::1]")),
            ("", None),
            ("https:///v1", None),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    fn entry(hosts: &[&str], from: Option<&str>, until: Option<&str>, dollars: f64) -> PriceEntry {
        PriceEntry {
            names: vec!["m".to_owned()],
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            date: "2026-11-30".to_owned(),
            source: String::new(),
            from: from.map(str::to_owned),
            until: until.map(str::to_owned),
            input_usd_per_mtok: Usd::from_dollars(dollars),
            output_usd_per_mtok: Usd::from_dollars(dollars),
            cached_read_usd_per_mtok: None,
            cache_write_usd_per_mtok: None,
            long: None,
        }
    }

    #[test]
    fn the_first_entry_that_fits_the_model_the_host_and_the_day_counts() {
        let entries = vec![
            entry(&["example.com"], None, Some("2026-12-31"), 1.0),
            entry(&["example.com"], Some("2027-01-01"), None, 2.0),
        ];
        let table = PriceTable { entries };
        let find = |text: &str, today: &str| {
            let provider: ProviderConfig = serde_json::from_str(text).unwrap();
            table.find(&provider, today).map(|entry| entry.input_usd_per_mtok.dollars())
        };
        let there = r#"{"kind":"openai","base_url":"https://EXAMPLE.com/v1","model":"m"}"#;
        assert_eq!(find(there, "2026-12-31"), Some(1.0));
        assert_eq!(find(there, "2027-01-01"), Some(2.0));
        for other in [
            r#"{"kind":"openai","base_url":"https://router.example.com/v1","model":"m"}"#,
            r#"{"kind":"openai","base_url":"https://example.com/v1","model":"n"}"#,
            r#"{"kind":"openai","base_url":"https://example.com/v1","model":"m","billing":"free"}"#,
            r#"{"kind":"openai","base_url":"http://127.0.0.1/v1","model":"m"}"#,
            r#"{"kind":"claude-cli","model":"m"}"#,
        ] {
            assert_eq!(find(other, "2026-12-31"), None, "{other}");
        }
    }
}
