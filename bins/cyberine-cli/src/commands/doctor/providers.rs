//! `cyberine doctor providers`.

use cyberine_app::{Closure, Exit, Interrupts, Probed, Problem, Workplace, ask_briefly, probe};
use cyberine_provider::{Coverage, Covered, Login, Probe, version};
use cyberine_run_store::{Candidate, Run, RunState};
use cyberine_types::{Billing, Usage};
use serde::Serialize;

use crate::args::DoctorProviders;
use crate::commands::SELF;
use crate::follow::{self, OnInterrupt};
use crate::message::moment;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::report::{paid_by, usage};
use crate::table::aligned;

/// The failure of an answer that the small limit of tokens cut: it shows that there is one.
const CUT_SHORT: &str = "truncated";

/// What was found of one provider.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    billing: Billing,
    /// What the program says of its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Whether that version is `recorded`, `believed` or `untried`; unset where no program of this
    /// name has been recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'static str>,
    /// `yes`, `no`, `unknown` or `not_needed`.
    login: &'static str,
    /// Whether the service lists the model; unset where it lists none.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_listed: Option<bool>,
    /// What the question used; unset where none was put, or none was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<Usage>,
    /// Why it cannot answer, as far as that shows; unset where nothing speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// What the recordings say, for people.
    #[serde(skip)]
    note: Option<String>,
    /// What else was found, for people.
    #[serde(skip)]
    remark: Option<String>,
    /// Until when its account is closed, and why, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<Closure>,
}

/// What to do where a program is not logged in.
fn how_to_log_in(kind: &str) -> &'static str {
    match kind {
        "codex-cli" => "; run `codex login`, or name the variable of a key in `api_key_env`",
        "claude-cli" => "; run `claude` and type `/login`, or name the variable of a key in `api_key_env`",
        _ => "",
    }
}

impl Row {
    fn of(probed: Probed) -> Self {
        let profile = probed.config.profile();
        let covered = profile.program.and_then(|program| Covered::of(profile.kind, program));
        let mut row = Self {
            kind: profile.kind,
            model: profile.model.map(str::to_owned),
            billing: probed.config.billing(),
            version: None,
            coverage: None,
            login: "unknown",
            model_listed: None,
            answered: None,
            problem: None,
            note: None,
            remark: None,
            closed: probed.closed,
            name: probed.name,
        };
        match probed.found {
            Ok(probe) => row.take(probe, covered),
            Err(problem) => row.problem = Some(problem),
        }
        row
    }

    fn take(&mut self, probe: Probe, covered: Option<&Covered>) {
        let Probe { version, reached, login, model_listed, remark } = probe;
        self.login = match login {
            Login::Yes => "yes",
            Login::No(_) => "no",
            Login::Unknown => "unknown",
            Login::NotNeeded => "not_needed",
        };
        self.problem = match (reached, login) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Login::No(why)) => {
                Some(format!("it does not let us in: {why}{}", how_to_log_in(self.kind)))
            }
            (Ok(()), _) if model_listed == Some(false) => {
                Some(remark.unwrap_or_else(|| "the model is not among those it lists".to_owned()))
            }
            (Ok(()), _) => {
                self.remark = remark;
                None
            }
        };
        (self.version, self.model_listed) = (version, model_listed);
        if let Some(covered) = covered {
            self.compare(covered);
        }
    }

    fn compare(&mut self, covered: &Covered) {
        let found = self.version.as_deref().and_then(version);
        let coverage = found.map_or(Coverage::Untried, |version| covered.coverage(version));
        let recorded = covered.recorded;
        let (coverage, note) = match coverage {
            Coverage::Recorded => ("recorded", "tried with this version".to_owned()),
            Coverage::Believed => ("believed", format!("later than {recorded}, which it was tried with")),
            Coverage::Untried => (
                "untried",
                format!(
                    "not tried with this version, while {recorded} is known to work: `--spend` shows whether \
                     it answers"
                ),
            ),
        };
        (self.coverage, self.note) = (Some(coverage), Some(note));
    }

    /// Takes in what became of the question.
    fn answer(&mut self, candidate: &Candidate) {
        match &candidate.error {
            // That the run was stopped says nothing of the provider.
            _ if candidate.state == RunState::Cancelled => {}
            Some(error) if error.code != CUT_SHORT => self.problem = Some(error.message.clone()),
            _ => (self.answered, self.problem) = (Some(candidate.usage), None),
        }
    }

    fn cells(&self, out: &Out) -> Vec<String> {
        let model = self.model.as_deref().unwrap_or("its own choice");
        let state = match (&self.problem, self.login) {
            (Some(_), _) => out.paint(Style::Bad, "cannot answer"),
            (None, _) if self.answered.is_some() => out.paint(Style::Good, "answers"),
            (None, "yes") => "lets us in".to_owned(),
            (None, "not_needed") => "needs no key".to_owned(),
            (None, _) => "is there; more shows when it is asked".to_owned(),
        };
        vec![
            escaped(&self.name),
            self.kind.to_owned(),
            cut(model, 40),
            paid_by(self.billing).to_owned(),
            state,
        ]
    }

    fn details(&self) -> Vec<String> {
        let version = self.version.as_deref().map(|version| match &self.note {
            Some(note) => format!("version {}: {note}", cut(version, 60)),
            None => format!("version {}", cut(version, 60)),
        });
        let used = self.answered.as_ref().map(|used| format!("used {}", usage(used)));
        let problem = self.problem.as_deref().map(escaped);
        let remark = self.remark.as_deref().map(escaped);
        let closed = self.closed.as_ref().map(|closed| {
            let until = moment(closed.until);
            format!("its account is closed until {until}, and turns wait: {}", cut(&closed.reason, 200))
        });
        version.into_iter().chain(closed).chain(used).chain(remark).chain(problem).collect()
    }
}

pub(super) async fn run(args: &DoctorProviders, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    // Programs that are looked at are in groups of their own: no interrupt reaches them, and this
    // process must live to end them.
    let mut interrupts = Interrupts::or_terminations();
    let probed = tokio::select! {
        probed = probe(workplace, &args.names) => probed?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let mut rows: Vec<Row> = probed.into_iter().map(Row::of).collect();
    let run = if args.spend { Some(ask(&rows, workplace, &mut interrupts, out).await?) } else { None };
    run.iter().for_each(|run| take_in(&mut rows, run));
    let asked = run.as_ref().map(|run| run.run_id);
    let exit = match &run {
        _ if rows.iter().any(|row| row.problem.is_some()) => Exit::Unavailable,
        Some(run) if run.state == RunState::Cancelled => Exit::Failed,
        _ => Exit::Done,
    };
    if out.is_json() {
        out.json(&serde_json::json!({ "providers": rows, "runId": asked, "exit": exit as u8 }));
        return Ok(exit);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.cells(out)).collect();
    for (row, line) in rows.iter().zip(aligned(&cells)) {
        out.line(line);
        for detail in row.details() {
            out.line(format_args!("  {detail}"));
        }
    }
    match asked {
        Some(run) => out.note(format_args!("`cyberine inspect {run}` shows what each was asked and said")),
        None => out.note("No model was asked anything; `--spend` puts one short question to each."),
    }
    Ok(exit)
}

/// Puts a question to every provider that can be asked, and waits for what becomes of it.
async fn ask(
    rows: &[Row],
    workplace: &Workplace,
    interrupts: &mut Interrupts,
    out: &Out,
) -> Result<Run, Problem> {
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let run = ask_briefly(workplace, &names, SELF.to_owned()).await?.run;
    follow::to_the_end(workplace, run, OnInterrupt::Stop, interrupts, out).await
}

fn take_in(rows: &mut [Row], run: &Run) {
    for candidate in run.steps.iter().flat_map(|step| &step.candidates) {
        if let Some(row) = rows.iter_mut().find(|row| row.name == candidate.id) {
            row.answer(candidate);
        }
    }
}
