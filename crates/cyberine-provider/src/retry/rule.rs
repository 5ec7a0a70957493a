//! What is asked again, and after how long. Pure.

use std::time::Duration;

use cyberine_types::{Timestamp, Usage};

use crate::config::Profile;
use crate::error::TurnError;
use crate::port::TurnEvent;

/// The first wait where nobody says how long, and the longest.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How much of a wait is added to it at most, by chance.
const JITTER: f64 = 0.2;
/// Programs ask again by themselves: ours must not multiply with theirs.
const PROGRAM_RETRIES: u32 = 1;

/// Who answers, and how often it is asked again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answerer {
    retries: u32,
    /// A program or a server on this machine: where it is not there, it does not come by waiting.
    local: bool,
}

impl Answerer {
    pub(super) fn of(profile: &Profile<'_>, retries: u32) -> Self {
        match profile.program {
            Some(_) => Self::program(retries),
            None => Self { retries, local: profile.is_on_loopback() },
        }
    }

    fn program(retries: u32) -> Self {
        Self { retries: retries.min(PROGRAM_RETRIES), local: true }
    }
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Next {
    /// How long to wait before anybody asks again.
    pub(super) wait: Duration,
    /// Whether all turns of the account wait, and not this one alone.
    pub(super) closes: bool,
    /// Whether this turn is taken again.
    pub(super) again: bool,
}

/// What follows `error` after `failed` earlier failures of the turn.
pub(super) fn next(
    error: &TurnError,
    delivered: bool,
    failed: u32,
    answerer: &Answerer,
    dice: &dyn Fn() -> f64,
) -> Next {
    let (asked, closes, transient) = match error {
        TurnError::RateLimited { retry_after, .. } => (*retry_after, true, true),
        // One model may be overloaded, and the account well: only what is asked for holds for all.
        TurnError::Overloaded { retry_after, .. } => (*retry_after, retry_after.is_some(), true),
        TurnError::Unreachable { .. } => (None, false, !answerer.local),
        TurnError::Cut { .. } => (None, false, true),
        _ => (None, false, false),
    };
    let base = asked.unwrap_or_else(|| back_off(failed));
    let wait = base.saturating_add(base.mul_f64(JITTER * dice().clamp(0.0, 1.0)));
    Next { wait, closes, again: transient && !delivered && failed < answerer.retries }
}

/// 1 s, 2 s, 4 s, … up to 30 s.
fn back_off(failed: u32) -> Duration {
    BACK_OFF.0.saturating_mul(2_u32.saturating_pow(failed)).min(BACK_OFF.1)
}

/// Whether the event is part of an answer, or of what is paid for, thoughts included.
pub(super) fn delivers(event: &TurnEvent) -> bool {
    match event {
        TurnEvent::Working | TurnEvent::Text(_) | TurnEvent::ToolCall(_) => true,
        TurnEvent::Usage(usage) => is_used(usage),
        TurnEvent::Retract | TurnEvent::Waiting { .. } | TurnEvent::Stop(_) => false,
    }
}

fn is_used(usage: &Usage) -> bool {
    usage.tokens() > 0 || usage.usd.is_some_and(|usd| usd > cyberine_types::Usd::ZERO)
}

/// Whether a turn that failed like this was let in by the account: it was answered, and not told
/// to wait.
pub(super) fn let_in(error: &TurnError) -> bool {
    !matches!(
        error,
        TurnError::Cancelled
            | TurnError::Unreachable { .. }
            | TurnError::Cut { .. }
            | TurnError::IdleTimeout { .. }
            | TurnError::WallTimeout { .. }
    )
}

/// `error`, which asks for a wait that the turn has no time for. The account is closed for an hour at
/// most, whatever wait was asked for: nobody knows so long before what will be then.
pub(super) fn too_long(error: TurnError, asked_at: Timestamp, left: Duration) -> TurnError {
    let more = |detail: String| format!("{detail}; {}", no_time(asked_at, left));
    match error {
        TurnError::RateLimited { detail, retry_after } => {
            TurnError::RateLimited { detail: more(detail), retry_after }
        }
        TurnError::Overloaded { detail, retry_after } => {
            TurnError::Overloaded { detail: more(detail), retry_after }
        }
        other => other,
    }
}

/// The failure of a turn that finds the account closed for longer than it has time.
pub(super) fn closed(reason: &str, asked_at: Timestamp, left: Duration) -> TurnError {
    let detail = format!("an earlier turn of this account was told: {reason}; {}", no_time(asked_at, left));
    // How long that turn was asked to wait is in its own words.
    TurnError::RateLimited { detail, retry_after: None }
}

fn no_time(asked_at: Timestamp, left: Duration) -> String {
    format!(
        "the account is asked again at {asked_at} at the earliest, and this turn has {} s left",
        left.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::{CostBasis, Usd};

    fn detail() -> String {
        "d".to_owned()
    }

    fn service(retries: u32) -> Answerer {
        Answerer { retries, local: false }
    }

    fn limited(seconds: Option<u64>) -> TurnError {
        TurnError::RateLimited { detail: detail(), retry_after: seconds.map(Duration::from_secs) }
    }

    fn after(error: &TurnError, failed: u32) -> Next {
        next(error, false, failed, &service(3), &|| 0.0)
    }

    #[test]
    fn only_what_may_be_better_soon_is_asked_again() {
        let again = [
            limited(None),
            TurnError::Overloaded { detail: detail(), retry_after: None },
            TurnError::Unreachable { target: detail(), detail: detail() },
            TurnError::Cut { detail: detail() },
        ];
        let never = [
            TurnError::Cancelled,
            TurnError::Auth { detail: detail() },
            TurnError::Billing { detail: detail() },
            TurnError::Rejected { detail: detail() },
            TurnError::Refused { detail: detail() },
            TurnError::Truncated { detail: detail() },
            TurnError::Empty,
            TurnError::IdleTimeout { limit: Duration::ZERO },
            TurnError::WallTimeout { limit: Duration::ZERO },
            TurnError::TooLong { limit: 0 },
            TurnError::Crashed { status: detail(), stderr: detail() },
            TurnError::Protocol { detail: detail() },
        ];
        for error in &again {
            assert!(after(error, 0).again, "{error}");
            assert!(!next(error, true, 0, &service(3), &|| 0.0).again, "{error}, and it had begun");
        }
        for error in &never {
            assert!(!after(error, 0).again && !after(error, 0).closes, "{error}");
        }
    }

    #[test]
    fn an_account_is_closed_by_what_the_provider_says_and_not_by_a_broken_line() {
        let overloaded = |retry_after| TurnError::Overloaded { detail: detail(), retry_after };
        assert!(after(&limited(None), 0).closes);
        assert!(after(&overloaded(Some(Duration::from_secs(1))), 0).closes);
        assert!(!after(&overloaded(None), 0).closes);
        assert!(next(&limited(None), true, 9, &service(3), &|| 0.0).closes, "for the others");
        assert!(!after(&TurnError::Cut { detail: detail() }, 0).closes);
    }

    #[test]
    fn the_wait_is_what_was_asked_for_else_it_doubles_and_chance_adds_a_fifth_at_most() {
        let seconds: Vec<u64> = (0..7).map(|failed| after(&limited(None), failed).wait.as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        let wait = |dice: f64| next(&limited(Some(10)), false, 0, &service(3), &|| dice).wait;
        assert_eq!((wait(0.0), wait(1.0)), (Duration::from_secs(10), Duration::from_secs(12)));
        assert_eq!(wait(7.0), Duration::from_secs(12));
    }

    #[test]
    fn a_service_is_asked_again_as_often_as_configured_and_a_program_once() {
        let count = |answerer: Answerer| {
            (0..9).take_while(|failed| next(&limited(None), false, *failed, &answerer, &|| 0.0).again).count()
        };
        assert_eq!((count(service(3)), count(service(0))), (3, 0));
        assert_eq!((count(Answerer::program(3)), count(Answerer::program(0))), (1, 0));
        let gone = TurnError::Unreachable { target: detail(), detail: detail() };
        assert!(!next(&gone, false, 0, &Answerer::program(3), &|| 0.0).again);
        assert!(!next(&gone, false, 0, &Answerer { local: true, ..service(3) }, &|| 0.0).again);
    }

    #[test]
    fn work_tokens_and_money_are_delivered_and_a_count_of_nothing_is_not() {
        assert!(delivers(&TurnEvent::Working));
        let used = |usage: Usage| delivers(&TurnEvent::Usage(usage));
        assert!(!used(Usage { basis: CostBasis::Included, ..Usage::default() }));
        assert!(!used(Usage { usd: Some(Usd::ZERO), ..Usage::default() }));
        assert!(used(Usage { output: 1, ..Usage::default() }));
        assert!(used(Usage { usd: Some(Usd::from_micros(1)), ..Usage::default() }));
    }

    #[test]
    fn a_wait_without_time_for_it_says_when_the_account_is_asked_again() {
        let asked_at = Timestamp::from_unix_ms(0);
        let said = too_long(limited(Some(90)), asked_at, Duration::from_secs(9)).to_string();
        assert_eq!(
            said,
            "the provider limits the rate of requests: d; the account is asked again at \
             1970-01-01T00:00:00.000Z at the earliest, and this turn has 9 s left; it asks to wait 90 s"
        );
        let said = closed("busy", asked_at, Duration::from_secs(9));
        assert_eq!(said.code(), "rate-limit");
        assert!(said.to_string().contains("an earlier turn of this account was told: busy; "), "{said}");
        assert!(said.to_string().ends_with("and this turn has 9 s left"), "{said}");
    }
}
