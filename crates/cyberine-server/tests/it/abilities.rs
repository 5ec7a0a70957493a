//! What a server can do beside its tools: prompts, completions, tasks, logs, lists that change, and
//! questions of every kind.

use cyberine_server::{TaskState, ToolResult};
use serde_json::{Value, json};

use crate::host::{Host, WIRES, server, stateless};
use crate::sets::{OneTask, World, questions};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn tasks() -> Value {
    json!({ "extensions": { TASKS: {} } })
}

/// A client that can be asked everything.
fn all() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// An answer to the question with this method, in the shape of its kind.
fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept" }),
        "sampling/createMessage" => {
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "hi" } })
        }
        _ => json!({ "roots": [{ "uri": "file:///work" }] }),
    }
}

#[test]
fn what_there_is_no_set_for_is_neither_advertised_nor_served() {
    let mut bare = Host::start(WIRES[0], server());
    let opened = bare.initialize(json!({}));
    let capabilities = &opened["result"]["capabilities"];
    for absent in ["prompts", "completions", "logging", "extensions"] {
        assert_eq!(capabilities.get(absent), None, "{capabilities}");
    }
    assert_eq!(capabilities["tools"].get("listChanged"), None, "{capabilities}");
    for method in ["prompts/list", "prompts/get", "completion/complete", "logging/setLevel"] {
        assert_eq!(bare.ask(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    let params = stateless(json!({ "taskId": "x" }), tasks());
    assert_eq!(bare.ask("tasks/get", params)["error"]["code"], -32601);

    let mut full = Host::start(WIRES[0], World::new().server());
    let found = full.ask("server/discover", stateless(json!({}), json!({})));
    let capabilities = &found["result"]["capabilities"];
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(capabilities[list]["listChanged"], true, "{capabilities}");
    }
    assert_eq!(capabilities["extensions"], json!({ TASKS: {} }));
    assert_eq!(capabilities["completions"], json!({}));
    assert_eq!(capabilities["logging"], json!({}));
}

#[test]
fn a_client_with_a_session_is_asked_every_kind_of_question_at_once() {
    for wire in WIRES {
        let mut host = Host::start(wire, World::new().server());
        host.initialize(all());
        let id = host.request("tools/call", json!({ "name": "ask_all" }));
        let asked: Vec<Value> = questions().iter().map(|_| host.recv()).collect();
        let mut methods: Vec<&str> = asked.iter().map(|asked| asked["method"].as_str().unwrap()).collect();
        for question in &asked {
            let result = answer(question["method"].as_str().unwrap());
            host.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        }
        methods.sort_unstable();
        let expected = ["elicitation/create", "elicitation/create", "roots/list", "sampling/createMessage"];
        assert_eq!(methods, expected);
        let reply = host.recv();
        assert_eq!(reply["id"], id, "{reply}");
        let structured = &reply["result"]["structuredContent"];
        assert_eq!(structured["answers"]["sampling"], answer("sampling/createMessage"));
        assert_eq!(structured["answers"]["roots"], answer("roots/list"));
        assert_eq!(structured["state"], "asked");
        host.is_quiet();
    }
}

#[test]
fn a_client_that_lacks_what_a_question_needs_is_asked_nothing() {
    let some = json!({ "elicitation": {}, "roots": {} });
    let mut host = Host::start(WIRES[0], World::new().server());
    host.initialize(some.clone());
    let refused = host.call("ask_all", json!({}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let said = refused["result"]["structuredContent"]["error"].as_str().unwrap();
    assert!(said.contains("sign in, please"), "{said}");
    host.is_quiet();

    let refused = host.ask("tools/call", stateless(json!({ "name": "ask_all" }), some));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let required = &refused["error"]["data"]["requiredCapabilities"];
    assert_eq!((&required["sampling"], &required["elicitation"]["url"]), (&json!({}), &json!({})));
}

#[test]
fn prompts_and_reads_may_need_input_too() {
    for (method, params) in [
        ("prompts/get", json!({ "name": "ask", "arguments": { "who": "Ada" } })),
        ("resources/read", json!({ "uri": "sets://x" })),
    ] {
        let mut host = Host::start(WIRES[0], World::new().server());
        let first = host.ask(method, stateless(params.clone(), all()));
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let mut retry = stateless(params.clone(), all());
        retry["requestState"] = first["result"]["requestState"].clone();
        retry["inputResponses"] = json!({ "roots": answer("roots/list") });
        let second = host.ask(method, retry.clone());
        assert_eq!(second["result"]["resultType"], "complete", "{second}");
        assert!(second["result"].to_string().contains("file:///work"), "{second}");
        // The state is sealed for this one alone.
        retry[if method == "prompts/get" { "name" } else { "uri" }] = json!("greet");
        assert_eq!(host.ask(method, retry)["error"]["code"], -32602);

        host.initialize(json!({ "roots": {} }));
        let id = host.request(method, params.clone());
        let question = host.recv();
        assert_eq!(question["method"], "roots/list", "{question}");
        let result = answer("roots/list");
        host.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        let reply = host.recv();
        assert_eq!(reply["id"], id);
        assert!(reply["result"].to_string().contains("file:///work"), "{reply}");

        host.initialize(json!({}));
        assert!(host.ask(method, params)["error"]["code"].is_i64());
    }
}

#[test]
fn a_resource_may_have_several_parts_and_bytes() {
    let mut host = Host::start(WIRES[0], World::new().server());
    let mut params = stateless(json!({ "uri": "sets://x" }), json!({}));
    params["inputResponses"] = json!({ "roots": answer("roots/list") });
    let read = host.ask("resources/read", params);
    let contents = read["result"]["contents"].as_array().unwrap();
    assert_eq!((contents.len(), &contents[1]["blob"]), (2, &json!("AAAA")));
}

#[test]
fn a_result_may_be_content_alone() {
    let mut host = Host::start(WIRES[0], World::new().server());
    host.initialize(json!({}));
    let result = host.call("picture", json!({}))["result"].clone();
    let picture = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    assert_eq!(result["content"], json!([picture]));
    assert_eq!(result.get("structuredContent"), None, "{result}");
    let listed = host.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let promises: Vec<bool> = tools.iter().map(|tool| tool.get("outputSchema").is_some()).collect();
    assert_eq!(promises, [true, false, false, false], "{listed}");
}

#[test]
fn a_log_goes_to_who_wants_it_before_the_reply() {
    let levels = |host: &mut Host, count: usize| -> Vec<Value> {
        (0..count).map(|_| host.recv()["params"]["data"]["at"].clone()).collect()
    };
    let mut host = Host::start(WIRES[0], World::new().server());
    let silent = stateless(json!({ "name": "log" }), json!({}));
    assert!(host.ask("tools/call", silent.clone())["result"].is_object());
    let mut loud = silent;
    loud["_meta"]["io.modelcontextprotocol/logLevel"] = json!("error");
    let id = host.request("tools/call", loud);
    assert_eq!(levels(&mut host, 1), ["error"]);
    assert_eq!(host.recv()["id"], id);

    host.initialize(json!({}));
    assert_eq!(host.ask("logging/setLevel", json!({ "level": "debug" }))["result"], json!({}));
    let id = host.request("tools/call", json!({ "name": "log" }));
    assert_eq!(levels(&mut host, 3), ["debug", "info", "error"]);
    assert_eq!(host.recv()["id"], id);
}

#[test]
fn prompts_are_listed_and_made_of_their_arguments() {
    let mut host = Host::start(WIRES[0], World::new().server());
    host.initialize(json!({}));
    let listed = host.ask("prompts/list", json!({}));
    assert_eq!(listed["result"]["prompts"][0]["name"], "greet", "{listed}");
    assert_eq!(host.ask("prompts/list", json!({ "cursor": "x" }))["error"]["code"], -32602);
    let made = host.ask("prompts/get", json!({ "name": "greet", "arguments": { "who": "Ada" } }));
    assert_eq!(made["result"]["messages"][0]["content"]["text"], "Greet Ada.");
    for params in [json!({ "name": "nope" }), json!({ "name": "greet" }), json!({})] {
        assert_eq!(host.ask("prompts/get", params.clone())["error"]["code"], -32602, "{params}");
    }
    let listed = host.ask("prompts/list", stateless(json!({}), json!({})));
    assert_eq!(listed["result"]["cacheScope"], "private", "a set says when its list is everybody's");
    let listed = host.ask("tools/list", stateless(json!({}), json!({})));
    assert_eq!(listed["result"]["cacheScope"], "public");
}

#[test]
fn no_more_than_100_values_complete_an_argument() {
    let mut host = Host::start(WIRES[0], World::new().server());
    host.initialize(json!({}));
    let mut complete = |value: &str| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "greet" },
            "argument": { "name": "who", "value": value },
        });
        host.ask("completion/complete", params)
    };
    let few = complete("2")["result"]["completion"].clone();
    assert_eq!(few["values"], json!(["0", "1"]));
    let many = complete("101")["result"]["completion"].clone();
    assert_eq!(many["values"].as_array().unwrap().len(), 100);
    assert_eq!((&many["total"], &many["hasMore"]), (&json!(101), &json!(true)));
    assert_eq!(complete("x")["error"]["code"], -32602);
}

#[test]
fn a_call_goes_on_as_a_task_only_for_who_declared_it() {
    let world = World::new();
    let mut host = Host::start(WIRES[0], world.server());
    let job = json!({ "name": "job" });
    let refused = host.ask("tools/call", stateless(job.clone(), json!({})));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], tasks());
    let created = host.ask("tools/call", stateless(job.clone(), tasks()))["result"].clone();
    assert_eq!((&created["resultType"], &created["taskId"]), (&json!("task"), &json!(OneTask::ID)));
    assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &json!(60_000)));

    host.initialize(json!({}));
    assert_eq!(host.call("job", json!({}))["result"]["isError"], true);
}

#[test]
fn a_task_is_looked_at_answered_and_cancelled_by_its_id() {
    let world = World::new();
    let mut host = Host::start(WIRES[0], world.server());
    let of = |id: &str| stateless(json!({ "taskId": id }), tasks());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut params = of("t-2");
        params["inputResponses"] = json!({});
        let unknown = host.ask(method, params.clone());
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        assert_eq!(host.ask(method, params)["error"]["code"], -32021, "{method}");
    }

    world.task.set(TaskState::InputRequired(questions()));
    let mut asked = of(OneTask::ID);
    asked["_meta"]["io.modelcontextprotocol/clientCapabilities"] = all();
    asked["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"] = json!({ TASKS: {} });
    let view = host.ask("tasks/get", asked)["result"].clone();
    assert_eq!(view["status"], "input_required", "{view}");
    assert_eq!(view["inputRequests"]["roots"]["method"], "roots/list");
    let mut answers = of(OneTask::ID);
    answers["inputResponses"] = json!({ "roots": { "roots": [] } });
    assert_eq!(host.ask("tasks/update", answers)["result"]["resultType"], "complete");
    assert_eq!(world.task.answers.lock().unwrap()["roots"], json!({ "roots": [] }));

    world.task.set(TaskState::Completed(ToolResult::error("no")));
    let view = host.ask("tasks/get", of(OneTask::ID))["result"].clone();
    assert_eq!((&view["status"], &view["result"]["isError"]), (&json!("completed"), &json!(true)));
    world.task.set(TaskState::Failed("broken".to_owned()));
    let view = host.ask("tasks/get", of(OneTask::ID))["result"].clone();
    assert_eq!((&view["status"], &view["error"]["code"]), (&json!("failed"), &json!(-32603)));
    assert_eq!(host.ask("tasks/cancel", of(OneTask::ID))["result"]["resultType"], "complete");
    assert_eq!(host.ask("tasks/get", of(OneTask::ID))["result"]["status"], "cancelled");
}

#[test]
fn behind_a_token_there_are_no_tasks() {
    let world = World::new();
    let mut host = Host::start(WIRES[0], world.server_behind(Some("a token of some length")));
    let job = json!({ "name": "job", "arguments": { "authToken": "a token of some length" } });
    assert_eq!(host.ask("tools/call", stateless(job, tasks()))["error"]["code"], -32021);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": OneTask::ID, "inputResponses": { "roots": { "roots": [] } } });
        assert_eq!(host.ask(method, stateless(params, tasks()))["error"]["code"], -32602, "{method}");
    }
    assert!(matches!(world.task.view().state, TaskState::Working));
    assert!(world.task.answers.lock().unwrap().is_empty());
    let wishes = json!({ "taskIds": [OneTask::ID] });
    host.request("subscriptions/listen", stateless(json!({ "notifications": wishes }), tasks()));
    assert_eq!(host.recv()["params"]["notifications"], json!({}));
}

#[test]
fn a_listen_tells_of_lists_and_tasks_it_was_asked_for() {
    for wire in WIRES {
        let world = World::new();
        let mut host = Host::start(wire, world.server());
        let wishes = json!({ "toolsListChanged": true, "resourcesListChanged": true, "taskIds": [OneTask::ID, "t-2"] });
        let id = host.request("subscriptions/listen", stateless(json!({ "notifications": wishes }), tasks()));
        let served =
            json!({ "toolsListChanged": true, "resourcesListChanged": true, "taskIds": [OneTask::ID] });
        let acknowledged = host.recv();
        assert_eq!(acknowledged["params"]["notifications"], served, "{acknowledged}");
        world.prompts.changed();
        for (signal, method) in [
            (&world.tools, "notifications/tools/list_changed"),
            (&world.resources, "notifications/resources/list_changed"),
        ] {
            signal.changed();
            let told = host.recv();
            assert_eq!(told["method"], method, "{told}");
            assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        }
        world.task.set(TaskState::Cancelled);
        let told = host.recv();
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        assert_eq!(
            (&told["params"]["taskId"], &told["params"]["status"]),
            (&json!(OneTask::ID), &json!("cancelled"))
        );
        host.is_quiet();
    }
}

#[test]
fn a_session_is_told_of_every_list_that_changes() {
    for wire in WIRES {
        let world = World::new();
        let mut host = Host::start(wire, world.server());
        host.is_quiet();
        host.initialize(json!({}));
        for (signal, kind) in
            [(&world.tools, "tools"), (&world.prompts, "prompts"), (&world.resources, "resources")]
        {
            signal.changed();
            let told = host.recv();
            assert_eq!(told["method"], format!("notifications/{kind}/list_changed"), "{told}");
        }
        host.is_quiet();
    }
}
