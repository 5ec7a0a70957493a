use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of United States dollars in whole micro-dollars; arithmetic saturates. On the wire
/// and in files it is a JSON number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Usd(u64);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// From whole micro-dollars.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From dollars, rounded to the nearest micro-dollar. Negative amounts and `NaN` become zero,
    /// amounts beyond the range the largest one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars * 1e6).round() as u64)
    }

    /// Whole micro-dollars.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Dollars, for display.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact below nine billion dollars")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or zero where `other` is the larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Usd {
    /// Two decimals from a cent upward, six below it: `$1.50`, `$0.000123`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 || self.0 >= 10_000 {
            write!(out, "${:.2}", self.dollars())
        } else {
            write!(out, "${:.6}", self.dollars())
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(input)?;
        if dollars.is_finite() && dollars >= 0.0 {
            return Ok(Self::from_dollars(dollars));
        }
        Err(serde::de::Error::custom("an amount in dollars must be a number that is zero or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_trip_through_json_and_saturate() {
        for micros in [0, 1, 123, 250_000, 1_000_000, 987_654_321] {
            let text = serde_json::to_string(&Usd::from_micros(micros)).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), Usd::from_micros(micros), "{text}");
        }
        assert_eq!(Usd::from_micros(u64::MAX) + Usd::from_micros(1), Usd::from_micros(u64::MAX));
        assert_eq!(Usd::from_dollars(-3.0), Usd::ZERO);
        assert!(serde_json::from_str::<Usd>("-1").is_err());
    }

    #[test]
    fn small_amounts_keep_their_digits() {
        assert_eq!(Usd::from_dollars(1.5).to_string(), "$1.50");
        assert_eq!(Usd::from_micros(123).to_string(), "$0.000123");
        assert_eq!(Usd::ZERO.to_string(), "$0.00");
    }
}
