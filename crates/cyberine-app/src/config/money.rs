//! What amounts of money may be.

use cyberine_provider::ProviderConfig;
use cyberine_types::Usd;

use super::document::{Document, Place, Value};
use super::{BUDGET, BudgetSection, ConfigError};

/// The least a run that can cost money holds under a cap: what holds less is as good as uncapped.
pub(super) const LEAST_HOLD: Usd = Usd::from_micros(10_000);

/// No amount and no price is larger, so that sums of them stay far from the range of [`Usd`].
const MOST: Usd = Usd::from_micros(1_000_000_000_000);

/// Refuses amounts of `[budget]` that nobody means, and caps on nobody.
pub(super) fn check_budget(document: &Document<'_>, budget: &BudgetSection) -> Result<(), ConfigError> {
    let invalid = |key: &str, message: String| match document.place_in(BUDGET, key) {
        Some(at) => Err(ConfigError::Invalid { at, message }),
        None => Ok(()),
    };
    for (key, amount) in [("daily_usd", budget.daily_usd), ("run_usd", budget.run_usd)] {
        if exceeds(amount) {
            invalid(key, format!("[budget]: `{key}` {}", too_much()))?;
        }
    }
    for (key, caps) in [("providers", &budget.providers), ("callers", &budget.callers)] {
        for (name, cap) in caps {
            if exceeds(Some(*cap)) {
                invalid(key, format!("[budget.{key}]: `{name}` {}", too_much()))?;
            }
            if name.trim().is_empty() {
                invalid(key, format!("[budget.{key}]: a cap needs the name of whom it is on"))?;
            }
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
    match prices.all().into_iter().find(|(_, price)| exceeds(Some(*price))) {
        None => Ok(()),
        Some((key, _)) => {
            let at = document.place_of(value, "prices").unwrap_or_else(|| table.clone());
            Err(ConfigError::Invalid { at, message: format!("`prices.{key}` {}", too_much()) })
        }
    }
}

pub(super) fn exceeds(amount: Option<Usd>) -> bool {
    amount.is_some_and(|amount| amount > MOST)
}

pub(super) fn too_much() -> String {
    format!("is more than {MOST}, the most an amount can be")
}
