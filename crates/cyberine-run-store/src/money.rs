//! What is held for a run, what limits it, and what was spent.

use std::fmt;

use cyberine_types::{Billing, Usd, UtcDay};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// Money to be held for a run until it settles, and the caps it must fit under.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reserve {
    /// How much the run holds.
    pub amount: Usd,
    /// The most that may be held and spent in one UTC day, over all projects of this home.
    /// `None`: no cap.
    pub daily_cap: Option<Usd>,
    /// What is held at each provider that can cost money, each named once. Together they may come
    /// to more than `amount`: no share alone is used up, and the run as a whole stays within
    /// `amount`.
    pub shares: Vec<Share>,
    /// Caps on what the caller of the run may hold and spend in one UTC day.
    pub caller_caps: Vec<CallerCap>,
}

impl Reserve {
    /// A reservation that is not told apart by provider.
    #[must_use]
    pub const fn of(amount: Usd, daily_cap: Option<Usd>) -> Self {
        Self { amount, daily_cap, shares: Vec::new(), caller_caps: Vec::new() }
    }

    /// The caps it must fit under, in the order they are looked at: each with what of it is held
    /// under that.
    #[must_use]
    pub fn caps(&self) -> Vec<Capped> {
        let day = self.daily_cap.map(|cap| Capped { of: Cap::Day, cap, wanted: self.amount });
        let shares = self.shares.iter().filter_map(|share| {
            let of = Cap::Provider(share.provider.clone());
            Some(Capped { of, cap: share.daily_cap?, wanted: share.amount })
        });
        let callers = self.caller_caps.iter().map(|one| Capped {
            of: Cap::Caller(one.caller.clone()),
            cap: one.daily_cap,
            wanted: self.amount,
        });
        day.into_iter().chain(shares).chain(callers).collect()
    }
}

/// What a run holds at one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// The provider's name.
    pub provider: String,
    /// How it is paid for.
    pub billing: Billing,
    /// How much is held.
    pub amount: Usd,
    /// The most that may be held and spent at providers of this name in one UTC day, over all
    /// projects of this home. `None`: no cap.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub daily_cap: Option<Usd>,
}

/// A cap on what callers of one name may hold and spend in one UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerCap {
    /// Whom it is for: see [`is_caller`].
    pub caller: String,
    /// The cap.
    pub daily_cap: Usd,
}

/// Whether a cap for `named` is one on `caller`, who calls itself `name@version`, or `cli`: the two
/// are the same, or `caller` is `named` with a version.
#[must_use]
pub fn is_caller(named: &str, caller: &str) -> bool {
    caller.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
}

/// A cap, and what a reservation holds under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    /// What it is on.
    pub of: Cap,
    /// The cap.
    pub cap: Usd,
    /// What the reservation holds under it.
    pub wanted: Usd,
}

impl Capped {
    /// Refuses where `totals`, which is what is held and spent under the cap, leave no room.
    ///
    /// # Errors
    /// [`StoreError::CapReached`].
    pub fn check(self, totals: DayTotals) -> Result<(), StoreError> {
        let (Self { of, cap, wanted }, DayTotals { reserved, spent }) = (self, totals);
        if reserved + spent + wanted > cap {
            return Err(StoreError::CapReached { of, cap, held: reserved, spent, wanted });
        }
        Ok(())
    }
}

/// What a cap is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cap {
    /// Everything of a day.
    Day,
    /// A day's use of the provider of this name.
    Provider(String),
    /// What the caller of this name has dispatched in a day.
    Caller(String),
}

impl fmt::Display for Cap {
    /// Follows `the daily cap`: nothing, or whom it is on.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day => Ok(()),
            Self::Provider(name) => write!(out, " on the provider `{name}`"),
            Self::Caller(name) => write!(out, " on the caller `{name}`"),
        }
    }
}

/// Refuses where a cap leaves no room. `held_under` says what is held and spent under one.
pub(crate) fn check_caps(
    reserve: &Reserve,
    mut held_under: impl FnMut(&Cap) -> Result<DayTotals, StoreError>,
) -> Result<(), StoreError> {
    reserve.caps().into_iter().try_for_each(|capped| {
        let totals = held_under(&capped.of)?;
        capped.check(totals)
    })
}

/// Money held and spent.
pub trait Ledger: Send + Sync {
    /// How much is held by runs that are not over, and how much runs admitted on `day` have spent.
    fn day(&self, day: UtcDay) -> BoxFuture<'_, Result<DayTotals, StoreError>>;

    /// How much of it is under one cap: that of the day, of a provider, of a caller.
    fn under(&self, day: UtcDay, cap: Cap) -> BoxFuture<'_, Result<DayTotals, StoreError>>;

    /// What was held and spent in the days from `first` to `last`, told apart by provider and by
    /// caller. The latest day comes first; a day without a run is left out. Of a day with very many
    /// providers or callers those are told that cost most, [`MOST_LINES`] at most of each; its
    /// totals are of all.
    fn spending(&self, first: UtcDay, last: UtcDay) -> BoxFuture<'_, Result<Vec<DaySpending>, StoreError>>;
}

/// How many providers, and how many callers, of one day [`Ledger::spending`] tells.
pub const MOST_LINES: usize = 200;

/// The money of one UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DayTotals {
    /// Held by runs of that day that are not over.
    #[serde(rename = "held")]
    pub reserved: Usd,
    /// Spent by runs of that day that are over.
    pub spent: Usd,
}

/// What was held and spent in one UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaySpending {
    /// The day.
    pub day: UtcDay,
    /// How many runs were admitted.
    pub runs: u64,
    /// All of it.
    pub totals: DayTotals,
    /// By provider, what cost most first.
    pub providers: Vec<ProviderSpending>,
    /// By caller, what cost most first.
    pub callers: Vec<CallerSpending>,
}

/// What was held and spent at one provider in one UTC day. A provider that was paid for in two ways
/// has two of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpending {
    /// The provider's name.
    pub provider: String,
    /// How it is paid for.
    pub billing: Billing,
    /// The money.
    pub totals: DayTotals,
    /// What runs that are over have used.
    pub used: Used,
}

/// Turns of a provider, and what they used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// How many turns there were.
    pub turns: u64,
    /// How many of them were billed by the token without anybody knowing what they cost. For each run
    /// with such a turn the provider is charged all that the run held at it, or what is known of the
    /// other turns where that is more.
    pub unknown_cost: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

/// What runs of one caller hold and have spent in one UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerSpending {
    /// Who asked, as they call themselves.
    pub caller: String,
    /// How many runs.
    pub runs: u64,
    /// The money.
    pub totals: DayTotals,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_named_with_its_version_or_without() {
        for (named, caller, is) in [
            ("claude-code", "claude-code@2.1.0", true),
            ("claude-code", "claude-code", true),
            ("claude-code@2.1.0", "claude-code@2.1.0", true),
            ("claude-code@2.1", "claude-code@2.1.0", false),
            ("claude", "claude-code@2.1.0", false),
            ("@scope/x", "@scope/x@1", true),
            ("cli", "cli", true),
            ("cli", "client@1", false),
        ] {
            assert_eq!(is_caller(named, caller), is, "{named} {caller}");
        }
    }
}
