//! Several candidates of one provider, answers that suffice, and models that others stand in for.

use super::*;
use cyberine_run_store::{Event, ProcessCount, Run, fold};
use cyberine_types::{RunId, Timestamp, Usd};
use proptest::prelude::*;

/// Samples of the provider `a`.
fn samples(count: usize) -> Setup {
    let ids: Vec<String> =
        (1..=count).map(|at| if at == 1 { "a".into() } else { format!("a#{at}") }).collect();
    let one = |id: &String| Contestant { provider: "a".into(), ..contestant(id) };
    Setup { contestants: ids.iter().map(one).collect(), jurors: vec![contestant("a")], ..setup(&[]) }
}

fn with_fallbacks(setup: Setup) -> Setup {
    let second = |one: Contestant| Contestant { fallback: Some("m2".into()), ..one };
    Setup { contestants: setup.contestants.into_iter().map(second).collect(), ..setup }
}

/// A failure after a part of the answer.
fn failed_late(candidate: usize, code: &'static str) -> Input {
    match failed(candidate, code) {
        Input::Failed { candidate, code, message, usage, duration_ms, .. } => {
            Input::Failed { candidate, code, message, begun: true, usage, duration_ms }
        }
        other => other,
    }
}

fn codes(events: &[RunEvent]) -> Vec<(&str, &str)> {
    let failed = events.iter().filter_map(|event| match event {
        RunEvent::CandidateFailed { candidate, code, .. } => Some((candidate.as_str(), code.as_str())),
        _ => None,
    });
    failed.collect()
}

#[test]
fn samples_are_candidates_of_their_own_with_the_provider_they_share() {
    let effects = Machine::new(samples(2)).step(Input::Begin);
    let started = effects.append.iter().filter_map(|event| match event {
        RunEvent::CandidateStarted { candidate, provider, .. } => {
            Some((candidate.as_str(), provider.as_str()))
        }
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [("a", "a"), ("a#2", "a")]);
}

#[test]
fn answers_that_suffice_stop_the_others_and_the_judging_waits_for_their_end() {
    let mut machine = Machine::new(Setup { first: Some(2), ..samples(4) });
    machine.step(Input::Begin);
    assert_eq!(machine.step(answered(3, "42")).actions, []);
    assert_eq!(machine.step(answered(1, "42")).actions, [Action::StopCandidates]);
    assert_eq!(machine.step(failed(0, "cancelled")).actions, []);
    let (events, actions) = run(&mut machine, vec![failed(2, "cancelled")]);
    assert_eq!(codes(&events), [("a#3", "superseded")]);
    assert!(
        matches!(&events[0], RunEvent::CandidateFailed { message, .. } if message == "it was stopped: 2 answers were enough")
    );
    assert_eq!(verdicts(&events), [("consensus".into(), VerdictOutcome::Majority, Some("a#2".into()))]);
    assert_eq!(
        settlement(&actions).detail,
        "the first 2 of 4 candidates answered; a majority agrees with `a#2`"
    );
}

#[test]
fn those_that_were_not_asked_yet_are_not_asked_any_more_and_leave_no_trace() {
    let mut machine = Machine::new(Setup { first: Some(1), quorum: 1, max_parallel: 1, ..samples(3) });
    machine.step(Input::Begin);
    let effects = machine.step(answered(0, "x"));
    assert_eq!(asks(&effects.actions), Vec::<usize>::new());
    assert!(!effects.actions.contains(&Action::StopCandidates), "nobody runs");
    assert_eq!(settlement(&effects.actions).detail, "the first 1 of 3 candidates answered; not judged");
    assert!(!effects.append.iter().any(|event| matches!(event, RunEvent::CandidateStarted { .. })));
}

#[test]
fn an_answer_or_a_failure_of_its_own_that_came_before_the_stop_counts_for_what_it_is() {
    let mut machine = Machine::new(Setup { first: Some(2), ..samples(4) });
    run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "x")]);
    let (events, _) = run(&mut machine, vec![answered(2, "x"), failed(3, "auth")]);
    assert!(matches!(&events[0], RunEvent::CandidateDone { candidate, .. } if candidate == "a#3"));
    assert_eq!(codes(&events), [("a#4", "auth")]);
}

#[test]
fn one_that_was_stopped_is_no_failure_in_a_text() {
    let mut machine = Machine::new(Setup { first: Some(2), quorum: 2, ..samples(4) });
    let inputs =
        vec![Input::Begin, failed(0, "auth"), answered(1, "x"), answered(2, "y"), failed(3, "cancelled")];
    run(&mut machine, inputs);
    assert_eq!(machine.failures(), "a (auth)");
}

#[test]
fn the_gate_stands_behind_the_stop_and_a_request_to_stop_goes_before_it() {
    let gate = Gate { seconds: 60, on_expiry: Choice::Reject };
    let begun = || {
        let mut machine = Machine::new(Setup { first: Some(2), gate: Some(gate), ..samples(3) });
        run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "x")]);
        machine
    };
    let mut machine = begun();
    assert_eq!(machine.step(failed(2, "cancelled")).actions, [Action::Suspend(gate)]);

    let mut machine = begun();
    assert_eq!(machine.step(stop()).actions, [Action::KillTurns]);
    let (events, actions) = run(&mut machine, vec![failed(2, "cancelled")]);
    assert_eq!(codes(&events), [("a#3", "superseded")]);
    assert_eq!(settlement(&actions).detail, "cancelled by me (enough); 2 of 3 candidates had answered");

    let mut machine = begun();
    let effects = machine.step(decided(Choice::Reject));
    assert_eq!(effects.actions, [Action::KillTurns]);
}

#[test]
fn a_provider_judges_what_one_of_its_samples_has_answered_and_not_where_it_failed() {
    let standing = |inputs: Vec<Input>| {
        let mut machine = Machine::new(Setup { first: Some(2), ..samples(3) });
        run(&mut machine, inputs);
        machine.jurors().into_iter().map(|juror| juror.standing).next()
    };
    let begin = Input::Begin;
    assert_eq!(
        standing(vec![begin.clone(), answered(0, "x"), failed(1, "auth"), answered(2, "y")]),
        Some(Standing::Candidate)
    );
    assert_eq!(standing(vec![begin, failed(0, "auth"), failed(1, "auth"), failed(2, "empty")]), None);
}

#[test]
fn a_model_that_does_not_answer_is_stood_in_for_once_and_that_is_recorded_first() {
    for code in ["overloaded", "rate-limit", "unreachable", "timeout-idle", "timeout-wall"] {
        let mut machine = Machine::new(with_fallbacks(setup(&["a", "b"])));
        machine.step(Input::Begin);
        let effects = machine.step(failed(0, code));
        assert_eq!(effects.actions, [Action::AskFallback(0)], "{code}");
        match effects.append.as_slice() {
            [RunEvent::CandidateFellBack { candidate, model, code: why, .. }] => {
                assert_eq!((candidate.as_str(), model.as_str(), why.as_str()), ("a", "m2", code));
            }
            other => panic!("{other:?}"),
        }
        let (events, actions) = run(&mut machine, vec![failed(0, code), answered(1, "x")]);
        assert_eq!((codes(&events), asks(&actions)), (vec![("a", code)], vec![]));
        assert_eq!(actions.iter().filter(|action| matches!(action, Action::AskFallback(_))).count(), 0);
    }
}

#[test]
fn a_candidate_that_was_stood_in_for_took_as_long_as_both_turns() {
    let after = |end: Input| {
        let mut machine = Machine::new(with_fallbacks(setup(&["a", "b"])));
        let fallen = match failed(0, "overloaded") {
            Input::Failed { candidate, code, message, begun, usage, .. } => {
                Input::Failed { candidate, code, message, begun, usage, duration_ms: 7_000 }
            }
            other => other,
        };
        run(&mut machine, vec![Input::Begin, fallen]);
        let took = |event: &RunEvent| match event {
            RunEvent::CandidateDone { duration_ms, .. } | RunEvent::CandidateFailed { duration_ms, .. } => {
                Some(*duration_ms)
            }
            _ => None,
        };
        machine.step(end).append.iter().find_map(took)
    };
    assert_eq!(after(answered(0, "x")), Some(7_001));
    assert_eq!(after(failed(0, "overloaded")), Some(7_001));
    assert_eq!(after(answered(1, "x")), Some(1));
}

#[test]
fn nobody_stands_in_after_other_failures_nor_once_an_answer_had_begun_nor_at_the_end() {
    let mut machine = Machine::new(with_fallbacks(setup(&["a", "b", "c"])));
    machine.step(Input::Begin);
    for failure in [failed(0, "auth"), failed_late(1, "overloaded")] {
        assert_eq!(machine.step(failure).actions, []);
    }
    machine.step(stop());
    let (events, _) = run(&mut machine, vec![failed(2, "unreachable")]);
    assert_eq!(codes(&events), [("c", "unreachable")]);

    let mut machine = Machine::new(Setup { first: Some(2), ..with_fallbacks(setup(&["a", "b", "c"])) });
    run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "x")]);
    let (events, _) = run(&mut machine, vec![failed(2, "overloaded")]);
    assert_eq!(codes(&events), [("c", "overloaded")], "there are answers enough");

    let mut machine = Machine::new(setup(&["a"]));
    machine.step(Input::Begin);
    let actions = machine.step(failed(0, "overloaded")).actions;
    assert!(matches!(actions.as_slice(), [Action::Settle(_)]), "there is no other model");
}

/// What each candidate's turns come to, in order.
#[derive(Debug, Clone)]
struct Course {
    turns: Vec<Vec<u8>>,
    picks: Vec<usize>,
    first: Option<usize>,
    max_parallel: usize,
    cancel_at: Option<usize>,
}

fn courses() -> impl Strategy<Value = Course> {
    let turns = proptest::collection::vec(proptest::collection::vec(0..4_u8, 2), 1..7);
    let picks = proptest::collection::vec(any::<usize>(), 20);
    let first = proptest::option::of(1..7_usize);
    (turns, picks, first, 1..4_usize, proptest::option::of(0..12_usize)).prop_map(
        |(turns, picks, first, max_parallel, cancel_at)| Course {
            turns,
            picks,
            first,
            max_parallel,
            cancel_at,
        },
    )
}

/// The log and the end of a course; turns that were stopped end as cancelled, unless they were
/// about to end by themselves (an odd pick).
fn play(course: &Course) -> (Vec<RunEvent>, Vec<Action>) {
    let tuning = Setup {
        first: course.first,
        quorum: 1,
        max_parallel: course.max_parallel,
        ..samples(course.turns.len())
    };
    let mut machine = Machine::new(Setup { judges: vec![JudgeKind::Consensus], ..with_fallbacks(tuning) });
    let (mut log, mut actions) = run(&mut machine, vec![Input::Begin]);
    let mut taken = vec![0; course.turns.len()];
    let mut open = asks(&actions);
    let mut stopped = false;
    for round in 0.. {
        if course.cancel_at == Some(round) {
            let effects = machine.step(stop());
            stopped |= effects.actions.contains(&Action::KillTurns);
            (log, actions) = (with(log, effects.append), with(actions, effects.actions));
        }
        if open.is_empty() {
            return (log, actions);
        }
        let pick = course.picks[round % course.picks.len()];
        let at = open.remove(pick % open.len());
        let end = match course.turns[at][taken[at]] {
            _ if stopped && pick.is_multiple_of(2) => failed(at, "cancelled"),
            0 => failed(at, "overloaded"),
            1 => failed(at, "auth"),
            _ => answered(at, "x"),
        };
        let effects = machine.step(end);
        for action in &effects.actions {
            match action {
                Action::Ask(next) => open.push(*next),
                Action::AskFallback(next) => {
                    taken[*next] += 1;
                    open.push(*next);
                }
                Action::StopCandidates | Action::KillTurns => stopped = true,
                _ => {}
            }
        }
        assert!(open.len() <= course.max_parallel);
        (log, actions) = (with(log, effects.append), with(actions, effects.actions));
    }
    unreachable!("a course ends")
}

fn with<T>(mut all: Vec<T>, more: Vec<T>) -> Vec<T> {
    all.extend(more);
    all
}

fn folded(log: Vec<RunEvent>, end: &Settlement) -> Run {
    let admitted = RunEvent::Admitted {
        workflow: "mcp-orchestrate".into(),
        prompt: "p".into(),
        cwd: "/".into(),
        requested_by: "cli".into(),
        spec: serde_json::Value::Null,
        reserved: Usd::ZERO,
        shares: Vec::new(),
    };
    let (state, detail) = (end.state, end.detail.clone());
    let settled = RunEvent::Settled { state, detail, reason: None, processes: ProcessCount::default() };
    let bodies = [admitted, RunEvent::Started { pid: 1 }].into_iter().chain(log).chain([settled]);
    let at = Timestamp::from_unix_ms(0);
    let events: Vec<Event> = bodies.zip(1..).map(|(body, seq)| Event { seq, at, epoch: 1, body }).collect();
    fold(RunId::random(), &events).unwrap()
}

proptest! {
    #[test]
    fn whoever_is_stopped_or_stood_in_for_the_run_settles_once_with_a_log_that_folds(course in courses()) {
        let (log, actions) = play(&course);
        let end = settlement(&actions).clone();
        let run = folded(log, &end);
        let Some(step) = run.steps.first() else {
            prop_assert_eq!(course.cancel_at, Some(0));
            return Ok(());
        };
        let answers = step.candidates.iter().filter(|one| one.state == RunState::Done).count();
        let superseded = |one: &&cyberine_run_store::Candidate| one.error.as_ref().is_some_and(|error| error.code == SUPERSEDED);
        for one in step.candidates.iter().filter(superseded) {
            prop_assert_eq!(one.state, RunState::Cancelled);
            prop_assert!(course.first.is_some_and(|first| answers >= first));
        }
        for one in &step.candidates {
            prop_assert!(one.state.is_terminal());
            let stood_in = one.fell_back.as_ref().map(|failed| failed.error.code.as_str());
            prop_assert!(stood_in.is_none_or(|code| code == "overloaded"));
            prop_assert_eq!(one.model.as_deref(), stood_in.map(|_| "m2"));
        }
        if course.cancel_at.is_none() {
            let missing = step.candidates.len() < course.turns.len();
            prop_assert!(!missing || course.first.is_some_and(|first| answers >= first));
            prop_assert_eq!(run.state == RunState::Error, answers == 0);
        }
    }
}
