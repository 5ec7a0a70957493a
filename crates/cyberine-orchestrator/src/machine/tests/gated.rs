//! The gate before judging: every order of a decision, the end of the wait, and a request to stop.

use super::*;

fn gated(names: &[&str], on_expiry: Choice) -> Setup {
    Setup { gate: Some(Gate { seconds: 60, on_expiry }), ..setup(names) }
}

/// A machine that waits for an approval of two answers that differ.
fn waiting(on_expiry: Choice) -> Machine {
    let mut machine = Machine::new(gated(&["a", "b"], on_expiry));
    let (events, actions) = run(&mut machine, vec![Input::Begin, answered(0, "x"), answered(1, "y")]);
    assert_eq!(actions.last(), Some(&Action::Suspend(Gate { seconds: 60, on_expiry })));
    assert!(matches!(events.last(), Some(RunEvent::CandidateDone { .. })), "nothing of judging is recorded");
    assert_eq!(verdicts(&events), []);
    machine
}

fn asks_a_judge(effects: &Effects) -> bool {
    effects.actions.iter().any(|action| matches!(action, Action::AskJudge(_)))
}

#[test]
fn an_approval_lets_the_judges_begin_and_is_recorded_before_them() {
    let mut machine = waiting(Choice::Reject);
    let effects = step(&mut machine, decided(Choice::Approve));
    assert_eq!(effects.append[0], RunEvent::Resumed { by: "boss@1".into() });
    assert!(asks_a_judge(&effects));
    // What comes after it changes nothing.
    for late in [decided(Choice::Reject), Input::Expired, decided(Choice::Approve)] {
        assert_eq!(step(&mut machine, late), Effects::default());
    }
    assert_eq!(step(&mut machine, stop()).actions, [Action::KillTurns]);
}

#[test]
fn a_rejection_settles_the_run_with_its_comment_and_no_judge_is_asked() {
    let mut machine = waiting(Choice::Approve);
    let effects = step(&mut machine, decided(Choice::Reject));
    assert_eq!(effects.append, [RunEvent::Rejected { by: "boss@1".into() }]);
    let expected = Settlement {
        state: RunState::Cancelled,
        detail: "rejected by boss@1: not this".into(),
        reason: None,
    };
    assert_eq!(effects.actions, [Action::KillTurns, Action::Settle(expected)]);
    for late in [decided(Choice::Approve), Input::Expired, stop(), steered("x")] {
        assert_eq!(step(&mut machine, late), Effects::default());
    }
}

#[test]
fn the_end_of_the_wait_takes_the_default() {
    let mut machine = waiting(Choice::Approve);
    let effects = step(&mut machine, Input::Expired);
    assert_eq!(effects.append[0], RunEvent::Resumed { by: "expiry".into() });
    assert!(asks_a_judge(&effects));
    assert_eq!(step(&mut machine, decided(Choice::Reject)), Effects::default());

    let mut machine = waiting(Choice::Reject);
    let effects = step(&mut machine, Input::Expired);
    assert_eq!(
        effects.append,
        [RunEvent::Rejected { by: "expiry".into() }],
        "on record before anything dies"
    );
    let settled = settlement(&effects.actions);
    assert_eq!(settled.detail, "rejected by expiry: nobody decided within 60 seconds");
    assert_eq!(settled.state, RunState::Cancelled);
}

#[test]
fn a_request_to_stop_ends_the_wait_and_nothing_goes_on_after_it() {
    for late in [decided(Choice::Approve), Input::Expired] {
        let mut machine = waiting(Choice::Approve);
        let effects = step(&mut machine, stop());
        assert_eq!(effects.append, []);
        assert_eq!(
            settlement(&effects.actions).detail,
            "cancelled by me (enough); 2 of 2 candidates had answered"
        );
        assert_eq!(step(&mut machine, late), Effects::default());
    }
}

#[test]
fn an_approval_that_was_there_before_opens_the_gate_without_a_wait() {
    let mut machine = Machine::new(gated(&["a", "b"], Choice::Reject));
    let inputs = vec![decided(Choice::Approve), Input::Begin, answered(0, "x"), Input::Expired];
    let (_, actions) = run(&mut machine, inputs);
    assert_eq!(asks(&actions), [0, 1], "candidates go on");
    let effects = step(&mut machine, answered(1, "y"));
    assert!(!effects.actions.iter().any(|action| matches!(action, Action::Suspend(_))));
    assert_eq!(effects.append[1], RunEvent::Approved { by: "boss@1".into() });
    assert!(asks_a_judge(&effects));
}

#[test]
fn a_rejection_before_the_gate_starts_nothing_more_and_ends_the_run_once_all_is_over() {
    for first in [None, Some(decided(Choice::Approve))] {
        let setup = Setup { max_parallel: 1, ..gated(&["a", "b"], Choice::Approve) };
        let mut machine = Machine::new(setup);
        let (_, actions) = run(&mut machine, [Input::Begin].into_iter().chain(first).collect());
        assert_eq!(asks(&actions), [0]);
        let effects = step(&mut machine, decided(Choice::Reject));
        assert_eq!(effects.append, [RunEvent::Rejected { by: "boss@1".into() }]);
        assert_eq!(effects.actions, [Action::KillTurns]);
        let effects = step(&mut machine, failed(0, "cancelled"));
        assert_eq!(asks(&effects.actions), Vec::<usize>::new());
        assert_eq!(settlement(&effects.actions).detail, "rejected by boss@1: not this");
    }
    let mut machine = Machine::new(gated(&["a"], Choice::Approve));
    let (events, actions) = run(&mut machine, vec![decided(Choice::Reject), Input::Begin]);
    assert_eq!(events, [RunEvent::Rejected { by: "boss@1".into() }], "nothing begins");
    assert_eq!(settlement(&actions).state, RunState::Cancelled);
}

/// What has come into the log meanwhile is told before the gate is tried again.
#[test]
fn a_rejection_counts_until_the_gate_is_closed() {
    let causes = [(Choice::Reject, decided(Choice::Approve)), (Choice::Approve, Input::Expired)];
    for (on_expiry, cause) in causes {
        let mut machine = waiting(on_expiry);
        let effects = machine.step(cause.clone());
        assert!(matches!(effects.actions.as_slice(), [Action::Close(closing)] if closing.cause == cause));
        assert_eq!(effects.append, [], "nothing is taken for decided yet");
        let effects = step(&mut machine, decided(Choice::Reject));
        assert_eq!(settlement(&effects.actions).detail, "rejected by boss@1: not this");
        assert_eq!(step(&mut machine, cause), Effects::default());
    }
    let mut machine = waiting(Choice::Reject);
    machine.step(Input::Expired);
    let (events, _) = run(&mut machine, vec![decided(Choice::Approve), Input::Expired]);
    assert_eq!(
        events[0],
        RunEvent::Resumed { by: "boss@1".into() },
        "an approval goes before the want of one"
    );
}

#[test]
fn the_gate_stands_also_where_there_is_nothing_to_compare() {
    // One answer of one; one of three, and no quorum; a majority that needs no model.
    let courses = [
        (vec!["a"], vec![answered(0, "x")]),
        (vec!["a", "b", "c"], vec![failed(0, "auth"), answered(1, "x"), failed(2, "empty")]),
        (vec!["a", "b"], vec![answered(0, "x"), answered(1, "x")]),
    ];
    for (names, inputs) in courses {
        let mut machine = Machine::new(gated(&names, Choice::Reject));
        step(&mut machine, Input::Begin);
        let (events, actions) = run(&mut machine, inputs);
        assert!(matches!(actions.last(), Some(Action::Suspend(_))), "{names:?}");
        assert_eq!(verdicts(&events), []);
        let effects = step(&mut machine, decided(Choice::Approve));
        assert_eq!(verdicts(&effects.append).len(), 1);
        assert_eq!(settlement(&effects.actions).state, RunState::Done);
    }
}

#[test]
fn where_nobody_answered_there_is_nothing_to_approve() {
    let mut machine = Machine::new(gated(&["a"], Choice::Approve));
    let (_, actions) = run(&mut machine, vec![Input::Begin, failed(0, "auth")]);
    assert_eq!(settlement(&actions).state, RunState::Error);
}

#[test]
fn without_a_gate_a_decision_changes_nothing() {
    let mut machine = Machine::new(setup(&["a", "b"]));
    let inputs =
        vec![decided(Choice::Reject), Input::Begin, answered(0, "x"), answered(1, "x"), Input::Expired];
    let (_, actions) = run(&mut machine, inputs);
    assert_eq!(settlement(&actions).state, RunState::Done);
}

#[test]
fn a_wait_starts_and_asks_nothing_whatever_comes_that_is_no_decision() {
    let mut machine = waiting(Choice::Approve);
    let effects = step(&mut machine, steered("shorter, please"));
    assert!(matches!(effects.append.as_slice(), [RunEvent::Steered { .. }]));
    assert_eq!(effects.actions, []);
    assert_eq!(step(&mut machine, replied(Ok("{}".into()), 1)), Effects::default());
}

#[test]
fn a_rejection_of_scripted_answers_says_that_they_were() {
    let mut setup = gated(&["a"], Choice::Reject);
    setup.contestants[0].billing = Billing::Scripted;
    let mut machine = Machine::new(setup);
    let (_, actions) = run(&mut machine, vec![Input::Begin, answered(0, "x"), decided(Choice::Reject)]);
    assert!(settlement(&actions).detail.ends_with("; scripted answers, no model was called"));
}
