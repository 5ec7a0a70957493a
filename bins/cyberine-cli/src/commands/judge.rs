//! `cyberine judge selftest`.

use cyberine_app::{Examined, Examining, Exit, Interrupts, Problem, Workplace};
use cyberine_orchestrator::{GroupReport, JudgeReport};
use cyberine_types::{Billing, Usd};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{JudgeCommand, Selftest};
use crate::commands::SELF;
use crate::out::{Out, Style};
use crate::plain::escaped;
use crate::table::aligned;

const NOT_ASKED: &str = "nobody was asked anything, because there is no terminal to ask you on: \
                         `cyberine judge selftest --yes` starts without";

/// Does what was asked about judges.
pub(crate) async fn run(command: JudgeCommand, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    match command {
        JudgeCommand::Selftest(args) => selftest(args, workplace, out).await,
    }
}

async fn selftest(args: Selftest, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let most = args.cases.map_or(usize::MAX, |cases| usize::try_from(cases).unwrap_or(usize::MAX));
    let examining = workplace.examining(&args.judges, most, SELF).await?;
    announce(&examining, out);
    let costs = examining.reserve().amount > Usd::ZERO;
    if costs && !args.yes {
        if !out.can_ask() {
            return Err(Problem::new(Exit::Denied, NOT_ASKED));
        }
        if !out.confirms("Ask them?") {
            return Err(Problem::new(Exit::Denied, "nobody was asked anything"));
        }
    }
    let cancel = CancellationToken::new();
    let mut interrupts = Interrupts::or_terminations();
    let told = |judge: &str, done: usize, of: usize| {
        if out.is_live() {
            out.raw(&format!("\r{}: {done} of {of} cases\u{1b}[K", escaped(judge)));
        }
    };
    let mut work = Box::pin(workplace.examine(&examining, SELF, cancel.clone(), told));
    let examined = loop {
        tokio::select! {
            examined = &mut work => break examined?,
            () = interrupts.next() => cancel.cancel(),
        }
    };
    if out.is_live() {
        out.raw("\r\u{1b}[K");
    }
    print(&examined, out);
    if examined.stopped.is_some() && cancel.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    let all_fit = examined.reports.iter().all(JudgeReport::is_fit);
    Ok(if all_fit && examined.stopped.is_none() { Exit::Done } else { Exit::Failed })
}

/// What is about to be asked, and what it may cost.
fn announce(examining: &Examining, out: &Out) {
    let (least, most) = examining.calls();
    out.note(format_args!(
        "{} cases for each judge, {least} to {most} questions in all for each:",
        examining.cases()
    ));
    for one in &examining.estimate.providers {
        let model = one.model.as_deref().map(|model| format!(" ({})", escaped(model))).unwrap_or_default();
        let cost = match (one.likely, one.at_most) {
            (Some(Usd::ZERO), Some(Usd::ZERO)) => "costs nothing".to_owned(),
            (Some(likely), Some(at_most)) => format!("about {likely}, at most {at_most}"),
            _ => "nobody knows what it costs".to_owned(),
        };
        out.note(format_args!("  {}{model}, {}: {cost}", escaped(&one.provider), billing(one.billing)));
    }
    let held = examining.reserve().amount;
    if held > Usd::ZERO {
        out.note(format_args!("{held} are held for it, and it ends where that is used up"));
    }
}

const fn billing(billing: Billing) -> &'static str {
    match billing {
        Billing::Metered => "metered",
        Billing::Subscription => "subscription",
        Billing::Free => "free",
        Billing::Scripted => "scripted",
    }
}

fn print(examined: &Examined, out: &Out) {
    let Examined { run, reports, stopped } = examined;
    if out.is_json() {
        let judges = reports.iter().enumerate().map(|(at, report)| judge(report, examined.is_fit(at)));
        let judges: Vec<serde_json::Value> = judges.collect();
        return out.json(&json!({ "runId": run, "judges": judges, "stopped": stopped }));
    }
    let head = [
        "judge",
        "quality",
        "flips",
        "injected",
        "length",
        "own",
        "same",
        "critic",
        "decided wrongly",
        "fit",
    ];
    let rows = reports.iter().enumerate().map(|(at, report)| row(report, examined.is_fit(at)));
    let rows: Vec<Vec<String>> = [head.map(str::to_owned).to_vec()].into_iter().chain(rows).collect();
    aligned(&rows).iter().for_each(|line| out.line(line));
    let whole = reports.iter().enumerate().filter(|(at, _)| examined.is_fit(*at).is_some());
    for (_, report) in whole {
        for fault in &report.faults {
            let name = escaped(&report.judge);
            out.line(format_args!("{} {name} {fault}", out.paint(Style::Bad, "✗")));
        }
    }
    if let Some(why) = stopped {
        out.line(format_args!("Not all cases were put: {}", escaped(why)));
    }
    out.note(format_args!("on record as run {run}; docs/judging.md says what the columns mean"));
}

fn row(report: &JudgeReport, fit: Option<bool>) -> Vec<String> {
    let of = |count: usize, all: usize| format!("{count} of {all}");
    let misled = |group: &GroupReport| of(group.misled_at_first, group.cases);
    let ((flips, compared), (wrong, known)) = (report.flips(), report.decided_wrongly());
    vec![
        escaped(&report.judge),
        of(report.quality.right, report.quality.cases),
        of(flips, compared),
        misled(&report.injection),
        misled(&report.length),
        misled(&report.own),
        of(report.equivalence.right, report.equivalence.cases),
        of(report.critic.right, report.critic.cases),
        of(wrong, known),
        fit.map_or("unknown", |fit| if fit { "yes" } else { "no" }).to_owned(),
    ]
}

fn judge(report: &JudgeReport, fit: Option<bool>) -> serde_json::Value {
    let ((flips, compared), (wrong, known)) = (report.flips(), report.decided_wrongly());
    let mut document = json!(report);
    document["fit"] = fit.into();
    if fit.is_none() {
        document["faults"] = json!([]);
    }
    document["flips"] = json!({ "count": flips, "of": compared });
    document["decidedWrongly"] = json!({ "count": wrong, "of": known });
    document
}
