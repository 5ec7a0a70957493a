//! Linux: `/proc`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::Found;
use crate::record::Host;

pub(super) fn here() -> Host {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // `/proc` may show another namespace than this process's own: then nobody can be looked up.
    let is_own =
        fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&std::process::id().to_string()));
    let processes = if is_own { namespace("pid") } else { None }.unwrap_or_default();
    let clocks = namespace("time").unwrap_or_default();
    let pid_started = match find(std::process::id()) {
        Found::Running { started } if is_own => started,
        _ => 0,
    };
    let boot_id = match boot.trim() {
        "" => String::new(),
        boot => format!("{boot}/{clocks}/{processes}"),
    };
    Host { boot_id, pid_started }
}

/// The number of the namespace of that kind, out of `pid:[4026531836]`.
fn namespace(kind: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    let number = link.to_str()?.split_once('[')?.1.strip_suffix(']')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.to_owned())
}

/// One boot and one namespace of processes, both told.
pub(super) fn shares_processes(one: &str, other: &str) -> bool {
    one == other && one.rsplit_once('/').is_some_and(|(_, processes)| !processes.is_empty())
}

pub(super) fn uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

pub(super) fn find(pid: u32) -> Found {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse(&stat).unwrap_or(Found::Untold),
        Err(error) if error.kind() == ErrorKind::NotFound => Found::Gone,
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Found::Gone,
        Err(_) => Found::Untold,
    }
}

/// Reads one line of `/proc/<pid>/stat` (proc_pid_stat(5)). The program's name in parentheses may
/// hold anything, so the rest counts from the last one.
fn parse(stat: &[u8]) -> Option<Found> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(stat.get(after..)?).ok()?.split_ascii_whitespace().collect();
    // Field 3 of the manual is the first one here.
    let field = |number: usize| fields.get(number - 3).copied();
    let threads: i64 = field(20)?.parse().ok()?;
    let started = field(22)?.parse().ok()?;
    // A process whose first thread has ended while others go on looks like a zombie, but is none.
    let is_gone = matches!(field(3)?, "Z" | "X") && threads <= 1;
    Some(if is_gone { Found::Gone } else { Found::Running { started } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_its_row() {
        let row = |name: &str, state: &str, threads: u32| {
            format!("42 ({name}) {state} 7 8 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 {threads} 0 5555 0 0\n")
        };
        for name in ["sh", "a b", "x) Z 1 1 1 (", ") Z 1"] {
            assert_eq!(parse(row(name, "S", 1).as_bytes()), Some(Found::Running { started: 5555 }), "{name}");
        }
        assert_eq!(parse(row("sh", "Z", 1).as_bytes()), Some(Found::Gone));
        assert_eq!(parse(row("sh", "Z", 2).as_bytes()), Some(Found::Running { started: 5555 }));
        for broken in ["", "42", "42 (sh", "42 (sh)", "42 (sh) S 7"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn this_machine_tells_where_and_since_when_we_run() {
        let here = here();
        assert!(here.pid_started > 0 && shares_processes(&here.boot_id, &here.boot_id), "{here:?}");
        assert!(uptime().unwrap() > Duration::ZERO);
    }
}
