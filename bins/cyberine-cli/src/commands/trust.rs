//! `cyberine trust`.

use std::path::PathBuf;

use cyberine_app::{
    ConfigSource, Exit, Offer, Problem, Reach, Setting, Trust, TrustState, Workplace, offer_of, reach,
};
use cyberine_types::SystemClock;
use serde::Serialize;

use crate::out::{Out, Style};
use crate::plain::escaped;
use crate::report::reach_lines;

/// What a project's configuration would do, and whether it may.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    file: PathBuf,
    sha256: String,
    /// How it stood.
    before: TrustState,
    /// Whether it says anything that needs trust.
    needs_trust: bool,
    providers: Vec<Reach>,
    settings: Vec<Setting>,
    /// Whether all of it holds now.
    trusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
}

const NOT_ASKED: &str = "nothing was trusted, because there is no terminal to ask on: read what it would do, then \
                         run `cyberine trust` on a terminal, or `cyberine trust --yes`";
const DECLINED: &str = "nothing was trusted";

/// Shows what a project's configuration would do, and records that the user wants it as it is:
/// where they say so when asked, or have said so already with `--yes`.
pub(crate) fn run(workplace: &Workplace, yes: bool, out: &Out) -> Result<Exit, Problem> {
    let path = workplace.project.config_file();
    let source = ConfigSource::read(&path)?.ok_or_else(|| {
        let path = path.display();
        Problem::new(Exit::Unavailable, format!("there is no `{path}` to trust; `cyberine init` writes one"))
    })?;
    let trust = Trust::of(workplace.home.clone());
    let mut report = Report::of(&source, offer_of(&source)?, trust.state(&source)?);
    if !out.is_json() {
        report.print(out);
    }
    if !report.trusted {
        match wanted(yes, out) {
            Ok(()) => {
                trust.grant(&source, &SystemClock)?;
                report.trusted = true;
            }
            Err(why) => report.refuse(why),
        }
    }
    if out.is_json() {
        out.json(&report);
    }
    Ok(report.conclude(out))
}

/// Whether the user wants it, or why nobody could know.
fn wanted(yes: bool, out: &Out) -> Result<(), &'static str> {
    if yes {
        return Ok(());
    }
    if !out.can_ask() {
        return Err(NOT_ASKED);
    }
    if out.confirms("Allow all of this, as it is now?") { Ok(()) } else { Err(DECLINED) }
}

impl Report {
    fn of(source: &ConfigSource, offer: Offer, before: TrustState) -> Self {
        Self {
            file: source.path().to_owned(),
            sha256: source.digest(),
            before,
            needs_trust: offer.needs_trust,
            providers: offer.providers.iter().map(|(name, provider)| reach(name, provider)).collect(),
            settings: offer.settings,
            trusted: before == TrustState::Trusted || !offer.needs_trust,
            error: None,
            exit: None,
        }
    }

    fn refuse(&mut self, why: &'static str) {
        self.error = Some(why);
        self.exit = Some(Exit::Denied as u8);
    }

    fn print(&self, out: &Out) {
        out.line(out.paint(Style::Strong, escaped(&self.file.display().to_string())));
        for provider in &self.providers {
            reach_lines(provider).iter().for_each(|line| out.line(format_args!("  {line}")));
        }
        for Setting { section, key, value } in &self.settings {
            out.line(format_args!("  [{section}] {} = {}", escaped(key), escaped(value)));
        }
        if self.before == TrustState::Changed {
            out.line("It has changed since it was trusted.");
        }
    }

    fn conclude(&self, out: &Out) -> Exit {
        if let Some(why) = self.error {
            out.note(format_args!("cyberine: {why}"));
            return Exit::Denied;
        }
        if !out.is_json() {
            out.line(match (self.needs_trust, self.before) {
                (false, _) => "It can only tighten the budget, which needs no trust.",
                (true, TrustState::Trusted) => "It was trusted already, and has not changed since.",
                (true, TrustState::Changed | TrustState::Unknown) => {
                    "It is trusted as it is now. Any change of it must be trusted again."
                }
            });
        }
        Exit::Done
    }
}
