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
    let effects = machine.step(decided(Choice::Approve));
    assert_eq!(effects.append[0], RunEvent::Resumed { by: "boss@1".into() });
    assert!(asks_a_judge(&effects));
    // What comes after it changes nothing.
    for late in [decided(Choice::Reject), Input::Expired, decided(Choice::Approve)] {
        assert_eq!(machine.step(late), Effects::default());
    }
    assert_eq!(machine.step(stop()).actions, [Action::KillTurns]);
}

#[test]
fn a_rejection_settles_the_run_with_its_comment_and_no_judge_is_asked() {
    let mut machine = waiting(Choice::Approve);
    let effects = machine.step(decided(Choice::Reject));
    assert_eq!(effects.append, []);
    let expected = Settlement {
        state: RunState::Cancelled,
        detail: "rejected by boss@1: not this".into(),
        reason: None,
    };
    assert_eq!(effects.actions, [Action::Settle(expected)]);
    for late in [decided(Choice::Approve), Input::Expired, stop(), steered("x")] {
        assert_eq!(machine.step(late), Effects::default());
    }
}

#[test]
fn the_end_of_the_wait_takes_the_default() {
    let mut machine = waiting(Choice::Approve);
    let effects = machine.step(Input::Expired);
    assert_eq!(effects.append[0], RunEvent::Resumed { by: "expiry".into() });
    assert!(asks_a_judge(&effects));
    assert_eq!(machine.step(decided(Choice::Reject)), Effects::default());

    let mut machine = waiting(Choice::Reject);
    let effects = machine.step(Input::Expired);
    assert_eq!(effects.append, []);
    let settled = settlement(&effects.actions);
    assert_eq!(settled.detail, "rejected by expiry: nobody decided within 60 seconds");
    assert_eq!(settled.state, RunState::Cancelled);
}

#[test]
fn a_request_to_stop_ends_the_wait_and_nothing_goes_on_after_it() {
    for late in [decided(Choice::Approve), Input::Expired] {
        let mut machine = waiting(Choice::Approve);
        let effects = machine.step(stop());
        assert_eq!(effects.append, []);
        assert_eq!(
            settlement(&effects.actions).detail,
            "cancelled by me (enough); 2 of 2 candidates had answered"
        );
        assert_eq!(machine.step(late), Effects::default());
    }
}

#[test]
fn the_first_decision_that_was_there_before_counts_when_the_gate_is_reached() {
    for (first, second) in [(Choice::Approve, Choice::Reject), (Choice::Reject, Choice::Approve)] {
        let mut machine = Machine::new(gated(&["a", "b"], second));
        let inputs = vec![decided(first), Input::Begin, answered(0, "x"), decided(second), Input::Expired];
        let (_, actions) = run(&mut machine, inputs);
        assert_eq!(asks(&actions), [0, 1], "candidates go on");
        let effects = machine.step(answered(1, "y"));
        assert!(!effects.actions.iter().any(|action| matches!(action, Action::Suspend(_))));
        match first {
            Choice::Approve => assert!(asks_a_judge(&effects)),
            Choice::Reject => {
                assert_eq!(settlement(&effects.actions).detail, "rejected by boss@1: not this");
            }
        }
    }
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
        machine.step(Input::Begin);
        let (events, actions) = run(&mut machine, inputs);
        assert!(matches!(actions.last(), Some(Action::Suspend(_))), "{names:?}");
        assert_eq!(verdicts(&events), []);
        let effects = machine.step(decided(Choice::Approve));
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
    let effects = machine.step(steered("shorter, please"));
    assert!(matches!(effects.append.as_slice(), [RunEvent::Steered { .. }]));
    assert_eq!(effects.actions, []);
    assert_eq!(machine.step(replied(Ok("{}".into()), 1)), Effects::default());
}

#[test]
fn a_rejection_of_scripted_answers_says_that_they_were() {
    let mut setup = gated(&["a"], Choice::Reject);
    setup.contestants[0].billing = Billing::Scripted;
    let mut machine = Machine::new(setup);
    let (_, actions) = run(&mut machine, vec![Input::Begin, answered(0, "x"), decided(Choice::Reject)]);
    assert!(settlement(&actions).detail.ends_with("; scripted answers, no model was called"));
}
