//! `cyberine doctor`.

mod mailboxes;
mod providers;

use std::path::Path;
use std::sync::Arc;

use cyberine_app::{
    Environment, Exit, Found, Home, Problem, Reach, Untrusted, Workplace, discover, reach, roster,
};
use cyberine_run_store::{RunStore as _, doctor};
use cyberine_types::RunId;
use serde::Serialize;

use self::mailboxes::MailReport;
use crate::args::{Doctor, DoctorPart};
use crate::decision::short;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::report::{paid_by, reach_lines};

/// What was looked at, and what is wrong.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    home: String,
    project: String,
    project_from: &'static str,
    config_files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<Untrusted>,
    /// Whom an orchestration would ask now.
    providers: Vec<Reach>,
    found: Found,
    #[serde(skip_serializing_if = "Option::is_none")]
    rebuilt: Option<u64>,
    /// How many the database holds; unset where it could not be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    settled: Vec<String>,
    /// Runs that wait for a person.
    waiting: Vec<RunId>,
    /// The mailboxes and the roster; unset where they could not be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    mail: Option<MailReport>,
    findings: Vec<doctor::Finding>,
    problems: Vec<String>,
    /// What of the configuration has no effect, and does no harm.
    hints: Vec<String>,
    exit: u8,
    #[serde(skip)]
    ends: Exit,
}

/// Looks at everything, puts right what follows from the record, and tells what is left.
pub(crate) async fn run(
    args: &Doctor,
    project: Option<&Path>,
    environment: &Arc<Environment>,
    out: &Out,
) -> Result<Exit, Problem> {
    Home::resolve(environment)?.open()?;
    let workplace = Workplace::resolve(project, Arc::clone(environment))?;
    if let Some(DoctorPart::Providers(args)) = &args.part {
        return providers::run(args, &workplace, out).await;
    }
    let mut report = Report::begin(&workplace);
    let configuration = report.look_at_configuration(&workplace).await;
    report.note(configuration);
    let runs = report.look_at_runs(args, &workplace).await;
    report.note(runs);
    let mail = report.look_at_mail(&workplace).await;
    report.note(mail);
    if out.is_json() {
        out.json(&report);
    } else {
        report.print(out);
    }
    Ok(report.ends)
}

/// The runs that wait for a person to approve them.
async fn waiting(workplace: &Workplace) -> Result<Vec<RunId>, Problem> {
    let mut waiting = Vec::new();
    for id in workplace.store.unsettled().await? {
        let run = workplace.store.load(id).await?;
        waiting.extend(run.filter(|run| run.awaiting.is_some()).map(|run| run.run_id));
    }
    Ok(waiting)
}

fn is_abandoned(finding: &doctor::Finding) -> bool {
    finding.kind == doctor::FindingKind::Abandoned
}

impl Report {
    fn begin(workplace: &Workplace) -> Self {
        Self {
            home: workplace.home.directory().display().to_string(),
            project: workplace.project.directory().display().to_string(),
            project_from: workplace.project.source().name(),
            config_files: Vec::new(),
            untrusted: None,
            providers: Vec::new(),
            found: Found::default(),
            rebuilt: None,
            runs: None,
            settled: Vec::new(),
            waiting: Vec::new(),
            mail: None,
            findings: Vec::new(),
            problems: Vec::new(),
            hints: Vec::new(),
            exit: 0,
            ends: Exit::Done,
        }
    }

    /// Keeps a problem; the first one decides how the command ends.
    fn note(&mut self, looked: Result<(), Problem>) {
        let Err(problem) = looked else { return };
        if self.ends == Exit::Done {
            self.ends = problem.exit;
            self.exit = problem.exit as u8;
        }
        self.problems.push(problem.message);
    }

    async fn look_at_configuration(&mut self, workplace: &Workplace) -> Result<(), Problem> {
        self.found = discover(&workplace.environment).await?;
        let config = workplace.config()?;
        self.config_files = config.files.iter().map(|path| path.display().to_string()).collect();
        self.untrusted.clone_from(&config.untrusted);
        self.hints = config.hints();
        let roster = roster(&config, &workplace.environment).await?;
        self.providers = roster.providers.iter().map(|(name, provider)| reach(name, provider)).collect();
        if roster.providers.is_empty() && config.untrusted.is_none() {
            return Ok(());
        }
        for problem in workplace.faults().await? {
            self.note(Err(problem));
        }
        Ok(())
    }

    async fn look_at_runs(&mut self, args: &Doctor, workplace: &Workplace) -> Result<(), Problem> {
        if args.rebuild {
            let rebuilt =
                doctor::rebuild(&workplace.store, vec![workplace.project.directory().to_owned()]).await?;
            self.rebuilt = Some(rebuilt.runs);
            for skipped in rebuilt.skipped {
                self.note(Err(Problem::new(Exit::Internal, format!("not rebuilt: {skipped}"))));
            }
        }
        self.settle(workplace).await?;
        let mut checked = doctor::check(&workplace.store).await?;
        // A runner that ends between the two looks is dead to the second one only; so both are taken
        // again, for as long as that settles a run.
        let mut again = true;
        while again && checked.findings.iter().any(is_abandoned) {
            again = self.settle(workplace).await?;
            checked = doctor::check(&workplace.store).await?;
        }
        let clean = checked.findings.iter().all(|finding| finding.repaired || finding.kind.is_expected());
        self.runs = Some(checked.runs);
        self.waiting = waiting(workplace).await?;
        self.findings = checked.findings;
        if clean {
            return Ok(());
        }
        Err(Problem::new(Exit::Internal, "the record of runs has damage that could not be put right"))
    }

    async fn look_at_mail(&mut self, workplace: &Workplace) -> Result<(), Problem> {
        let mail = MailReport::look(workplace).await?;
        let verdict = mail.verdict();
        self.mail = Some(mail);
        verdict
    }

    /// Settles the runs whose runners are gone; whether there were any.
    async fn settle(&mut self, workplace: &Workplace) -> Result<bool, Problem> {
        let settled = workplace.supervisor.settle_dead_runs().await?;
        self.settled.extend(settled.iter().map(ToString::to_string));
        Ok(!settled.is_empty())
    }

    fn print(&self, out: &Out) {
        out.line(format_args!("home      {}", escaped(&self.home)));
        out.line(format_args!("project   {} (from {})", escaped(&self.project), self.project_from));
        for file in &self.config_files {
            out.line(format_args!("config    {}", escaped(file)));
        }
        if let Some(untrusted) = &self.untrusted {
            let label = out.paint(Style::Bad, "untrusted");
            out.line(format_args!("{label} {}", escaped(&untrusted.to_string())));
        }
        self.print_providers(out);
        self.print_found(out);
        self.print_runs(out);
        if let Some(mail) = &self.mail {
            mail.print(out);
        }
        // What the line about trust has said is not said again.
        let told = self.untrusted.as_ref().map(ToString::to_string);
        for problem in self.problems.iter().filter(|problem| Some(*problem) != told.as_ref()) {
            out.line(format_args!("{}   {}", out.paint(Style::Bad, "problem"), escaped(problem)));
        }
        for hint in &self.hints {
            out.line(format_args!("hint      {}", escaped(hint)));
        }
        let found = self.findings.iter().any(|finding| !finding.repaired)
            || self.mail.as_ref().is_some_and(MailReport::has_findings);
        let verdict = if !self.problems.is_empty() || self.untrusted.is_some() {
            String::new()
        } else if found {
            "Nothing is broken here, apart from what was found and left as it is.".to_owned()
        } else if self.providers.is_empty() {
            format!("Nothing is broken, but there is nobody to ask: {}.", self.how_to_choose())
        } else {
            out.paint(Style::Good, "All is well.")
        };
        out.line(verdict.trim_end());
    }

    fn print_providers(&self, out: &Out) {
        for reach in &self.providers {
            for (at, line) in reach_lines(reach).iter().enumerate() {
                out.line(format_args!("{:<10}{line}", if at == 0 { "asks" } else { "" }));
            }
        }
        if self.providers.is_empty() && self.untrusted.is_none() {
            out.line(
                "asks      nobody: no provider is configured, and no model server answers on this machine.",
            );
            if self.config_files.is_empty() {
                out.line("          `cyberine init` writes a configuration from what is here.");
            }
        }
    }

    fn how_to_choose(&self) -> String {
        match self.config_files.last() {
            Some(file) => format!("name a provider in `{}`, or take the `#` from one there", escaped(file)),
            None => "run `cyberine init` to choose providers".to_owned(),
        }
    }

    /// Who pays where the program `name` is asked.
    fn payer(&self, name: &str) -> String {
        let runs_it = |reach: &&Reach| {
            let program = reach.program.as_ref().and_then(|words| words.first());
            program.and_then(|program| Path::new(program).file_stem()).is_some_and(|stem| stem == name)
        };
        match self.providers.iter().find(runs_it) {
            Some(reach) => format!("`{}` runs it: {}", escaped(&reach.name), paid_by(reach.billing)),
            None => "its own login pays".to_owned(),
        }
    }

    fn print_found(&self, out: &Out) {
        for server in &self.found.servers {
            let models = server.models.len();
            out.line(format_args!(
                "found     {} at {}, {models} models, costs nothing",
                escaped(&server.label),
                server.base_url
            ));
        }
        for program in &self.found.programs {
            out.line(format_args!(
                "found     {} at {}, {}",
                program.name,
                escaped(&program.path.display().to_string()),
                self.payer(&program.name)
            ));
        }
        for key in &self.found.keys {
            out.line(format_args!("found     a key in {}: {} bills every token", key.variable, key.vendor));
        }
    }

    fn print_runs(&self, out: &Out) {
        if let Some(rebuilt) = self.rebuilt {
            out.line(format_args!("rebuilt   {rebuilt} runs from the files in their projects"));
        }
        if let Some(runs) = self.runs {
            out.line(format_args!("runs      {runs} in the database"));
        }
        for run in &self.settled {
            out.line(format_args!("settled   {run}: its runner was gone"));
        }
        for run in &self.waiting {
            let id = short(*run);
            out.line(format_args!("waiting   {run}: `cyberine approve {id}` or `cyberine reject {id}`"));
        }
        for finding in &self.findings {
            let fate = if finding.repaired { "put right" } else { "left as it is" };
            out.line(format_args!(
                "finding   {}: {} ({fate})",
                escaped(&finding.subject),
                cut(&finding.detail, usize::MAX)
            ));
        }
    }
}
