//! What amounts of money may be.

use cyberine_provider::ProviderConfig;
use cyberine_types::Usd;

use super::document::{Document, Place, Value};
use super::{BUDGET, BudgetSection, ConfigError};

/// The least a run that can cost money holds under a cap: what holds less is as good as uncapped.
pub(super) const LEAST_HOLD: Usd = Usd::from_micros(10_000);

/// No amount and no price is larger, so that sums of them stay far from the range of [`Usd`].
const MOST: Usd = Usd::from_micros(1_000_000_000_000);

/// Refuses amounts of `[budget]` that nobody means.
pub(super) fn check_budget(document: &Document<'_>, budget: &BudgetSection) -> Result<(), ConfigError> {
    for (key, amount) in [("daily_usd", budget.daily_usd), ("run_usd", budget.run_usd)] {
        if let (true, Some(at)) = (exceeds(amount), document.place_in(BUDGET, key)) {
            return Err(ConfigError::Invalid { at, message: format!("[budget]: `{key}` {}", too_much()) });
        }
    }
    Ok(())
}

/// Refuses prices that nobody asks.
pub(super) fn check_prices(
    document: &Document<'_>,
    value: &Value<'_>,
    table: &Place,
    provider: &ProviderConfig,
) -> Result<(), ConfigError> {
    let Some(prices) = provider.profile().prices else { return Ok(()) };
    let all = [
        ("input_usd_per_mtok", Some(prices.input_usd_per_mtok)),
        ("output_usd_per_mtok", Some(prices.output_usd_per_mtok)),
        ("cached_read_usd_per_mtok", prices.cached_read_usd_per_mtok),
        ("cache_write_usd_per_mtok", prices.cache_write_usd_per_mtok),
    ];
    match all.into_iter().find(|(_, price)| exceeds(*price)) {
        None => Ok(()),
        Some((key, _)) => {
            let at = document.place_of(value, "prices").unwrap_or_else(|| table.clone());
            Err(ConfigError::Invalid { at, message: format!("`prices.{key}` {}", too_much()) })
        }
    }
}

fn exceeds(amount: Option<Usd>) -> bool {
    amount.is_some_and(|amount| amount > MOST)
}

fn too_much() -> String {
    format!("is more than {MOST}, the most an amount can be")
}
