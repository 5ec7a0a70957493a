//! An orchestration inside another program: three programs are asked, the answers are judged,
//! nothing touches the disk. `cargo run -p cyberine-orchestrator --example embed`

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{Channel, NoBus, Sender};
use cyberine_orchestrator::{
    DispatchRequest, Engine, InProcessLauncher, NoProcesses, NoTicks, NoTrials, OrchestrateConfig, Plan,
    Supervisor, Team, plan,
};
use cyberine_process::ChildEnvironment;
use cyberine_provider::{ProviderConfig, build};
use cyberine_run_store::{MemoryRunStore, Run, RunStore};
use cyberine_types::{InstanceId, Principal, RunId, SystemClock};

/// Any program can be a provider; real ones are `openai`, `anthropic` and `claude-cli`.
fn program(answer: &str) -> Result<ProviderConfig, serde_json::Error> {
    let script = format!("cat > /dev/null; echo '{answer}'");
    serde_json::from_value(serde_json::json!({"kind": "command", "command": ["sh", "-c", script]}))
}

fn providers() -> Result<BTreeMap<String, ProviderConfig>, serde_json::Error> {
    let answers = [("ada", "42"), ("bob", "The answer is 42."), ("eve", "41")];
    answers.into_iter().map(|(name, answer)| Ok((name.to_owned(), program(answer)?))).collect()
}

fn team(plan: &Plan, environment: &ChildEnvironment) -> Team {
    let built = plan
        .candidates
        .iter()
        .filter_map(|planned| build(&planned.name, &planned.provider, &|_| None, environment).ok());
    Team { candidates: built.collect(), ..Team::default() }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn RunStore> = Arc::new(MemoryRunStore::new(Arc::new(SystemClock)));
    let environment = ChildEnvironment::allowed(std::env::vars_os());
    let reaper = Arc::new(NoProcesses);
    let engine = Engine {
        store: Arc::clone(&store),
        reaper: reaper.clone(),
        trials: Arc::new(NoTrials),
        ticks: Arc::new(NoTicks),
        bus: Arc::new(NoBus),
        sender: Sender::new(&Principal::local("u"), Channel::Run, InstanceId::random()),
    };
    let launcher = InProcessLauncher::new(engine, move |plan| team(plan, &environment));
    let supervisor = Supervisor::new(Arc::clone(&store), launcher.clone(), reaper);

    let request = DispatchRequest {
        run: RunId::random(),
        prompt: "What is six times seven?".to_owned(),
        cwd: std::env::current_dir()?.display().to_string(),
        requested_by: "embed@1".to_owned(),
        plan: plan(&OrchestrateConfig::default(), &providers()?, 7)?,
        reserve: cyberine_run_store::Reserve::default(),
    };
    let dispatched = supervisor.dispatch(request).await?;
    let mut seen = 0;
    let run: Run = loop {
        let run = store.load(dispatched.run).await?.ok_or("the run is gone")?;
        if run.state.is_terminal() {
            break run;
        }
        store.changed(dispatched.run, seen, Duration::from_secs(1)).await;
        seen = run.next_seq - 1;
    };
    launcher.close().await;
    for step in &run.steps {
        for candidate in &step.candidates {
            println!("{}: {}", candidate.id, candidate.output);
        }
        let winner = step.winner().map_or("nobody", |candidate| candidate.id.as_str());
        println!(
            "winner: {winner}; {}",
            step.verdict.as_ref().map_or("", |verdict| verdict.rationale.as_str())
        );
    }
    Ok(())
}
