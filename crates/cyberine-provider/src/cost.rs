//! What a turn costs, from what the provider says and what the configuration says.

mod meter;
mod table;

use cyberine_types::{Billing, CostBasis, Usage, Usd};
use serde::{Deserialize, Serialize};

pub(crate) use meter::Meter;
pub use table::{BUILT_IN_PRICES, PriceEntry, PriceTable};

/// Prices in United States dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens read by the model.
    pub input_usd_per_mtok: Usd,
    /// Tokens written by the model, reasoning included.
    pub output_usd_per_mtok: Usd,
    /// Tokens read from a cache; unset means the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_usd_per_mtok: Option<Usd>,
    /// Tokens written to a cache; unset means the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_usd_per_mtok: Option<Usd>,
    /// What a turn costs that reads very much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrices>,
}

/// What a turn costs, all of it, that reads more than so many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrices {
    /// The most tokens that cost the usual prices.
    pub above_tokens: u64,
    /// Tokens read by the model; unset means that nobody knows what such a turn costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_usd_per_mtok: Option<Usd>,
    /// Tokens written by the model; unset means the usual price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_usd_per_mtok: Option<Usd>,
    /// Tokens read from a cache; unset means the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_usd_per_mtok: Option<Usd>,
    /// Tokens written to a cache; unset means the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_usd_per_mtok: Option<Usd>,
}

impl Prices {
    /// The price of `usage`, rounded up to a whole micro-dollar; `None` where it reads more than
    /// these prices are known for.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Option<Usd> {
        let long = self.long.filter(|long| usage.input > long.above_tokens);
        let (input, output, read, write) = match long {
            None => (
                self.input_usd_per_mtok,
                self.output_usd_per_mtok,
                self.cached_read_usd_per_mtok,
                self.cache_write_usd_per_mtok,
            ),
            Some(long) => (
                long.input_usd_per_mtok?,
                long.output_usd_per_mtok.unwrap_or(self.output_usd_per_mtok),
                long.cached_read_usd_per_mtok,
                long.cache_write_usd_per_mtok,
            ),
        };
        let plain = usage.input.saturating_sub(usage.cached_read).saturating_sub(usage.cache_write);
        let parts = [
            (plain, input),
            (usage.cached_read, read.unwrap_or(input)),
            (usage.cache_write, write.unwrap_or(input)),
            (usage.output, output),
        ];
        let total: u128 =
            parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(price.micros())).sum();
        Some(Usd::from_micros(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
    }

    /// Every price there is, by its key.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, Usd)> {
        let long = self.long.as_ref();
        let all = [
            ("input_usd_per_mtok", Some(self.input_usd_per_mtok)),
            ("output_usd_per_mtok", Some(self.output_usd_per_mtok)),
            ("cached_read_usd_per_mtok", self.cached_read_usd_per_mtok),
            ("cache_write_usd_per_mtok", self.cache_write_usd_per_mtok),
            ("long.input_usd_per_mtok", long.and_then(|long| long.input_usd_per_mtok)),
            ("long.output_usd_per_mtok", long.and_then(|long| long.output_usd_per_mtok)),
            ("long.cached_read_usd_per_mtok", long.and_then(|long| long.cached_read_usd_per_mtok)),
            ("long.cache_write_usd_per_mtok", long.and_then(|long| long.cache_write_usd_per_mtok)),
        ];
        all.into_iter().filter_map(|(key, price)| Some((key, price?))).collect()
    }
}

/// How a provider's use becomes money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tariff {
    /// How it is paid for.
    pub(crate) billing: Billing,
    /// Configured prices.
    pub(crate) prices: Option<Prices>,
    /// Whether a provider that says that no model is behind it is believed.
    pub(crate) trusts_script: bool,
}

/// Tokens as a wire counted them, with what the wire knows about their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    /// The tokens; its money and basis are not read.
    pub(crate) tokens: Usage,
    /// The cost the provider reports.
    pub(crate) reported: Option<Usd>,
    /// A report of no cost says that it was free; else it is also what is said of a price that nobody
    /// knows.
    pub(crate) free_is_said: bool,
    /// The provider says that no model is behind it.
    pub(crate) scripted: bool,
    /// The provider says that a key pays, whatever the configuration says.
    pub(crate) keyed: bool,
    /// These are the wire's own final figures, and not those of a turn that goes on.
    pub(crate) whole: bool,
}

impl Tariff {
    /// The use of a turn with its cost: nothing where nothing is paid per token, else as the
    /// provider reports it, else computed from the configured prices, else unknown. Figures that are
    /// not whole have no known cost.
    pub(crate) fn apply(&self, counted: Counted) -> Usage {
        let (usd, basis) = match self.billing {
            _ if counted.scripted && self.trusts_script => (Some(Usd::ZERO), CostBasis::Scripted),
            Billing::Scripted => (Some(Usd::ZERO), CostBasis::Scripted),
            Billing::Free | Billing::Subscription if !counted.keyed => (Some(Usd::ZERO), CostBasis::Included),
            _ if !counted.whole => (None, CostBasis::Unknown),
            _ => match (counted.reported, self.prices.and_then(|prices| prices.of(&counted.tokens))) {
                (Some(usd), _) => (Some(usd), CostBasis::Reported),
                (None, Some(usd)) => (Some(usd), CostBasis::Computed),
                (None, None) => (None, CostBasis::Unknown),
            },
        };
        Usage { usd, basis, ..counted.tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices {
        input_usd_per_mtok: Usd::from_micros(3_000_000),
        output_usd_per_mtok: Usd::from_micros(15_000_000),
        cached_read_usd_per_mtok: Some(Usd::from_micros(300_000)),
        cache_write_usd_per_mtok: None,
        long: None,
    };

    fn tokens() -> Usage {
        Usage { input: 1200, cached_read: 1000, cache_write: 50, output: 44, ..Usage::default() }
    }

    fn check(billing: Billing, prices: Option<Prices>, counted: Counted, expected: (Option<u64>, CostBasis)) {
        let usage = Tariff { billing, prices, trusts_script: false }.apply(counted);
        assert_eq!((usage.usd.map(Usd::micros), usage.basis), expected);
        assert_eq!(Usage { usd: None, basis: CostBasis::Unknown, ..usage }, counted.tokens);
    }

    #[test]
    fn a_reported_cost_goes_before_a_computed_one_and_nothing_is_guessed() {
        let plain = Counted { tokens: tokens(), whole: true, ..Counted::default() };
        let reported = Counted { reported: Some(Usd::from_micros(7)), ..plain };
        check(Billing::Metered, None, plain, (None, CostBasis::Unknown));
        check(Billing::Metered, Some(PRICES), reported, (Some(7), CostBasis::Reported));
        // 150 + 50 at 3, 1000 at 0.3, 44 at 15 micro-dollars a token.
        check(Billing::Metered, Some(PRICES), plain, (Some(600 + 300 + 660), CostBasis::Computed));
        let partial = Counted { whole: false, ..reported };
        check(Billing::Metered, Some(PRICES), partial, (None, CostBasis::Unknown));
    }

    #[test]
    fn what_is_not_paid_per_token_costs_nothing() {
        let reported =
            Counted { tokens: tokens(), reported: Some(Usd::from_micros(7)), ..Counted::default() };
        check(Billing::Free, Some(PRICES), reported, (Some(0), CostBasis::Included));
        check(Billing::Subscription, None, reported, (Some(0), CostBasis::Included));
        check(Billing::Scripted, Some(PRICES), reported, (Some(0), CostBasis::Scripted));
    }

    #[test]
    fn a_provider_that_calls_itself_scripted_is_believed_only_where_it_may_be() {
        let scripted = Counted {
            tokens: tokens(),
            reported: Some(Usd::from_micros(7)),
            scripted: true,
            whole: true,
            ..Counted::default()
        };
        check(Billing::Metered, Some(PRICES), scripted, (Some(7), CostBasis::Reported));
        check(Billing::Free, None, scripted, (Some(0), CostBasis::Included));
        let local = Tariff { billing: Billing::Free, prices: Some(PRICES), trusts_script: true };
        let usage = local.apply(scripted);
        assert_eq!((usage.usd, usage.basis), (Some(Usd::ZERO), CostBasis::Scripted));
    }

    #[test]
    fn a_key_behind_a_supposed_subscription_is_charged() {
        let keyed = Counted {
            tokens: tokens(),
            reported: Some(Usd::from_micros(7)),
            keyed: true,
            whole: true,
            ..Counted::default()
        };
        check(Billing::Subscription, None, keyed, (Some(7), CostBasis::Reported));
    }

    #[test]
    fn a_fraction_of_a_micro_dollar_is_rounded_up() {
        let one = Usage { output: 1, ..Usage::default() };
        let cheap = Prices { output_usd_per_mtok: Usd::from_micros(150_000), ..PRICES };
        assert_eq!(cheap.of(&one), Some(Usd::from_micros(1)));
    }

    #[test]
    fn a_turn_that_reads_very_much_has_prices_of_its_own_or_no_known_cost() {
        let dollars = |dollars: f64| Some(Usd::from_dollars(dollars));
        let long = LongPrices {
            above_tokens: 1000,
            input_usd_per_mtok: dollars(6.0),
            output_usd_per_mtok: None,
            cached_read_usd_per_mtok: None,
            cache_write_usd_per_mtok: None,
        };
        let prices = Prices { long: Some(long), ..PRICES };
        let of = |prices: Prices, input| prices.of(&Usage { input, output: 1, ..Usage::default() });
        assert_eq!(of(prices, 1000), Some(Usd::from_micros(3_015)));
        assert_eq!(of(prices, 1001), Some(Usd::from_micros(6_021)));
        let unknown = Prices { long: Some(LongPrices { input_usd_per_mtok: None, ..long }), ..PRICES };
        assert_eq!((of(unknown, 1000), of(unknown, 1001)), (of(prices, 1000), None));
    }
}
