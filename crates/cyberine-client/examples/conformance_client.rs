//! The client of the official conformance suite: `conformance_client URL`, told by
//! `MCP_CONFORMANCE_SCENARIO`, `MCP_CONFORMANCE_PROTOCOL_VERSION` and `MCP_CONFORMANCE_CONTEXT` what
//! to do. It ends with status 0 where the server let it do all of it.

#![expect(clippy::print_stderr, reason = "a program of its own, which says why it failed")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use cyberine_client::{
    Ask, CallEvent, Client, ClientCapabilities, ClientError, ClientOptions, HttpServer, InputRequest,
    OfferedTool, accepted,
};
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance_client: {error}");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

async fn run() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("usage: conformance_client URL")?;
    let capabilities = ClientCapabilities {
        elicitation_form: true,
        elicitation_url: false,
        sampling: true,
        sampling_tools: false,
        roots: true,
        tasks: true,
    };
    let options = ClientOptions { capabilities, ..ClientOptions::new("cyberine-conformance", "0.1.0") };
    let server = HttpServer { url: url.parse()?, bearer: None };
    let mut client = if variable("MCP_CONFORMANCE_PROTOCOL_VERSION") == "2026-07-28" {
        Client::connect(server, options)?
    } else {
        Client::connect_legacy(server, options)?
    };
    client.open().await?;
    let done = scenario(&mut client, &variable("MCP_CONFORMANCE_SCENARIO")).await;
    client.close().await;
    done
}

async fn scenario(client: &mut Client, name: &str) -> Outcome<()> {
    let tools = client.tools().await?;
    match name {
        "tools_call" => {
            call(client, "add_numbers", json!({ "a": 5, "b": 3 })).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", json!({})).await?;
        }
        "sse-retry" => {
            call(client, "test_reconnection", json!({})).await?;
        }
        "sep-2322-client-request-state" => {
            for tool in [
                "test_mrtr_echo_state",
                "test_mrtr_unrelated",
                "test_mrtr_no_state",
                "test_mrtr_no_result_type",
            ] {
                call(client, tool, json!({})).await?;
            }
        }
        "http-standard-headers" => standard(client, &tools).await?,
        "http-custom-headers" => {
            let context: Value = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT"))?;
            for asked in context["toolCalls"].as_array().into_iter().flatten() {
                let name = asked["name"].as_str().ok_or("a tool call without a name")?;
                call(client, name, asked["arguments"].clone()).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in &tools {
                call(client, &tool.name, json!({})).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let rich = tools.iter().find(|tool| tool.name != "json_schema_echo");
            let schema = rich.and_then(|tool| tool.input_schema.as_ref()).ok_or("no tool with a schema")?;
            let schema: Value = serde_json::from_str(schema.get())?;
            call(client, "json_schema_echo", json!({ "schema": schema })).await?;
        }
        // The others look at how a session begins and at the list of tools.
        _ => {}
    }
    Ok(())
}

/// One of everything there is.
async fn standard(client: &mut Client, tools: &[OfferedTool]) -> Outcome<()> {
    if let Some(tool) = tools.first() {
        call(client, &tool.name, json!({})).await?;
    }
    let resources = ask(client, Ask::ListResources { cursor: None }).await?;
    if let Some(uri) = resources["resources"][0]["uri"].as_str() {
        ask(client, Ask::ReadResource { uri: uri.to_owned() }).await?;
    }
    let prompts = ask(client, Ask::ListPrompts { cursor: None }).await?;
    if let Some(name) = prompts["prompts"][0]["name"].as_str() {
        ask(client, Ask::GetPrompt { name: name.to_owned(), arguments: BTreeMap::new() }).await?;
    }
    Ok(())
}

async fn call(client: &mut Client, tool: &str, arguments: Value) -> Outcome<Value> {
    let Value::Object(arguments) = arguments else { return Err("the arguments are no object".into()) };
    Ok(ask(client, Ask::CallTool { name: tool.to_owned(), arguments }).await?)
}

/// Asks, answers what the server asks back, and waits for the end.
async fn ask(client: &mut Client, ask: Ask) -> Result<Value, ClientError> {
    let mut call = client.ask(ask)?;
    loop {
        match call.next().await? {
            CallEvent::Question { question, request } => {
                call.answer(question, Ok(&answer(&request)));
            }
            CallEvent::NeedsInput(requests) => {
                let answers = requests.iter().map(|(key, request)| (key.clone(), answer(request)));
                call.go_on(answers.collect())?;
            }
            CallEvent::Done(_) | CallEvent::Tools(_) => return Ok(Value::Null),
            CallEvent::Result(result) => return Ok(serde_json::from_str(result.get()).unwrap_or_default()),
            _ => {}
        }
    }
}

fn answer(request: &InputRequest) -> Value {
    match request {
        InputRequest::Form(form) => accepted(&form.requested_schema, Map::new()),
        InputRequest::Url(_) => json!({ "action": "decline" }),
        InputRequest::Sampling(_) => json!({
            "role": "assistant", "content": { "type": "text", "text": "an answer" }, "model": "none",
        }),
        InputRequest::Roots => json!({ "roots": [] }),
    }
}
