//! A provider behind one HTTP address.

use std::sync::Arc;

use cyberine_types::{Billing, Secret};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::{HttpConfig, ProviderConfig};
use crate::error::TurnError;
use crate::http::{self, Endpoint};
use crate::port::{Capabilities, Limits, Provider, ProviderInfo, Turn, TurnEvent};
use crate::probe::Probe;
use crate::quote::Quoter;
use crate::stream::turn_stream;
use crate::wire::{Edges, Session, Wire};

/// What a kind is, whatever its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Service {
    /// The kind, as `kind` spells it.
    pub(crate) kind: &'static str,
    /// The address of its maker.
    pub(crate) url: Option<&'static str>,
    /// The variable that its maker's own clients read the key from.
    pub(crate) key_env: Option<&'static str>,
}

/// What sets one HTTP wire apart from another.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// What the kind is.
    fn service(&self) -> Service;

    /// Where requests for `model` go, at a service whose address is `base`, without a slash at its
    /// end.
    fn url(&self, base: &str, model: &str) -> String;

    /// Where a service says which models it has.
    fn models_url(&self, base: &str) -> String {
        format!("{base}/models")
    }

    /// How `model` is paid for where its address does not tell; `None` where it does.
    fn usual_billing(&self, _model: &str) -> Option<Billing> {
        None
    }

    /// Headers of every request.
    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header that carries the key.
    fn key_header(&self, key: &Secret) -> (&'static str, String);

    /// The body of the request for `turn`.
    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value;

    /// A parser for the answer.
    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire>;
}

/// A provider that speaks one dialect over HTTP.
pub(crate) struct HttpProvider {
    info: ProviderInfo,
    whole: ProviderConfig,
    config: HttpConfig,
    dialect: &'static dyn Dialect,
    endpoint: Arc<Endpoint>,
}

impl HttpProvider {
    /// A provider named `name` that shows neither its key nor `others`; `None` where the key or the
    /// address cannot be sent.
    pub(crate) fn new(
        name: &str,
        whole: &ProviderConfig,
        dialect: &'static dyn Dialect,
        config: &HttpConfig,
        key: Option<Secret>,
        others: &[Secret],
    ) -> Option<Self> {
        let header = key.as_ref().map(|key| dialect.key_header(key));
        let headers = http::headers(dialect.fixed_headers(), header)?;
        let quoter = Quoter::new(key.into_iter().chain(others.iter().cloned()).collect());
        let url = dialect.url(whole.profile().url.trim_end_matches('/'), &config.model);
        let endpoint = Arc::new(Endpoint::new(&url, headers, quoter)?);
        let (info, whole, config) = (whole.info(name), whole.clone(), config.clone());
        Some(Self { info, whole, config, dialect, endpoint })
    }
}

impl Provider for HttpProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        let structured_output = self.config.structured_output;
        Capabilities { tools: true, structured_output, resume: false, read_only: true }
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        let profile = self.whole.profile();
        let url = self.dialect.models_url(profile.url.trim_end_matches('/'));
        let keyed = profile.key_env.is_some();
        Box::pin(async move { http::models::probe(&self.endpoint, &url, &self.config.model, keyed).await })
    }

    fn turn(
        &self,
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        let limits = self.whole.limits(turn.limits);
        let body = self.dialect.body(&self.config, &turn, &limits).to_string().into_bytes();
        let quoter = self.endpoint.quoter();
        let wire = self.dialect.wire(limits.answer_bytes, quoter.clone());
        let (tariff, redactor) = (self.whole.profile().tariff(), quoter.redactor());
        let session = Session::new(wire, limits.answer_bytes, Edges::Kept, tariff, redactor);
        let endpoint = Arc::clone(&self.endpoint);
        turn_stream(|out| async move { http::drive(&endpoint, body, session, limits, cancel, out).await })
    }
}
