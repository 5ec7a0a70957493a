use super::*;
use crate::config::JudgeKind;
use crate::judge::Standing;
use crate::plan::STEP_ID;
use cyberine_run_store::{CandidateError, Choice};

mod any_course;
mod gated;
mod guided;
mod held;
mod rounds;
mod sampled;

fn contestant(name: &str) -> Contestant {
    Contestant {
        id: name.to_owned(),
        provider: name.to_owned(),
        kind: "command".into(),
        model: None,
        source: None,
        billing: Billing::Free,
        fallback: None,
    }
}

fn setup(names: &[&str]) -> Setup {
    Setup {
        contestants: names.iter().map(|name| contestant(name)).collect(),
        judges: vec![JudgeKind::Consensus, JudgeKind::LlmJudge],
        jurors: names.iter().map(|name| contestant(name)).collect(),
        quorum: 2,
        first: None,
        rounds: 1,
        max_parallel: 16,
        judge_always: false,
        equivalence: false,
        rubric: None,
        criteria: Vec::new(),
        extract: None,
        seed: 1,
        gate: None,
        steered: Vec::new(),
    }
}

fn answered(candidate: usize, text: &str) -> Input {
    Input::Answered { candidate, text: text.to_owned(), usage: Usage::default(), duration_ms: 1 }
}

fn failed(candidate: usize, code: &'static str) -> Input {
    let (message, usage) = ("m".to_owned(), Usage::default());
    Input::Failed { candidate, code, message, begun: false, usage, duration_ms: 1 }
}

fn replied(reply: Result<String, &str>, output: u64) -> Input {
    let reply = reply.map_err(|code| CandidateError { code: code.to_owned(), message: "m".into() });
    Input::JudgeReplied { reply, usage: Usage { output, ..Usage::default() }, duration_ms: 1 }
}

fn decided(choice: Choice) -> Input {
    Input::Decided(Decision { choice, by: "boss@1".into(), comment: Some("not\nthis".into()) })
}

fn steered(text: &str) -> Input {
    Input::Steered(Steering::new(MessageId::random(), "mcp host@1", text))
}

fn stop() -> Input {
    Input::CancelRequested { by: "me".into(), reason: Some("enough".into()) }
}

/// Takes a step. Where it closes the gate, the log holds nothing that the machine was not told.
fn step(machine: &mut Machine, input: Input) -> Effects {
    let mut effects = machine.step(input);
    let mut actions = Vec::new();
    for action in std::mem::take(&mut effects.actions) {
        if let Action::Close(closing) = action {
            let Closing { event, decision, .. } = *closing;
            let more = step(machine, Input::Closed(decision));
            effects.append.extend([event].into_iter().chain(more.append));
            actions.extend(more.actions);
        } else {
            actions.push(action);
        }
    }
    Effects { actions, ..effects }
}

/// Steps through `inputs` and returns everything appended and done.
fn run(machine: &mut Machine, inputs: Vec<Input>) -> (Vec<RunEvent>, Vec<Action>) {
    let effects = inputs.into_iter().map(|input| step(machine, input));
    effects.fold((Vec::new(), Vec::new()), |(mut events, mut actions), effects| {
        events.extend(effects.append);
        actions.extend(effects.actions);
        (events, actions)
    })
}

fn verdicts(events: &[RunEvent]) -> Vec<(String, VerdictOutcome, Option<String>)> {
    let judged = events.iter().filter_map(|event| match event {
        RunEvent::Judged { verdict, .. } => {
            Some((verdict.kind.clone(), verdict.outcome, verdict.winner.clone()))
        }
        _ => None,
    });
    judged.collect()
}

fn settlement(actions: &[Action]) -> &Settlement {
    let ends: Vec<_> = actions.iter().filter(|action| matches!(action, Action::Settle(_))).collect();
    match ends.as_slice() {
        [Action::Settle(settlement)] => settlement,
        other => panic!("one settlement, and not {other:?}"),
    }
}

fn asks(actions: &[Action]) -> Vec<usize> {
    let asked = actions.iter().filter_map(|action| match action {
        Action::Ask(at) => Some(*at),
        _ => None,
    });
    asked.collect()
}

#[test]
fn everyone_is_asked_at_once_and_recorded_before() {
    let effects = Machine::new(setup(&["a", "b", "c"])).step(Input::Begin);
    assert_eq!(asks(&effects.actions), [0, 1, 2]);
    let started =
        effects.append.iter().filter(|event| matches!(event, RunEvent::CandidateStarted { .. })).count();
    assert!(matches!(effects.append[0], RunEvent::StepStarted { .. }));
    assert_eq!(started, 3);
}

#[test]
fn no_more_than_the_limit_are_asked_at_once() {
    let mut machine = Machine::new(Setup { max_parallel: 2, ..setup(&["a", "b", "c"]) });
    assert_eq!(asks(&machine.step(Input::Begin).actions), [0, 1]);
    assert_eq!(asks(&machine.step(failed(1, "auth")).actions), [2]);
    assert_eq!(asks(&machine.step(answered(0, "x")).actions), Vec::<usize>::new());
}

#[test]
fn a_majority_ends_the_run_and_no_model_is_paid_for() {
    let mut machine = Machine::new(setup(&["a", "b", "c"]));
    let (events, actions) =
        run(&mut machine, vec![Input::Begin, answered(2, "42"), failed(1, "empty"), answered(0, "42.0")]);
    assert_eq!(verdicts(&events), [("consensus".into(), VerdictOutcome::Majority, Some("a".into()))]);
    assert_eq!(settlement(&actions).detail, "2 of 3 candidates answered; a majority agrees with `a`");
    assert_eq!(settlement(&actions).state, RunState::Done);
}

#[test]
fn the_judge_is_asked_after_a_majority_only_where_that_is_wanted() {
    let mut machine = Machine::new(Setup { judge_always: true, ..setup(&["a", "b"]) });
    let (events, actions) = run(&mut machine, vec![Input::Begin, answered(0, "42"), answered(1, "42")]);
    assert_eq!(verdicts(&events).len(), 1);
    assert!(matches!(actions.last(), Some(Action::AskJudge(_))));
}

#[test]
fn a_judge_decides_where_answers_differ() {
    let mut machine = Machine::new(setup(&["a", "b"]));
    let (_, actions) = run(&mut machine, vec![Input::Begin, answered(0, "good"), answered(1, "bad")]);
    let mut question = match actions.last() {
        Some(Action::AskJudge(question)) => question.clone(),
        other => panic!("{other:?}"),
    };
    let mut events = Vec::new();
    let mut last = Vec::new();
    for _ in 0..2 {
        let place = question.texts.iter().position(|text| text == "good").unwrap();
        let reply = format!(
            r#"{{"winner":"{}","scores":[{{"label":"A","score":5,"reason":""}},{{"label":"B","score":5,"reason":""}}],"rationale":"r"}}"#,
            ["A", "B"][place]
        );
        let effects = machine.step(replied(Ok(reply), 3));
        events.extend(effects.append);
        last = effects.actions;
        if let Some(Action::AskJudge(next)) = last.first() {
            question = next.clone();
        }
    }
    assert_eq!(verdicts(&events), [("llm-judge".into(), VerdictOutcome::Winner, Some("a".into()))]);
    assert_eq!(settlement(&last).detail, "2 of 2 candidates answered; the judge prefers `a`");
}

#[test]
fn a_question_to_a_judge_is_recorded_before_it_is_asked_and_its_end_with_the_next() {
    let mut setup = setup(&["a", "b"]);
    setup.jurors = vec![Contestant {
        kind: "openai".into(),
        model: Some("m1".into()),
        billing: Billing::Metered,
        ..contestant("j")
    }];
    let mut machine = Machine::new(setup);
    machine.step(Input::Begin);
    machine.step(answered(0, "x"));
    let asked = RunEvent::JudgeAsked {
        step: STEP_ID.to_owned(),
        judge: "j".into(),
        kind: "openai".into(),
        model: Some("m1".into()),
        billing: Billing::Metered,
    };
    let effects = machine.step(answered(1, "y"));
    assert_eq!(effects.append.last(), Some(&asked));
    assert!(matches!(effects.actions.as_slice(), [Action::AskJudge(_)]));
    let effects = machine.step(replied(Ok("prose".into()), 2));
    assert!(
        matches!(effects.append.as_slice(), [RunEvent::JudgeReplied { error: None, .. }, again] if *again == asked),
        "{:?}",
        effects.append
    );
}

#[test]
fn jurors_are_outsiders_first_and_never_a_candidate_that_failed() {
    let with_model = |name: &str| Contestant { model: Some("m1".into()), ..contestant(name) };
    let mut machine = Machine::new(Setup {
        contestants: vec![with_model("a"), contestant("b"), contestant("c")],
        jurors: vec![contestant("a"), contestant("c"), with_model("twin"), contestant("judge")],
        ..setup(&[])
    });
    run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "y"), failed(2, "timeout-idle")]);
    let jurors: Vec<_> = machine.jurors().into_iter().map(|juror| (juror.provider, juror.standing)).collect();
    let expected = [
        ("judge".to_owned(), Standing::Outside),
        ("twin".to_owned(), Standing::SameModel("a".to_owned())),
        ("a".to_owned(), Standing::Candidate),
    ];
    assert_eq!(jurors, expected);
}

#[test]
fn who_answered_with_its_fallback_model_counts_as_that_model() {
    let with_model = |name: &str, model: &str| Contestant { model: Some(model.into()), ..contestant(name) };
    let falls = Contestant { fallback: Some("claude-y".into()), ..with_model("a", "gpt-x") };
    let mut machine = Machine::new(Setup {
        contestants: vec![falls, contestant("b")],
        jurors: vec![
            with_model("old", "gpt-x"),
            with_model("new", "claude-y"),
            with_model("kin", "claude-z"),
        ],
        ..setup(&[])
    });
    run(&mut machine, vec![Input::Begin, failed(0, "overloaded"), answered(0, "x"), answered(1, "y")]);
    let jurors: Vec<_> = machine.jurors().into_iter().map(|juror| (juror.provider, juror.standing)).collect();
    let expected = [
        ("old".to_owned(), Standing::Outside),
        ("kin".to_owned(), Standing::SameFamily("a".to_owned())),
        ("new".to_owned(), Standing::SameModel("a".to_owned())),
    ];
    assert_eq!(jurors, expected);
}

#[test]
fn nobody_who_failed_is_ever_shown_or_wins() {
    let mut machine = Machine::new(setup(&["a", "b", "c", "d"]));
    let inputs =
        vec![Input::Begin, answered(0, "x"), failed(1, "empty"), answered(2, "y"), failed(3, "crashed")];
    let (_, actions) = run(&mut machine, inputs);
    match actions.last() {
        Some(Action::AskJudge(question)) => {
            let mut shown = question.texts.clone();
            shown.sort();
            assert_eq!(shown, ["x", "y"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_an_answer_the_run_is_an_error_that_names_each_failure() {
    let mut machine = Machine::new(setup(&["a", "b"]));
    let (events, actions) = run(&mut machine, vec![Input::Begin, failed(0, "auth"), failed(1, "empty")]);
    assert_eq!(verdicts(&events), []);
    let expected = Settlement {
        state: RunState::Error,
        detail: "no candidate answered: a (auth), b (empty)".into(),
        reason: Some("no_answer"),
    };
    assert_eq!(settlement(&actions), &expected);
}

#[test]
fn too_few_answers_are_no_quorum_and_a_single_one_is_unjudged() {
    let mut machine = Machine::new(setup(&["a", "b", "c"]));
    let (events, actions) =
        run(&mut machine, vec![Input::Begin, failed(0, "auth"), failed(1, "empty"), answered(2, "x")]);
    assert_eq!(verdicts(&events), [("consensus".into(), VerdictOutcome::NoQuorum, None)]);
    assert_eq!(settlement(&actions).state, RunState::Done);

    let mut machine = Machine::new(setup(&["a"]));
    let (events, actions) = run(&mut machine, vec![Input::Begin, answered(0, "x")]);
    assert_eq!(verdicts(&events), [("consensus".into(), VerdictOutcome::Unjudged, None)]);
    assert_eq!(settlement(&actions).detail, "1 of 1 candidates answered; not judged");
}

#[test]
fn different_answers_without_a_model_are_a_tie() {
    let mut machine = Machine::new(Setup { judges: vec![JudgeKind::Consensus], ..setup(&["a", "b"]) });
    let (events, actions) = run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "y")]);
    assert_eq!(verdicts(&events), [("consensus".into(), VerdictOutcome::Tie, None)]);
    assert_eq!(settlement(&actions).detail, "2 of 2 candidates answered; a tie, no winner");
}

#[test]
fn a_cancelled_run_waits_for_its_turns_and_starts_no_more() {
    let mut machine = Machine::new(Setup { max_parallel: 2, ..setup(&["a", "b", "c"]) });
    machine.step(Input::Begin);
    assert_eq!(machine.step(stop()).actions, [Action::KillTurns]);
    assert_eq!(machine.step(stop()), Effects::default());
    assert_eq!(machine.step(answered(0, "x")).actions, []);
    let (events, actions) = run(&mut machine, vec![failed(1, "cancelled"), stop(), answered(2, "late")]);
    assert_eq!(events.len(), 1);
    let expected = Settlement {
        state: RunState::Cancelled,
        detail: "cancelled by me (enough); 0 of 3 candidates had answered".into(),
        reason: None,
    };
    assert_eq!(settlement(&actions), &expected);
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_spends_nothing() {
    let effects = Machine::new(setup(&["a"])).step(stop());
    assert_eq!(effects.append, []);
    assert_eq!((effects.actions.len(), settlement(&effects.actions).state), (2, RunState::Cancelled));
}

#[test]
fn what_a_judge_had_used_is_kept_when_the_run_is_cancelled() {
    let mut machine = Machine::new(setup(&["a", "b"]));
    run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "y")]);
    let used = |output| Usage { output, ..Usage::default() };
    machine.step(replied(Ok("prose".into()), 9));
    assert_eq!(machine.step(stop()).actions, [Action::KillTurns], "a turn of the judge is still dying");
    let effects = machine.step(replied(Err("cancelled"), 4));
    match effects.append.as_slice() {
        [
            RunEvent::JudgeReplied { judge, error: Some(error), usage, .. },
            RunEvent::Judged { verdict, .. },
        ] => {
            assert_eq!((judge.as_str(), error.code.as_str(), *usage), ("a", "cancelled", used(4)));
            assert_eq!((verdict.outcome, verdict.usage), (VerdictOutcome::Unjudged, used(13)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(settlement(&effects.actions).state, RunState::Cancelled);
}

#[test]
fn scripted_answers_are_labelled_in_every_settlement() {
    let mut setup = setup(&["a"]);
    setup.contestants[0].billing = Billing::Scripted;
    for last in [answered(0, "x"), failed(0, "empty"), stop()] {
        let mut machine = Machine::new(setup.clone());
        let (_, mut actions) = run(&mut machine, vec![Input::Begin, last.clone()]);
        if last == stop() {
            actions.extend(machine.step(failed(0, "cancelled")).actions);
        }
        assert!(settlement(&actions).detail.ends_with("; scripted answers, no model was called"));
    }
}
