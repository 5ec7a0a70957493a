//! Runs: starting, finding, watching and stopping them.

use cyberine_server::{Annotations, Tool};
use serde_json::json;

use super::{
    CANCEL_RUN, INSPECT_RUN, ORCHESTRATE, QUERY_RUNS, READS, input, keyed_input, output, run_id, state, text,
};
use crate::arguments::{MAX_COUNT, MAX_RUNS, MAX_WAIT_MS};

pub(super) fn orchestrate() -> Tool {
    Tool {
        name: ORCHESTRATE,
        title: "Orchestrate",
        description: "Spends one paid call per configured provider, plus judging: ask the user first. \
            Puts one prompt to every provider in parallel and judges the answers (consensus, llm-judge). \
            Returns a runId at once; follow it with inspect_run, stop it with cancel_run.".into(),
        input_schema: keyed_input(
            json!({ "prompt": { "type": "string", "minLength": 1, "description": "The whole task; providers see nothing else." } }),
            &["prompt"],
        ),
        output_schema: output(
            json!({
                "runId": { "type": "string" },
                "status": { "const": "dispatched" },
                "detail": { "type": "string" },
                "pollWith": { "type": "object", "properties": { "tool": { "type": "string" }, "arguments": { "type": "object" } }, "required": ["tool", "arguments"] },
                "cancelWith": { "type": "object", "properties": {
                    "tool": { "type": "string" }, "arguments": { "type": "object" }, "description": { "type": "string" },
                    "controlFile": { "type": "string" }, "body": { "type": "object" },
                }, "required": ["tool", "arguments", "controlFile", "body"] },
            }),
            &["runId", "status", "detail", "pollWith", "cancelWith"],
        ),
        annotations: Annotations {
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: true,
        },
    }
}

pub(super) fn inspect_run() -> Tool {
    let text = text();
    Tool {
        name: INSPECT_RUN,
        title: "Inspect run",
        description: "Shows a run of any project: each candidate's state, answer preview, tokens and cost, \
            the verdict with rationale, the winner. Long texts are cut; `resource` has all.".into(),
        input_schema: input(
            json!({
                "runId": run_id(),
                "waitMs": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "description": "Wait this long for its end; with sinceSeq, for any change." },
                "sinceSeq": { "type": "integer", "minimum": 0, "maximum": MAX_COUNT, "description": "nextSeq of your last look." },
            }),
            &["runId"],
        ),
        output_schema: output(
            json!({
                "runId": text, "workflowName": text, "state": text, "detail": text, "reason": text, "label": text,
                "task": text, "cwd": text, "enginePid": { "type": "integer" }, "startedAt": text, "updatedAt": text,
                "steps": { "type": "array", "items": { "type": "object", "properties": {
                    "id": text, "name": text, "state": text,
                    "candidates": { "type": "array", "items": { "type": "object", "properties": {
                        "provider": text, "model": text, "state": text, "outputPreview": text,
                        "tokens": { "type": "integer" }, "usd": { "type": "number" },
                        "durationMs": { "type": "integer" }, "error": { "type": "object" },
                    } } },
                    "verdict": { "type": "object", "properties": {
                        "kind": text, "outcome": text, "winner": text, "rationale": text, "votes": { "type": "array" },
                    } },
                    "winnerPreview": text, "winnerOutput": text,
                } } },
                "awaiting": { "type": "object", "properties": {
                    "step": text, "expiresAt": text, "onExpiry": text,
                    "approveWith": { "type": "object" }, "rejectWith": { "type": "object" },
                } },
                "decision": { "type": "object" }, "decisions": { "type": "array" },
                "steers": { "type": "array", "items": { "type": "object", "properties": {
                    "message": text, "from": text, "text": text, "at": text,
                } } },
                "usage": { "type": "object" }, "nextSeq": { "type": "integer" },
                "resource": text, "truncated": { "type": "boolean" },
            }),
            &["runId", "workflowName", "state", "steps", "nextSeq"],
        ),
        annotations: READS,
    }
}

pub(super) fn query_runs() -> Tool {
    let text = text();
    Tool {
        name: QUERY_RUNS,
        title: "Query runs",
        description:
            "Lists runs of all projects, newest first. `query` is a literal part of the prompt, workflow, \
            directory, state, id or winning answer.".into(),
        input_schema: input(
            json!({
                "query": { "type": "string", "maxLength": 1000 },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": 20 },
            }),
            &[],
        ),
        output_schema: output(
            json!({
                "runs": { "type": "array", "items": { "type": "object", "properties": {
                    "runId": text, "workflowName": text, "state": state(), "detail": text, "taskPreview": text, "cwd": text,
                    "winnerPreview": text, "startedAt": text, "updatedAt": text,
                }, "required": ["runId", "workflowName", "state", "taskPreview", "cwd"] } },
                "truncated": { "type": "boolean" },
            }),
            &["runs"],
        ),
        annotations: READS,
    }
}

pub(super) fn cancel_run() -> Tool {
    Tool {
        name: CANCEL_RUN,
        title: "Cancel run",
        description:
            "Stops a run of this project: kills its calls and settles it as cancelled; answers that are in \
            are kept. Calling it again changes nothing.".into(),
        input_schema: keyed_input(
            json!({ "runId": run_id(), "reason": { "type": "string", "maxLength": 1000 } }),
            &["runId"],
        ),
        output_schema: output(
            json!({
                "runId": { "type": "string" }, "state": state(),
                "outcome": { "enum": ["requested", "already_finished"] },
            }),
            &["runId", "state", "outcome"],
        ),
        annotations: Annotations { read_only: false, destructive: true, idempotent: true, open_world: false },
    }
}
