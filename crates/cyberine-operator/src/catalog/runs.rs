//! Runs: starting, finding, watching and stopping them.

use cyberine_server::{Annotations, Tool};

use super::text::{input, keyed_input, output, output_or};
use super::{CANCEL_RUN, INSPECT_RUN, ORCHESTRATE, QUERY_RUNS, READS};

pub(super) fn orchestrate() -> Tool {
    Tool {
        name: ORCHESTRATE,
        title: "Orchestrate",
        description: "Spends one paid call per configured provider, plus judging: ask the user first. \
            Puts one prompt to every provider in parallel and judges the answers (consensus, llm-judge). \
            Returns a runId at once; follow it with inspect_run, stop it with cancel_run. With dryRun it only \
            tells what that would cost."
            .into(),
        input_schema: keyed_input!({
            "prompt": { "type": "string", "minLength": 1, "description": "The whole task; providers see nothing else." },
            "dryRun": { "type": "boolean", "default": false, "description": "Spends nothing: who would be asked, the estimate, what is left of each cap." },
        }, ["prompt"]),
        output_schema: output_or!({
            "runId": text,
            "status": { "const": "dispatched" },
            "detail": text,
            "pollWith": { "type": "object", "properties": { "tool": text, "arguments": object }, "required": ["tool", "arguments"] },
            "cancelWith": { "type": "object", "properties": {
                "tool": text, "arguments": object, "description": text,
                "controlFile": text, "body": object,
            }, "required": ["tool", "arguments", "controlFile", "body"] },
            "run": object,
            "forecast": { "type": "object", "properties": {
                "candidates": texts, "judges": texts, "judgeProviders": texts, "providers": array,
                "atMostUsd": number, "likelyUsd": number, "complete": boolean, "holdsUsd": number,
                "caps": array, "refusal": text, "note": text, "truncated": boolean,
            } },
        }, ["runId", "status", "detail", "pollWith", "cancelWith"], ["forecast", "detail"]),
        annotations: Annotations {
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: true,
        },
    }
}

pub(super) fn inspect_run() -> Tool {
    Tool {
        name: INSPECT_RUN,
        title: "Inspect run",
        description: "Shows a run of any project: each candidate's state, answer preview, tokens and cost, \
            the verdict with rationale, the winner. Long texts are cut; `resource` has all."
            .into(),
        input_schema: input!({
            "runId": run_id,
            "waitMs": { "type": "integer", "minimum": 0, "maximum": 45000, "description": "Wait this long for its end; with sinceSeq, for any change." },
            "sinceSeq": { "type": "integer", "minimum": 0, "maximum": 9007199254740991, "description": "nextSeq of your last look." },
        }, ["runId"]),
        output_schema: output!({
            "runId": text, "workflowName": text, "state": text, "detail": text, "reason": text, "label": text,
            "task": text, "cwd": text, "enginePid": integer, "startedAt": text, "updatedAt": text,
            "steps": { "type": "array", "items": { "type": "object", "properties": {
                "id": text, "name": text, "state": text,
                "candidates": { "type": "array", "items": { "type": "object", "properties": {
                    "id": text, "provider": text, "model": text, "fellBack": object, "keptFrom": text, "state": text,
                    "outputPreview": text, "tokens": integer, "usd": number,
                    "durationMs": integer, "error": object,
                } } },
                "verdict": { "type": "object", "properties": {
                    "kind": text, "outcome": text, "winner": text, "rationale": text, "votes": array,
                    "attacks": array,
                } },
                "winnerPreview": text, "winnerOutput": text,
            } } },
            "awaiting": { "type": "object", "properties": {
                "step": text, "expiresAt": text, "onExpiry": text,
                "approveWith": object, "rejectWith": object,
            } },
            "decision": object, "decisions": array,
            "steers": { "type": "array", "items": { "type": "object", "properties": {
                "message": text, "from": text, "text": text, "at": text,
            } } },
            "usage": object, "nextSeq": integer,
            "resource": text, "truncated": boolean, "note": text,
        }, ["runId", "workflowName", "state", "steps", "nextSeq"]),
        annotations: READS,
    }
}

pub(super) fn query_runs() -> Tool {
    Tool {
        name: QUERY_RUNS,
        title: "Query runs",
        description:
            "Lists runs of all projects, newest first. `query` is a literal part of the prompt, workflow, \
            directory, state, id or winning answer."
                .into(),
        input_schema: input!({
            "query": { "type": "string", "maxLength": 1000 },
            "limit": { "type": "integer", "minimum": 1, "maximum": 200, "default": 20 },
        }, []),
        output_schema: output!({
            "runs": { "type": "array", "items": { "type": "object", "properties": {
                "runId": text, "workflowName": text, "state": state, "detail": text, "taskPreview": text, "cwd": text,
                "winnerPreview": text, "startedAt": text, "updatedAt": text,
            }, "required": ["runId", "workflowName", "state", "taskPreview", "cwd"] } },
            "truncated": boolean,
        }, ["runs"]),
        annotations: READS,
    }
}

pub(super) fn cancel_run() -> Tool {
    Tool {
        name: CANCEL_RUN,
        title: "Cancel run",
        description:
            "Stops a run of this project: kills its calls and settles it as cancelled; answers that are in \
            are kept. Calling it again changes nothing."
                .into(),
        input_schema: keyed_input!({ "runId": run_id, "reason": { "type": "string", "maxLength": 1000 } }, ["runId"]),
        output_schema: output!({
            "runId": text, "state": state,
            "outcome": { "enum": ["requested", "already_finished"] },
        }, ["runId", "state", "outcome"]),
        annotations: Annotations { read_only: false, destructive: true, idempotent: true, open_world: false },
    }
}
