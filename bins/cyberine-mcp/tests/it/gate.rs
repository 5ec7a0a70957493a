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
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "x" })),
        ("poll_inbox", json!({ "kind": "chat", "id": "c" })),
        ("query_runs", json!({})),
        ("list_team", json!({})),
        ("send_to_team", json!({ "team": "red", "text": "x" })),
        ("send_to_role", json!({ "text": "x" })),
        ("inspect_run", json!({ "runId": id })),
        ("approve_run", json!({ "runId": id })),
        ("reject_run", json!({ "runId": id })),
        ("cancel_run", json!({ "runId": id })),
    ];
    let listed = host.request("tools/list", &json!({}));
    let tools =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    assert!(tools.eq(calls.iter().map(|(tool, _)| *tool)), "every tool is tried");
    for (tool, arguments) in calls {
        assert_eq!(host.refused(tool, &arguments), "unauthorized", "{tool}");
        for wrong in ["", "canary-7f3a9", "canary-7f3a9cc"] {
            let mut arguments = arguments.clone();
            arguments["authToken"] = json!(wrong);
            assert_eq!(host.refused(tool, &arguments), "unauthorized", "{tool}");
        }
    }
    for method in ["resources/read", "resources/subscribe"] {
        for query in ["", "?authToken=", "?authToken=wrong", "?x=canary-7f3a9c"] {
            let read = host.request(method, &json!({ "uri": format!("cyberine://runs/{id}{query}") }));
            assert_eq!(
                (&read["error"]["code"], &read["error"]["data"]["reason"]),
                (&json!(-33001), &json!("unauthorized")),
                "{method} {query}: {read}"
            );
        }
    }
    assert_eq!(host.request("resources/list", &json!({}))["result"]["resources"], json!([]));
    let mail = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c", "authToken": TOKEN }));
    assert_eq!(mail["messages"], json!([]), "nothing was sent");
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
    let send =
        json!({ "to_kind": "chat", "to_id": "c", "text": "x", "authToken": TOKEN, "idempotencyKey": "k" });
    host.ok("send_message", &send);
    host.ok(
        "approve_run",
        &json!({ "runId": run, "comment": "x", "authToken": TOKEN, "idempotencyKey": "l" }),
    );
    let found = files_with(&place.path(""), TOKEN.as_bytes());
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_token_written_into_any_argument_of_any_tool_reaches_no_file() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let mut host = gated_host(&place);
    let dispatched = host.ok("orchestrate", &json!({ "prompt": "x", "authToken": TOKEN }));
    let run = dispatched["runId"].as_str().unwrap().to_owned();
    wait_until("the run is over", || {
        crate::host::is_over(&host.ok("inspect_run", &json!({ "runId": run, "authToken": TOKEN })))
    });
    let valid = |tool: &str| match tool {
        "orchestrate" => json!({ "prompt": "x" }),
        "send_message" => json!({ "to_kind": "chat", "to_id": "c", "text": "x" }),
        "send_to_team" => json!({ "team": "red", "text": "x" }),
        "send_to_role" => json!({ "text": "x" }),
        "poll_inbox" => json!({ "kind": "chat", "id": "c" }),
        "query_runs" | "list_team" => json!({}),
        _ => json!({ "runId": run }),
    };
    let forms = spellings();
    let listed = host.request("tools/list", &json!({}));
    let mut tried = 0;
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        for argument in properties.keys().map(String::as_str).chain(["surplus"]) {
            if argument == "authToken" {
                continue;
            }
            for form in &forms {
                for written in [json!(form), json!(format!("a {form}\n")), json!([{ "authToken": form }])] {
                    let mut arguments = valid(name);
                    arguments["authToken"] = json!(TOKEN);
                    arguments[argument] = written;
                    let refusal = host.refused(name, &arguments);
                    assert!(refusal.contains("belongs into `authToken`"), "{name} {argument}: {refusal}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 400, "{tried}");
    for form in &forms {
        let uri = format!("cyberine://runs/{form}?authToken={TOKEN}");
        for method in ["resources/read", "resources/subscribe"] {
            let refused = host.request(method, &json!({ "uri": uri }));
            assert_eq!(refused["error"]["code"], -32002, "{refused}");
            assert!(!refused.to_string().contains(form), "{refused}");
        }
        let refused = host.request("resources/list", &json!({ "cursor": form }));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    drop(host);
    for client in [
        json!({ "name": TOKEN, "version": "1" }),
        json!({ "name": "host", "version": TOKEN }),
        json!({ "name": TOKEN.replace('-', "\u{200b}-"), "version": "1" }),
    ] {
        let mut command = place.command();
        command.env("CYBERINE_MCP_AUTH_TOKEN", TOKEN);
        let mut host = Host::start_as(command, &client);
        host.ok("send_message", &json!({ "to_kind": "chat", "to_id": "d", "text": "x", "authToken": TOKEN }));
        let decided = host.ok("approve_run", &json!({ "runId": run, "authToken": TOKEN }));
        assert_eq!(decided["decidedBy"], "[secret]@[secret]", "{decided}");
        let mail = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "d", "authToken": TOKEN }));
        assert_eq!(mail["messages"][0]["from"]["id"], "[secret]@[secret]", "{mail}");
    }
    for form in forms {
        let found = files_with(&place.path(""), form.as_bytes());
        assert_eq!(found, Vec::<std::path::PathBuf>::new(), "{form}");
    }
}

/// The token as it is, as a URI has it, and as JSON may.
fn spellings() -> [String; 3] {
    let each = |form: fn(u8) -> String| TOKEN.bytes().map(form).collect::<String>();
    [TOKEN.to_owned(), each(|byte| format!("%{byte:02x}")), each(|byte| format!("\\u{byte:04x}"))]
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
