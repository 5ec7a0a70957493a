use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

use cyberine_bus::{Channel, Sender};
use cyberine_provider::{Capabilities, ProviderConfig, ProviderInfo, TurnEvent};
use cyberine_run_store::{MemoryRunStore, NewRun, Reserve, RunStore as _};
use cyberine_types::{Billing, InstanceId, Principal, SystemClock, Usd};
use futures_util::stream::{self, BoxStream};

use crate::config::OrchestrateConfig;
use crate::control::NoControls;
use crate::plan::{WORKFLOW, plan};
use crate::reaper::NoProcesses;
use crate::ticks::NoTicks;
use crate::trial::NoTrials;

/// Never ends, whatever it is told.
struct Deaf(ProviderInfo);

impl Provider for Deaf {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn turn(
        &self,
        _turn: Turn,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        Box::pin(stream::pending())
    }
}

#[tokio::test]
async fn a_turn_that_does_not_end_when_told_is_dropped_and_the_run_settles() {
    let config: ProviderConfig = serde_json::from_str(r#"{"kind":"command","command":["x"]}"#).unwrap();
    let providers = BTreeMap::from([("a".to_owned(), config.clone()), ("b".to_owned(), config)]);
    let plan = plan(&OrchestrateConfig::default(), &providers, 0).unwrap();
    let deaf = |name: &str| -> Arc<dyn Provider> {
        let (name, kind) = (name.to_owned(), "command".to_owned());
        Arc::new(Deaf(ProviderInfo { name, kind, model: None, billing: Billing::Free }))
    };
    let team = Team { candidates: vec![deaf("a"), deaf("b")], ..Team::default() };
    let store = Arc::new(MemoryRunStore::new(Arc::new(SystemClock)));
    let new = NewRun {
        id: RunId::random(),
        workflow: WORKFLOW.to_owned(),
        prompt: "p".to_owned(),
        cwd: "/".to_owned(),
        requested_by: "cli".to_owned(),
        spec: plan.to_spec().unwrap(),
    };
    let claim = store.admit(new, Reserve::of(Usd::ZERO, None)).await.unwrap();
    let id = claim.run();
    let engine = Engine {
        store: store.clone(),
        reaper: Arc::new(NoProcesses),
        trials: Arc::new(NoTrials),
        ticks: Arc::new(NoTicks),
        bus: Arc::new(cyberine_bus::NoBus),
        sender: Sender::new(&Principal::local("u"), Channel::Run, InstanceId::random()),
    };
    let (task, cwd, reserved) = ("p".to_owned(), PathBuf::from("/"), Usd::ZERO);
    let order = Order { task, cwd, begun: false, steers: Vec::new(), reserved, shares: Vec::new() };
    let mut shell = Shell::new(&engine, claim, &plan, team, order);
    shell.grace = Duration::from_millis(20);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), shell.run(Box::new(NoControls), cancel)).await;
    assert_eq!(ended.expect("it ends in time").unwrap(), RunState::Cancelled);
    let run = store.load(id).await.unwrap().unwrap();
    assert!(run.steps[0].candidates.iter().all(|one| one.state == RunState::Cancelled));
}
