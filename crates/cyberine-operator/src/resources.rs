//! The run resource: `cyberine://runs/{runId}`.

use std::fmt;

use cyberine_run_store::{Cursor, Run, RunSummary, StoreError};
use cyberine_server::{
    LinkedResource, ReadOutcome, Resource, ResourceBody, ResourceContents, ResourceError, ResourcePage,
    ResourceRead, ResourceSet, ResourceTemplate, ResourceWatch,
};
use cyberine_types::{Caller, RunId, Timestamp};
use futures_util::future::BoxFuture;

use crate::bounded::cut;
use crate::services::{LazyServices, Services};
use crate::view;

mod watch;

pub(crate) use watch::RunWatch;

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
        let from = match cursor {
            Some(cursor) => Some(Place::parse(&cursor).ok_or(ResourceError::BadCursor)?),
            None => None,
        };
        let services = self.services.get().await.map_err(ResourceError::Internal)?;
        let after = from.map(|place| place.after);
        // One more than a page tells whether there is a next one.
        let found = services.listed(|| services.registry.recent(after, PAGE + 1)).await;
        let mut runs = found.map_err(|error| match error {
            StoreError::NotFound { .. } => ResourceError::BadCursor,
            other => ResourceError::Internal(format!("{other}. {}", other.advice())),
        })?;
        let shown = from.map_or(0, |place| place.shown) + PAGE;
        let more = runs.len() > PAGE as usize && shown < LISTED;
        runs.truncate(PAGE as usize);
        let last = runs.last().filter(|_| more).map(Cursor::from);
        Ok(ResourcePage {
            resources: runs.iter().map(resource).collect(),
            next_cursor: last.map(|after| Place { shown, after }.to_string()),
        })
    }

    /// The run that `uri` names, as it stands.
    async fn run(&self, uri: &str) -> Result<(&Services, Run), ResourceError> {
        let missing = || ResourceError::NotFound { uri: uri.to_owned() };
        let id: RunId = uri.strip_prefix(PREFIX).and_then(|id| id.parse().ok()).ok_or_else(missing)?;
        let services = self.services.get().await.map_err(ResourceError::Internal)?;
        let run = services.look(id).await.map_err(ResourceError::Internal)?.ok_or_else(missing)?;
        Ok((services, run))
    }

    async fn contents(&self, uri: String) -> Result<ReadOutcome, ResourceError> {
        let (_, run) = self.run(&uri).await?;
        let body = ResourceBody::Text(view::run_view(&run).to_string());
        let whole = ResourceContents { uri: view::uri(&run), mime_type: MIME.to_owned(), body };
        Ok(ReadOutcome::Contents(vec![whole]))
    }
}

/// The template of the runs' URIs.
pub(crate) fn template() -> String {
    format!("{PREFIX}{{runId}}")
}

/// A pointer to a run, which may not be there.
pub(crate) fn link(run: RunId) -> LinkedResource {
    LinkedResource {
        uri: format!("{PREFIX}{run}"),
        name: format!("run {run}"),
        mime_type: Some(MIME.to_owned()),
        ..LinkedResource::default()
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

/// Where a page begins: after so many runs, the last of which was this one, as it was then. Runs
/// that change between two pages move no other in or out of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    shown: u32,
    after: Cursor,
}

impl Place {
    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("recent-")?.splitn(3, '-');
        let shown = parts.next()?.parse().ok()?;
        let updated_at = Timestamp::from_unix_ms(parts.next()?.parse().ok()?);
        let run = parts.next()?.parse().ok()?;
        let place = Self { shown, after: Cursor { updated_at, run } };
        let begins_a_page = (PAGE..LISTED).step_by(PAGE as usize).any(|page| page == shown);
        (begins_a_page && place.to_string() == text).then_some(place)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, after: Cursor { updated_at, run } } = self;
        write!(out, "recent-{shown}-{}-{run}", updated_at.unix_ms())
    }
}

impl ResourceSet for RunResources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: template(),
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

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        Box::pin(self.contents(read.uri))
    }

    /// A run's id may be written in either case; it is one run.
    fn plain_uri(&self, uri: &str) -> String {
        let id: Option<RunId> = uri.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
        id.map_or_else(|| uri.to_owned(), |id| format!("{PREFIX}{id}"))
    }

    fn is_watchable(&self) -> bool {
        true
    }

    /// Every event of a run is a change, whichever process wrote it.
    fn watch(
        &self,
        _caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        Box::pin(async move {
            let (services, run) = self.run(&uri).await?;
            Ok(Box::new(RunWatch::new(services.clone(), &run)) as Box<dyn ResourceWatch>)
        })
    }
}
