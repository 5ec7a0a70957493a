//! How long a provider asks to wait, in every way that is said.

use std::time::Duration;

use chrono::DateTime;
use cyberine_types::Timestamp;

/// The longest wait a provider can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// How a wait begins that is only told in words.
const IN_WORDS: &str = "try again in ";

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds or a date, never more than a day.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX),
        Ok(_) => return None,
        Err(_) => {
            let at = DateTime::parse_from_rfc2822(value).ok()?.timestamp_millis();
            Duration::from_millis(u64::try_from(at.saturating_sub(now.unix_ms())).unwrap_or_default())
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// Reads a span such as `1.5s`, `250ms` or `1m12s`, never more than a day.
pub(super) fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(digits);
        let number: f64 = number.parse().ok()?;
        let (scale, width) = match unit.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b's', ..] => (1.0, 1),
            [b'm', ..] => (60.0, 1),
            [b'h', ..] => (3600.0, 1),
            _ => return None,
        };
        seconds += number * scale;
        rest = &unit[width..];
    }
    let wait = Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX);
    (!text.trim().is_empty()).then(|| wait.min(RETRY_AFTER_MAX))
}

/// Reads a wait that a message in small letters tells to people: `please try again in 6.5s.`
pub(super) fn in_words(message: &str) -> Option<Duration> {
    let (_, told) = message.split_once(IN_WORDS)?;
    span(told.split_whitespace().next()?.trim_end_matches(['.', ',', ';', ')']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_bounded_whatever_it_says() {
        let noon = DateTime::parse_from_rfc2822("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
        let now = Timestamp::from_unix_ms(noon.timestamp_millis());
        let day = Some(RETRY_AFTER_MAX);
        for (value, expected) in [
            ("1", Some(Duration::from_secs(1))),
            (" 0 ", Some(Duration::ZERO)),
            ("1.5", Some(Duration::from_millis(1500))),
            ("1000000000", day),
            ("1e300", day),
            ("inf", day),
            ("-1", None),
            ("nan", None),
            ("soon", None),
            ("", None),
            ("Mon, 30 Nov 2026 12:00:30 GMT", Some(Duration::from_secs(30))),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(Duration::ZERO)),
            ("Mon, 30 Nov 2099 11:00:00 GMT", day),
        ] {
            assert_eq!(retry_after(value, now), expected, "{value:?}");
        }
    }

    #[test]
    fn a_span_is_read_with_its_units() {
        let ms = |ms| Some(Duration::from_millis(ms));
        for (text, expected) in [
            ("1s", ms(1000)),
            ("1.5s", ms(1500)),
            ("250ms", ms(250)),
            ("1m12s", ms(72_000)),
            ("1h0m1s", ms(3_601_000)),
            ("9999999h", Some(RETRY_AFTER_MAX)),
            ("", None),
            ("7", None),
            ("s", None),
            ("1.2.3s", None),
            ("1d", None),
            ("-1s", None),
        ] {
            assert_eq!(span(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_wait_is_read_out_of_words() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(in_words("limit reached, please try again in 6.5s."), ms(6500));
        assert_eq!(in_words("try again in 20ms. visit /account to learn more."), ms(20));
        assert_eq!(in_words("try again in a few minutes"), None);
        assert_eq!(in_words("try again in "), None);
        assert_eq!(in_words("slow down"), None);
    }
}
