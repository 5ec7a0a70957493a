//! `cyberine team`.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_presence::{Member, State};
use cyberine_run_store::{Run, RunStore, preview};
use serde_json::{Value, json};

use crate::args::Team;
use crate::mail;
use crate::message::moment;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::table::aligned;
use crate::waiting::{Wait, waiting};

/// How much of a name or a path is shown.
const CELL: usize = 60;

/// Shows who is live.
pub(crate) async fn run(args: &Team, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let mut members = Vec::new();
    for member in mail::roster(workplace).await? {
        let run = if args.runs { run_of(&member, workplace).await? } else { None };
        let waits = match &run {
            Some(run) => waiting(workplace, run).await,
            None => Vec::new(),
        };
        members.push((member, run, waits));
    }
    if out.is_json() {
        let members: Vec<Value> = members.iter().map(|(member, run, _)| view(member, run.as_ref())).collect();
        out.json(&json!({ "total": members.len(), "members": members }));
    } else if members.is_empty() {
        out.line("Nobody is live: no server, no run, no announced chat.");
        out.line("`cyberine inbox --chat NAME --follow --announce` announces you.");
    } else {
        print(&members, out);
    }
    Ok(Exit::Done)
}

async fn run_of(member: &Member, workplace: &Workplace) -> Result<Option<Run>, Problem> {
    let addr = &member.record.addr;
    match addr.id.parse() {
        Ok(id) if addr.kind == "run" => Ok(workplace.store.load(id).await?),
        _ => Ok(None),
    }
}

fn print(members: &[(Member, Option<Run>, Vec<Wait>)], out: &Out) {
    let mut rows = vec![["address", "state", "team/role/name", "since", "in"].map(str::to_owned).to_vec()];
    rows.extend(members.iter().map(|(member, ..)| row(member)));
    let lines = aligned(&rows);
    let mut lines = lines.iter();
    if let Some(head) = lines.next() {
        out.line(out.paint(Style::Faint, head));
    }
    for (line, (_, run, waits)) in lines.zip(members) {
        out.line(line);
        if let Some(run) = run {
            let width = out.width().saturating_sub(4);
            let told = format!("{}: {}, asked {}", run.workflow_name, run.state.name(), run.task);
            out.line(out.paint(Style::Faint, format_args!("  → {}", cut(&told, width))));
        }
        for (name, words) in waits {
            let width = out.width().saturating_sub(6);
            out.line(format_args!("    {}", cut(&format!("{name} {words}"), width)));
        }
    }
}

fn row(member: &Member) -> Vec<String> {
    let record = &member.record;
    let of = |part: &Option<String>| {
        part.as_deref().map_or_else(|| "-".to_owned(), |text| cut(&escaped(text), CELL))
    };
    vec![
        cut(&escaped(&format!("{}:{}", record.addr.kind, record.addr.id)), CELL),
        doing(member.state).to_owned(),
        format!("{}/{}/{}", of(&record.team), of(&record.role), of(&record.name)),
        moment(record.started_at),
        escaped(&record.repo_cwd),
    ]
}

const fn doing(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting for a human",
        other => other.name(),
    }
}

/// A member as `list_team` shows it.
fn view(member: &Member, run: Option<&Run>) -> Value {
    let record = &member.record;
    let mut view = json!({
        "addr": record.addr, "repoCwd": record.repo_cwd, "capabilities": record.capabilities, "pid": record.pid,
        "startedAt": record.started_at, "lastBeat": record.last_beat, "ttlMs": record.ttl_ms,
        "state": member.state,
    });
    for (key, value) in [("team", &record.team), ("role", &record.role), ("name", &record.name)] {
        if let Some(value) = value {
            view[key] = json!(value);
        }
    }
    if let Some(run) = run {
        view["run"] = json!({
            "taskPreview": preview(&run.task), "workflowName": run.workflow_name, "state": run.state,
        });
    }
    view
}
