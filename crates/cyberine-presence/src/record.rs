//! What a process says of itself.

use cyberine_types::{InstanceId, Timestamp};
use serde::{Deserialize, Serialize};

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
    /// When it last said that it is there.
    pub last_beat: Timestamp,
    /// How long the record holds after a beat, in milliseconds.
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

/// The address of a record, as the bus has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordAddr {
    /// `run`, `chat`, `worker`, `mcp`.
    pub kind: String,
    /// The id.
    pub id: String,
}

/// Where a process runs, and when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The machine's boot, and the process namespace: a process can be looked up only from within
    /// both. Empty where the system does not tell.
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

/// A live record of the roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The record.
    pub record: Record,
}
