//! `cyberine orchestrate --dry-run`.

use cyberine_orchestrator::{CapForecast, Forecast, ProviderForecast};

use crate::out::{Out, Style};
use crate::plain::cut;

/// How many characters of a name are shown.
const NAME: usize = 40;

/// Prints what a dispatch would do and cost.
pub(super) fn print(forecast: &Forecast, out: &Out) {
    if out.is_json() {
        return out.json(forecast);
    }
    out.line(format_args!("asks    {}", forecast.candidates.join(", ")));
    let judges = forecast.judges.join(", ");
    out.line(format_args!("judges  {judges}; may ask {}", forecast.judge_providers.join(", ")));
    out.line("");
    forecast.providers.iter().for_each(|one| provider(one, out));
    out.line("");
    let (likely, holds) = (forecast.likely_usd, forecast.holds_usd);
    let total = if forecast.complete {
        format!("about {likely}, at most {}; it would hold {holds}", forecast.at_most_usd)
    } else {
        format!("about {likely} is known, and nobody knows what at most; it would hold {holds}")
    };
    out.line(out.paint(Style::Strong, total));
    forecast.caps.iter().for_each(|one| cap(one, out));
    if let Some(refusal) = &forecast.refusal {
        out.line(out.paint(Style::Bad, format_args!("It would be refused: {}", cut(refusal, 1_000))));
    }
    if let Some(note) = &forecast.note {
        out.note(note);
    }
    out.note("nothing was dispatched");
}

fn provider(one: &ProviderForecast, out: &Out) {
    let model = one.model.as_deref().map(|model| format!(" ({})", cut(model, NAME))).unwrap_or_default();
    let billing = format!("{:?}", one.billing).to_lowercase();
    let asked = match (one.candidate_turns, one.judge_turns) {
        (turns, 0) => format!("{turns} as a candidate"),
        (0, turns) => format!("up to {turns} as a judge"),
        (turns, judging) => format!("{turns} as a candidate, up to {judging} as a judge"),
    };
    let cost = match (one.likely_usd, one.at_most_usd) {
        (Some(likely), Some(at_most)) => format!("about {likely}, at most {at_most}"),
        (Some(likely), None) => format!("about {likely}, nobody knows what at most"),
        _ => "nobody knows what it costs".to_owned(),
    };
    out.line(format_args!(
        "{:<24}{billing:<14}{cost}; {asked}",
        format!("{}{model}", cut(&one.provider, NAME))
    ));
}

fn cap(one: &CapForecast, out: &Out) {
    let name = one.name.as_deref().map(|name| format!(" {}", cut(name, NAME))).unwrap_or_default();
    out.line(format_args!(
        "cap of the {}{name}: {} a day; {} held, {} spent, {} left; this run would hold {}",
        one.on, one.cap_usd, one.held_usd, one.spent_usd, one.left_usd, one.holds_usd
    ));
}
