//! Arguments of the tools. The rail checks them against the schemas; what is checked again here
//! holds for embedders that call the tools themselves.

use cyberine_types::RunId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The longest a call may wait, in milliseconds.
pub(crate) const MAX_WAIT_MS: u64 = 45_000;
/// The most runs one query returns.
pub(crate) const MAX_RUNS: u32 = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orchestrate {
    pub(crate) prompt: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Inspect {
    run_id: String,
    pub(crate) since_seq: Option<u64>,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    #[serde(default)]
    pub(crate) query: String,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Cancel {
    run_id: String,
    pub(crate) reason: Option<String>,
}

/// Reads the arguments of a tool; the error names the field.
pub(crate) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("bad arguments: {error}"))
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<RunId, String> {
        run(&self.run_id)
    }

    pub(crate) fn wait_ms(&self) -> u64 {
        self.wait_ms.min(MAX_WAIT_MS)
    }
}

impl Cancel {
    pub(crate) fn run(&self) -> Result<RunId, String> {
        run(&self.run_id)
    }
}

impl Query {
    pub(crate) fn limit(&self) -> u32 {
        self.limit.unwrap_or(20).clamp(1, MAX_RUNS)
    }
}

fn run(text: &str) -> Result<RunId, String> {
    text.parse().map_err(|error| format!("bad arguments: `runId`: {error}"))
}
