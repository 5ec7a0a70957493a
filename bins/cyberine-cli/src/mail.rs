//! What the commands about messages share.

use cyberine_app::{Exit, Problem, Workplace, chain};
use cyberine_bus::{Address, AddressKind, BusError};
use cyberine_presence::{Member, PresenceError, RecordAddr};
use cyberine_run_store::Run;
use cyberine_types::Timestamp;

use crate::commands::{find, load};
use crate::target::Target;

/// The mailbox a person named, and the run where it is a run's or one of its candidates'.
pub(crate) async fn mailbox(
    workplace: &Workplace,
    target: Target,
) -> Result<(Address, Option<Run>), Problem> {
    match target {
        Target::Mailbox(address) => Ok((address, None)),
        Target::Run(wanted) => {
            let run = load(workplace, find(workplace, &wanted).await?).await?;
            Ok((of_run(&run)?, Some(run)))
        }
        Target::Worker(wanted, name) => {
            let run = load(workplace, find(workplace, &wanted).await?).await?;
            let address = cyberine_operator::mailbox(AddressKind::Worker, &format!("{}/{name}", run.run_id));
            Ok((address.map_err(|error| Problem::new(Exit::Usage, error))?, Some(run)))
        }
        Target::Role(_) => Err(Problem::new(
            Exit::Usage,
            "a role has no mailbox of its own: it is written to, and read by whoever has it; name a mailbox such as \
             team:NAME",
        )),
    }
}

/// The mailbox of a run.
pub(crate) fn of_run(run: &Run) -> Result<Address, Problem> {
    Address::new(AddressKind::Run, run.run_id.to_string())
        .map_err(|error| Problem::of(Exit::Internal, &error))
}

/// Where messages reach a member; `None` where its record names no address there can be.
pub(crate) fn address_of(addr: &RecordAddr) -> Option<Address> {
    let kind = AddressKind::ALL.into_iter().find(|kind| kind.name() == addr.kind)?;
    Address::new(kind, addr.id.as_str()).ok()
}

/// Everybody who is live.
pub(crate) async fn roster(workplace: &Workplace) -> Result<Vec<Member>, Problem> {
    workplace.presence.roster().await.map_err(presence_problem)
}

/// What a bus that failed means to a command.
pub(crate) fn problem(error: BusError) -> Problem {
    let exit = match error {
        BusError::Off => Exit::Unavailable,
        BusError::TooLong { .. } | BusError::LabelTooLong { .. } | BusError::NamelessReader => Exit::Usage,
        BusError::Busy { .. } | BusError::Gone { .. } => Exit::TryAgain,
        _ => Exit::Internal,
    };
    Problem::new(exit, format!("{}. {}", chain(&error), error.advice())).with_code(error.code())
}

/// What presence that failed means to a command.
pub(crate) fn presence_problem(error: PresenceError) -> Problem {
    let exit = if matches!(error, PresenceError::Refused { .. }) { Exit::Usage } else { Exit::Internal };
    Problem::new(exit, format!("{}. {}", chain(&error), error.advice())).with_code(error.code())
}

/// The time `text` names: an RFC 3339 instant, or how long before `now`.
pub(crate) fn when(text: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    if let Ok(at) = serde_json::from_value(text.into()) {
        return Ok(at);
    }
    let wrong = || {
        Problem::new(
            Exit::Usage,
            format!(
                "`{text}` is no time: write one such as 2026-01-31T09:00:00Z, or how long ago: 90s, 10m, 2h, 7d"
            ),
        )
    };
    let unit = match text.as_bytes().last() {
        Some(b's') => 1_000,
        Some(b'm') => 60_000,
        Some(b'h') => 3_600_000,
        Some(b'd') => 86_400_000,
        _ => return Err(wrong()),
    };
    let ago = text.get(..text.len() - 1).and_then(|number| number.parse::<u32>().ok()).ok_or_else(wrong)?;
    Ok(Timestamp::from_unix_ms(now.unix_ms().saturating_sub(i64::from(ago) * unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_instant_or_how_long_ago() {
        let now = Timestamp::from_unix_ms(1_700_000_000_000);
        let check = |text: &str, want: Option<i64>| {
            assert_eq!(when(text, now).ok().map(Timestamp::unix_ms), want, "{text:?}");
        };
        check("90s", Some(1_699_999_910_000));
        check("2h", Some(1_699_992_800_000));
        check("7d", Some(1_699_395_200_000));
        check("2023-11-14T22:13:20Z", Some(1_700_000_000_000));
        for wrong in ["", "s", "10", "-1m", "1.5h", "10é", "yesterday", "99999999999d"] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_bus_that_is_off_is_told_with_what_to_do() {
        let problem = problem(BusError::Off);
        assert_eq!(problem.exit, Exit::Unavailable);
        assert!(problem.message.contains("CYBERINE_BUS_BACKEND"), "{problem}");
    }
}
