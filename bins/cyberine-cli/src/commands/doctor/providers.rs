//! `cyberine doctor providers`.

use cyberine_app::{Exit, Probed, Problem, Workplace, probe};
use cyberine_provider::{Login, Probe};
use cyberine_types::Billing;
use serde::Serialize;

use crate::args::DoctorProviders;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::report::paid_by;
use crate::table::aligned;

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
    /// `yes`, `no`, `unknown` or `not_needed`.
    login: &'static str,
    /// Whether the service lists the model; unset where it lists none.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_listed: Option<bool>,
    /// Why it cannot answer, as far as that shows; unset where nothing speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Row {
    fn of(probed: Probed) -> Self {
        let profile = probed.config.profile();
        let mut row = Self {
            kind: profile.kind,
            model: profile.model.map(str::to_owned),
            billing: probed.config.billing(),
            version: None,
            login: "unknown",
            model_listed: None,
            problem: None,
            name: probed.name,
        };
        match probed.found {
            Ok(probe) => row.take(probe),
            Err(problem) => row.problem = Some(problem),
        }
        row
    }

    fn take(&mut self, probe: Probe) {
        let Probe { version, reached, login, model_listed } = probe;
        self.login = match login {
            Login::Yes => "yes",
            Login::No(_) => "no",
            Login::Unknown => "unknown",
            Login::NotNeeded => "not_needed",
        };
        self.problem = match (reached, login) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Login::No(why)) => Some(format!("it does not let us in: {why}")),
            (Ok(()), _) if model_listed == Some(false) => {
                Some("the model is not among those the service lists".to_owned())
            }
            (Ok(()), _) => None,
        };
        (self.version, self.model_listed) = (version, model_listed);
    }

    fn cells(&self, out: &Out) -> Vec<String> {
        let version = self.version.as_deref().map_or_else(|| "there".to_owned(), |text| cut(text, 40));
        let state = match (&self.problem, self.login) {
            (Some(_), _) => out.paint(Style::Bad, "cannot answer"),
            (None, "yes") => format!("{version}, lets us in"),
            (None, "not_needed") => format!("{version}, needs no key"),
            (None, _) => format!("{version}, login not known before it is asked"),
        };
        let model = self.model.as_deref().unwrap_or("its own choice");
        vec![
            escaped(&self.name),
            self.kind.to_owned(),
            cut(model, 40),
            paid_by(self.billing).to_owned(),
            state,
        ]
    }
}

pub(super) async fn run(args: &DoctorProviders, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let rows: Vec<Row> = probe(workplace, &args.names).await?.into_iter().map(Row::of).collect();
    let sound = rows.iter().all(|row| row.problem.is_none());
    let exit = if sound && !rows.is_empty() { Exit::Done } else { Exit::Unavailable };
    if out.is_json() {
        out.json(&serde_json::json!({ "providers": rows, "exit": exit as u8 }));
        return Ok(exit);
    }
    if rows.is_empty() {
        out.line("There is nobody to look at: run `cyberine init` to choose providers.");
        return Ok(exit);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.cells(out)).collect();
    for (row, line) in rows.iter().zip(aligned(&cells)) {
        out.line(line);
        if let Some(problem) = &row.problem {
            out.line(format_args!("  {}", escaped(problem)));
        }
    }
    Ok(exit)
}
