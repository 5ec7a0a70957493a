//! The tool set: from a call to its result.

use std::sync::Arc;

use cyberine_server::{Call, CallError, Outcome, Tool, ToolResult, ToolSet};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;

use crate::services::LazyServices;
use crate::{arguments, cancel, catalog, inspect, orchestrate, query};

/// The operator tools. The gate that asks for a token goes around them.
#[derive(Clone)]
pub struct OperatorTools {
    services: LazyServices,
}

impl OperatorTools {
    /// Tools over `services`, which the first call opens.
    #[must_use]
    pub const fn new(services: LazyServices) -> Self {
        Self { services }
    }

    async fn answer(&self, call: Call) -> Result<ToolResult, String> {
        let Call { name, arguments, caller, progress, background, cancel, .. } = call;
        let by = caller.attribution();
        match name.as_str() {
            catalog::ORCHESTRATE => {
                let arguments = arguments::read(arguments)?;
                orchestrate::orchestrate(&self.services, arguments, by, progress, &background, &cancel).await
            }
            catalog::INSPECT_RUN => {
                let arguments = arguments::read(arguments)?;
                inspect::inspect(self.services.get().await?, &arguments, progress).await
            }
            catalog::QUERY_RUNS => {
                query::query(self.services.get().await?, arguments::read(arguments)?).await
            }
            _ => cancel::cancel(self.services.get().await?, &arguments::read(arguments)?, by).await,
        }
    }
}

impl ToolSet for OperatorTools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        catalog::tools()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        Box::pin(async move {
            if !catalog::tools().iter().any(|tool| tool.name == call.name) {
                return Err(CallError::UnknownTool(call.name));
            }
            let result = self.answer(call).await.unwrap_or_else(ToolResult::error);
            Ok(Outcome::Complete(result))
        })
    }
}
