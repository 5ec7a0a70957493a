//! `cyberine spend --prices`: what each provider's tokens cost, and who says so.

use cyberine_app::{Exit, PriceSource, Problem, Workplace};
use cyberine_provider::ProviderConfig;
use cyberine_types::{Billing, Clock as _, SystemClock};
use serde::Serialize;
use serde_json::json;

use crate::out::Out;
use crate::plain::cut;

/// How many characters of a name are shown.
const NAME: usize = 40;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    provider: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    billing: Billing,
    /// Whether the program reports what its turns cost.
    #[serde(skip)]
    reports: bool,
    #[serde(flatten)]
    priced: Option<PriceSource>,
}

pub(super) async fn run(workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let book = workplace.prices()?;
    let today = SystemClock.now().day().to_string();
    let roster = workplace.roster().await?;
    let lines: Vec<Line> = roster
        .providers
        .iter()
        .map(|(name, provider)| Line {
            provider: name.clone(),
            kind: provider.kind(),
            model: provider.profile().model.map(str::to_owned),
            billing: provider.billing(),
            reports: reports(provider),
            priced: book.find(provider, &today),
        })
        .collect();
    if out.is_json() {
        out.json(&json!({ "today": today, "prices": lines }));
    } else {
        lines.iter().for_each(|line| print(line, out));
    }
    Ok(Exit::Done)
}

/// Whether what `provider` starts is known to report its cost.
fn reports(provider: &ProviderConfig) -> bool {
    let profile = provider.profile();
    let is_opencode =
        || profile.program.and_then(|program| program.file_stem()).is_some_and(|stem| stem == "opencode");
    matches!(profile.kind, "claude-cli" | "aider") || (profile.kind == "acp" && is_opencode())
}

fn print(line: &Line, out: &Out) {
    let model = line.model.as_deref().map(|model| format!(" ({})", cut(model, NAME))).unwrap_or_default();
    let name = format!("{}{model}", cut(&line.provider, NAME));
    let Some(priced) = &line.priced else {
        let why = match line.billing {
            Billing::Metered if line.reports => {
                "by the token; the program reports its cost where it knows it"
            }
            Billing::Metered => {
                "by the token; nobody knows its price: add it to `prices.toml` or to the provider"
            }
            Billing::Subscription => "on a subscription",
            Billing::Free => "free",
            Billing::Scripted => "scripted",
        };
        return out.line(format_args!("{name:<44}{why}"));
    };
    let (input, output) = (priced.prices.input_usd_per_mtok, priced.prices.output_usd_per_mtok);
    out.line(format_args!("{name:<44}{input} in, {output} out per million tokens"));
    let date = priced.date.as_deref().map(|date| format!(", as of {}", cut(date, 10))).unwrap_or_default();
    let source = priced.source.as_deref().map(|source| format!(": {}", cut(source, 200))).unwrap_or_default();
    let table = match priced.table.as_str() {
        "provider" => "the provider's own `prices`".to_owned(),
        "built in" => "the table that is built in".to_owned(),
        path => cut(path, 200),
    };
    out.line(format_args!("  by {table}{date}{source}"));
}
