use std::ffi::OsString;
use std::process::{Command, Output, Stdio};

/// The variable that tells a test binary which role it plays.
pub const ROLE: &str = "CYBERINE_TEST_ROLE";

/// What a role prints last, so that a run that was cut short, or played nothing, is not taken for
/// a success.
const PLAYED: &str = "role played";

/// This test binary again, as another process that runs the one test `test` in the role `role`:
/// to be killed, or to change what belongs to a whole process. That test begins with [`role`] and
/// ends with [`played`].
///
/// # Panics
///
/// When the system does not say which program this is.
#[must_use]
pub fn rerun(test: &str, role: &str) -> Command {
    let this = std::env::current_exe().expect("a test binary has a path");
    let mut command = Command::new(this);
    command.args(rerun_args(test)).env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The arguments with which a test binary runs the one test `test` and shows what it prints.
#[must_use]
pub fn rerun_args(test: &str) -> Vec<OsString> {
    ["--exact", test, "--nocapture"].map(OsString::from).to_vec()
}

/// The role this process plays; `None` in an ordinary test run.
#[must_use]
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Says that the role came to its end.
pub fn played() {
    // On a line of its own: the test harness may have begun one.
    println!("\n{PLAYED}");
}

/// Checks that a process played its role to the end, and gives what it printed.
///
/// # Panics
///
/// When it did not; shows all that it printed.
pub fn assert_played(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_played = output.status.success() && text.lines().any(|line| line == PLAYED);
    assert!(is_played, "{}\n{text}\n{errors}", output.status);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plays_its_role() {
        match role().as_deref() {
            Some("to the end") => played(),
            Some("and dies") => std::process::abort(),
            _ => {}
        }
    }

    #[test]
    fn only_a_role_that_was_played_to_its_end_is_a_success() {
        let output = |role: &str| rerun("rerun::tests::plays_its_role", role).output().unwrap();
        assert!(assert_played(&output("to the end")).contains(PLAYED));
        for role in ["and dies", "unknown"] {
            let output = output(role);
            assert!(std::panic::catch_unwind(|| assert_played(&output)).is_err(), "{role}");
        }
    }
}
