//! Tasks in memory, each a job that may ask its client.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cyberine_server::{InputRequest, TaskError, TaskSet, TaskState, TaskView, TaskWatch, ToolResult};
use cyberine_types::{Caller, Clock as _, Principal, SystemClock};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a task is kept.
const TTL: Duration = Duration::from_secs(10 * 60);

const POLL: Duration = Duration::from_millis(200);

/// Tasks at once; of more, the oldest that are over go first.
const KEPT: usize = 1024;

/// What a job comes to: the result of its call, or why it broke.
pub(crate) type Ended = Result<ToolResult, String>;

#[derive(Default)]
pub(crate) struct Tasks {
    tasks: Mutex<HashMap<String, Arc<Task>>>,
    running: TaskTracker,
}

struct Task {
    owner: Principal,
    view: watch::Sender<TaskView>,
    answers: Mutex<BTreeMap<String, Value>>,
    cancel: CancellationToken,
}

/// A task from within.
pub(crate) struct Job(Arc<Task>);

impl Tasks {
    /// Begins a task of `owner`. It is there before this returns.
    pub(crate) fn begin<W, F>(&self, owner: Principal, work: W) -> Result<TaskView, String>
    where
        W: FnOnce(Job) -> F,
        F: Future<Output = Ended> + Send + 'static,
    {
        let now = SystemClock.now();
        let view = TaskView {
            task_id: id()?,
            state: TaskState::Working,
            message: None,
            created_at: now,
            updated_at: now,
            ttl: Some(TTL),
            poll_interval: Some(POLL),
        };
        let task = Arc::new(Task {
            owner,
            view: watch::Sender::new(view.clone()),
            answers: Mutex::default(),
            cancel: CancellationToken::new(),
        });
        let mut tasks = locked(&self.tasks);
        make_room(&mut tasks)?;
        tasks.insert(view.task_id.clone(), Arc::clone(&task));
        let (work, cancel) = (work(Job(Arc::clone(&task))), task.cancel.clone());
        self.running.spawn(async move {
            task.set(match cancel.run_until_cancelled_owned(work).await {
                None => TaskState::Cancelled,
                Some(Ok(result)) => TaskState::Completed(result),
                Some(Err(message)) => TaskState::Failed(message),
            });
        });
        Ok(view)
    }

    /// The task, for its owner alone.
    fn find(&self, caller: &Caller, task_id: &str) -> Result<Arc<Task>, TaskError> {
        let task = locked(&self.tasks).get(task_id).cloned();
        let task = task.filter(|task| task.owner == *caller.principal());
        task.ok_or_else(|| TaskError::UnknownTask(task_id.to_owned()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An id nobody guesses.
fn id() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Forgets tasks whose time is over, so that there is room for one more.
fn make_room(tasks: &mut HashMap<String, Arc<Task>>) -> Result<(), String> {
    let now = SystemClock.now().unix_ms();
    let ttl = i64::try_from(TTL.as_millis()).unwrap_or(i64::MAX);
    tasks.retain(|_, task| task.view.borrow().created_at.unix_ms().saturating_add(ttl) > now);
    if tasks.len() < KEPT { Ok(()) } else { Err(format!("{KEPT} tasks are kept; ask again later")) }
}

impl Task {
    /// Moves on, unless the task is over.
    fn set(&self, state: TaskState) {
        self.view.send_if_modified(|view| {
            let over =
                matches!(view.state, TaskState::Completed(_) | TaskState::Failed(_) | TaskState::Cancelled);
            if !over {
                (view.state, view.updated_at) = (state, SystemClock.now());
            }
            !over
        });
    }

    /// Takes answers to open questions in.
    fn answer(&self, responses: BTreeMap<String, Value>) {
        let TaskState::InputRequired(mut open) = self.view.borrow().state.clone() else { return };
        let mut answers = locked(&self.answers);
        for (key, answer) in responses {
            if open.get(&key).is_some_and(|question| question.fits(&answer)) {
                open.remove(&key);
                answers.insert(key, answer);
            }
        }
        drop(answers);
        self.set(if open.is_empty() { TaskState::Working } else { TaskState::InputRequired(open) });
    }
}

impl Job {
    /// Asks, and waits until everything is answered.
    pub(crate) async fn ask<const N: usize>(
        &self,
        questions: [(&str, InputRequest); N],
    ) -> BTreeMap<String, Value> {
        let questions = questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
        self.0.set(TaskState::InputRequired(questions));
        let mut views = self.0.view.subscribe();
        // The sender lives as long as the task.
        let _ = views.wait_for(|view| !matches!(view.state, TaskState::InputRequired(_))).await;
        std::mem::take(&mut *locked(&self.0.answers))
    }
}

impl TaskSet for Tasks {
    fn get(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<TaskView, TaskError>> {
        let view = self.find(&caller, &task_id).map(|task| task.view.borrow().clone());
        Box::pin(std::future::ready(view))
    }

    fn update(
        &self,
        caller: Caller,
        task_id: String,
        responses: BTreeMap<String, Value>,
    ) -> BoxFuture<'_, Result<(), TaskError>> {
        let updated = self.find(&caller, &task_id).map(|task| task.answer(responses));
        Box::pin(std::future::ready(updated))
    }

    fn cancel(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<(), TaskError>> {
        let cancelled = self.find(&caller, &task_id).map(|task| task.cancel.cancel());
        Box::pin(std::future::ready(cancelled))
    }

    fn watch(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<Box<dyn TaskWatch>, TaskError>> {
        let watch = self.find(&caller, &task_id).map(|task| {
            let watch: Box<dyn TaskWatch> = Box::new(Watch { views: task.view.subscribe(), _task: task });
            watch
        });
        Box::pin(std::future::ready(watch))
    }
}

/// A task that is followed, and so kept.
struct Watch {
    views: watch::Receiver<TaskView>,
    _task: Arc<Task>,
}

impl TaskWatch for Watch {
    fn next(&mut self) -> BoxFuture<'_, Option<TaskView>> {
        Box::pin(async move {
            self.views.changed().await.ok()?;
            Some(self.views.borrow_and_update().clone())
        })
    }
}
