use std::fmt;

use crate::escape::escape_text;

/// The longest id or progress token, in bytes as it is written: each is kept several times as long
/// as its request is in flight.
pub(crate) const ID_LIMIT: usize = 1024;

/// A request id or a progress token: a string or an integral number.
///
/// It keeps the JSON token it was written with, so that an answer echoes `1.0` as `1.0`, and
/// compares by value: `1`, `1.0` and `1e0` are one id, `1` and `"1"` are two
/// (2026-07-28, `basic`, "Requests").
#[derive(Debug, Clone)]
pub(crate) struct RequestId {
    token: Box<str>,
    value: IdValue,
}

/// What two ids are compared by: the text of a string with a quote in front, or the digits of a
/// number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct IdValue(Box<str>);

impl RequestId {
    /// Reads a JSON token. `None` where it is neither a string nor an integral number, or is longer
    /// than [`ID_LIMIT`].
    pub(crate) fn from_token(token: &str) -> Option<Self> {
        if token.len() > ID_LIMIT {
            return None;
        }
        let value = if token.starts_with('"') { text_value(token)? } else { integral(token)? };
        let token = if token.is_ascii() { token.into() } else { escape_text(token).into() };
        Some(Self { token, value: IdValue(value) })
    }

    /// An id of this side's own making. Where many sessions share one client, each has its scope.
    pub(crate) fn own(scope: Option<u64>, serial: u64) -> Self {
        let token = match scope {
            Some(scope) => format!("\"cyberine-{scope}-{serial}\""),
            None => format!("\"cyberine-{serial}\""),
        };
        let value = IdValue(token[..token.len() - 1].into());
        Self { token: token.into(), value }
    }

    /// The scope of an id that [`own`](Self::own) made with one.
    pub(crate) fn scope(&self) -> Option<u64> {
        let (scope, serial) = self.value.0.strip_prefix("\"cyberine-")?.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let scope = Some(scope).filter(|scope| digits(scope))?.parse().ok()?;
        (digits(serial) && *self == Self::own(Some(scope), serial.parse().ok()?)).then_some(scope)
    }

    /// An id of a client's own making: a number, which every server takes.
    pub(crate) fn number(serial: u64) -> Self {
        let token: Box<str> = serial.to_string().into();
        Self { value: IdValue(token.clone()), token }
    }

    /// The JSON token as it was written, safe to put into a line.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) const fn value(&self) -> &IdValue {
        &self.value
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for RequestId {}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.token)
    }
}

fn text_value(token: &str) -> Option<Box<str>> {
    if token.contains('\\') {
        let text: String = serde_json::from_str(token).ok()?;
        return Some(format!("\"{text}").into());
    }
    token.strip_suffix('"').map(Into::into)
}

/// The digits of an integral JSON number, without exponent, fraction or minus zero. `None` for other
/// numbers, and for what is no number.
pub(crate) fn integral(token: &str) -> Option<Box<str>> {
    // JSON allows no leading zero, so plain digits are canonical.
    if token.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(token.into());
    }
    let (sign, unsigned) = token.strip_prefix('-').map_or(("", token), |rest| ("-", rest));
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".into());
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let zeros = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(i64::try_from(trailing).ok()?)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    // A number that passed the strict layer is finite, so it has no more than 309 digits.
    let zeros = usize::try_from(zeros).ok().filter(|zeros| *zeros <= 400)?;
    Some(format!("{sign}{significant}{}", "0".repeat(zeros)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(token: &str) -> RequestId {
        RequestId::from_token(token).unwrap_or_else(|| panic!("`{token}` is an id"))
    }

    #[test]
    fn ids_compare_by_value_and_echo_as_written() {
        for (a, b) in
            [("1", "1.0"), ("1", "10e-1"), ("100", "1E+2"), ("0", "-0.0e7"), ("\"a\"", "\"\\u0061\"")]
        {
            assert_eq!(id(a), id(b), "{a} {b}");
            assert_eq!(id(b).token(), b);
        }
        for (a, b) in [
            ("1", "\"1\""),
            ("1", "-1"),
            ("10", "1"),
            ("\"a\"", "\"A\""),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert_ne!(id(a), id(b), "{a} {b}");
        }
    }

    #[test]
    fn what_is_neither_text_nor_integral_is_no_id() {
        for token in ["1.5", "15e-1", "true", "null", "{}", "[]", "1e-9", "1e9999999999999999999"] {
            assert!(RequestId::from_token(token).is_none(), "{token}");
        }
    }

    #[test]
    fn an_id_longer_than_the_limit_is_none() {
        let quoted = |length: usize| format!("\"{}\"", "i".repeat(length - 2));
        assert_eq!(id(&quoted(ID_LIMIT)).token().len(), ID_LIMIT);
        for token in [quoted(ID_LIMIT + 1), "1".repeat(ID_LIMIT + 1), format!("1.{}", "0".repeat(ID_LIMIT))] {
            assert!(RequestId::from_token(&token).is_none(), "{} bytes", token.len());
        }
    }

    #[test]
    fn an_echoed_id_never_carries_a_line_separator() {
        assert_eq!(id("\"a\u{2028}\"").token(), "\"a\\u2028\"");
        assert_eq!(id("\"a\u{2028}\""), id("\"a\\u2028\""));
    }
}
