//! What was spent, for people.

use cyberine_types::{Billing, Usd};

use super::{Account, Day, ProviderLine, Standing};
use crate::out::{Out, Style};
use crate::plain::cut;

/// How many characters of a name are shown.
const NAME: usize = 32;
/// How many callers of a day are shown, those that cost most.
const CALLERS: usize = 12;
/// The billings, in the order they are told: what costs money first.
const GROUPS: [(Billing, &str); 4] = [
    (Billing::Metered, "by the token"),
    (Billing::Subscription, "on a subscription"),
    (Billing::Free, "free"),
    (Billing::Scripted, "scripted"),
];

pub(super) fn print(account: &Account, out: &Out) {
    if account.days.is_empty() {
        out.line("No runs in these days.");
    }
    for day in &account.days {
        let is_today = day.day == account.today;
        let caps = if is_today { account.caps.as_slice() } else { &[] };
        show(day, caps, out);
    }
    out.line(format_args!("A run may hold and spend {} ([budget] run_usd).", account.run_usd));
    for cap in account.caps.iter().filter(|cap| !is_told(cap, account)) {
        let name = cap.name.as_deref().map(|name| format!(" {}", cut(name, NAME))).unwrap_or_default();
        out.line(format_args!(
            "The {}{name} may cost {} a day; {} are left.",
            cap.on, cap.cap_usd, cap.left_usd
        ));
    }
    if account.caps.is_empty() {
        out.line("No cap is set: see [budget] in docs/configuration.md.");
    }
}

/// Whether a line of today has told of it.
fn is_told(cap: &Standing, account: &Account) -> bool {
    let Some(today) = account.days.iter().find(|day| day.day == account.today) else { return false };
    match cap.on {
        "day" => true,
        "provider" => today.providers.iter().any(|one| cap.is_on("provider", &one.provider)),
        _ => today.callers.iter().any(|one| cap.is_on("caller", &one.caller)),
    }
}

fn show(day: &Day, caps: &[Standing], out: &Out) {
    let runs = if day.runs == 1 { "1 run".to_owned() } else { format!("{} runs", day.runs) };
    let money = money(day.spent_usd, day.held_usd);
    let cap = left(caps.iter().find(|cap| cap.on == "day"));
    out.line(out.paint(Style::Strong, format_args!("{}  {money}, {runs}{cap}", day.day)));
    for (billing, group) in GROUPS {
        let lines: Vec<&ProviderLine> = day.providers.iter().filter(|one| one.billing == billing).collect();
        if lines.is_empty() {
            continue;
        }
        out.line(format_args!("  {group}"));
        for line in &lines {
            let cap = left(caps.iter().find(|cap| cap.is_on("provider", &line.provider)));
            let name = told_apart(&line.provider, lines.iter().map(|one| one.provider.as_str()));
            provider(line, &name, &cap, out);
        }
    }
    if !day.callers.is_empty() {
        out.line("  asked for by");
    }
    for one in day.callers.iter().take(CALLERS) {
        let cap = left(caps.iter().find(|cap| cap.is_on("caller", &one.caller)));
        let money = self::money(one.spent_usd, one.held_usd);
        let name = told_apart(&one.caller, day.callers.iter().map(|one| one.caller.as_str()));
        out.line(format_args!("    {name:<24}{money}, runs: {}{cap}", one.runs));
    }
    if day.callers.len() > CALLERS {
        let more = format_args!("    and {} more that cost no more (--json)", day.callers.len() - CALLERS);
        out.line(out.paint(Style::Faint, more));
    }
    out.line("");
}

/// A name, short where that still tells it from the others.
fn told_apart<'a>(name: &str, mut all: impl Iterator<Item = &'a str>) -> String {
    let short = cut(name, NAME);
    if all.any(|other| other != name && cut(other, NAME) == short) { cut(name, usize::MAX) } else { short }
}

fn provider(line: &ProviderLine, name: &str, cap: &str, out: &Out) {
    let costs = line.billing == Billing::Metered || line.spent_usd + line.held_usd > Usd::ZERO;
    let money = if costs { format!("{}; ", money(line.spent_usd, line.held_usd)) } else { String::new() };
    let used = format!("turns: {}, tokens in: {}, out: {}", line.turns, line.input, line.output);
    out.line(format_args!("    {name:<24}{money}{used}{cap}"));
    if line.unknown_cost > 0 {
        let unknown = format!(
            "      of {} nobody knows what they cost: such a run is charged at least what it held here",
            line.unknown_cost
        );
        out.line(out.paint(Style::Faint, unknown));
    }
}

fn money(spent: Usd, held: Usd) -> String {
    if held == Usd::ZERO { format!("{spent} spent") } else { format!("{spent} spent, {held} held") }
}

fn left(cap: Option<&Standing>) -> String {
    cap.map(|cap| format!("; {} left of {}", cap.left_usd, cap.cap_usd)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_where_that_tells_them_apart() {
        let (long, other) = (format!("{}a", "x".repeat(40)), format!("{}b", "x".repeat(40)));
        assert_eq!(told_apart(&long, [long.as_str(), "y"].into_iter()), format!("{}…", "x".repeat(31)));
        assert_eq!(told_apart(&long, [long.as_str(), other.as_str()].into_iter()), long);
    }
}
