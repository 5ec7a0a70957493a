//! The providers of a run, built.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_provider::{Capabilities, Provider, ProviderInfo, Turn, TurnError, TurnEvent};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio_util::sync::CancellationToken;

/// The providers a run needs.
#[derive(Clone, Default)]
pub struct Team {
    /// The candidates' providers, in the order of the plan.
    pub candidates: Vec<Arc<dyn Provider>>,
    /// The judges' providers by name.
    pub judges: BTreeMap<String, Arc<dyn Provider>>,
    /// The fallback models of candidates, by the candidates' ids.
    pub fallbacks: BTreeMap<String, Arc<dyn Provider>>,
}

/// A provider that could not be built, such as one whose key is missing: every turn fails with
/// the reason, so that a run shows it like any other failure and goes on without it.
#[derive(Debug, Clone)]
pub struct Unavailable {
    info: ProviderInfo,
    why: TurnError,
}

impl Unavailable {
    /// A stand-in for the provider `info` describes.
    #[must_use]
    pub const fn new(info: ProviderInfo, why: TurnError) -> Self {
        Self { info, why }
    }
}

impl Provider for Unavailable {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn turn(
        &self,
        _turn: Turn,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        stream::iter([Err(self.why.clone())]).boxed()
    }
}
