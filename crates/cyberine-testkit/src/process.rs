use std::path::Path;

/// Whether the process `pid` has ended, reaped or not. Linux.
#[must_use]
pub fn is_gone(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name in parentheses may hold anything; the state follows the last one.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Whether not even a zombie is left of the process `pid`. Linux.
#[must_use]
pub fn is_reaped(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_zombie_is_gone_but_not_reaped() {
        assert!(!is_gone(std::process::id()) && !is_reaped(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        while !is_gone(child.id()) {
            std::thread::yield_now();
        }
        assert!(!is_reaped(child.id()));
        child.wait().unwrap();
        assert!(is_gone(child.id()) && is_reaped(child.id()));
    }
}
