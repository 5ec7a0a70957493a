//! Whatever happens in whatever order, the log fits the store's fold, the run settles once
//! and nobody wins who has not answered.

use super::*;
use crate::judge::{Attempt, Form, Question};
use crate::trial::{TrialError, TrialReport};
use cyberine_run_store::{DeciderKind, Event, OperatorDecision, ProcessCount, Run, fold};
use cyberine_types::{RunId, Timestamp, Usd};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Course {
    endings: Vec<u8>,
    replies: Vec<u8>,
    /// Which of the open turns ends next.
    picks: Vec<usize>,
    cancel_at: Option<usize>,
    /// The default of the gate, where there is one.
    gate: Option<Choice>,
    decide_at: Option<(usize, Choice)>,
    expire_at: Option<usize>,
    steer_at: Vec<usize>,
    quorum: usize,
    max_parallel: usize,
    judge_always: bool,
    judges: Vec<JudgeKind>,
    equivalence: bool,
    rounds: usize,
    /// Turns the endings of later rounds, so that candidates may fail or agree there.
    turn: usize,
}

fn judges() -> impl Strategy<Value = Vec<JudgeKind>> {
    let all = vec![JudgeKind::Consensus, JudgeKind::LlmJudge, JudgeKind::Adversarial, JudgeKind::Command];
    proptest::sample::subsequence(all, 1..=4).prop_shuffle()
}

fn choices() -> impl Strategy<Value = Choice> {
    prop_oneof![Just(Choice::Approve), Just(Choice::Reject)]
}

fn courses() -> impl Strategy<Value = Course> {
    let endings = proptest::collection::vec(0..5_u8, 1..5);
    let replies = proptest::collection::vec(0..5_u8, 12);
    let picks = proptest::collection::vec(any::<usize>(), 40);
    let tuning = (0..4_usize, 0..4_usize, any::<bool>());
    let moment = || proptest::option::of(0..14_usize);
    let outside = (
        moment(),
        proptest::option::of(choices()),
        proptest::option::of((0..14_usize, choices())),
        moment(),
        proptest::collection::vec(0..14_usize, 0..4),
    );
    let asking = (any::<bool>(), 1..4_usize, 0..5_usize);
    (endings, replies, picks, tuning, outside, judges(), asking).prop_map(
        |(endings, replies, picks, (quorum, max_parallel, judge_always), outside, judges, asking)| {
            let (equivalence, rounds, turn) = asking;
            let (cancel_at, gate, decide_at, expire_at, steer_at) = outside;
            Course {
                endings,
                replies,
                picks,
                cancel_at,
                gate,
                decide_at,
                expire_at,
                steer_at,
                quorum,
                max_parallel,
                judge_always,
                judges,
                equivalence,
                rounds,
                turn,
            }
        },
    )
}

enum Open {
    /// Its index, and the round.
    Candidate(usize, usize),
    Judge(Question),
    Trial(Attempt),
}

fn end(turn: Open, course: &Course, asked: &mut usize) -> Input {
    match turn {
        Open::Candidate(at, round) => match (usize::from(course.endings[at]) + (round - 1) * course.turn) % 5
        {
            0 => failed(at, "auth"),
            1 => failed(at, "empty"),
            2 => answered(at, "same"),
            3 => answered(at, "Same."),
            _ => answered(at, &format!("own {at}")),
        },
        Open::Trial(attempt) => Input::Tried(match attempt.text.len() % 3 {
            0 => Err(TrialError { detail: "no program".into() }),
            rest => Ok(TrialReport { passed: rest == 1, end: "exit".into(), tail: String::new() }),
        }),
        Open::Judge(question) => {
            *asked += 1;
            let count = question.texts.len();
            let drawn = course.replies[*asked % course.replies.len()];
            let place = match drawn {
                0 => return replied(Err("crashed"), 1),
                1 => return replied(Ok("A wins, clearly".into()), 1),
                _ if question.form != Form::Rank => {
                    return replied(Ok(other_reply(&question.form, drawn)), 1);
                }
                2 => 0,
                3 => count - 1,
                _ => question.texts.iter().position(|text| text.starts_with("own")).unwrap_or(0),
            };
            let labels: Vec<String> = ('A'..).take(count).map(String::from).collect();
            let scores: Vec<_> = labels
                .iter()
                .map(|label| serde_json::json!({ "label": label, "score": 5, "reason": "" }))
                .collect();
            let reply = serde_json::json!({ "winner": labels[place], "scores": scores, "rationale": "" });
            replied(Ok(reply.to_string()), 1)
        }
    }
}

fn other_reply(form: &Form, drawn: u8) -> String {
    let reply = match form {
        Form::Same => serde_json::json!({ "same": drawn != 4, "reason": "" }),
        Form::Attack if drawn == 4 => serde_json::json!({ "attacks": [] }),
        Form::Attack => {
            let attack = serde_json::json!({ "severity": "fatal", "claim": "no", "quote": null });
            serde_json::json!({ "attacks": [attack] })
        }
        Form::Confirm { .. } if drawn == 4 => serde_json::json!({ "true_of": [], "reason": "" }),
        Form::Confirm { .. } | Form::Rank | Form::Score { .. } => {
            serde_json::json!({ "true_of": ["A", "B"], "reason": "" })
        }
    };
    reply.to_string()
}

/// What comes from outside at `step`, and what others have written into the log by then.
fn outside(course: &Course, step: usize) -> (Vec<RunEvent>, Vec<Input>) {
    let (mut log, mut inputs) = (Vec::new(), Vec::new());
    if let Some((at, choice)) = course.decide_at
        && at == step
    {
        let decision = OperatorDecision {
            decision: choice,
            run_id: RunId::random(),
            step_id: None,
            comment: None,
            decided_by: "boss@1".into(),
            decider_kind: DeciderKind::Mcp,
            decided_at: Timestamp::from_unix_ms(0),
        };
        log.push(RunEvent::Decided { decision });
        inputs.push(decided(choice));
    }
    if course.cancel_at == Some(step) {
        inputs.push(stop());
    }
    // What is suspended at the end expires.
    if course.expire_at == Some(step) || step == 40 {
        inputs.push(Input::Expired);
    }
    inputs.extend(course.steer_at.iter().filter(|at| **at == step).map(|_| steered("a word")));
    (log, inputs)
}

/// What came of a course.
#[derive(Default)]
struct Outcome {
    log: Vec<RunEvent>,
    ends: Vec<Settlement>,
    /// How many words of guidance each question to a judge showed.
    asked: Vec<usize>,
}

fn play(course: &Course) -> Outcome {
    let names: Vec<String> = (0..course.endings.len()).map(|at| format!("c{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (quorum, max_parallel, judge_always) = (course.quorum, course.max_parallel, course.judge_always);
    let gate = course.gate.map(|on_expiry| Gate { seconds: 60, on_expiry });
    let (judges, equivalence, rounds) = (course.judges.clone(), course.equivalence, course.rounds);
    let tuned =
        Setup { quorum, max_parallel, judge_always, gate, judges, equivalence, rounds, ..setup(&names) };
    let mut machine = Machine::new(tuned);
    let (mut outcome, mut open, mut asked) = (Outcome::default(), Vec::new(), 0);
    let (mut inputs, mut killed) = (vec![Input::Begin], false);
    for step in 0..300 {
        if outcome.ends.is_empty() {
            let (log, more) = outside(course, step);
            outcome.log.extend(log);
            inputs.extend(more);
        }
        for input in inputs.drain(..) {
            let effects = super::step(&mut machine, input);
            outcome.log.extend(effects.append);
            for action in effects.actions {
                match action {
                    Action::Ask(at) | Action::AskFallback(at) => {
                        assert_eq!(machine.revision(at).is_some(), machine.round() > 1);
                        open.push(Open::Candidate(at, machine.round()));
                    }
                    Action::StopCandidates => {}
                    Action::AskJudge(question) => {
                        outcome.asked.push(question.guidance.len());
                        open.push(Open::Judge(question));
                    }
                    Action::Try(attempt) => open.push(Open::Trial(attempt)),
                    Action::Suspend(gate) => outcome.log.push(RunEvent::ApprovalRequested {
                        step: STEP_ID.to_owned(),
                        expires_at: Timestamp::from_unix_ms(60_000),
                        on_expiry: gate.on_expiry,
                    }),
                    Action::KillTurns => killed = true,
                    Action::Close(_) => unreachable!("the step has closed it"),
                    Action::Settle(settlement) => outcome.ends.push(settlement),
                }
                assert!(!killed || open.len() <= names.len(), "nothing starts once turns are killed");
            }
        }
        if !open.is_empty() {
            let turn = open.remove(course.picks[step % course.picks.len()] % open.len());
            inputs.push(end(turn, course, &mut asked));
        }
    }
    outcome
}

fn position(log: &[RunEvent], wanted: impl Fn(&RunEvent) -> bool) -> Option<usize> {
    log.iter().position(wanted)
}

/// What an approval means for the log: nothing of judging stands in it before one.
fn check_gate(course: &Course, log: &[RunEvent]) {
    let approved = |event: &RunEvent| matches!(event, RunEvent::Approved { .. } | RunEvent::Resumed { .. });
    let judging = |event: &RunEvent| matches!(event, RunEvent::JudgeAsked { .. } | RunEvent::Judged { .. });
    let suspended = position(log, |event| matches!(event, RunEvent::ApprovalRequested { .. }));
    let resumed = position(log, |event| matches!(event, RunEvent::Resumed { .. }));
    if course.gate.is_none() {
        assert_eq!((suspended, resumed), (None, None));
        return;
    }
    if let Some(judging) = position(log, judging) {
        assert!(position(log, approved).is_some_and(|approved| approved < judging), "{log:?}");
        assert!(suspended.is_none_or(|at| resumed.is_some_and(|resumed| at < resumed && resumed < judging)));
    }
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
    let settled = RunEvent::Settled {
        state: end.state,
        detail: end.detail.clone(),
        reason: end.reason.map(str::to_owned),
        processes: ProcessCount::default(),
    };
    let bodies = [admitted, RunEvent::Started { pid: 1 }].into_iter().chain(log).chain([settled]);
    let at = Timestamp::from_unix_ms(0);
    let events: Vec<Event> = bodies.zip(1..).map(|(body, seq)| Event { seq, at, epoch: 1, body }).collect();
    fold(RunId::random(), &events).unwrap()
}

proptest! {
    #[test]
    fn settles_once_with_a_log_that_folds(course in courses()) {
        let Outcome { log, ends, asked } = play(&course);
        prop_assert_eq!(ends.len(), 1, "{:?}", ends);
        check_gate(&course, &log);
        let steers = log.iter().filter(|event| matches!(event, RunEvent::Steered { .. })).count();
        prop_assert!(asked.is_sorted() && asked.last().is_none_or(|shown| *shown <= steers));
        let asked = asked.len();
        let run = folded(log, &ends[0]);
        prop_assert_eq!((run.state, run.awaiting.as_ref()), (ends[0].state, None));
        let answered = course.endings.iter().filter(|ending| **ending >= 2).count();
        if run.state != RunState::Cancelled {
            prop_assert_eq!(run.state == RunState::Error, answered == 0);
            prop_assert!(run.steps[0].candidates.iter().all(|one| one.state.is_terminal()));
        } else {
            let rejected = course.gate.is_some() && ends[0].detail.starts_with("rejected by ");
            prop_assert!(rejected || course.cancel_at.is_some(), "{}", ends[0].detail);
        }
        let judging: u64 =
            run.steps.iter().flat_map(|step| &step.verdicts).map(|verdict| verdict.usage.output).sum();
        prop_assert_eq!(judging, u64::try_from(asked).unwrap(), "every reply is paid for once");
        let calls: usize = run.steps.iter().map(|step| step.judge_calls.len()).sum();
        prop_assert_eq!(calls, asked, "every question is in the log");
        prop_assert_eq!(run.usage.output, judging);
        prop_assert!(run.steps.len() <= course.rounds);
        for (step, number) in run.steps.iter().zip(1..) {
            prop_assert_eq!(&step.id, &crate::plan::step_id(number));
            prop_assert!(number == run.steps.len() || step.winner().is_none() && step.state == RunState::Done);
            if number > 1 {
                let before = &run.steps[number - 2];
                let asked = |id: &str| before.candidates.iter().any(|one| one.id == id && !one.output.is_empty());
                prop_assert!(step.candidates.iter().all(|one| asked(&one.id)), "who had answered is asked");
                if run.state != RunState::Cancelled {
                    prop_assert!(step.candidates.iter().all(|one| one.state == RunState::Done));
                }
            }
            if let Some(winner) = step.verdict.as_ref().and_then(|verdict| verdict.winner.as_ref()) {
                let won = step.candidates.iter().find(|one| one.id == *winner).unwrap();
                prop_assert_eq!(won.state, RunState::Done);
                prop_assert!(answered >= 2);
            }
        }
    }
}
