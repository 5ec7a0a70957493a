//! Deciding on runs.

use cyberine_server::Tool;

use super::text::{keyed_input, output};
use super::{APPROVE_RUN, REJECT_RUN, SETTLES};

pub(super) fn approve_run() -> Tool {
    decision(
        APPROVE_RUN,
        "Approve run",
        "Records an approval of a run of this project, or of one of its steps. A run that waits for \
         it goes on. Ask the user first. The first decision stands; `effect` says what it did.",
    )
}

pub(super) fn reject_run() -> Tool {
    decision(
        REJECT_RUN,
        "Reject run",
        "Records a rejection of a run of this project, or of one of its steps. A run that needs an \
         approval and has not gone on ends. Ask the user first.",
    )
}

fn decision(name: &'static str, title: &'static str, description: &'static str) -> Tool {
    Tool {
        name,
        title,
        description: description.into(),
        input_schema: keyed_input!({
            "runId": run_id,
            "stepId": { "type": "string", "description": "Omit for the whole run." },
            "comment": { "type": "string", "maxLength": 4000 },
        }, ["runId"]),
        output_schema: output!({
            "decision": { "enum": ["approve", "reject"] }, "runId": text, "stepId": text,
            "comment": text, "decidedBy": text, "deciderKind": { "enum": ["human", "mcp"] }, "decidedAt": text,
            "effect": { "enum": ["goes_on", "will_not_wait", "ends", "on_record"] }, "detail": text,
        }, ["decision", "runId", "decidedBy", "deciderKind", "decidedAt"]),
        annotations: SETTLES,
    }
}
