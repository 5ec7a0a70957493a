//! What completes the id of a run while it is typed.

use cyberine_run_store::RunSummary;
use cyberine_server::{Completion, CompletionCall, CompletionError, CompletionRef, CompletionSet};
use futures_util::future::BoxFuture;

use crate::services::LazyServices;
use crate::{prompts, resources};

/// Runs that are looked at.
const LOOKED_AT: u32 = 200;

/// Completes ids of runs, the latest first.
#[derive(Clone)]
pub struct RunCompletions {
    /// `None` where who asks is not known to hold the token: nothing is told then.
    services: Option<LazyServices>,
}

impl RunCompletions {
    /// Completions over `services`, which the first one opens.
    #[must_use]
    pub const fn new(services: LazyServices) -> Self {
        Self { services: Some(services) }
    }

    /// Completions that tell nothing: behind a gate, for a completion carries no token.
    #[must_use]
    pub const fn closed() -> Self {
        Self { services: None }
    }

    async fn completed(&self, call: CompletionCall) -> Result<Completion, CompletionError> {
        let unknown = |what: String| CompletionError::Unknown(what);
        let of_run = match &call.reference {
            CompletionRef::Prompt { name } if !prompts::has(name, &call.argument) => {
                return Err(unknown(format!(
                    "no prompt of this server has an argument of that name: `{name}`"
                )));
            }
            CompletionRef::Prompt { name } => prompts::takes_run(name, &call.argument),
            CompletionRef::Resource { uri } => {
                if *uri != resources::template() || call.argument != prompts::RUN_ID {
                    return Err(unknown(format!(
                        "only `{}` of `{}` can be completed",
                        prompts::RUN_ID,
                        resources::template()
                    )));
                }
                true
            }
        };
        let Some(services) = self.services.as_ref().filter(|_| of_run) else {
            return Ok(Completion::default());
        };
        let services = services.get().await.map_err(CompletionError::Internal)?;
        let recent = services.registry.recent(None, LOOKED_AT).await;
        let recent =
            recent.map_err(|error| CompletionError::Internal(format!("{error}. {}", error.advice())))?;
        Ok(among(&recent, &call.value))
    }
}

fn among(runs: &[RunSummary], typed: &str) -> Completion {
    let typed = typed.trim().to_ascii_lowercase();
    let values: Vec<String> =
        runs.iter().map(|run| run.run_id.to_string()).filter(|id| id.starts_with(&typed)).collect();
    let has_more = runs.len() >= LOOKED_AT as usize || values.len() > Completion::LIMIT;
    Completion { total: None, has_more, values }
}

impl CompletionSet for RunCompletions {
    fn complete(&self, call: CompletionCall) -> BoxFuture<'_, Result<Completion, CompletionError>> {
        Box::pin(self.completed(call))
    }
}
