//! This binary, run again as another process.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use cyberine_process::{
    KillReport, Spawn, conceal, enter_session, find_marked, kill_below, kill_marked, take_channel, take_stdin,
};
use cyberine_testkit::{assert_played, is_gone, is_reaped, played, rerun, role};

use crate::{block_on, environment, eventually, python, read_line, script, start};

pub(crate) const TEST: &str = "helper::plays_its_role";

/// Runs a role to its end, with `variables` in its environment.
pub(crate) fn run(role: &str, variables: &[(&str, &str)]) {
    assert_played(&rerun(TEST, role).envs(variables.iter().copied()).output().unwrap());
}

/// Does nothing in an ordinary test run.
#[test]
fn plays_its_role() {
    let Some(role) = role() else { return };
    match role.as_str() {
        "runner" => runner(),
        "short runner" => return,
        "concealed" => concealed(),
        "no channel" => println!("\nno channel: {}", take_channel().unwrap().is_none()),
        "subreaper" => subreaper(),
        "kill its own mark" => kill_its_own_mark(),
        _ => panic!("no such role: {role}"),
    }
    played();
}

/// Holds the lock it was given and one child, until it is killed.
fn runner() {
    enter_session().unwrap();
    let _lock = File::from(take_stdin().unwrap());
    let me = std::process::id();
    let leads = rustix::process::getsid(None).unwrap().as_raw_nonzero().get().cast_unsigned() == me;
    let environment = environment().marked(&std::env::var("TEST_RUN").unwrap());
    let sleep = Spawn { args: vec!["1000".into()], ..Spawn::new("sleep", environment, "/") };
    block_on(async {
        let sleeper = start(sleep);
        println!("\nrunner {me} leads={leads} child={}", sleeper.pid().unwrap());
        std::future::pending::<()>().await;
    });
}

/// Says what came through its channel, and whether others can read this process.
fn concealed() {
    enter_session().unwrap();
    let mut channel = take_channel().unwrap().unwrap();
    conceal();
    let mut heard = String::new();
    channel.read_to_string(&mut heard).unwrap();
    let known = std::env::vars_os().any(|(_, value)| value == heard.as_str());
    println!("\nheard {heard}, known={known}, {}", concealment());
}

#[cfg(target_os = "linux")]
fn concealment() -> String {
    format!("{:?}", rustix::process::dumpable_behavior().unwrap())
}

#[cfg(not(target_os = "linux"))]
fn concealment() -> String {
    "unknown".to_owned()
}

/// Forks twice and opens a session each time, so that neither parentage nor group nor session
/// leads back; then writes the pid of what is left running.
const HIDE: &str = r#"
import os, sys, time
def hide(clear):
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(w, str(os.getpid()).encode())
                os.close(w)
                os.closerange(0, 3)
                if clear:
                    os.execve("/bin/sleep", ["sleep", "1000"], {})
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
        os.wait()
        os._exit(0)
    os.close(w)
    os.wait()
    return int(os.read(r, 20))
print(*[hide(clear == "clear") for clear in sys.argv[1:]], flush=True)
time.sleep(1000)
"#;

/// A mark that no other process of the machine carries: the search for marks goes everywhere.
fn own_mark() -> String {
    format!("subreaper-{}", std::process::id())
}

fn hiding(how: &[&str]) -> Spawn {
    let mut spawn = python(HIDE);
    spawn.args.extend(how.iter().map(OsString::from));
    spawn.environment = spawn.environment.marked(&own_mark());
    spawn.grace = Duration::from_millis(50);
    spawn
}

fn subreaper() {
    let _ = enter_session();
    cyberine_process::become_subreaper().unwrap();
    block_on(async {
        let mut sibling = start(hiding(&["keep"]));
        let sibling_hidden: u32 = read_line(&mut sibling).await.parse().unwrap();

        let mut child = start(hiding(&["keep", "keep", "keep"]));
        let hidden: Vec<u32> = numbers(&read_line(&mut child).await);
        assert_eq!(child.kill_tree().await, KillReport { killed: 4, left: 0 });
        assert!(hidden.iter().all(|pid| is_reaped(*pid)), "what was adopted is reaped");
        assert!(is_reaped(child.pid().unwrap()));
        assert!(!is_gone(sibling_hidden) && !is_gone(sibling.pid().unwrap()), "the sibling's tree is spared");

        // What even clears its environment is still below the subreaper.
        let mut child = start(hiding(&["clear"]));
        let cleared: u32 = read_line(&mut child).await.parse().unwrap();
        eventually("its environment is cleared", || runs_sleep(cleared)).await;
        child.kill_tree().await;
        assert!(!is_gone(cleared), "nothing links it to the child");
        let report = kill_below(&own_mark(), Duration::from_secs(5));
        assert_eq!(report, KillReport { killed: 3, left: 0 });
        assert!([cleared, sibling_hidden].into_iter().all(is_reaped));
        assert_eq!(find_marked(&own_mark()), []);

        // A child of ours that ended is for its owner to reap, whoever reaps adopted ones.
        let mut short = start(script("exit 3"));
        eventually("it ended", || is_gone(short.pid().unwrap())).await;
        assert_eq!(kill_below(&own_mark(), Duration::from_secs(5)), KillReport::default());
        assert_eq!(short.finish().await.unwrap().status.code(), Some(3));
    });
}

fn runs_sleep(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sleep\n"
}

fn numbers(line: &str) -> Vec<u32> {
    line.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Carries the mark it kills by, as a server does that was started by a tool of the run.
fn kill_its_own_mark() {
    let run = std::env::var("CYBERINE_RUN").unwrap();
    // The one who waits for the output of this process must not wait for the sleeper's.
    let quiet = || std::process::Stdio::null();
    let mut sleeper = Command::new("sleep").arg("1000").stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let found: Vec<u32> = find_marked(&run).iter().map(|process| process.pid()).collect();
    assert!(found == [sleeper.id()], "{found:?}");
    assert_eq!(kill_marked(&run, Duration::from_secs(5)), KillReport { killed: 1, left: 0 });
    assert!(!sleeper.wait().unwrap().success());
}
