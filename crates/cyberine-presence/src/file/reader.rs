//! One look at all records.

use std::time::{Duration, UNIX_EPOCH};

use cyberine_fs::{FsError, PrivateDir};
use cyberine_types::Clock;
use rustix::io::Errno;

use super::stored::{self, MAX_BYTES, SUFFIX, Stored, Version, since_epoch};
use crate::host::{self, Processes};
use crate::liveness::{self, Pass, Shown, liveness};
use crate::record::{Liveness, Member, Record, State};

/// The most files that are looked at.
const MAX_FILES: usize = 100_000;
/// How long the file of a process that is gone, or has withdrawn it, is kept for whoever wonders.
const KEPT: Duration = Duration::from_secs(600);
/// How long a stale file is kept whose process nobody here can look up: it may come back.
const KEPT_UNKNOWN: Duration = Duration::from_secs(86_400);
/// The most files that one look removes.
const SWEPT: usize = 256;

/// What lies in the presence directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// How many are live: those of the roster.
    pub live: usize,
    /// Who has not been heard of in time.
    pub stale: Vec<Member>,
    /// How many records belong to processes that are gone.
    pub dead: usize,
    /// How many records were withdrawn.
    pub departed: usize,
    /// The files that are no record: damaged, of another format, or not a file of the user's own.
    pub damaged: Vec<String>,
}

/// What one look has found.
#[derive(Debug, Default)]
pub(super) struct Look {
    live: Vec<Record>,
    stale: Vec<Record>,
    dead: usize,
    departed: usize,
    damaged: Vec<String>,
    /// Files that nobody needs any more.
    leftover: Vec<(String, Version)>,
}

impl Look {
    pub(super) fn members(self) -> Vec<Member> {
        in_order(self.live).into_iter().map(Member::live).collect()
    }

    pub(super) fn check(self) -> Check {
        let stale = in_order(self.stale).into_iter();
        let mut damaged = self.damaged;
        damaged.sort_unstable();
        Check {
            live: self.live.len(),
            stale: stale.map(|record| Member { record, state: State::Stale }).collect(),
            dead: self.dead,
            departed: self.departed,
            damaged,
        }
    }

    /// Removes the files that nobody needs any more, as far as they are still what was looked at.
    /// Names are never used twice, so that only a process which was away for a day could write
    /// one of them in that very instant; its next beat makes it anew.
    pub(super) fn sweep(&self, dir: &PrivateDir) {
        for (name, version) in self.leftover.iter().take(SWEPT) {
            let is_same = dir
                .read_dated(name, MAX_BYTES)
                .is_ok_and(|now| now.is_some_and(|now| Version::of(&now) == *version));
            if is_same && let Err(error) = dir.remove(name) {
                tracing::debug!(%error, "a presence file of a process that is gone was left");
                return;
            }
        }
    }
}

fn in_order(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_unstable_by(|a, b| (&a.addr, a.instance_id).cmp(&(&b.addr, b.instance_id)));
    records
}

/// Looks at every record in `dir`. A file that is none is counted and passed over.
pub(super) fn look(
    dir: &PrivateDir,
    mut pass: Pass<'_, Version>,
    processes: &mut Processes,
    clock: &dyn Clock,
) -> Result<Look, FsError> {
    let mut look = Look::default();
    let mut watch = Watch { dir, clock, uptime: host::uptime(), file: None };
    for name in dir.list(MAX_FILES)?.names.into_iter().filter(|name| name.ends_with(SUFFIX)) {
        let dated = match dir.read_dated(&name, MAX_BYTES) {
            Ok(Some(dated)) => dated,
            Ok(None) => continue,
            Err(error) if is_exhausted(&error) => return Err(error),
            Err(_) => {
                look.damaged.push(name);
                continue;
            }
        };
        let Some(Stored { ended, record, .. }) = stored::parse(&dated.bytes) else {
            look.damaged.push(name);
            continue;
        };
        let version = Version::of(&dated);
        let shares_clock = processes.here().shares_clock(&record.host);
        let age = pass.age(&name, version, || watch.first_age(&name, version, &record, shares_clock));
        let shown = if ended { Shown::Nothing } else { processes.look(&record) };
        let kept = match (ended, liveness(&record, age, shown)) {
            (true, _) => {
                look.departed += 1;
                KEPT
            }
            (false, Liveness::Dead) => {
                look.dead += 1;
                KEPT
            }
            (false, Liveness::Stale) => {
                look.stale.push(record);
                if shown == Shown::Running { Duration::MAX } else { KEPT_UNKNOWN }
            }
            (false, Liveness::Live) => {
                look.live.push(record);
                Duration::MAX
            }
        };
        if age > kept {
            look.leftover.push((name, version));
        }
    }
    pass.end();
    Ok(look)
}

/// The clocks of one look. The file system is asked for its time once, and only where some record
/// needs it.
struct Watch<'a> {
    dir: &'a PrivateDir,
    clock: &'a dyn Clock,
    uptime: Option<Duration>,
    file: Option<Duration>,
}

impl Watch<'_> {
    /// How old the beat looks that nobody here has seen before.
    fn first_age(&mut self, name: &str, version: Version, record: &Record, shares_clock: bool) -> Duration {
        let beat = Duration::from_millis(record.beat_uptime_ms);
        let uptime = self.uptime.filter(|_| shares_clock && !beat.is_zero()).map(|now| (beat, now));
        if let Some(age) = uptime.and_then(|(beat, now)| liveness::age(beat, now)) {
            return age;
        }
        let now = self.file_time();
        liveness::age(since_epoch(version.modified), now)
            .unwrap_or_else(|| self.date_anew(name, version, now))
    }

    /// The present by the file system's clock, or by the reader's where nothing can be written.
    fn file_time(&mut self) -> Duration {
        *self.file.get_or_insert_with(|| match self.dir.file_system_time() {
            Ok(now) => since_epoch(now),
            Err(_) => Duration::from_millis(u64::try_from(self.clock.now().unix_ms()).unwrap_or(0)),
        })
    }

    /// A file from a time yet to come would look fresh to everybody until then. From now on it is
    /// of now: its process, if there is one, beats before that runs out. Where the date cannot be
    /// set, nobody can beat either.
    fn date_anew(&self, name: &str, version: Version, now: Duration) -> Duration {
        match self.dir.set_modified(name, version.identity, UNIX_EPOCH + now) {
            Ok(_) => Duration::ZERO,
            Err(_) => Duration::MAX,
        }
    }
}

/// Whether the process has no descriptors left: then no file says anything.
fn is_exhausted(error: &FsError) -> bool {
    let FsError::Io { source, .. } = error else { return false };
    matches!(source.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::MFILE | Errno::NFILE))
}
