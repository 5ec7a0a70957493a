//! Plain decimal numbers as people and models write them.

/// A number in one spelling. Only what is a number in every reading gets one: nothing here
/// guesses, since two answers that are wrongly taken for one make a false majority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Decimal {
    negative: bool,
    whole: String,
    /// The digits after the point as they are written: `3.1` and `3.10` may be versions. Empty for
    /// an integer, also one that is written with zeros after the point.
    fraction: String,
}

impl Decimal {
    /// Reads a number from the start of `text` and returns it with what follows it.
    ///
    /// Digits may come in groups of three, parted by `,`, `_`, `'` or a space that does not break
    /// a line (U+00A0, U+2009, U+202F), the same one each time; the first group has up to three
    /// digits and no zero before them. A comma before exactly three digits therefore parts
    /// thousands, as it does in English (`10,080`), and no other comma is read. The decimal sign is
    /// a point. `42.0` and `42` are one number, `1.000` and `1` are not: a point before three zeros
    /// parts thousands in much of the world. Digits with zeros before them (`007`), a plus sign and
    /// exponents make codes and names as often as numbers, and are none here.
    pub(super) fn take(text: &str) -> Option<(Self, &str)> {
        let minus = text.strip_prefix(['-', '\u{2212}']);
        let (whole, rest) = take_whole(minus.unwrap_or(text))?;
        let (written, rest) = take_fraction(rest);
        let is_integer = written.chars().all(|digit| digit == '0') && written.len() != 3;
        let fraction = if is_integer { "" } else { written }.to_owned();
        let negative = minus.is_some() && !(whole == "0" && fraction.is_empty());
        Some((Self { negative, whole, fraction }, rest))
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn take_whole(text: &str) -> Option<(String, &str)> {
    let (first, mut rest) = digits(text);
    if first.is_empty() {
        let has_fraction = rest.strip_prefix('.')?.starts_with(|c: char| c.is_ascii_digit());
        return has_fraction.then(|| ("0".to_owned(), rest));
    }
    if first == "0" {
        return Some((first.to_owned(), rest));
    }
    if first.starts_with('0') {
        return None;
    }
    let mut whole = first.to_owned();
    let separator =
        rest.chars().next().filter(|c| matches!(c, ',' | '_' | '\'' | '\u{a0}' | '\u{2009}' | '\u{202f}'));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<Decimal> {
        Decimal::take(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
    }

    #[test]
    fn one_number_has_one_value_in_every_spelling() {
        let groups: &[&[&str]] = &[
            &["42", "42.0", "42.00"],
            &["1234567.5", "1,234,567.5", "1_234_567.5", "1'234'567.5", "1\u{202f}234\u{202f}567.5"],
            &["10080", "10,080", "10\u{a0}080", "10\u{2009}080.0"],
            &["-3", "\u{2212}3", "-3.0"],
            &["0", "-0", "0.0"],
            &[".5", "0.5"],
        ];
        for group in groups {
            for text in *group {
                assert_eq!(whole(text), whole(group[0]), "{text}");
                assert!(whole(text).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn what_may_mean_something_else_is_refused() {
        for text in [
            "3,14",
            "1,2345",
            "12,34,567",
            "0,123",
            "1234,567",
            "1 234",
            "007",
            "00",
            "+42",
            "1e3",
            "",
            "-",
            ".",
            "x",
            "e5",
            "1.2.3",
            "1,234_567",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn digits_after_the_point_are_kept_as_written() {
        for (left, right) in [("3.10", "3.1"), ("1.000", "1"), ("1.234", "1,234"), ("0.50", "0.5")] {
            assert_ne!(whole(left), whole(right), "{left} and {right}");
            assert!(whole(left).is_some() && whole(right).is_some());
        }
    }

    #[test]
    fn long_numbers_are_compared_to_the_last_digit() {
        assert_ne!(whole("100000000000000000000000000001"), whole("100000000000000000000000000002"));
        assert_ne!(whole("0.1000000000000000000001"), whole("0.1"));
    }
}
