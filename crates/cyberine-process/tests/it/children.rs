use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use cyberine_process::{ChildEnvironment, Spawn, SpawnError, spawn};

use crate::{block_on, environment, read_all, script, start};

#[test]
fn a_child_knows_what_is_allowed_and_nothing_else() {
    let names = ["PATH", "LC_ALL", "XDG_DATA_HOME", "ANTHROPIC_API_KEY", "NAMED", "CYBERINE_MCP_AUTH_TOKEN"];
    let snapshot = names.map(|name| {
        let value = if name == "PATH" { "/usr/bin:/bin".to_owned() } else { format!("canary-{name}") };
        (name.into(), value.into())
    });
    let environment = ChildEnvironment::allowed(snapshot.clone()).pass(snapshot, &["NAMED"]).marked("run-1");
    block_on(async {
        let mut child = start(Spawn::new("env", environment, "/"));
        let text = String::from_utf8(read_all(&mut child).await).unwrap();
        let seen: BTreeSet<_> = text.lines().filter(|line| !line.starts_with("CYBERINE_SPAWN=")).collect();
        let expected = [
            "CYBERINE_RUN=run-1",
            "LC_ALL=canary-LC_ALL",
            "NAMED=canary-NAMED",
            "PATH=/usr/bin:/bin",
            "TERM=dumb",
            "XDG_DATA_HOME=canary-XDG_DATA_HOME",
        ];
        assert_eq!(seen, BTreeSet::from(expected));
        assert_eq!(text.lines().count(), expected.len() + 1);
    });
}

#[test]
fn an_exit_has_its_code_and_the_end_of_the_error_stream() {
    block_on(async {
        let mut child = start(script("echo out; echo 'went wrong' >&2; exit 7"));
        assert_eq!(read_all(&mut child).await, b"out\n");
        let exit = child.finish().await.unwrap();
        assert_eq!(
            (exit.status.code(), exit.stderr.as_str(), exit.stderr_bytes),
            (Some(7), "went wrong\n", 11)
        );
        assert_eq!((exit.left_behind.killed, exit.left_behind.left), (0, 0));
        assert_eq!(child.finish().await.unwrap(), exit, "asking again gives the same");
        assert_eq!(child.next_chunk().await.unwrap(), None);
    });
}

#[test]
fn a_missing_program_is_named_with_where_it_was_looked_for() {
    block_on(async {
        let environment = ChildEnvironment::allowed([]).set("PATH", "/bin:/usr/bin");
        let error = spawn(Spawn::new("no-such-program", environment.clone(), "/")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`no-such-program` was not found in PATH (`/bin:/usr/bin`); install it or name it by its full path"
        );
        let error = spawn(Spawn::new("/bin/no-such-program", environment.clone(), "/")).unwrap_err();
        assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
        let error = spawn(Spawn::new("sh", environment, "/no/such/directory")).unwrap_err();
        assert!(matches!(error, SpawnError::NoDirectory { .. }), "{error}");
    });
}

#[test]
fn a_program_the_system_refuses_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let broken = scratch.path().join("broken");
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).unwrap();
    block_on(async {
        let error = spawn(Spawn::new(&broken, environment(), "/")).unwrap_err();
        assert!(matches!(error, SpawnError::Refused { .. }), "{error}");
        let long = Spawn {
            args: vec!["x".repeat(8 * 1024 * 1024).into()],
            ..Spawn::new("true", environment(), "/")
        };
        let error = spawn(long).unwrap_err();
        assert!(matches!(error, SpawnError::TooLong { .. }), "{error}");
    });
}
