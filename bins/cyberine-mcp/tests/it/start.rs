//! Starting, and refusing to.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Host, Place};

fn refused(place: &Place, arguments: &[&str], code: i32, says: &str) {
    let output = place.output(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
}

#[test]
fn a_wrong_command_line_is_told_on_stderr() {
    let place = Place::new();
    refused(&place, &["--projekt", "x"], 2, "unknown argument `--projekt`");
    refused(&place, &["--surface", "ask"], 2, "the surface `ask` is not part of this version");
    refused(&place, &["--project", "/nonexistent/place"], 78, "/nonexistent/place");
    refused(&place, &["--runner", "5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11"], 2, "by hand");
}

#[test]
fn a_bus_or_a_name_that_cannot_be_is_refused_at_start() {
    let place = Place::new();
    refused(&place, &["--team", " "], 2, "`--team`");
    for (variable, value, says) in [
        ("CYBERINE_BUS_BACKEND", "nats", "there is no bus backend `nats`"),
        ("CYBERINE_BUS_BACKEND", "redis", "use `file`, or `none`"),
        ("CYBERINE_ROLE", "a\u{1b}b", "`CYBERINE_ROLE` cannot be used"),
    ] {
        let output = place.command().env(variable, value).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(78), 0), "{variable}: {stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
}

#[test]
fn help_and_version_are_told_on_stdout() {
    let place = Place::new();
    let help = place.output(&["--help"]);
    assert!(help.status.success() && String::from_utf8(help.stdout).unwrap().contains("--project DIR"));
    let version = place.output(&["--version"]);
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        format!("cyberine-mcp {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Place::new().command().arg("--help").stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(70), "{stderr}");
    assert!(stderr.contains("could not be written"), "{stderr}");
}

#[test]
fn initialize_and_the_list_of_tools_are_answered_before_anything_is_opened() {
    let place = Place::new();
    let mut host = place.host();
    let listed = host.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names = |tools: &[Value]| -> Vec<String> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let golden = include_str!("../../../../crates/cyberine-operator/tests/golden/tools.json");
    let golden: Vec<Value> = serde_json::from_str(golden).unwrap();
    assert_eq!(names(tools), names(&golden));
    assert!(!place.home().exists(), "the home was made before a call needed it");
    let (status, took) = host.hang_up();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
}

#[test]
fn a_host_that_leaves_before_it_has_spoken_ends_the_server() {
    let output = Place::new().output(&[]);
    assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
}

#[test]
fn a_home_that_cannot_be_used_is_told_by_the_call_that_needs_it() {
    let place = Place::new();
    std::fs::write(place.home(), "not a directory").unwrap();
    let mut host = place.host();
    let error = host.refused("query_runs", &json!({}));
    assert!(error.contains("not a directory"), "{error}");
}

#[test]
fn a_working_directory_that_is_the_users_home_is_no_project() {
    let place = Place::with(&crate::host::shell("a", "cat > /dev/null; echo yes"));
    let mut command = place.command();
    command.env("HOME", place.project());
    let mut host = Host::start(command);
    let run = host.orchestrate("where am I?");
    assert_eq!(host.settled(&run)["cwd"], place.home().join("projects/default").to_str().unwrap());
}
