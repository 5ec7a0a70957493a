//! What a process says of itself.

use std::fmt;
use std::time::Duration;

use cyberine_types::{InstanceId, Timestamp};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// The shortest time a record holds after a beat.
pub const MIN_TTL: Duration = Duration::from_millis(500);
/// The longest time a record holds after a beat, whatever it says itself.
pub const MAX_TTL: Duration = Duration::from_secs(600);

/// One process's record of one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Where messages reach it.
    pub addr: RecordAddr,
    /// The process, apart from others that had its number. Two processes may announce one address.
    pub instance_id: InstanceId,
    /// The directory it works in.
    pub repo_cwd: String,
    /// What it can do, such as `orchestrate`.
    pub capabilities: Vec<String>,
    /// The process.
    pub pid: u32,
    /// Where the process runs, and when it began: tells a number that was given anew.
    pub host: Host,
    /// When it announced itself.
    pub started_at: Timestamp,
    /// When it last said that it is there, by its own clock: to be shown, never to be judged by.
    pub last_beat: Timestamp,
    /// How long the machine was up at that beat, in milliseconds; 0 where the system does not
    /// tell. No step of the clock moves it, so readers on the same boot count by it.
    #[serde(default)]
    pub beat_uptime_ms: u64,
    /// How long the record holds after a beat, in milliseconds: three times its own interval. Read
    /// from a file, it lies between [`MIN_TTL`] and [`MAX_TTL`].
    #[serde(deserialize_with = "clamped_ttl")]
    pub ttl_ms: u64,
    /// What it does at the moment, as it says.
    pub activity: Activity,
    /// Its team.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub team: Option<String>,
    /// Its role in the team.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<String>,
    /// Its own name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
}

impl Record {
    /// How long the record holds after a beat, between [`MIN_TTL`] and [`MAX_TTL`].
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms).clamp(MIN_TTL, MAX_TTL)
    }
}

/// The address of a record, as the bus has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordAddr {
    /// `run`, `chat`, `worker`, `mcp`.
    pub kind: String,
    /// The id.
    pub id: String,
}

impl fmt::Display for RecordAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} `{}`", self.kind, self.id)
    }
}

/// Where a process runs, and when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The machine's boot, the namespace of its clock and the one of its processes, as
    /// `<boot>/<time>/<pid>`: a process can be looked up only from within all three. Empty where
    /// the system does not tell.
    pub boot_id: String,
    /// When the process began, in the system's own ticks since that boot; 0 where it does not tell.
    pub pid_started: u64,
}

/// What a process says it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// It is there.
    #[default]
    Alive,
    /// It gets on with its work.
    Progressing,
    /// It waits for a human.
    Waiting,
}

/// What a reader makes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// Its process is there, or may well be.
    Live,
    /// No beat within its time.
    Stale,
    /// Its process is gone: this machine shows that.
    Dead,
}

/// What a surface shows of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Alive,
    /// It gets on with its work.
    Progressing,
    /// It waits for a human.
    Waiting,
    /// No beat within its time. Never on a roster; a check names such ones.
    Stale,
}

impl State {
    /// The state's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Progressing => "progressing",
            Self::Waiting => "waiting",
            Self::Stale => "stale",
        }
    }
}

impl From<Activity> for State {
    fn from(activity: Activity) -> Self {
        match activity {
            Activity::Alive => Self::Alive,
            Activity::Progressing => Self::Progressing,
            Activity::Waiting => Self::Waiting,
        }
    }
}

/// One entry of the roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The record. What cannot be seen in a text of it is escaped.
    pub record: Record,
    /// What to show of it.
    pub state: State,
}

impl Member {
    /// The live member of that record.
    #[must_use]
    pub fn live(record: Record) -> Self {
        Self { state: record.activity.into(), record }
    }
}

/// Any number is a time to live; what makes no sense as one becomes the nearest that does.
fn clamped_ttl<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    struct Number;

    const MIN: u64 = MIN_TTL.as_millis() as u64;
    const MAX: u64 = MAX_TTL.as_millis() as u64;

    impl Visitor<'_> for Number {
        type Value = u64;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a number of milliseconds")
        }

        fn visit_u64<E>(self, ms: u64) -> Result<u64, E> {
            Ok(ms.clamp(MIN, MAX))
        }

        fn visit_i64<E>(self, ms: i64) -> Result<u64, E> {
            Ok(u64::try_from(ms).unwrap_or(0).clamp(MIN, MAX))
        }

        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        fn visit_f64<E>(self, ms: f64) -> Result<u64, E> {
            Ok((ms as u64).clamp(MIN, MAX))
        }
    }

    input.deserialize_any(Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_ttl_within_bounds() {
        #[derive(Deserialize)]
        struct Only {
            #[serde(deserialize_with = "clamped_ttl")]
            ttl: u64,
        }
        let read = |text: &str| {
            serde_json::from_str::<Only>(&format!("{{\"ttl\":{text}}}")).map(|only| only.ttl).ok()
        };
        for (text, ms) in [
            ("0", 500),
            ("-1", 500),
            ("0.5", 500),
            ("-1e300", 500),
            ("60000", 60_000),
            ("60000.0", 60_000),
            ("1e12", 600_000),
            ("18446744073709551615", 600_000),
        ] {
            assert_eq!(read(text), Some(ms), "{text}");
        }
        for text in ["\"60000\"", "null", "[]", "1e400"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
