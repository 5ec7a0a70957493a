//! Samples, personas, answers that suffice and fallback models, with providers in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cyberine_orchestrator::{NoControls, Planned};
use cyberine_provider::{Provider, Role, TurnError};
use cyberine_run_store::{Run, RunEvent, RunState, RunStore, TickKind, VerdictOutcome};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::{Act, Fake, Stage, soon};

/// Three samples of one provider, of which `plays` are the turns.
fn sampled(plays: [&Arc<Fake>; 3]) -> Stage {
    let mut stage = Stage::new(&plays, &[]);
    for (candidate, number) in stage.plan.candidates.iter_mut().zip(1..) {
        let name = if number == 1 { "a".to_owned() } else { format!("a#{number}") };
        let sample_of = (number > 1).then(|| "a".to_owned());
        *candidate = Planned { name, sample_of, ..candidate.clone() };
    }
    stage
}

fn failure(run: &Run, at: usize) -> &str {
    run.steps[0].candidates[at].error.as_ref().unwrap().code.as_str()
}

#[tokio::test]
async fn the_first_answers_stop_the_rest_and_are_judged() {
    let never = Arc::new(Notify::new());
    let (a, b, c) = (Fake::says("a", "42"), Fake::says("a", "42"), Fake::holds("a", &never));
    let mut stage = sampled([&a, &b, &c]);
    stage.plan.first = Some(2);
    let run = stage.play().await;
    let step = &run.steps[0];
    let ids: Vec<_> = step.candidates.iter().map(|one| (one.id.as_str(), one.provider.as_str())).collect();
    assert_eq!(ids, [("a", "a"), ("a#2", "a"), ("a#3", "a")]);
    assert_eq!((failure(&run, 2), step.candidates[2].state), ("superseded", RunState::Cancelled));
    assert_eq!(step.candidates[2].error.as_ref().unwrap().message, "it was stopped: 2 answers were enough");
    assert_eq!(c.cancelled.load(Ordering::SeqCst), 1, "its turn was told");
    assert_eq!(step.verdict.as_ref().unwrap().outcome, VerdictOutcome::Majority);
    assert_eq!(run.state, RunState::Done);
    assert_eq!(run.detail, "the first 2 of 3 candidates answered; a majority agrees with `a`");
}

#[tokio::test]
async fn a_judge_is_asked_after_candidates_were_stopped() {
    let never = Arc::new(Notify::new());
    let (a, b, c) = (Fake::says("a", "good"), Fake::says("b", "bad"), Fake::holds("c", &never));
    let judge = Fake::judge_for("j", "good");
    let mut stage = Stage::new(&[&a, &b, &c], &[&judge]);
    stage.plan.first = Some(2);
    let run = stage.play().await;
    assert!(judge.asked() > 0, "stopping the candidates does not stop the judge");
    assert_eq!(run.steps[0].winner().unwrap().id, "a");
}

#[tokio::test]
async fn a_request_to_stop_that_comes_while_the_rest_is_dying_cancels_the_run() {
    let never = Arc::new(Notify::new());
    let (a, b, c) = (Fake::holds("a", &never), Fake::says("b", "x"), Fake::holds("c", &never));
    let mut stage = Stage::new(&[&a, &b, &c], &[]);
    (stage.plan.first, stage.plan.quorum) = (Some(2), 2);
    let claim = stage.admit().await;
    let (id, engine) = (claim.run(), stage.engine());
    let running =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    let stopping = async {
        stage
            .see(id, |run| {
                run.steps.iter().any(|step| step.candidates.iter().any(|one| one.state == RunState::Done))
            })
            .await;
        stage.store.request_cancel(id, "me@1".into(), None).await.unwrap();
    };
    let (state, ()) = soon(async { tokio::join!(running, stopping) }).await;
    assert_eq!(state.unwrap(), RunState::Cancelled);
    let run = stage.run(id).await;
    assert_eq!((failure(&run, 0), failure(&run, 2)), ("cancelled", "cancelled"));
}

#[tokio::test]
async fn a_persona_stands_before_the_task_of_its_candidate_and_of_nobody_else() {
    let echo = |name: &str| {
        Fake::new(name, |turn| {
            let said: Vec<String> =
                turn.messages.iter().map(|one| format!("{:?}: {}", one.role, one.text)).collect();
            assert_eq!(turn.messages.last().unwrap().role, Role::User);
            vec![Act::Say(said.join("; ")), Act::Stop]
        })
    };
    let (a, b) = (echo("a"), echo("b"));
    let mut stage = Stage::new(&[&a, &b], &[]);
    stage.plan.candidates[0].persona = Some("You doubt.".into());
    let run = stage.play().await;
    let outputs: Vec<_> = run.steps[0].candidates.iter().map(|one| one.output.as_str()).collect();
    assert_eq!(outputs, ["System: You doubt.; User: what is it?", "User: what is it?"]);
}

fn overloaded() -> TurnError {
    TurnError::Overloaded { detail: "busy".into(), retry_after: None }
}

/// A stage on which the fallback model of the first candidate is `second`.
fn with_fallback(first: &Arc<Fake>, second: Option<&Arc<Fake>>) -> Stage {
    let other = Fake::says("b", "y");
    let mut stage = Stage::new(&[first, &other], &[]);
    stage.plan.candidates[0].fallback_model = Some("small".into());
    if let Some(second) = second {
        let provider: Arc<dyn Provider> = Arc::clone(second) as _;
        stage.team.fallbacks.insert("a".into(), provider);
    }
    stage
}

#[tokio::test]
async fn a_run_shows_which_model_has_answered_and_why_not_the_first() {
    let (first, second) = (Fake::fails("a", overloaded()), Fake::says("a", "x"));
    let stage = with_fallback(&first, Some(&second));
    let run = stage.play().await;
    let candidate = &run.steps[0].candidates[0];
    assert_eq!((candidate.state, candidate.output.as_str()), (RunState::Done, "x"));
    assert_eq!(candidate.model.as_deref(), Some("small"));
    let before = candidate.fell_back.as_ref().unwrap();
    assert_eq!((before.model.as_deref(), before.error.code.as_str()), (None, "overloaded"));
    assert_eq!([first.asked(), second.asked()], [1, 1]);
    let events = stage.store.events(run.run_id, 0).await.unwrap();
    let fell = events.iter().position(|event| matches!(event.body, RunEvent::CandidateFellBack { .. }));
    let done = events.iter().position(
        |event| matches!(&event.body, RunEvent::CandidateDone { candidate, .. } if candidate == "a"),
    );
    assert!(fell.is_some() && fell < done);
    let heard = stage.heard.0.lock().unwrap();
    let ticks = heard.iter().filter(|tick| tick.candidate == "a" && tick.kind == TickKind::Started);
    assert_eq!(ticks.count(), 2);
}

#[tokio::test]
async fn an_answer_that_had_begun_is_not_begun_anew_with_another_model() {
    let first = Fake::new("a", |_| vec![Act::Say("half".into()), Act::Fail(overloaded())]);
    let second = Fake::says("a", "x");
    let run = with_fallback(&first, Some(&second)).play().await;
    assert_eq!((failure(&run, 0), second.asked()), ("overloaded", 0));
}

#[tokio::test]
async fn a_fallback_that_was_not_built_fails_like_any_provider() {
    let first = Fake::fails("a", overloaded());
    let run = with_fallback(&first, None).play().await;
    assert_eq!(failure(&run, 0), "unreachable");
    assert_eq!(run.steps[0].candidates[0].fell_back.as_ref().unwrap().error.code, "overloaded");
}
