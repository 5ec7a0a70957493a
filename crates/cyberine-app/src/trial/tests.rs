use super::*;
use cyberine_orchestrator::{OrchestrateConfig, plan};
use std::time::Instant;

fn command(shell: &str, more: &str) -> JudgeCommand {
    let script = serde_json::Value::from(shell);
    serde_json::from_str(&format!(r#"{{"command":["sh","-c",{script}]{more}}}"#)).unwrap()
}

fn trial(command: JudgeCommand, text: &str, project: &Path) -> Trial {
    let mark = format!("trial-{:?}-{}", std::thread::current().id(), std::process::id());
    Trial { command, text: text.to_owned(), project: project.to_owned(), mark }
}

fn trials() -> CommandTrials {
    let path = std::env::var("PATH").unwrap();
    CommandTrials::of(&Environment::of(
        [("PATH", path.as_str()), ("MY_TOKEN", "canary-canary"), ("OTHER", "no")],
        "/",
    ))
}

async fn held(command: JudgeCommand, text: &str) -> TrialReport {
    trials().run(trial(command, text, Path::new("/")), CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn the_exit_code_speaks_and_the_answer_is_in_the_file_and_on_the_input() {
    let check = "cmp answer.txt - && stat -c %a . && [ -z \"$OTHER\" ]";
    let report = held(command(check, ""), "say $(touch owned) `id` \"x\"").await;
    assert!(report.passed, "{report:?}");
    assert_eq!((report.end.as_str(), report.tail.as_str()), ("exit 0", "700"));
    let report = held(command("echo out; echo err >&2; exit 3", ""), "x").await;
    assert_eq!((report.passed, report.end.as_str(), report.tail.as_str()), (false, "exit 3", "out\nerr"));
    let report = held(command("kill -9 $$", ""), "x").await;
    assert_eq!((report.passed, report.end.as_str()), (false, "killed by signal 9"));
}

#[tokio::test]
async fn the_answer_lies_in_a_copy_of_the_project_that_is_gone_afterwards() {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join("kit")).unwrap();
    fs::write(project.path().join("kit/check.sh"), "pwd; [ \"$(cat src/lib.txt)\" = good ]").unwrap();
    let set: JudgeCommand =
        serde_json::from_str(r#"{"command":["sh","check.sh"],"copy":"kit","file":"src/lib.txt"}"#).unwrap();
    for (text, passes) in [("good", true), ("bad", false)] {
        let report =
            trials().run(trial(set.clone(), text, project.path()), CancellationToken::new()).await.unwrap();
        assert_eq!(report.passed, passes, "{report:?}");
        assert!(report.tail.contains("cyberine-trial-") && !Path::new(&report.tail).exists(), "{report:?}");
    }
}

#[tokio::test]
async fn a_command_out_of_time_or_with_too_much_to_say_fails_and_leaves_nothing() {
    let begun = Instant::now();
    let hangs = trial(command("(sleep 600 &); sleep 600", r#","timeout_seconds":1"#), "x", Path::new("/"));
    let mark = hangs.mark.clone();
    let report = trials().run(hangs, CancellationToken::new()).await.unwrap();
    assert_eq!((report.passed, report.end.as_str()), (false, "no end within 1 s"));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(cyberine_process::find_marked(&mark).is_empty());
    let report = held(command("yes", ""), "x").await;
    assert!(!report.passed && report.end.contains("more than 4194304 bytes"), "{}", report.end);
    assert!(report.tail.len() <= TAIL);
    for flood in ["yes >&2", "exec >&-; yes >&2"] {
        let report = held(command(flood, r#","timeout_seconds":60"#), "x").await;
        assert!(!report.passed && report.end.contains("error stream"), "{flood}: {}", report.end);
    }
}

#[tokio::test]
async fn what_cannot_be_held_is_an_error_and_so_is_what_is_cancelled() {
    let missing: JudgeCommand = serde_json::from_str(r#"{"command":["no-such-program-here"]}"#).unwrap();
    let error =
        trials().run(trial(missing, "x", Path::new("/")), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("`no-such-program-here` was not found"), "{error}");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = trials().run(trial(command("sleep 600", ""), "x", Path::new("/")), cancel).await.unwrap_err();
    assert!(error.detail.contains("cancelled"), "{error}");
}

#[test]
fn what_a_killed_runner_left_of_its_trials_is_swept_and_nothing_else() {
    let (run, other) =
        (cyberine_types::RunId::random().to_string(), cyberine_types::RunId::random().to_string());
    let lay = |mark: &str| {
        let set = command("true", "");
        lay_out(&set, "x", Path::new("/"), mark, &|| false).unwrap().keep()
    };
    let (left, kept) = (lay(&run), lay(&other));
    let link = tempfile::env::temp_dir().join(format!("{PREFIX}{run}-link"));
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    sweep(&run);
    assert!(!left.exists() && kept.join("answer.txt").exists() && link.is_symlink());
    fs::remove_file(link).unwrap();
    sweep(&other);
    assert!(!kept.exists());
}

#[tokio::test]
async fn a_variable_that_is_named_is_handed_over_and_taken_out_of_the_output() {
    let report = held(command("echo \"<$MY_TOKEN>\"", r#","env":["MY_TOKEN"]"#), "x").await;
    assert_eq!(report.tail, "<[redacted]>");
}

#[test]
fn a_program_and_a_directory_that_are_not_there_are_told_before_a_run() {
    let project = tempfile::tempdir().unwrap();
    let environment = Environment::of([("PATH", "/bin:/usr/bin")], "/");
    let found = |command: &str, copy: &str| {
        let set: JudgeCommand =
            serde_json::from_str(&format!(r#"{{"command":["{command}"],"copy":"{copy}"}}"#)).unwrap();
        let config = OrchestrateConfig {
            judges: vec![JudgeKind::Command],
            judge_command: Some(set),
            ..OrchestrateConfig::default()
        };
        let plan = plan(&config, &std::collections::BTreeMap::new(), 1).unwrap();
        faults(&plan, &environment, project.path())
    };
    assert_eq!(found("sh", "."), Vec::<String>::new());
    assert_eq!(found("./check", "."), Vec::<String>::new());
    assert_eq!(
        found("no-such-program-here", "kit"),
        [
            "program `no-such-program-here` of the judge `command` is not there",
            "`kit`, which the judge `command` copies, is no directory",
        ]
    );
}
