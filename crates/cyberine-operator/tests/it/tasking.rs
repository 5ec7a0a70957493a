//! Runs as tasks, and what helps a user to begin.

use std::collections::BTreeMap;

use cyberine_operator::{OperatorPrompts, RunCompletions, RunTasks};
use cyberine_run_store::RunState;
use cyberine_server::{
    CompletionCall, CompletionRef, CompletionSet, ContentBlock, InputRequest, Outcome, Progress, PromptCall,
    PromptError, PromptOutcome, PromptSet, TaskError, TaskSet, TaskState, TaskView, ToolSet,
};
use cyberine_types::RunId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stage::{Setting, Stage, caller, soon};

/// Dispatches for a client that declared tasks.
async fn begun(stage: &Stage, arguments: Value) -> TaskView {
    let mut call = stage.call_of("orchestrate", arguments, Progress::none());
    call.tasks = true;
    let outcome = soon(stage.tools.call(call)).await.unwrap();
    let Outcome::Task(task) = outcome else { panic!("{outcome:?}") };
    task
}

fn tasks(stage: &Stage) -> RunTasks {
    RunTasks::new(stage.services.clone())
}

async fn look(stage: &Stage, task: &TaskView) -> TaskView {
    soon(tasks(stage).get(caller(), task.task_id.clone())).await.unwrap()
}

fn run_of(task: &TaskView) -> RunId {
    task.task_id.parse().unwrap()
}

#[tokio::test]
async fn a_dispatched_run_is_a_task_whose_result_satisfies_the_tool() {
    let stage = Stage::free(&[("a", "x"), ("b", "x")]);
    let task = begun(&stage, json!({ "prompt": "one" })).await;
    assert_eq!(task.state, TaskState::Working);
    assert!(task.ttl.is_none() && task.poll_interval.is_some());
    assert_eq!(look(&stage, &task).await.state, TaskState::Working, "it is there before its id is given out");
    let mut watch = soon(tasks(&stage).watch(caller(), task.task_id.clone())).await.unwrap();
    stage.gate.send_replace(true);
    let mut last = None;
    while let Some(view) = soon(watch.next()).await {
        last = Some(view);
    }
    let last = last.unwrap();
    let TaskState::Completed(result) = &last.state else { panic!("{last:?}") };
    let listed = stage.tools.list(&caller());
    let tool = listed.iter().find(|tool| tool.name == "orchestrate").unwrap();
    assert_eq!(tool.check_result(result), Ok(()));
    assert_eq!((&result.structured["run"]["state"], result.is_error), (&json!("done"), false));
    assert_eq!(result.structured["runId"], task.task_id);
    assert!(result.structured.to_string().len() <= 24_000);
    assert_eq!(look(&stage, &task).await.state, last.state);
}

#[tokio::test]
async fn a_repeated_call_is_the_same_task_and_what_dispatches_nothing_is_none() {
    let stage = Stage::free(&[("a", "x")]);
    let arguments = json!({ "prompt": "one", "idempotencyKey": "k" });
    let first = begun(&stage, arguments.clone()).await;
    assert_eq!(begun(&stage, arguments).await.task_id, first.task_id);
    for (tool, arguments) in [
        ("orchestrate", json!({ "prompt": "one", "dryRun": true })),
        ("inspect_run", json!({ "runId": first.task_id })),
        ("orchestrate", json!({ "prompt": "" })),
    ] {
        let mut call = stage.call_of(tool, arguments, Progress::none());
        call.tasks = true;
        assert!(matches!(soon(stage.tools.call(call)).await, Ok(Outcome::Complete(_))), "{tool}");
    }
}

#[tokio::test]
async fn a_task_is_cancelled_as_its_run_is() {
    let stage = Stage::free(&[("a", "x")]);
    let task = begun(&stage, json!({ "prompt": "one" })).await;
    for _ in 0..2 {
        soon(tasks(&stage).cancel(caller(), task.task_id.clone())).await.unwrap();
        stage.see(run_of(&task), |run| run.state == RunState::Cancelled).await;
    }
    assert_eq!(look(&stage, &task).await.state, TaskState::Cancelled);
    for unknown in [RunId::random().to_string(), "../x".to_owned(), String::new()] {
        let error = soon(tasks(&stage).get(caller(), unknown.clone())).await.unwrap_err();
        assert_eq!(error, TaskError::UnknownTask(unknown.clone()));
        assert!(soon(tasks(&stage).cancel(caller(), unknown)).await.is_err());
    }
}

#[tokio::test]
async fn a_run_that_waits_for_an_approval_is_a_task_that_wants_input() {
    for (answer, expected) in [
        (json!({ "action": "accept", "content": { "approve": true, "comment": "go" } }), "approve"),
        (json!({ "action": "accept", "content": { "approve": false } }), "reject"),
        (json!({ "action": "decline" }), "reject"),
    ] {
        let stage = Stage::set(Setting::approving(), &[("a", "x")], cyberine_types::Billing::Free);
        stage.gate.send_replace(true);
        let task = begun(&stage, json!({ "prompt": "one" })).await;
        let id = run_of(&task);
        stage.see(id, |run| run.state == RunState::Suspended).await;
        let view = look(&stage, &task).await;
        let TaskState::InputRequired(questions) = view.state else { panic!("{view:?}") };
        let (key, InputRequest::Form(form)) = questions.first_key_value().unwrap() else { panic!("a form") };
        assert!(
            form.message.contains(&task.task_id)
                && form.requested_schema["properties"]["approve"].is_object()
        );
        let update = |answers: BTreeMap<String, Value>| tasks(&stage).update_soon(&task, answers);
        // What decides nothing leaves the question open.
        for nothing in [
            BTreeMap::new(),
            BTreeMap::from([("other".to_owned(), answer.clone())]),
            BTreeMap::from([(key.clone(), json!({ "action": "cancel" }))]),
            BTreeMap::from([(key.clone(), json!({ "action": "accept" }))]),
            BTreeMap::from([(key.clone(), json!({ "action": "accept", "content": { "approve": "true" } }))]),
        ] {
            update(nothing).await;
            assert!(matches!(look(&stage, &task).await.state, TaskState::InputRequired(_)));
        }
        update(BTreeMap::from([(key.clone(), answer)])).await;
        let run = stage.see(id, |run| run.state.is_terminal()).await;
        let decision = run.decisions.first().unwrap();
        assert_eq!((json!(decision.decision), decision.decided_by.as_str()), (json!(expected), "host@1.2"));
    }
}

trait UpdateSoon {
    async fn update_soon(self, task: &TaskView, answers: BTreeMap<String, Value>);
}

impl UpdateSoon for RunTasks {
    async fn update_soon(self, task: &TaskView, answers: BTreeMap<String, Value>) {
        soon(self.update(caller(), task.task_id.clone(), answers)).await.unwrap();
    }
}

fn prompt(name: &str, arguments: &[(&str, &str)]) -> Result<PromptOutcome, PromptError> {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let call = PromptCall {
        name: name.to_owned(),
        arguments,
        caller: caller(),
        capabilities: cyberine_server::ClientCapabilities::default(),
        input_responses: BTreeMap::new(),
        state: None,
        cancel: CancellationToken::new(),
    };
    futures_util::FutureExt::now_or_never(OperatorPrompts.get(call)).expect("nothing is waited for")
}

#[test]
fn prompts_name_the_tools_and_point_to_the_run() {
    let id = RunId::random();
    let PromptOutcome::Complete(asked) = prompt("ask_the_team", &[("question", "why?")]).unwrap() else {
        panic!("nothing is asked back")
    };
    let ContentBlock::Text { text, .. } = &asked.messages[0].content else { panic!("text") };
    assert!(
        text.contains("`orchestrate`") && text.contains("spends") && text.ends_with("\n\nwhy?"),
        "{text}"
    );
    let PromptOutcome::Complete(review) = prompt("review_run", &[("runId", &id.to_string())]).unwrap() else {
        panic!("nothing is asked back")
    };
    let ContentBlock::ResourceLink(link) = &review.messages[1].content else { panic!("a pointer") };
    assert_eq!(link.uri, format!("cyberine://runs/{id}"));
    for wrong in [prompt("ask_the_team", &[("question", " ")]), prompt("review_run", &[("runId", "x")])] {
        assert!(matches!(wrong, Err(PromptError::Arguments(_))), "{wrong:?}");
    }
    assert_eq!(prompt("other", &[]), Err(PromptError::UnknownPrompt("other".to_owned())));
    let listed = OperatorPrompts.list(&caller());
    assert!(listed.iter().all(|prompt| prompt.description.is_some() && !prompt.arguments.is_empty()));
}

#[tokio::test]
async fn ids_of_runs_are_completed_unless_a_gate_is_closed() {
    let stage = Stage::free(&[("a", "x")]);
    let (one, two) = (stage.finished("one").await.to_string(), stage.finished("two").await.to_string());
    let call = |reference: CompletionRef, argument: &str, value: &str| CompletionCall {
        reference,
        argument: argument.to_owned(),
        value: value.to_owned(),
        context: BTreeMap::new(),
        caller: caller(),
    };
    let template = || CompletionRef::Resource { uri: "cyberine://runs/{runId}".to_owned() };
    let review = || CompletionRef::Prompt { name: "review_run".to_owned() };
    let open = RunCompletions::new(stage.services.clone());
    for reference in [template(), review()] {
        let all = soon(open.complete(call(reference.clone(), "runId", ""))).await.unwrap();
        assert_eq!((all.values.as_slice(), all.has_more), ([two.clone(), one.clone()].as_slice(), false));
        let some = soon(open.complete(call(reference, "runId", &one[..8].to_uppercase()))).await.unwrap();
        assert_eq!(some.values, std::slice::from_ref(&one));
    }
    let question = CompletionRef::Prompt { name: "ask_the_team".to_owned() };
    assert!(soon(open.complete(call(question, "question", "w"))).await.unwrap().values.is_empty());
    for (reference, argument) in [
        (review(), "x"),
        (template(), "x"),
        (CompletionRef::Prompt { name: "x".to_owned() }, "runId"),
        (CompletionRef::Resource { uri: "file:///{runId}".to_owned() }, "runId"),
    ] {
        assert!(soon(open.complete(call(reference, argument, ""))).await.is_err());
    }
    let closed = soon(RunCompletions::closed().complete(call(template(), "runId", ""))).await.unwrap();
    assert!(closed.values.is_empty());
}
