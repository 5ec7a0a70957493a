use serde::{Deserialize, Serialize};

use crate::Usd;

/// How the use of a provider is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Billing {
    /// By use: every token costs.
    Metered,
    /// A subscription: quota, not money.
    Subscription,
    /// Nothing: it runs on a machine of the user's own.
    Free,
    /// No model is behind it: answers come from a script.
    Scripted,
}

/// Tokens and money of one turn, normalised: `input` includes what was cached, `output` includes
/// reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read by the model, cached ones included.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached_read: u64,
    /// Of these, written to a cache.
    pub cache_write: u64,
    /// Tokens written by the model, reasoning included.
    pub output: u64,
    /// Of these, reasoning.
    pub reasoning: u64,
    /// The money it cost, where it is known.
    pub usd: Option<Usd>,
    /// Where `usd` comes from.
    pub basis: CostBasis,
}

/// Where a cost comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CostBasis {
    /// Nobody knows.
    #[default]
    Unknown,
    /// The provider said so.
    Reported,
    /// Computed from tokens and a configured price.
    Computed,
    /// A subscription or the user's own machine: no money per token.
    Included,
    /// No model was called.
    Scripted,
}

impl Usage {
    /// Tokens in and out together.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The use of two turns together. The sum's money is known only where some of it is, and its
    /// basis is the weaker of the two; that of a use of nothing at all does not count.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached_read: self.cached_read.saturating_add(other.cached_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            usd: match (self.usd, other.usd) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
            },
            basis: match (*self == Self::default(), *other == Self::default()) {
                (true, _) => other.basis,
                (false, true) => self.basis,
                (false, false) => self.basis.min(other.basis),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_starts_from_nothing_and_keeps_the_weaker_basis() {
        let scripted = Usage { input: 3, output: 4, basis: CostBasis::Scripted, ..Usage::default() };
        assert_eq!(Usage::default().plus(&scripted), scripted);
        assert_eq!(scripted.plus(&Usage::default()), scripted);
        let reported = Usage {
            input: 1,
            usd: Some(Usd::from_micros(5)),
            basis: CostBasis::Reported,
            ..Usage::default()
        };
        let unknown = Usage { input: 1, ..Usage::default() };
        let sum = reported.plus(&unknown);
        assert_eq!((sum.tokens(), sum.usd, sum.basis), (2, Some(Usd::from_micros(5)), CostBasis::Unknown));
    }
}
