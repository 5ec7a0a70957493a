//! What a run tells its own mailbox.

use std::sync::Arc;

use cyberine_bus::{Channel, FromKind, Sender};
use cyberine_orchestrator::{Gate, InProcessLauncher, NoProcesses, Supervisor};
use cyberine_run_store::{Choice, DeciderKind, RunEvent, RunState, RunStore, Wish};
use cyberine_types::{InstanceId, Principal, RunId};

use crate::fake::{Fake, Stage};
use crate::post::Post;

fn stage(names: &[&str]) -> (Stage, Arc<Post>) {
    let fakes: Vec<_> = names.iter().map(|name| Fake::says(name, &format!("the answer of {name}"))).collect();
    let judge = Fake::judge_for("judge", "of b");
    let mut stage = Stage::new(&fakes.iter().collect::<Vec<_>>(), &[&judge]);
    let post = Arc::new(Post::default());
    stage.bus = post.clone();
    (stage, post)
}

fn lines(post: &Post, run: RunId) -> Vec<String> {
    post.news(run).into_iter().map(|envelope| envelope.text).collect()
}

#[tokio::test]
async fn every_change_of_state_is_told_once_in_order_as_the_run_itself() {
    let (mut stage, post) = stage(&["a", "b"]);
    stage.plan.approval = Some(Gate { seconds: 60, on_expiry: Choice::Reject });
    let run = stage
        .play_with(async |id| {
            let run = stage.see(id, |run| run.state == RunState::Suspended).await;
            assert!(run.awaiting.is_some());
            let by = "boss@1".to_owned();
            let wish =
                Wish { choice: Choice::Approve, step: None, comment: None, by, kind: DeciderKind::Mcp };
            stage.store.decide(id, wish).await.unwrap();
        })
        .await;
    let events = stage.store.events(run.run_id, 0).await.unwrap();
    let expires = events.iter().find_map(|event| match event.body {
        RunEvent::ApprovalRequested { expires_at, .. } => Some(expires_at),
        _ => None,
    });
    let expected = [
        "started".to_owned(),
        format!("suspended: waits until {} for an approval, then: reject", expires.unwrap()),
        "resumed by mcp boss@1".to_owned(),
        "judged by consensus: a tie".to_owned(),
        "judged by llm-judge: b wins".to_owned(),
        format!("settled done: {}", run.detail),
    ];
    assert_eq!(lines(&post, run.run_id), expected);
    for envelope in post.news(run.run_id) {
        assert_eq!(
            (envelope.from.kind, envelope.from.id.as_str()),
            (FromKind::Run, run.run_id.to_string().as_str())
        );
        assert_eq!((envelope.sender.channel, envelope.sender.pid), (Channel::Run, std::process::id()));
    }
}

#[tokio::test]
async fn a_run_that_another_process_settles_has_its_last_line_from_there() {
    let (stage, post) = stage(&["a"]);
    let claim = stage.admit().await;
    let id = claim.run();
    stage.store.append(&claim, vec![RunEvent::Started { pid: 7 }]).await.unwrap();
    drop(claim);
    let launcher = InProcessLauncher::new(stage.engine(), |_| unreachable!());
    let sender = Sender::new(&Principal::local("u"), Channel::Mcp, InstanceId::random());
    let store = Arc::new(stage.store.clone());
    let supervisor =
        Supervisor::new(store, launcher, Arc::new(NoProcesses)).with_bus(post.clone(), sender.clone());
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [id]);
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), []);
    let news = post.news(id);
    assert_eq!(news.len(), 1);
    assert!(
        news[0].text.starts_with("settled error: the process that carried the run out is gone"),
        "{news:?}"
    );
    assert_eq!((news[0].from.kind, &news[0].sender), (FromKind::Run, &sender));
}
