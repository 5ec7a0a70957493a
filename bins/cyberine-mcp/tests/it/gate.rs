//! The gate of the operator surface.

use serde_json::json;

use crate::host::{Host, Place, environment, gated, shell, wait_until};

const TOKEN: &str = "canary-7f3a9c";

#[test]
fn an_empty_token_refuses_to_start() {
    let place = Place::new();
    let output = place.command().env("CYBERINE_MCP_AUTH_TOKEN", "").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{stderr}");
    assert!(stderr.contains("CYBERINE_MCP_AUTH_TOKEN") && stderr.contains("empty"), "{stderr}");
}

fn gated_host(place: &Place) -> Host {
    let mut command = place.command();
    command.env("CYBERINE_MCP_AUTH_TOKEN", TOKEN);
    Host::start(command)
}

#[test]
fn every_tool_and_the_resource_are_behind_the_token() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let mut host = gated_host(&place);
    let id = "5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11";
    let calls = [
        ("orchestrate", json!({ "prompt": "x" })),
        ("inspect_run", json!({ "runId": id })),
        ("query_runs", json!({})),
        ("cancel_run", json!({ "runId": id })),
    ];
    for (tool, arguments) in calls {
        assert_eq!(host.refused(tool, &arguments), "unauthorized", "{tool}");
    }
    let read = host.request("resources/read", &json!({ "uri": format!("cyberine://runs/{id}") }));
    assert_eq!(
        (&read["error"]["code"], &read["error"]["data"]["reason"]),
        (&json!(-33001), &json!("unauthorized"))
    );
    let runs = host.ok("query_runs", &json!({ "authToken": TOKEN }));
    assert_eq!(runs["runs"], json!([]));
}

#[test]
fn the_token_reaches_neither_the_runner_nor_a_provider_nor_a_file() {
    let place = Place::new();
    let (gate, seen) = (place.path("gate"), place.path("seen"));
    let spy = shell("spy", &format!("cat > /dev/null; env > '{}'; echo yes", seen.display()));
    place.configure(&format!("{spy}{}", gated("slow", &gate, "yes")));
    let mut host = gated_host(&place);
    let dispatched = host.ok("orchestrate", &json!({ "prompt": "x", "authToken": TOKEN }));
    let run = dispatched["runId"].as_str().unwrap().to_owned();
    wait_until("the spy has looked", || {
        std::fs::read_to_string(&seen).is_ok_and(|text| text.contains("CYBERINE_RUN="))
    });
    let view = host.ok("inspect_run", &json!({ "runId": run, "authToken": TOKEN }));
    let runner = u32::try_from(view["enginePid"].as_u64().unwrap()).unwrap();
    assert!(environment(runner).iter().all(|variable| !variable.contains(TOKEN)));
    assert!(!std::fs::read_to_string(&seen).unwrap().contains(TOKEN));
    std::fs::write(&gate, "").unwrap();
    wait_until("the run is over", || {
        let view = host.ok("inspect_run", &json!({ "runId": run, "authToken": TOKEN }));
        crate::host::is_over(&view)
    });
    let found = files_with(&place.path(""), TOKEN.as_bytes());
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}

/// Files below `directory` that contain `needle`.
fn files_with(directory: &std::path::Path, needle: &[u8]) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                return files_with(&path, needle);
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(needle.len()).any(|window| window == needle) { vec![path] } else { Vec::new() }
        })
        .collect()
}
