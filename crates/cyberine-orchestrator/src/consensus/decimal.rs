//! Exact decimal numbers as people and models write them.

/// A number in one spelling: `digits × 10^exponent` without leading or trailing zeros, so that
/// `42`, `42.0` and `4.2e1` are equal and no rounding takes place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Reads a number from the start of `text` and returns it with what follows it.
    ///
    /// Groups of three digits may be parted by `,`, `_`, `'`, or a space of any width; the
    /// decimal sign is a point. `3,14` is no number here: whether its comma groups or parts
    /// decimals depends on the country, and a guess would merge answers that differ.
    pub(super) fn take(text: &str) -> Option<(Self, &str)> {
        let (negative, rest) = take_sign(text);
        let (whole, rest) = take_grouped(rest)?;
        let (fraction, rest) = take_fraction(rest);
        let (shift, rest) = take_exponent(rest);
        let ends =
            rest.chars().next().is_none_or(|next| !next.is_ascii_digit() && !matches!(next, ',' | '\''));
        ends.then(|| (Self::new(negative, &whole, fraction, shift), rest))
    }

    fn new(negative: bool, whole: &str, fraction: &str, shift: i64) -> Self {
        let all = format!("{whole}{fraction}");
        let significant = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - significant.len()).unwrap_or(0);
        let places = i64::try_from(fraction.len()).unwrap_or(0);
        let digits = significant.trim_start_matches('0').to_owned();
        let zero = digits.is_empty();
        Self { negative: negative && !zero, exponent: if zero { 0 } else { shift + zeros - places }, digits }
    }
}

fn take_sign(text: &str) -> (bool, &str) {
    for (sign, negative) in [("-", true), ("\u{2212}", true), ("+", false)] {
        if let Some(rest) = text.strip_prefix(sign) {
            return (negative, rest);
        }
    }
    (false, text)
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Digits, in groups of three after the first where a separator is used, the same one each time.
fn take_grouped(text: &str) -> Option<(String, &str)> {
    let (first, mut rest) = digits(text);
    if first.is_empty() {
        return rest
            .strip_prefix('.')
            .filter(|after| after.starts_with(|c: char| c.is_ascii_digit()))
            .map(|_| (String::new(), rest));
    }
    let mut whole = first.to_owned();
    let separator = rest
        .chars()
        .next()
        .filter(|c| matches!(c, ',' | '_' | '\'' | ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'));
    if let Some(separator) = separator.filter(|_| first.len() <= 3) {
        while let Some(after) = rest.strip_prefix(separator) {
            let (group, next) = digits(after);
            if group.len() != 3 {
                break;
            }
            whole.push_str(group);
            rest = next;
        }
    }
    Some((whole, rest))
}

fn take_fraction(text: &str) -> (&str, &str) {
    match text.strip_prefix('.').map(digits) {
        Some((fraction, rest)) if !fraction.is_empty() => (fraction, rest),
        _ => ("", text),
    }
}

fn take_exponent(text: &str) -> (i64, &str) {
    let parsed = text.strip_prefix(['e', 'E']).and_then(|after| {
        let (negative, after) = take_sign(after);
        let (number, rest) = digits(after);
        let value = number.parse::<i32>().ok()?;
        Some((i64::from(if negative { -value } else { value }), rest))
    });
    parsed.unwrap_or((0, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<Decimal> {
        Decimal::take(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
    }

    #[test]
    fn one_number_has_one_value_in_every_spelling() {
        let groups: &[&[&str]] = &[
            &["42", "42.0", "042", "+42", "4.2e1", "420e-1"],
            &[
                "1234567.5",
                "1,234,567.50",
                "1 234 567.5",
                "1_234_567.5",
                "1'234'567.5",
                "1\u{202f}234\u{202f}567.5",
            ],
            &["-3", "\u{2212}3", "-3.000"],
            &["0", "-0", "0.0", "0e9"],
            &[".5", "0.5", "5e-1"],
        ];
        for group in groups {
            for text in *group {
                assert_eq!(whole(text), whole(group[0]), "{text}");
                assert!(whole(text).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn what_depends_on_the_country_or_is_no_number_is_refused() {
        for text in ["3,14", "1,2345", "12,34,567", "", "-", ".", "x", "e5", "1.2.3"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn long_numbers_are_compared_to_the_last_digit() {
        assert_ne!(whole("100000000000000000000000000001"), whole("100000000000000000000000000002"));
        assert_ne!(whole("0.1000000000000000000001"), whole("0.1"));
    }
}
