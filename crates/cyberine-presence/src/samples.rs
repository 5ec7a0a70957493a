//! Records for the tests of this crate.

use cyberine_types::{InstanceId, Timestamp};

use crate::record::{Activity, Host, Record, RecordAddr};

/// A record of the chat `id`, of another machine.
pub(crate) fn record(id: &str) -> Record {
    let at = Timestamp::from_unix_ms(1_796_040_000_000);
    Record {
        addr: RecordAddr { kind: "chat".to_owned(), id: id.to_owned() },
        instance_id: InstanceId::random(),
        repo_cwd: "/elsewhere".to_owned(),
        capabilities: Vec::new(),
        pid: 1,
        host: Host { boot_id: "another/1/2".to_owned(), pid_started: 7 },
        started_at: at,
        last_beat: at,
        beat_uptime_ms: 5_000,
        ttl_ms: 60_000,
        activity: Activity::Alive,
        team: None,
        role: None,
        name: None,
    }
}
