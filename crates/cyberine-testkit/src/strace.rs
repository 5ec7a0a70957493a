use std::process::Command;

/// `command`, run under strace with a fault such as `fsync:error=EIO`, `flock:error=ENOLCK` or
/// `renameat:signal=KILL:when=2` (strace(1), "Tampering"). `None`, with a word on why the test is
/// skipped, where there is no strace or it may not trace.
#[must_use]
pub fn under_strace(fault: &str, command: &Command) -> Option<Command> {
    let trial = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !trial.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no strace here, or it may not trace");
        return None;
    }
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={fault}")]);
    traced.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        traced.current_dir(directory);
    }
    Some(traced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_the_command_with_its_arguments_and_environment() {
        let mut command = Command::new("sh");
        command.args(["-c", "pwd; echo $SAID; exec mkdir made"]).env("SAID", "so").current_dir("/");
        let Some(mut traced) = under_strace("mkdir:error=EDQUOT", &command) else { return };
        let output = traced.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/\nso\n");
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("quota"), "{output:?}");
    }
}
