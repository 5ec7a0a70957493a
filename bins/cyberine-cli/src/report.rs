//! A run, told to people.

use cyberine_app::Reach;
use cyberine_orchestrator::STEP_ID;
use cyberine_run_store::{
    Attack, Candidate, Run, RunState, Severity, Step, Verdict, VerdictOutcome, unknown_turns,
};
use cyberine_types::{Billing, CostBasis, Usage, Usd};

use crate::decision::{told, waits};
use crate::message::moment;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped, plain, quoted, quoted_address};
use crate::table::{aligned, fitting, side_by_side, wrap};

/// How much is shown of why a candidate failed, in characters.
const NOTE: usize = 2_000;
/// How much of each answer stands in its column.
const COLUMN_CHARACTERS: usize = 600;

/// Prints the whole of `run`.
pub(crate) fn print(out: &Out, run: &Run) {
    let state = paint_state(out, run.state);
    out.line(format_args!(
        "{}  {state}  {}",
        out.paint(Style::Strong, run.run_id),
        cut(&run.detail, usize::MAX)
    ));
    out.line(format_args!("  asked   {}", cut(&run.task, out.width().saturating_sub(10))));
    out.line(format_args!("  in      {}", escaped(&run.cwd)));
    out.line(format_args!("  by      {}", escaped(&run.requested_by)));
    out.line(format_args!("  used    {}", used_by(run)));
    print_waiting(out, run);
    for steer in &run.steers {
        let text = cut(&steer.text, out.width().saturating_sub(10));
        out.line(format_args!("  steer   {}, {}: {text}", cut(&steer.from, 80), moment(steer.at)));
    }
    for decision in &run.decisions {
        let step = decision.step_id.as_deref().map(|step| format!("step {}: ", escaped(step)));
        out.line(format_args!("  decided {}{}", step.unwrap_or_default(), told(decision)));
    }
    if let Some(count) = run.processes.filter(|count| count.killed > 0 || count.left > 0) {
        out.line(format_args!("  processes  {} killed, {} left", count.killed, count.left));
    }
    run.steps.iter().for_each(|step| print_step(out, step));
}

fn print_waiting(out: &Out, run: &Run) {
    if let Some(awaiting) = &run.awaiting {
        let text = waits(run.run_id, awaiting.expires_at, awaiting.on_expiry);
        out.line(format_args!("  now     {}", out.paint(Style::Strong, text)));
    }
}

fn print_step(out: &Out, step: &Step) {
    if step.candidates.is_empty() {
        return;
    }
    let again = format!("Candidates, {}", escaped(&step.name));
    heading(out, if step.id == STEP_ID { "Candidates" } else { &again });
    let rows: Vec<Vec<String>> = step.candidates.iter().map(row).collect();
    for (candidate, line) in step.candidates.iter().zip(aligned(&rows)) {
        out.line(format_args!("  {} {line}", mark(out, candidate.state)));
        let room = out.width().saturating_sub(6);
        for line in note(candidate).iter().flat_map(|note| wrap(&cut(note, NOTE), room)) {
            out.line(format_args!("      {line}"));
        }
    }
    print_answers(out, step);
    if let Some(verdict) = &step.verdict {
        print_verdict(out, verdict);
    }
    print_other_verdicts(out, step);
    if let Some(winner) = step.winner() {
        heading(out, &format!("Winner: {}", escaped(&winner.id)));
        out.foreign(&winner.output, "  ");
    }
}

fn print_answers(out: &Out, step: &Step) {
    let answered: Vec<&Candidate> = step.candidates.iter().filter(|one| !one.output.is_empty()).collect();
    let width = out.width().saturating_sub(2);
    for group in answered.chunks(fitting(width)) {
        let columns: Vec<String> = group
            .iter()
            .map(|one| format!("{}\n\n{}", escaped(&one.id), shortened(&plain(&one.output))))
            .collect();
        out.line("");
        side_by_side(&columns, width).iter().for_each(|line| out.line(format_args!("  {line}")));
    }
}

fn print_verdict(out: &Out, verdict: &Verdict) {
    heading(out, &format!("Verdict: {} ({})", outcome(verdict.outcome), escaped(&verdict.kind)));
    out.foreign(&verdict.rationale, "  ");
    for vote in &verdict.votes {
        let choice = vote.candidate.as_deref().unwrap_or("none");
        let score = vote.score;
        let of =
            vote.criteria.iter().map(|one| format!("{} {} ×{}", escaped(&one.name), one.score, one.weight));
        let of: Vec<String> = of.collect();
        let of = if of.is_empty() { String::new() } else { format!(" = {}", of.join(", ")) };
        let score = score.map(|score| format!(" ({score}{of})")).unwrap_or_default();
        let reason =
            vote.reason.as_deref().map(|reason| format!(": {}", cut(reason, 160))).unwrap_or_default();
        out.line(out.paint(
            Style::Faint,
            format_args!("  {} → {}{score}{reason}", escaped(&vote.voter), escaped(choice)),
        ));
    }
    print_attacks(out, &verdict.attacks);
}

/// What the judges have said whose verdict does not count, in their order.
fn print_other_verdicts(out: &Out, step: &Step) {
    let others: Vec<&Verdict> =
        step.verdicts.iter().filter(|one| Some(*one) != step.verdict.as_ref()).collect();
    if others.is_empty() {
        return;
    }
    heading(out, "Other verdicts");
    let room = out.width().saturating_sub(2);
    for verdict in others {
        let named = verdict.winner.as_deref().map(|winner| format!(", {}", escaped(winner)));
        let (kind, outcome) = (escaped(&verdict.kind), outcome(verdict.outcome));
        let why = cut(&verdict.rationale, NOTE);
        let line = format!("{kind}: {outcome}{}: {why}", named.unwrap_or_default());
        wrap(&line, room).iter().for_each(|line| out.line(format_args!("  {line}")));
    }
}

fn print_attacks(out: &Out, attacks: &[Attack]) {
    for attack in attacks {
        let severity = match attack.severity {
            Severity::Fatal if attack.confirmed => "fatal, confirmed",
            Severity::Fatal => "fatal, not confirmed",
            Severity::Major => "major",
            Severity::Minor => "minor",
        };
        let (critic, candidate) = (escaped(&attack.critic), escaped(&attack.candidate));
        out.line(out.paint(
            Style::Faint,
            format_args!("  {critic} against {candidate} ({severity}): {}", cut(&attack.claim, 160)),
        ));
    }
}

fn heading(out: &Out, text: &str) {
    out.line("");
    out.line(out.paint(Style::Strong, text));
}

/// Why a candidate has no answer, or not the one that was wanted.
fn note(candidate: &Candidate) -> Option<String> {
    let kept = if candidate.kept_from.is_some() { "keeps its answer of before, after " } else { "" };
    let failed = candidate.error.as_ref().map(|error| format!("{kept}{}: {}", error.code, error.message));
    let stood_in = candidate.fell_back.as_ref().map(|first| {
        let model = candidate.model.as_deref().unwrap_or("its fallback model");
        let did =
            if candidate.state == RunState::Done && failed.is_none() { "answered" } else { "was asked" };
        let before = first.model.as_deref().unwrap_or("its first model");
        format!("{model} {did} in place of {before}: {}", first.error.code)
    });
    let told: Vec<String> = failed.into_iter().chain(stood_in).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// One line about a candidate: name, wire, model, state, what it used.
pub(crate) fn row(candidate: &Candidate) -> Vec<String> {
    vec![
        escaped(&candidate.id),
        escaped(&candidate.kind),
        candidate.model.as_deref().map(escaped).unwrap_or_default(),
        candidate.state.name().to_owned(),
        billed(&candidate.usage, candidate.billing),
        candidate.duration_ms.map(seconds).unwrap_or_default(),
    ]
}

/// `210 tokens, $0.0012`, or what stands in for money.
pub(crate) fn usage(usage: &Usage) -> String {
    match (usage.usd, usage.basis) {
        (_, CostBasis::Scripted) => {
            format!("{} tokens (scripted answers, no model was called)", tokens(usage))
        }
        (Some(usd), _) if usd > Usd::ZERO => format!("{} tokens, {usd}", tokens(usage)),
        (_, CostBasis::Included) => format!("{} tokens, no money per token", tokens(usage)),
        _ => format!("{} tokens", tokens(usage)),
    }
}

/// What a run has used, and of how many of its turns nobody knows the cost.
fn used_by(run: &Run) -> String {
    let mut candidates = run.steps.iter().flat_map(|step| &step.candidates);
    if run.usage.basis == CostBasis::Scripted && candidates.any(|one| one.billing != Billing::Scripted) {
        return format!(
            "{} tokens (some answers are scripted: no model was called for them)",
            tokens(&run.usage)
        );
    }
    with_unknown(&run.usage, unknown_turns(run))
}

fn with_unknown(used: &Usage, unknown: u64) -> String {
    let least = used.usd.filter(|usd| *usd > Usd::ZERO).map(|usd| format!(", at least {usd}"));
    let turns = match unknown {
        0 => return usage(used),
        1 => "1 turn".to_owned(),
        many => format!("{many} turns"),
    };
    format!("{} tokens{}; the cost of {turns} is unknown", tokens(used), least.unwrap_or_default())
}

/// How many tokens were counted; `-` where nobody has counted any.
fn tokens(usage: &Usage) -> String {
    match usage.tokens() {
        0 => "-".to_owned(),
        counted => counted.to_string(),
    }
}

pub(crate) fn billed(used: &Usage, billing: Billing) -> String {
    let money = match (used.usd, billing) {
        (_, Billing::Scripted) => "scripted".to_owned(),
        (_, Billing::Free) => "free".to_owned(),
        (Some(usd), Billing::Subscription) => format!("subscription, worth {usd}"),
        (None, Billing::Subscription) => "subscription".to_owned(),
        (Some(usd), Billing::Metered) => usd.to_string(),
        (None, Billing::Metered) => "cost unknown".to_owned(),
    };
    format!("{} tokens, {money}", tokens(used))
}

/// Everything that decides what a provider does, in lines of which none can be forged: whoever
/// allows it must have seen it all.
pub(crate) fn reach_lines(reach: &Reach) -> Vec<String> {
    let Reach { name, kind, billing, program, url, plain_http, cwd, model, tools, variables } = reach;
    let list = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let mut lines = vec![format!("{} ({kind}, {})", escaped(name), paid_by(*billing))];
    let mut add = |what: &str, value: String| lines.push(format!("  {what:<8}{value}"));
    if let Some(program) = program {
        add("runs", list(program));
    }
    if let Some(cwd) = cwd {
        add("in", quoted(cwd));
    }
    if let Some(url) = url {
        add("asks", quoted_address(url));
    }
    if *plain_http {
        add("sends", "its key without encryption, where the address is `http`".to_owned());
    }
    if let Some(model) = model {
        add("model", quoted(model));
    }
    if !tools.is_empty() {
        add("may use", list(tools));
    }
    if !variables.is_empty() {
        add("reads", format!("the values of the variables {}", list(variables)));
    }
    lines
}

/// How a provider is paid for, in words.
pub(crate) const fn paid_by(billing: Billing) -> &'static str {
    match billing {
        Billing::Metered => "billed by the token",
        Billing::Subscription => "a subscription",
        Billing::Free => "costs nothing",
        Billing::Scripted => "scripted: no model is called",
    }
}

pub(crate) fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

pub(crate) const fn outcome(outcome: VerdictOutcome) -> &'static str {
    match outcome {
        VerdictOutcome::Majority => "majority",
        VerdictOutcome::Winner => "winner",
        VerdictOutcome::Tie => "tie",
        VerdictOutcome::NoQuorum => "no quorum",
        VerdictOutcome::Unjudged => "unjudged",
    }
}

/// Why nothing was judged, after a colon; empty where something was.
pub(crate) fn why_not(verdict: &Verdict) -> String {
    match verdict.outcome {
        VerdictOutcome::NoQuorum | VerdictOutcome::Unjudged => format!(": {}", cut(&verdict.rationale, 300)),
        VerdictOutcome::Majority | VerdictOutcome::Winner | VerdictOutcome::Tie => String::new(),
    }
}

/// The sign before a candidate.
pub(crate) fn mark(out: &Out, state: RunState) -> String {
    match state {
        RunState::Done => out.paint(Style::Good, "✓"),
        RunState::Error => out.paint(Style::Bad, "✗"),
        RunState::Cancelled => out.paint(Style::Faint, "■"),
        RunState::Running => out.paint(Style::Busy, "●"),
        RunState::Queued | RunState::Suspended => out.paint(Style::Faint, "○"),
    }
}

pub(crate) fn paint_state(out: &Out, state: RunState) -> String {
    paint_as(out, state, state.name())
}

/// `text` in the colour of a state.
pub(crate) fn paint_as(out: &Out, state: RunState, text: &str) -> String {
    let style = match state {
        RunState::Done => Style::Good,
        RunState::Error => Style::Bad,
        RunState::Cancelled | RunState::Queued => Style::Faint,
        // Somebody is waited for.
        RunState::Suspended => Style::Strong,
        RunState::Running => Style::Busy,
    };
    out.paint(style, text)
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= COLUMN_CHARACTERS {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(COLUMN_CHARACTERS - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_told_as_what_it_is() {
        let check = |usd: Option<u64>, billing, want: &str| {
            let used = Usage { input: 1, output: 2, usd: usd.map(Usd::from_micros), ..Usage::default() };
            assert_eq!(billed(&used, billing), want);
        };
        check(Some(1_500_000), Billing::Metered, "3 tokens, $1.50");
        check(None, Billing::Metered, "3 tokens, cost unknown");
        check(Some(20_000), Billing::Subscription, "3 tokens, subscription, worth $0.02");
        check(None, Billing::Free, "3 tokens, free");
        check(Some(0), Billing::Scripted, "3 tokens, scripted");
        assert_eq!(billed(&Usage::default(), Billing::Free), "- tokens, free");
        assert_eq!(usage(&Usage::default()), "- tokens");
        let partly = Usage { input: 3, usd: Some(Usd::from_micros(60_000)), ..Usage::default() };
        assert_eq!(with_unknown(&partly, 0), "3 tokens, $0.06");
        assert_eq!(with_unknown(&partly, 1), "3 tokens, at least $0.06; the cost of 1 turn is unknown");
        assert_eq!(with_unknown(&Usage::default(), 2), "- tokens; the cost of 2 turns is unknown");
    }
}
