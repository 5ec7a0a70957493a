//! The run resource: `cyberine://runs/{runId}`.

use cyberine_run_store::RunSummary;
use cyberine_server::{
    Resource, ResourceContents, ResourceError, ResourcePage, ResourceSet, ResourceTemplate,
};
use cyberine_types::{Caller, RunId};
use futures_util::future::BoxFuture;

use crate::bounded::cut;
use crate::services::LazyServices;
use crate::view;

const PREFIX: &str = "cyberine://runs/";
const MIME: &str = "application/json";
/// Resources on one page.
const PAGE: u32 = 50;
/// Resources on all pages together.
const LISTED: u32 = 200;

/// The runs as resources.
#[derive(Clone)]
pub struct RunResources {
    services: LazyServices,
}

impl RunResources {
    /// Resources over `services`, which the first read or list opens.
    #[must_use]
    pub const fn new(services: LazyServices) -> Self {
        Self { services }
    }

    async fn page(&self, cursor: Option<String>) -> Result<ResourcePage, ResourceError> {
        let offset = cursor.as_deref().map_or(Some(0), offset).ok_or(ResourceError::BadCursor)?;
        let services = self.services.get().await.map_err(ResourceError::Internal)?;
        // One more than a page tells whether there is a next one.
        let found = services.registry.recent(offset, PAGE + 1).await;
        let mut runs = found.map_err(|error| ResourceError::Internal(error.to_string()))?;
        let more = runs.len() > PAGE as usize && offset + PAGE < LISTED;
        runs.truncate(PAGE as usize);
        Ok(ResourcePage {
            resources: runs.iter().map(resource).collect(),
            next_cursor: more.then(|| cursor_at(offset + PAGE)),
        })
    }

    async fn contents(&self, uri: String) -> Result<ResourceContents, ResourceError> {
        let missing = || ResourceError::NotFound { uri: uri.clone() };
        let id: RunId = uri.strip_prefix(PREFIX).and_then(|id| id.parse().ok()).ok_or_else(missing)?;
        let services = self.services.get().await.map_err(ResourceError::Internal)?;
        let run = services.look(id).await.map_err(ResourceError::Internal)?.ok_or_else(missing)?;
        Ok(ResourceContents {
            uri: view::uri(&run),
            mime_type: MIME.to_owned(),
            text: view::run_view(&run).to_string(),
        })
    }
}

fn resource(run: &RunSummary) -> Resource {
    Resource {
        uri: format!("{PREFIX}{}", run.run_id),
        name: if run.task_preview.trim().is_empty() {
            run.run_id.to_string()
        } else {
            cut(&run.task_preview, 100)
        },
        description: format!("{}, {}, {}", run.workflow_name, run.state.name(), cut(&run.cwd, 200)),
        mime_type: MIME.to_owned(),
        last_modified: Some(run.updated_at.to_string()),
    }
}

/// A cursor says where a page begins. Only the beginnings of pages are cursors of ours.
fn cursor_at(offset: u32) -> String {
    format!("recent-{offset}")
}

fn offset(cursor: &str) -> Option<u32> {
    (PAGE..LISTED).step_by(PAGE as usize).find(|offset| cursor_at(*offset) == cursor)
}

impl ResourceSet for RunResources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: format!("{PREFIX}{{runId}}"),
            name: "run".to_owned(),
            title: "Run".to_owned(),
            description: "One run with every answer, verdict and vote, as JSON.".to_owned(),
            mime_type: MIME.to_owned(),
        }]
    }

    fn list(
        &self,
        _caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        Box::pin(self.page(cursor))
    }

    fn read(&self, _caller: Caller, uri: String) -> BoxFuture<'_, Result<ResourceContents, ResourceError>> {
        Box::pin(self.contents(uri))
    }
}
