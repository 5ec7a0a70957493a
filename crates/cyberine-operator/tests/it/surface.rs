use std::sync::atomic::Ordering;

use cyberine_server::{CallError, ExtraArgument, Gate, Progress, ResourceError, ResourceSet, Tool, ToolSet};
use cyberine_types::Secret;
use serde_json::{Value, json};

use crate::stage::{Stage, caller};

/// `tools/list` as the golden file has it. Bless it by running the tests with `CYBERINE_BLESS=1`.
fn listed(stage: &Stage) -> Value {
    shown(&stage.tools)
}

fn shown(tools: &dyn ToolSet) -> Value {
    let (tools, extra) = (tools.list(&caller()), tools.extra_arguments());
    let shown = tools.iter().map(|tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input_schema(tool, &extra),
            "outputSchema": tool.output_schema.value().unwrap(),
            "annotations": {
                "readOnlyHint": tool.annotations.read_only,
                "destructiveHint": tool.annotations.destructive,
                "idempotentHint": tool.annotations.idempotent,
                "openWorldHint": tool.annotations.open_world,
            },
        })
    });
    shown.collect()
}

fn input_schema(tool: &Tool, extra: &[ExtraArgument]) -> Value {
    let mut schema = tool.input_schema.value().unwrap();
    for ExtraArgument { name, schema: argument } in extra {
        schema["properties"][name] = serde_json::from_str(argument).unwrap();
    }
    schema
}

#[tokio::test]
async fn the_tools_are_the_golden_ones() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/tools.json");
    let mut text = serde_json::to_string_pretty(&listed(&Stage::free(&[]))).unwrap();
    text.push('\n');
    if std::env::var_os("CYBERINE_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        text,
        "run with CYBERINE_BLESS=1 where this was intended"
    );
}

/// Hosts hold the whole list in every session: twelve tools are to fit 24,000 bytes.
#[tokio::test]
async fn the_list_is_the_seeds_without_research_and_with_cancel_run_and_leaves_room_for_it() {
    let names = [
        "orchestrate",
        "send_message",
        "poll_inbox",
        "query_runs",
        "list_team",
        "send_to_team",
        "send_to_role",
        "inspect_run",
        "approve_run",
        "reject_run",
        "cancel_run",
    ];
    let stage = Stage::free(&[]);
    let tools = Gate::new(stage.tools.clone(), Some(Secret::new("a token of some length")));
    let listed = shown(&tools);
    let found: Vec<_> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    let reads = |name: &str| ["query_runs", "list_team", "inspect_run"].contains(&name);
    // What `poll_inbox` changes is the same however often it is repeated, without a key.
    let is_keyed = |name: &str| !reads(name) && name != "poll_inbox";
    for tool in listed.as_array().unwrap() {
        let arguments = &tool["inputSchema"]["properties"];
        assert!(arguments.get("authToken").is_some(), "{tool}");
        let name = tool["name"].as_str().unwrap();
        assert_eq!(arguments.get("idempotencyKey").is_some(), is_keyed(name), "{name}");
        assert_eq!(tool["annotations"]["readOnlyHint"], reads(name), "{name}");
        let idempotent =
            reads(name) || ["poll_inbox", "approve_run", "reject_run", "cancel_run"].contains(&name);
        assert_eq!(tool["annotations"]["idempotentHint"], idempotent, "{name}");
    }
    let bytes = listed.to_string().len();
    assert!(bytes <= 22_000, "{bytes} bytes leave no room for one more");
}

#[tokio::test]
async fn every_tool_is_small_and_its_schemas_discriminate() {
    let stage = Stage::free(&[]);
    for tool in listed(&stage).as_array().unwrap() {
        assert!(tool.to_string().len() <= 2_600, "{} has {} bytes", tool["name"], tool.to_string().len());
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object");
            assert!(!tool[schema]["properties"].as_object().unwrap().is_empty());
            let validator = jsonschema::validator_for(&tool[schema]).unwrap();
            assert!(!validator.is_valid(&json!({ "no": "such" })), "{}", tool["name"]);
        }
        assert!(tool["inputSchema"].get("oneOf").is_none());
        let output = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(output.is_valid(&json!({ "error": "unauthorized" })));
        assert!(!output.is_valid(&json!({})));
    }
    assert!(listed(&stage)[0]["description"].as_str().unwrap().starts_with("Spends"));
}

#[tokio::test]
async fn listing_opens_nothing_and_everybody_shares_what_a_call_opens() {
    let stage = Stage::free(&[("a", "x")]);
    stage.tools.list(&caller());
    stage.resources.templates();
    assert_eq!(stage.opened.load(Ordering::SeqCst), 0);
    stage.call("query_runs", json!({})).await;
    stage.call("query_runs", json!({})).await;
    stage.resources.list(caller(), None).await.unwrap();
    assert_eq!(stage.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn bad_arguments_are_results_that_name_the_field() {
    let stage = Stage::free(&[("a", "x")]);
    let cases = [
        ("orchestrate", json!({}), "`prompt`: it is missing"),
        ("orchestrate", json!({ "prompt": 7 }), "`prompt`: it must be a string"),
        ("orchestrate", json!({ "prompt": "x", "by": "me" }), "`by`: there is no such argument"),
        ("orchestrate", json!({ "prompt": "  " }), "the prompt is empty"),
        ("inspect_run", json!({ "runId": "../../etc" }), "`runId`: "),
        ("inspect_run", json!({ "runId": cyberine_types::RunId::random() }), "there is no run"),
        ("inspect_run", json!({ "runId": "x", "waitMs": -1 }), "`waitMs`: it must be a whole number"),
        ("inspect_run", json!({ "runId": "x", "sinceSeq": 1.5 }), "`runId`: "),
        ("query_runs", json!({ "limit": "many" }), "`limit`: it must be a whole number"),
        ("query_runs", json!({ "limit": 1.5 }), "`limit`: it must be a whole number"),
        ("query_runs", json!({ "query": null }), "`query`: it must be a string, not null"),
        ("cancel_run", json!({ "reason": "x" }), "`runId`: it is missing"),
        ("cancel_run", json!({ "runId": cyberine_types::RunId::random() }), "there is no run"),
    ];
    for (tool, arguments, part) in cases {
        let error = stage.refused(tool, arguments.clone()).await;
        assert!(error.contains(part), "{tool} {arguments}: {error}");
    }
    let unknown = stage.tools.call(stage.call_of("ask_me", json!({}), Progress::none())).await;
    assert_eq!(unknown, Err(CallError::UnknownTool("ask_me".into())));
}

#[tokio::test]
async fn a_home_that_cannot_be_opened_is_said_and_tried_again() {
    let lazy =
        cyberine_operator::LazyServices::new(|| std::future::ready(Err("the home is read-only".to_owned())));
    let (stage, tools) = (Stage::free(&[]), cyberine_operator::OperatorTools::new(lazy.clone()));
    for _ in 0..2 {
        let call = stage.call_of("query_runs", json!({}), Progress::none());
        let outcome = tools.call(call).await.unwrap();
        assert_eq!(
            outcome,
            cyberine_server::Outcome::Complete(cyberine_server::ToolResult::error("the home is read-only"))
        );
    }
    let resources = cyberine_operator::RunResources::new(lazy);
    assert_eq!(
        resources.list(caller(), None).await,
        Err(ResourceError::Internal("the home is read-only".into()))
    );
}

/// JSON Schema counts `20.0` among the integers, so a host may send it.
#[tokio::test]
async fn what_the_schema_lets_through_is_understood() {
    let stage = Stage::free(&[("a", "x")]);
    let run = stage.finished("x").await;
    let arguments =
        |text: &str| -> Value { serde_json::from_str(&text.replace("RUN", &run.to_string())).unwrap() };
    for (tool, text) in [
        ("query_runs", r#"{ "limit": 20.0 }"#),
        ("query_runs", r#"{ "limit": 1e2 }"#),
        ("inspect_run", r#"{ "runId": "RUN", "waitMs": 1000.0, "sinceSeq": 0.0 }"#),
        ("inspect_run", r#"{ "runId": "RUN", "waitMs": 45e3, "sinceSeq": 1.0 }"#),
        ("inspect_run", r#"{ "runId": "RUN", "sinceSeq": 9007199254740991 }"#),
    ] {
        let tools = stage.tools.list(&caller());
        let schema = tools.iter().find(|listed| listed.name == tool).unwrap().input_schema.value().unwrap();
        jsonschema::validate(&schema, &arguments(text)).unwrap();
        let result = stage.call(tool, arguments(text)).await;
        assert_eq!(result.get("error"), None, "{tool} {text}: {result}");
    }
    let beyond = json!({ "runId": run, "sinceSeq": 1_u64 << 53 });
    let tools = stage.tools.list(&caller());
    let schema =
        tools.iter().find(|listed| listed.name == "inspect_run").unwrap().input_schema.value().unwrap();
    assert!(jsonschema::validate(&schema, &beyond).is_err());
    assert!(stage.refused("inspect_run", beyond).await.contains("`sinceSeq`"));
}
