use cyberine_types::{Billing, CostBasis, MessageId, Timestamp, Usd};
use serde_json::json;

use super::*;
use crate::charge::charge;
use crate::event::{Choice, DeciderKind, OperatorDecision, ProcessCount};

const DOLLAR: Usd = Usd::from_micros(1_000_000);

fn log(bodies: Vec<RunEvent>) -> Vec<Event> {
    let admitted = RunEvent::Admitted {
        workflow: "mcp-orchestrate".to_owned(),
        prompt: "three rivers".to_owned(),
        cwd: "/p".to_owned(),
        requested_by: "test@1".to_owned(),
        spec: json!({}),
        reserved: DOLLAR,
        shares: Vec::new(),
    };
    let bodies = std::iter::once(admitted).chain(bodies);
    let at = |seq: u64| Timestamp::from_unix_ms(1_000 * i64::try_from(seq).unwrap());
    (1..).zip(bodies).map(|(seq, body)| Event { seq, at: at(seq), epoch: 1, body }).collect()
}

fn folded(bodies: Vec<RunEvent>) -> Result<Run, FoldError> {
    fold(RunId::random(), &log(bodies))
}

fn step() -> RunEvent {
    RunEvent::StepStarted { step: "s".to_owned(), name: "Dispatch".to_owned() }
}

fn asked(candidate: &str, billing: Billing) -> RunEvent {
    RunEvent::CandidateStarted {
        step: "s".to_owned(),
        candidate: candidate.to_owned(),
        provider: candidate.to_owned(),
        kind: "openai".to_owned(),
        model: None,
        billing,
    }
}

fn done(candidate: &str, output: &str, usage: Usage) -> RunEvent {
    let (step, candidate, output) = ("s".to_owned(), candidate.to_owned(), output.to_owned());
    RunEvent::CandidateDone { step, candidate, output, usage, duration_ms: 9 }
}

fn failed(candidate: &str, code: &str) -> RunEvent {
    RunEvent::CandidateFailed {
        step: "s".to_owned(),
        candidate: candidate.to_owned(),
        code: code.to_owned(),
        message: "no".to_owned(),
        usage: Usage::default(),
        duration_ms: 9,
    }
}

fn verdict(kind: &str, outcome: VerdictOutcome, winner: Option<&str>) -> Verdict {
    Verdict {
        kind: kind.to_owned(),
        outcome,
        winner: winner.map(str::to_owned),
        rationale: String::new(),
        votes: Vec::new(),
        attacks: Vec::new(),
        usage: Usage::default(),
    }
}

fn settled(state: RunState, reason: Option<&str>) -> RunEvent {
    let (detail, reason) = ("over".to_owned(), reason.map(str::to_owned));
    RunEvent::Settled { state, detail, reason, processes: ProcessCount::default() }
}

fn paid(usd: f64) -> Usage {
    Usage { usd: Some(Usd::from_dollars(usd)), basis: CostBasis::Reported, ..Usage::default() }
}

/// `a` answered, `b` failed, `c` said nothing; then these verdicts.
fn judged(verdicts: Vec<Verdict>) -> Option<(VerdictOutcome, Option<String>)> {
    let mut bodies = vec![step()];
    bodies.extend(["a", "b", "c", "d"].map(|candidate| asked(candidate, Billing::Free)));
    bodies.extend([done("a", "Rhine", Usage::default()), failed("b", "timeout-idle")]);
    bodies.extend([done("c", " \n", Usage::default()), done("d", "Elbe", Usage::default())]);
    bodies.extend(verdicts.into_iter().map(|verdict| RunEvent::Judged { step: "s".to_owned(), verdict }));
    let chosen = folded(bodies).unwrap().steps[0].verdict.clone()?;
    Some((chosen.outcome, chosen.winner))
}

#[test]
fn a_majority_counts_before_any_other_verdict() {
    use VerdictOutcome::{Majority, NoQuorum, Tie, Unjudged, Winner};
    let of = |outcome, winner: &str| Some((outcome, Some(winner.to_owned())));
    assert_eq!(judged(vec![]), None);
    for (verdicts, expected) in [
        (
            vec![verdict("consensus", Majority, Some("a")), verdict("llm-judge", Winner, Some("d"))],
            of(Majority, "a"),
        ),
        (
            vec![verdict("llm-judge", Winner, Some("d")), verdict("consensus", Majority, Some("a"))],
            of(Majority, "a"),
        ),
        (vec![verdict("consensus", Tie, None), verdict("llm-judge", Winner, Some("d"))], of(Winner, "d")),
        (
            vec![verdict("llm-judge", Winner, Some("d")), verdict("adversarial", Winner, Some("a"))],
            of(Winner, "d"),
        ),
        (vec![verdict("consensus", NoQuorum, None), verdict("llm-judge", Tie, None)], Some((Tie, None))),
        (vec![verdict("consensus", Tie, None), verdict("llm-judge", Unjudged, None)], Some((Unjudged, None))),
    ] {
        assert_eq!(judged(verdicts.clone()), expected, "{verdicts:?}");
    }
}

#[test]
fn what_did_not_answer_never_wins() {
    use VerdictOutcome::{Majority, Tie, Unjudged, Winner};
    for loser in ["b", "c", "nobody"] {
        let consensus = verdict("consensus", Majority, Some(loser));
        assert_eq!(judged(vec![consensus.clone()]), Some((Unjudged, None)), "{loser}");
        let honest = verdict("llm-judge", Winner, Some("a"));
        assert_eq!(judged(vec![consensus, honest]), Some((Winner, Some("a".to_owned()))), "{loser}");
    }
    assert_eq!(
        judged(vec![verdict("consensus", Tie, Some("a"))]),
        Some((Unjudged, None)),
        "a tie has no winner"
    );
    assert_eq!(judged(vec![verdict("consensus", Majority, None)]), Some((Unjudged, None)));
}

#[test]
fn an_answer_that_cannot_be_seen_is_a_failure() {
    for nothing in [" \t\n", "\u{200b}", "\u{2060}\n\u{feff}", "\u{e0041}"] {
        let run = folded(vec![step(), asked("a", Billing::Free), done("a", nothing, paid(0.0))]).unwrap();
        let candidate = &run.steps[0].candidates[0];
        assert_eq!((candidate.state, candidate.output.as_str()), (RunState::Error, ""), "{nothing:?}");
        assert_eq!(candidate.error.as_ref().map(|error| error.code.as_str()), Some("empty"));
    }
}

#[test]
fn what_still_runs_ends_as_the_run_ends() {
    for (state, candidate, code) in [
        (RunState::Done, RunState::Cancelled, None),
        (RunState::Cancelled, RunState::Cancelled, None),
        (RunState::Error, RunState::Error, Some("interrupted")),
    ] {
        let bodies = vec![
            step(),
            asked("a", Billing::Free),
            asked("b", Billing::Free),
            done("a", "Rhine", Usage::default()),
            settled(state, (state == RunState::Error).then_some("interrupted")),
        ];
        let run = folded(bodies).unwrap();
        let step = &run.steps[0];
        assert_eq!((run.state, step.state, run.detail.as_str()), (state, state, "over"));
        assert_eq!(step.candidates[0].state, RunState::Done, "a finished candidate is kept");
        assert_eq!(step.candidates[1].state, candidate);
        assert_eq!(step.candidates[1].error.as_ref().map(|error| error.code.as_str()), code);
    }
}

#[test]
fn events_that_do_not_fit_are_refused() {
    let unknown = |what, id: &str| Err(FoldError::Unknown { what, id: id.to_owned() });
    let duplicate = |what, id: &str| Err(FoldError::Duplicate { what, id: id.to_owned() });
    let admitted = log(vec![]).remove(0).body;
    for (bodies, expected) in [
        (vec![admitted], Err(FoldError::MisplacedAdmission)),
        (vec![asked("a", Billing::Free)], unknown("step", "s")),
        (vec![step(), step()], duplicate("step", "s")),
        (vec![step(), asked("a", Billing::Free), asked("a", Billing::Free)], duplicate("candidate", "a")),
        (vec![step(), done("a", "x", Usage::default())], unknown("candidate", "a")),
        (
            vec![step(), asked("a", Billing::Free), failed("a", "auth"), done("a", "x", Usage::default())],
            unknown("candidate", "a"),
        ),
        (vec![settled(RunState::Running, None)], Err(FoldError::NotTerminal("running"))),
        (vec![settled(RunState::Done, None), settled(RunState::Done, None)], Err(FoldError::Over)),
    ] {
        assert_eq!(folded(bodies.clone()), expected, "{bodies:?}");
    }
    let id = RunId::random();
    assert_eq!(fold(id, &[]), Err(FoldError::Empty));
    let mut holed = log(vec![RunEvent::Started { pid: 1 }, settled(RunState::Done, None)]);
    holed.remove(1);
    assert_eq!(fold(id, &holed), Err(FoldError::Gap { expected: 2, found: 3 }));
    assert_eq!(fold(id, &holed[1..]), Err(FoldError::MisplacedAdmission));
}

#[test]
fn a_refused_event_leaves_the_run_as_it_was() {
    let mut run = folded(vec![step()]).unwrap();
    let before = run.clone();
    let event = Event { seq: 3, at: Timestamp::from_unix_ms(9), epoch: 1, body: step() };
    assert!(apply(&mut run, &event).is_err());
    assert_eq!(run, before);
}

#[test]
fn a_run_is_charged_what_its_metered_use_cost() {
    let free = Usage { input: 9, basis: CostBasis::Included, ..Usage::default() };
    let partly = Usage { usd: Some(Usd::from_dollars(0.1)), basis: CostBasis::Unknown, ..Usage::default() };
    let dear = Usage { usd: Some(Usd::from_dollars(3.0)), basis: CostBasis::Unknown, ..Usage::default() };
    for (billing, ending, expected) in [
        (Billing::Metered, done("a", "x", paid(0.3)), 0.3),
        (Billing::Metered, done("a", "x", paid(4.0)), 4.0),
        (Billing::Metered, done("a", "x", Usage::default()), 1.0),
        (Billing::Metered, done("a", "x", partly), 1.0),
        (Billing::Metered, done("a", "x", dear), 3.0),
        (Billing::Metered, done("a", "x", free), 0.0),
        (Billing::Metered, failed("a", "timeout-wall"), 1.0),
        (Billing::Metered, failed("a", "cut"), 1.0),
        (Billing::Metered, failed("a", "auth"), 0.0),
        (Billing::Metered, failed("a", "overloaded"), 0.0),
        (Billing::Metered, settled(RunState::Error, Some("interrupted")), 1.0),
        (Billing::Subscription, done("a", "x", paid(0.3)), 0.3),
        (Billing::Subscription, done("a", "x", Usage::default()), 0.0),
        (Billing::Free, done("a", "x", Usage::default()), 0.0),
        (Billing::Scripted, done("a", "x", paid(0.3)), 0.0),
    ] {
        let run = folded(vec![step(), asked("a", billing), ending.clone()]).unwrap();
        assert_eq!(charge(&run), Usd::from_dollars(expected), "{billing:?} {ending:?}");
    }
    assert_eq!(charge(&folded(vec![]).unwrap()), Usd::ZERO);
}

fn waits(step: &str) -> RunEvent {
    let (step, expires_at) = (step.to_owned(), Timestamp::from_unix_ms(90_000));
    RunEvent::ApprovalRequested { step, expires_at, on_expiry: Choice::Approve }
}

fn resumed() -> RunEvent {
    RunEvent::Resumed { by: "human u".to_owned() }
}

fn decided(decision: Choice, step: Option<&str>) -> RunEvent {
    let decision = OperatorDecision {
        decision,
        run_id: RunId::random(),
        step_id: step.map(str::to_owned),
        comment: None,
        decided_by: "human u".to_owned(),
        decider_kind: DeciderKind::Human,
        decided_at: Timestamp::from_unix_ms(1),
    };
    RunEvent::Decided { decision }
}

fn steered() -> RunEvent {
    let (message, from, text) = (MessageId::random(), "mcp a@1".to_owned(), "mind\u{1b} the gap".to_owned());
    RunEvent::Steered { message, from, text }
}

/// Every kind of event that can reach a run whose step has begun, and is not its end.
fn others() -> Vec<RunEvent> {
    vec![
        RunEvent::StepStarted { step: "t".to_owned(), name: "Next".to_owned() },
        asked("b", Billing::Free),
        done("a", "Rhine", Usage::default()),
        failed("a", "auth"),
        judge_asked("j", Billing::Free),
        judge_replied("j", None, Usage::default()),
        RunEvent::Judged { step: "s".to_owned(), verdict: verdict("consensus", VerdictOutcome::Tie, None) },
        waits("s"),
    ]
}

#[test]
fn while_a_run_waits_nothing_begins_ends_or_is_judged() {
    let before = vec![RunEvent::Started { pid: 1 }, step(), asked("a", Billing::Free), waits("s")];
    let run = folded(before.clone()).unwrap();
    assert_eq!(run.state, RunState::Suspended);
    let awaiting = run.awaiting.unwrap();
    assert_eq!((awaiting.step.as_str(), awaiting.on_expiry), ("s", Choice::Approve));
    for event in others() {
        let bodies = [before.clone(), vec![event.clone()]].concat();
        assert_eq!(folded(bodies), Err(FoldError::Suspended), "{event:?}");
    }
    let stop = RunEvent::CancelRequested { by: "cli".to_owned(), reason: None };
    for event in
        [stop, steered(), decided(Choice::Reject, None), RunEvent::ControlIgnored { detail: String::new() }]
    {
        let run = folded([before.clone(), vec![event.clone()]].concat()).unwrap();
        assert_eq!((run.state, run.awaiting.is_some()), (RunState::Suspended, true), "{event:?}");
    }
}

#[test]
fn a_run_stops_waiting_when_it_goes_on_begins_anew_or_ends() {
    let before = vec![RunEvent::Started { pid: 1 }, step(), waits("s")];
    for (event, state) in [
        (resumed(), RunState::Running),
        (RunEvent::Started { pid: 2 }, RunState::Running),
        (settled(RunState::Cancelled, None), RunState::Cancelled),
        (settled(RunState::Error, Some("interrupted")), RunState::Error),
    ] {
        let run = folded([before.clone(), vec![event.clone()]].concat()).unwrap();
        assert_eq!((run.state, run.awaiting), (state, None), "{event:?}");
    }
    let again = [before.clone(), vec![resumed(), waits("s"), resumed(), asked("a", Billing::Free)]].concat();
    assert_eq!(folded(again).unwrap().state, RunState::Running);
}

#[test]
fn going_on_and_deciding_need_something_to_go_on_with_and_to_decide() {
    let unknown = |id: &str| Err(FoldError::Unknown { what: "step", id: id.to_owned() });
    let duplicate = |id: &str| Err(FoldError::Duplicate { what: "decision", id: id.to_owned() });
    let over = settled(RunState::Done, None);
    for (bodies, expected) in [
        (vec![resumed()], Err(FoldError::NotSuspended)),
        (vec![step(), waits("s"), resumed(), resumed()], Err(FoldError::NotSuspended)),
        (vec![waits("s")], unknown("s")),
        (vec![decided(Choice::Approve, Some("s"))], unknown("s")),
        (vec![decided(Choice::Approve, None), decided(Choice::Reject, None)], duplicate("the run")),
        (
            vec![
                step(),
                decided(Choice::Approve, Some("s")),
                over.clone(),
                decided(Choice::Reject, Some("s")),
            ],
            duplicate("s"),
        ),
        (vec![over.clone(), resumed()], Err(FoldError::Over)),
        (vec![over.clone(), waits("s")], Err(FoldError::Over)),
        (vec![over.clone(), steered()], Err(FoldError::Over)),
        (vec![over.clone(), decided(Choice::Approve, None), over.clone()], Err(FoldError::Over)),
    ] {
        assert_eq!(folded(bodies.clone()), expected, "{bodies:?}");
    }
}

#[test]
fn a_decision_after_the_end_changes_what_is_known_and_not_how_the_run_stands() {
    let before = vec![step(), asked("a", Billing::Metered), settled(RunState::Error, Some("interrupted"))];
    let end = folded(before.clone()).unwrap();
    let bodies = [before, vec![decided(Choice::Reject, None), decided(Choice::Approve, Some("s"))]].concat();
    let run = folded(bodies).unwrap();
    assert_eq!((run.state, &run.detail, &run.reason), (end.state, &end.detail, &end.reason));
    assert_eq!((charge(&run), run.usage, &run.steps), (charge(&end), end.usage, &end.steps));
    assert!(run.updated_at > end.updated_at);
    assert_eq!(
        run.decisions.iter().map(|known| known.decision).collect::<Vec<_>>(),
        [Choice::Reject, Choice::Approve]
    );
    assert_eq!(run.decision().map(|known| known.decision), Some(Choice::Reject), "that on the whole run");
}

#[test]
fn guidance_is_kept_in_its_order_and_as_it_came() {
    let run = folded(vec![steered(), step(), steered()]).unwrap();
    let texts: Vec<_> = run.steers.iter().map(|steer| (steer.text.as_str(), steer.at.unix_ms())).collect();
    assert_eq!(texts, [("mind\u{1b} the gap", 2_000), ("mind\u{1b} the gap", 4_000)]);
}

fn judge_asked(judge: &str, billing: Billing) -> RunEvent {
    let (step, kind, model) = ("s".to_owned(), "openai".to_owned(), None);
    RunEvent::JudgeAsked { step, judge: judge.to_owned(), kind, model, billing }
}

fn judge_replied(judge: &str, code: Option<&str>, usage: Usage) -> RunEvent {
    let error = code.map(|code| CandidateError { code: code.to_owned(), message: "no".to_owned() });
    RunEvent::JudgeReplied { step: "s".to_owned(), judge: judge.to_owned(), error, usage, duration_ms: 9 }
}

#[test]
fn a_metered_judge_is_charged_as_soon_as_it_is_asked() {
    let included = Usage { output: 5, basis: CostBasis::Scripted, ..Usage::default() };
    let silent = Usage::default();
    for (billing, ending, expected) in [
        (Billing::Metered, judge_replied("j", None, paid(0.2)), 0.2),
        (Billing::Metered, judge_replied("j", None, silent), 1.0),
        (Billing::Metered, judge_replied("j", None, Usage { output: 5, ..silent }), 1.0),
        (Billing::Metered, judge_replied("j", None, included), 0.0),
        (Billing::Metered, judge_replied("j", Some("cancelled"), silent), 1.0),
        (Billing::Metered, judge_replied("j", Some("timeout-wall"), silent), 1.0),
        (Billing::Metered, judge_replied("j", Some("unreachable"), silent), 0.0),
        (Billing::Metered, judge_replied("j", Some("rate-limit"), paid(0.1)), 0.1),
        (Billing::Metered, settled(RunState::Error, Some("interrupted")), 1.0),
        (Billing::Metered, settled(RunState::Error, Some("store")), 1.0),
        (Billing::Metered, settled(RunState::Cancelled, None), 1.0),
        (Billing::Free, judge_replied("j", None, silent), 0.0),
        (Billing::Subscription, settled(RunState::Cancelled, None), 0.0),
    ] {
        let run = folded(vec![step(), judge_asked("j", billing), ending.clone()]).unwrap();
        assert_eq!(charge(&run), Usd::from_dollars(expected), "{billing:?} {ending:?}");
    }
}

#[test]
fn one_call_of_a_judge_whose_cost_is_unknown_is_not_hidden_by_another() {
    let calls = vec![
        step(),
        judge_asked("j", Billing::Metered),
        judge_replied("j", None, paid(0.2)),
        judge_asked("j", Billing::Metered),
        judge_replied("j", None, Usage::default()),
    ];
    let run = folded(calls).unwrap();
    assert_eq!((charge(&run), run.usage.basis), (DOLLAR, CostBasis::Unknown));
}

#[test]
fn what_judging_used_counts_once() {
    let judged = Verdict { usage: paid(0.2), ..verdict("llm-judge", VerdictOutcome::Tie, None) };
    let run = folded(vec![
        step(),
        judge_asked("j", Billing::Metered),
        judge_replied("j", None, paid(0.2)),
        RunEvent::Judged { step: "s".to_owned(), verdict: judged },
    ]);
    assert_eq!(run.unwrap().usage, paid(0.2));
}

#[test]
fn the_basis_of_a_run_is_that_of_its_turns() {
    let consensus =
        RunEvent::Judged { step: "s".to_owned(), verdict: verdict("consensus", VerdictOutcome::Tie, None) };
    let run = folded(vec![step(), asked("a", Billing::Metered), done("a", "x", paid(0.3)), consensus]);
    assert_eq!(run.unwrap().usage, paid(0.3));
    let silent = vec![
        step(),
        asked("a", Billing::Metered),
        asked("b", Billing::Metered),
        done("a", "x", paid(0.3)),
        done("b", "x", Usage::default()),
    ];
    assert_eq!(folded(silent).unwrap().usage, Usage { basis: CostBasis::Unknown, ..paid(0.3) });
}

#[test]
fn a_judge_replies_once_for_every_time_it_is_asked() {
    let reply = || judge_replied("j", None, Usage::default());
    let unknown = || Err(FoldError::Unknown { what: "judge", id: "j".to_owned() });
    let ask = || judge_asked("j", Billing::Free);
    assert_eq!(folded(vec![step(), reply()]), unknown());
    assert_eq!(folded(vec![step(), ask(), reply(), reply()]), unknown());
    let twice = Err(FoldError::Duplicate { what: "judge", id: "j".to_owned() });
    assert_eq!(folded(vec![step(), ask(), ask()]), twice);
    assert!(folded(vec![step(), ask(), reply(), ask(), reply()]).is_ok());
}

#[test]
fn an_absurd_cost_stays_the_same_through_json() {
    let absurd =
        Usage { usd: Some(Usd::from_micros(u64::MAX)), basis: CostBasis::Computed, ..Usage::default() };
    let (id, events) =
        (RunId::random(), log(vec![step(), asked("a", Billing::Metered), done("a", "x", absurd)]));
    let run = fold(id, &events).unwrap();
    let read: Vec<Event> = serde_json::from_str(&serde_json::to_string(&events).unwrap()).unwrap();
    let again = fold(id, &read).unwrap();
    assert_eq!(again, run);
    assert_eq!(charge(&again), charge(&run));
    assert!(i64::try_from(charge(&run).micros()).is_ok());
    assert_eq!(serde_json::from_str::<Run>(&serde_json::to_string(&run).unwrap()).unwrap(), run);
}

#[test]
fn the_first_to_ask_for_a_stop_is_remembered() {
    let by = |by: &str| RunEvent::CancelRequested { by: by.to_owned(), reason: None };
    let run = folded(vec![by("cli"), by("control-file"), RunEvent::Started { pid: 1 }]).unwrap();
    assert_eq!(
        (run.cancel_requested_by.as_deref(), run.detail.as_str()),
        (Some("cli"), "asked to stop by cli")
    );
    assert_eq!((run.state, run.engine_pid, run.updated_at.unix_ms()), (RunState::Running, Some(1), 4_000));
}

#[test]
fn a_preview_is_cut_between_characters() {
    assert_eq!(preview(&"ü".repeat(300)), "ü".repeat(200));
    assert_eq!(preview("short"), "short");
}

fn fell_back(candidate: &str, usage: Usage) -> RunEvent {
    RunEvent::CandidateFellBack {
        step: "s".to_owned(),
        candidate: candidate.to_owned(),
        model: "small".to_owned(),
        code: "overloaded".to_owned(),
        message: "busy".to_owned(),
        usage,
        duration_ms: 7,
    }
}

#[test]
fn a_candidate_shows_both_models_and_is_charged_for_both_turns() {
    let begun = vec![step(), asked("a", Billing::Metered)];
    let run = |more: Vec<RunEvent>| folded([begun.clone(), more].concat());
    let fell = || fell_back("a", paid(0.25));
    let whole = run(vec![fell(), done("a", "x", paid(0.5)), settled(RunState::Done, None)]).unwrap();
    let candidate = &whole.steps[0].candidates[0];
    assert_eq!((candidate.model.as_deref(), candidate.state), (Some("small"), RunState::Done));
    let first = candidate.fell_back.as_ref().unwrap();
    assert_eq!(
        (first.model.as_deref(), first.error.code.as_str(), first.duration_ms),
        (None, "overloaded", 7)
    );
    assert_eq!(charge(&whole), Usd::from_dollars(0.75));
    assert_eq!(whole.usage.usd, Some(Usd::from_dollars(0.75)));
    let told = Usage { input: 9, ..Usage::default() };
    let unknown = run(vec![fell_back("a", told), done("a", "x", paid(0.5))]).unwrap();
    assert_eq!(charge(&unknown), DOLLAR, "what the first turn cost is not known");
    let turned_away = run(vec![fell_back("a", Usage::default()), done("a", "x", paid(0.5))]).unwrap();
    assert_eq!(charge(&turned_away), Usd::from_dollars(0.5), "it was turned away");
    assert!(matches!(run(vec![fell(), fell()]), Err(FoldError::Duplicate { what: "fallback", .. })));
    assert!(matches!(run(vec![failed("a", "auth"), fell()]), Err(FoldError::Unknown { .. })));
}

#[test]
fn a_candidate_that_was_stopped_since_others_sufficed_is_cancelled_and_no_error() {
    let run = folded(vec![step(), asked("a", Billing::Free), failed("a", "superseded")]).unwrap();
    assert_eq!(run.steps[0].candidates[0].state, RunState::Cancelled);
}

/// `event` in the step `r` in place of `s`.
fn again(event: RunEvent) -> RunEvent {
    let mut value = serde_json::to_value(event).unwrap();
    value["step"] = json!("r");
    serde_json::from_value(value).unwrap()
}

fn kept(candidate: &str, from: &str) -> RunEvent {
    let (candidate, from_step) = (candidate.to_owned(), from.to_owned());
    RunEvent::CandidateKept { step: "r".to_owned(), candidate, from_step }
}

/// A round in which `a` and `b` answered and were judged, and a second in which both are asked.
fn two_rounds(more: Vec<RunEvent>) -> Result<Run, FoldError> {
    let tie = RunEvent::Judged { step: "s".into(), verdict: verdict("consensus", VerdictOutcome::Tie, None) };
    let first = ["a", "b"].map(|one| asked(one, Billing::Metered));
    let answers = vec![done("a", "x", paid(0.25)), done("b", "y", paid(0.25)), tie, again(step())];
    let second = first.clone().map(again);
    folded([vec![step()], first.into(), answers, second.into(), more].concat())
}

#[test]
fn a_candidate_that_fails_in_a_later_step_keeps_its_answer_and_what_the_failure_used_is_charged() {
    let cut = RunEvent::CandidateFailed {
        step: "r".into(),
        candidate: "a".into(),
        code: "cut".into(),
        message: "no".into(),
        usage: paid(0.5),
        duration_ms: 9,
    };
    let won = again(RunEvent::Judged {
        step: "s".into(),
        verdict: verdict("consensus", VerdictOutcome::Majority, Some("a")),
    });
    let last = again(done("b", "x", paid(0.25)));
    let run =
        two_rounds(vec![cut.clone(), kept("a", "s"), last, won, settled(RunState::Done, None)]).unwrap();
    let candidate = &run.steps[1].candidates[0];
    assert_eq!((candidate.state, candidate.output.as_str()), (RunState::Done, "x"));
    assert_eq!(candidate.kept_from.as_deref(), Some("s"));
    assert_eq!(candidate.error.as_ref().unwrap().code, "cut");
    assert_eq!((charge(&run), run.usage.usd), (Usd::from_dollars(1.25), Some(Usd::from_dollars(1.25))));
    assert_eq!(run.winner().map(|one| one.id.as_str()), Some("a"));
    let plain: Run = serde_json::from_value(serde_json::to_value(&run).unwrap()).unwrap();
    assert_eq!(plain, run);

    let refused = |more: Vec<RunEvent>| two_rounds(more).unwrap_err();
    assert!(matches!(refused(vec![kept("a", "s")]), FoldError::Unknown { .. }), "it has not failed");
    assert!(matches!(refused(vec![cut.clone(), kept("a", "q")]), FoldError::Unknown { what: "step", .. }));
    assert!(matches!(refused(vec![cut.clone(), kept("a", "r")]), FoldError::Unknown { .. }), "no answer");
    let twice = vec![cut, kept("a", "s"), kept("a", "s")];
    assert!(matches!(refused(twice), FoldError::Duplicate { what: "answer", .. }));
}

#[test]
fn a_step_that_was_judged_is_done_when_the_next_begins_and_what_is_cut_off_is_of_the_next() {
    let run = two_rounds(vec![]).unwrap();
    assert_eq!(
        run.steps.iter().map(|step| step.state).collect::<Vec<_>>(),
        [RunState::Done, RunState::Running]
    );
    let run = two_rounds(vec![settled(RunState::Cancelled, None)]).unwrap();
    let states: Vec<_> = run.steps.iter().map(|step| (step.state, step.candidates[0].state)).collect();
    assert_eq!(states, [(RunState::Done, RunState::Done), (RunState::Cancelled, RunState::Cancelled)]);
    assert_eq!(run.winner(), None);
}
