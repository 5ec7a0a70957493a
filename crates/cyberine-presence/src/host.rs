//! What this machine tells of itself and of its processes.

use std::collections::HashMap;
use std::time::Duration;

use crate::liveness::Shown;
use crate::record::{Host, Record};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as system;

impl Host {
    /// Where this process runs, and when it began.
    #[must_use]
    pub fn here() -> Self {
        system::here()
    }

    /// Whether the two count their uptime alike: one boot, one namespace of clocks.
    pub(crate) fn shares_clock(&self, other: &Self) -> bool {
        let own = self.boot_id.rsplit_once('/');
        own.is_some_and(|(own, _)| other.boot_id.rsplit_once('/').is_some_and(|(clock, _)| clock == own))
    }

    /// Whether the two see the same processes.
    fn shares_processes(&self, other: &Self) -> bool {
        system::shares_processes(&self.boot_id, &other.boot_id)
    }
}

/// How long the machine is up; `None` where the system does not tell.
pub(crate) fn uptime() -> Option<Duration> {
    system::uptime()
}

/// A process as the system has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It began then; 0 where the system does not tell.
    Running { started: u64 },
    /// There is none, or only what is left of it until its parent has looked.
    Gone,
    /// The system does not say.
    Untold,
}

/// Looks processes up, each number once.
#[derive(Debug)]
pub(crate) struct Processes {
    here: Host,
    found: HashMap<u32, Found>,
}

impl Processes {
    pub(crate) fn new(here: Host) -> Self {
        Self { here, found: HashMap::new() }
    }

    pub(crate) fn here(&self) -> &Host {
        &self.here
    }

    /// What this machine shows of the record's process.
    pub(crate) fn look(&mut self, record: &Record) -> Shown {
        if !self.here.shares_processes(&record.host) {
            return Shown::Nothing;
        }
        let found = *self.found.entry(record.pid).or_insert_with(|| system::find(record.pid));
        match found {
            Found::Untold => Shown::Nothing,
            Found::Gone => Shown::Gone,
            Found::Running { started: 0 } => Shown::Running,
            Found::Running { started } if started == record.host.pid_started => Shown::Running,
            Found::Running { .. } => Shown::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::record;

    fn of(boot_id: &str) -> Host {
        Host { boot_id: boot_id.to_owned(), pid_started: 1 }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_clock_is_shared_across_process_namespaces_but_processes_are_not() {
        let here = of("boot/1/2");
        assert!(here.shares_clock(&of("boot/1/3")) && !here.shares_processes(&of("boot/1/3")));
        assert!(here.shares_clock(&here) && here.shares_processes(&here));
        for other in ["boot/9/2", "other/1/2", "", "boot"] {
            assert!(!here.shares_clock(&of(other)) && !here.shares_processes(&of(other)), "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_found_by_its_number_and_its_beginning() {
        let mut processes = Processes::new(Host::here());
        let me = Record { pid: std::process::id(), host: Host::here(), ..record("a") };
        assert_eq!(processes.look(&me), Shown::Running);

        let mut reused = me.clone();
        reused.host.pid_started += 1;
        assert_eq!(processes.look(&reused), Shown::Gone);

        let mut elsewhere = reused.clone();
        elsewhere.host.boot_id.push('9');
        assert_eq!(processes.look(&elsewhere), Shown::Nothing);

        // Numbers end before this one (`pid_max` is at most 2^22).
        for pid in [0, 1 << 23, u32::MAX] {
            assert_eq!(processes.look(&Record { pid, ..me.clone() }), Shown::Gone, "{pid}");
        }
    }
}
