//! `list_team`: who is live.

use cyberine_presence::Member;
use cyberine_run_store::preview;
use cyberine_server::ToolResult;
use serde_json::{Map, Value, json};

use crate::arguments::ListTeam;
use crate::bounded::{MAX_RESULT, cut, size};
use crate::services::Services;

/// What the result takes beside its members.
const FRAME: usize = 128;
/// How many characters of a text, a path, a name are shown.
const LINE: usize = 400;
/// How many capabilities.
const CAPABILITIES: usize = 32;

/// Lists the live members, this server first; as many as fit.
pub(crate) async fn list(services: &Services, arguments: ListTeam) -> Result<ToolResult, String> {
    let mut members = services.roster().await?;
    let own = services.sender.instance_id;
    members.sort_by_key(|member| member.record.instance_id != own);
    let mut shown = Vec::new();
    let mut left = MAX_RESULT - FRAME;
    for member in &members {
        let mut row = row(member);
        if member.record.instance_id == own {
            row.insert("self".to_owned(), json!(true));
        }
        if arguments.join_runs
            && let Some(run) = run(services, member).await
        {
            row.insert("run".to_owned(), run);
        }
        let row = Value::Object(row);
        let needed = size(&row) + 1;
        if needed > left {
            break;
        }
        left -= needed;
        shown.push(row);
    }
    let mut result = json!({ "members": shown, "total": members.len() });
    if shown.len() < members.len() {
        result["truncated"] = json!(true);
    }
    Ok(ToolResult::ok(result))
}

fn row(member: &Member) -> Map<String, Value> {
    let record = &member.record;
    let capabilities = record.capabilities.iter().take(CAPABILITIES).map(|one| cut(one, 64));
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            row.insert(key.to_owned(), value);
        }
    };
    put("addr", json!(record.addr));
    put("repoCwd", json!(cut(&record.repo_cwd, LINE)));
    put("capabilities", capabilities.collect());
    put("pid", json!(record.pid));
    put("startedAt", json!(record.started_at));
    put("lastBeat", json!(record.last_beat));
    put("ttlMs", json!(record.ttl_ms));
    for (key, label) in [("team", &record.team), ("role", &record.role), ("name", &record.name)] {
        put(key, json!(label.as_deref().map(|label| cut(label, LINE))));
    }
    put("state", json!(member.state));
    row
}

/// What is known of a member that is a run. Where it cannot be looked up, the member is listed
/// without.
async fn run(services: &Services, member: &Member) -> Option<Value> {
    if member.record.addr.kind != "run" {
        return None;
    }
    let id = member.record.addr.id.parse().ok()?;
    let run = services.look(id).await.ok().flatten()?;
    Some(json!({
        "taskPreview": preview(&run.task),
        "workflowName": cut(&run.workflow_name, 64),
        "state": run.state,
    }))
}
