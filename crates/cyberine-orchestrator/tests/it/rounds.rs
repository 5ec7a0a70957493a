//! Candidates that are asked again where they do not agree, with providers in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cyberine_orchestrator::{JudgeKind, NoControls};
use cyberine_provider::{Role, Turn, TurnError};
use cyberine_run_store::{Run, RunState, RunStore, VerdictOutcome};
use cyberine_types::Usd;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::{Act, Fake, Stage, soon};

/// What was asked of `turn`: the task alone, or the whole of a later round.
fn prompt(turn: &Turn) -> &str {
    &turn.messages.iter().find(|message| message.role == Role::User).unwrap().text
}

fn is_again(turn: &Turn) -> bool {
    prompt(turn).contains(" begin your previous answer]")
}

/// Says `first`, and `later` in every round after that.
fn turning(name: &str, first: &'static str, later: &'static str) -> Arc<Fake> {
    Fake::new(name, move |turn| vec![Act::Say(if is_again(turn) { later } else { first }.into()), Act::Stop])
}

fn stage(candidates: &[&Arc<Fake>], rounds: usize) -> Stage {
    let mut stage = Stage::new(candidates, &[]);
    (stage.plan.rounds, stage.plan.judges) = (rounds, vec![JudgeKind::Consensus]);
    stage
}

fn steps(run: &Run) -> Vec<(&str, Option<VerdictOutcome>)> {
    run.steps
        .iter()
        .map(|step| (step.id.as_str(), step.verdict.as_ref().map(|verdict| verdict.outcome)))
        .collect()
}

#[tokio::test]
async fn candidates_that_see_each_other_agree_and_the_second_round_has_the_winner() {
    let doubter = Fake::new("a", |turn| {
        if !is_again(turn) {
            return vec![Act::Say("41".into()), Act::Stop];
        }
        let rules = &turn.messages[0];
        assert_eq!((rules.role, turn.messages.len()), (Role::System, 2));
        assert!(rules.text.starts_with("You doubt.\n\nYou have answered the task below before"));
        let shown = prompt(turn);
        assert!(shown.contains(" begin task]\nwhat is it?\n[") && shown.contains("]\n41\n["), "{shown}");
        let other = shown.split(" begin answer A]\n").nth(1).unwrap().split("\n[").next().unwrap();
        vec![Act::Say(other.to_owned()), Act::Stop]
    });
    let sure = turning("b", "42", "42");
    let mut stage = stage(&[&doubter, &sure], 3);
    stage.plan.candidates[0].persona = Some("You doubt.".into());
    let run = stage.play().await;
    let (tie, majority) = (Some(VerdictOutcome::Tie), Some(VerdictOutcome::Majority));
    assert_eq!(steps(&run), [("dispatch", tie), ("round-2", majority)]);
    assert_eq!(run.detail, "2 of 2 candidates answered; a majority agrees with `a`, in round 2");
    assert_eq!(run.winner().unwrap().output, "42");
    assert_eq!(run.steps[0].candidates[0].output, "41", "what was said first stays on record");
    assert_eq!((doubter.asked(), sure.asked()), (2, 2));
    assert_eq!(run.usage.usd, Some(Usd::from_micros(400)));
}

#[tokio::test]
async fn votes_of_a_round_are_counted_in_that_round_only() {
    // `a` and `b` say the same thing, and never in the same round.
    let (a, b, c) = (turning("a", "x", "p"), turning("b", "y", "x"), turning("c", "z", "q"));
    let run = stage(&[&a, &b, &c], 2).play().await;
    let tie = Some(VerdictOutcome::Tie);
    assert_eq!(steps(&run), [("dispatch", tie), ("round-2", tie)]);
    assert!(run.steps.iter().all(|step| step.verdicts.len() == 1 && step.candidates.len() == 3));
    assert_eq!((run.winner(), run.state), (None, RunState::Done));
    assert_eq!(run.detail, "3 of 3 candidates answered; a tie, no winner, after 2 rounds");
}

#[tokio::test]
async fn a_model_judges_every_round_for_itself() {
    // It prefers what is shown first until there is something good.
    let judge = Fake::new("j", |turn| {
        let blocks = crate::fake::blocks(prompt(turn));
        let place = blocks.iter().position(|text| text == "good").unwrap_or(0);
        vec![Act::Say(crate::fake::reply(place, blocks.len())), Act::Stop]
    });
    let (a, b) = (turning("a", "x", "good"), turning("b", "y", "y"));
    let mut stage = Stage::new(&[&a, &b], &[&judge]);
    stage.plan.rounds = 2;
    let run = stage.play().await;
    let (tie, winner) = (Some(VerdictOutcome::Tie), Some(VerdictOutcome::Winner));
    assert_eq!(steps(&run), [("dispatch", tie), ("round-2", winner)]);
    assert_eq!(run.steps.iter().map(|step| step.judge_calls.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(run.winner().unwrap().output, "good");
}

#[tokio::test]
async fn who_fails_in_a_later_round_keeps_its_answer_and_what_it_used_is_counted_once() {
    let fails = Fake::new("a", |turn| {
        let cut = TurnError::Cut { detail: "gone".into() };
        if is_again(turn) {
            vec![Act::Say("half".into()), Act::Fail(cut)]
        } else {
            vec![Act::Say("42".into()), Act::Stop]
        }
    });
    let turns = turning("b", "41", "42");
    let never = Fake::fails("c", TurnError::Auth { detail: "no".into() });
    let run = stage(&[&fails, &turns, &never], 2).play().await;
    let step = &run.steps[1];
    let ids: Vec<_> = step.candidates.iter().map(|one| one.id.as_str()).collect();
    assert_eq!((ids, never.asked()), (vec!["a", "b"], 1), "who failed first is not asked again");
    let kept = &step.candidates[0];
    assert_eq!((kept.state, kept.output.as_str()), (RunState::Done, "42"));
    assert_eq!(kept.kept_from.as_deref(), Some("dispatch"));
    assert_eq!((kept.error.as_ref().unwrap().code.as_str(), kept.usage.output), ("cut", 2));
    assert_eq!(step.verdict.as_ref().unwrap().outcome, VerdictOutcome::Majority);
    assert_eq!(run.usage.usd, Some(Usd::from_micros(400)));
}

#[tokio::test]
async fn a_request_to_stop_in_the_second_round_cancels_the_run_and_keeps_the_first() {
    let never = Arc::new(Notify::new());
    let holds = Fake::new("a", move |turn| {
        let act = if is_again(turn) { Act::Hold(Arc::clone(&never)) } else { Act::Say("x".into()) };
        vec![act, Act::Stop]
    });
    let stage = stage(&[&holds, &turning("b", "y", "x")], 3);
    let claim = stage.admit().await;
    let (id, engine) = (claim.run(), stage.engine());
    let running =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    let stopping = async {
        stage
            .see(id, |run| {
                run.steps
                    .get(1)
                    .is_some_and(|step| step.candidates.iter().any(|one| one.state == RunState::Done))
            })
            .await;
        stage.store.request_cancel(id, "me@1".into(), None).await.unwrap();
    };
    let (state, ()) = soon(async { tokio::join!(running, stopping) }).await;
    assert_eq!(state.unwrap(), RunState::Cancelled);
    let run = stage.run(id).await;
    assert_eq!(holds.cancelled.load(Ordering::SeqCst), 1, "its turn was told");
    assert_eq!(steps(&run), [("dispatch", Some(VerdictOutcome::Tie)), ("round-2", None)]);
    let states: Vec<_> = run.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [RunState::Done, RunState::Cancelled]);
    let candidate = &run.steps[1].candidates[0];
    assert_eq!((candidate.state, candidate.kept_from.as_ref()), (RunState::Cancelled, None));
    assert_eq!(run.winner(), None);
}

#[tokio::test]
async fn answers_that_sufficed_in_the_first_round_do_not_stop_the_second() {
    let (never, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let held = Arc::clone(&gate);
    let a = Fake::new("a", move |turn| {
        if !is_again(turn) {
            return vec![Act::Say("x".into()), Act::Stop];
        }
        vec![Act::Say("begun".into()), Act::Hold(Arc::clone(&held)), Act::Stop]
    });
    let (b, c) = (turning("b", "y", "begun and ended"), Fake::holds("c", &never));
    let mut stage = stage(&[&a, &b, &c], 2);
    stage.plan.first = Some(2);
    let stage = &stage;
    let run = stage
        .play_with(|id| async move {
            let answered = |run: &Run| {
                run.steps.get(1).is_some_and(|step| {
                    step.candidates.iter().any(|one| one.id == "b" && one.state == RunState::Done)
                })
            };
            stage.see(id, answered).await;
            gate.notify_one();
        })
        .await;
    let step = &run.steps[1];
    assert_eq!(step.verdict.as_ref().unwrap().outcome, VerdictOutcome::Majority);
    assert_eq!((step.candidates.len(), c.asked(), a.cancelled.load(Ordering::SeqCst)), (2, 1, 0));
    assert_eq!(step.candidates[0].kept_from, None);
}

#[tokio::test]
async fn a_fallback_model_is_shown_the_same_in_a_later_round() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let busy = Fake::new("a", |turn| {
        let error = TurnError::Overloaded { detail: "busy".into(), retry_after: None };
        if is_again(turn) { vec![Act::Fail(error)] } else { vec![Act::Say("x".into()), Act::Stop] }
    });
    let second = Fake::new("a", move |turn| {
        counted.fetch_add(usize::from(is_again(turn)), Ordering::SeqCst);
        vec![Act::Say("y".into()), Act::Stop]
    });
    let mut stage = stage(&[&busy, &turning("b", "y", "y")], 2);
    stage.plan.candidates[0].fallback_model = Some("small".into());
    stage.team.fallbacks.insert("a".into(), second);
    let run = stage.play().await;
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert_eq!(run.steps[1].verdict.as_ref().unwrap().outcome, VerdictOutcome::Majority);
}
