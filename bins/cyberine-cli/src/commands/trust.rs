//! `cyberine trust`.

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_app::{
    ConfigSource, Environment, Exit, Problem, Reach, Trust, TrustState, Workplace, providers_of, reach,
};
use cyberine_types::SystemClock;
use serde_json::json;

use crate::out::{Out, Style};
use crate::plain::plain;
use crate::report::paid_by;

/// Shows what a project's configuration would do, and records that the user wants it as it is.
pub(crate) fn run(
    project: Option<PathBuf>,
    environment: Arc<Environment>,
    out: &Out,
) -> Result<Exit, Problem> {
    let workplace = Workplace::resolve(project.as_deref(), environment)?;
    let path = workplace.project.config_file();
    let source = ConfigSource::read(&path)?.ok_or_else(|| {
        let path = path.display();
        Problem::new(Exit::Unavailable, format!("there is no `{path}` to trust; `cyberine init` writes one"))
    })?;
    let reaches: Vec<Reach> =
        providers_of(&source)?.iter().map(|(name, provider)| reach(name, provider)).collect();
    let trust = Trust::of(workplace.home.clone());
    let before = trust.state(&source)?;
    if !out.is_json() {
        out.line(format_args!("{}", out.paint(Style::Strong, path.display())));
        reaches.iter().for_each(|reach| print(out, reach));
    }
    trust.grant(&source, &SystemClock)?;
    if out.is_json() {
        out.json(&json!({ "file": path, "sha256": source.digest(), "before": before, "providers": reaches }));
    } else {
        out.line(match before {
            TrustState::Trusted => "It was trusted already, and has not changed since.",
            TrustState::Changed => "It has changed since it was trusted; it is trusted as it is now.",
            TrustState::Unknown => "It is trusted as it is now. Any change of it must be trusted again.",
        });
    }
    Ok(Exit::Done)
}

fn print(out: &Out, reach: &Reach) {
    out.line(format_args!("  {} ({}, {})", plain(&reach.name), reach.kind, paid_by(reach.billing)));
    if let Some(program) = &reach.program {
        out.line(format_args!("    runs    {}", plain(&program.join(" "))));
    }
    if let Some(url) = &reach.url {
        out.line(format_args!("    asks    {}", plain(url)));
    }
    if !reach.variables.is_empty() {
        out.line(format_args!("    is given the values of  {}", plain(&reach.variables.join(", "))));
    }
}
