//! A provider behind one HTTP address.

use std::sync::Arc;

use cyberine_types::Secret;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::ProviderConfig;
use crate::error::TurnError;
use crate::http::{self, Endpoint};
use crate::port::{Capabilities, Limits, Provider, ProviderInfo, Turn, TurnEvent};
use crate::quote::Quoter;
use crate::stream::turn_stream;
use crate::wire::{Edges, Session, Wire};

/// What sets one HTTP wire apart from another.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Where requests go.
    fn url(&self) -> String;

    /// Headers of every request.
    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)];

    /// The header that carries the key.
    fn key_header(&self, key: &Secret) -> (&'static str, String);

    /// What a turn may ask.
    fn capabilities(&self) -> Capabilities;

    /// The body of the request for `turn`.
    fn body(&self, turn: &Turn, limits: &Limits) -> Value;

    /// A parser for the answer.
    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire>;
}

/// A provider that speaks `D` over HTTP.
pub(crate) struct HttpProvider<D> {
    info: ProviderInfo,
    config: ProviderConfig,
    dialect: D,
    endpoint: Arc<Endpoint>,
}

impl<D: Dialect> HttpProvider<D> {
    /// A provider named `name`; `None` where the key or the address cannot be sent.
    pub(crate) fn new(name: &str, config: &ProviderConfig, dialect: D, key: Option<Secret>) -> Option<Self> {
        let header = key.as_ref().map(|key| dialect.key_header(key));
        let headers = http::headers(dialect.fixed_headers(), header)?;
        let quoter = Quoter::new(key.into_iter().collect());
        let endpoint = Endpoint::new(&dialect.url(), headers, quoter)?;
        Some(Self { info: config.info(name), config: config.clone(), dialect, endpoint: Arc::new(endpoint) })
    }
}

impl<D: Dialect> Provider for HttpProvider<D> {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        self.dialect.capabilities()
    }

    fn turn(
        &self,
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        let limits = self.config.limits(turn.limits);
        let body = self.dialect.body(&turn, &limits).to_string().into_bytes();
        let quoter = self.endpoint.quoter();
        let wire = self.dialect.wire(limits.answer_bytes, quoter.clone());
        let (tariff, redactor) = (self.config.tariff(), quoter.redactor());
        let session = Session::new(wire, limits.answer_bytes, Edges::Kept, tariff, redactor);
        let endpoint = Arc::clone(&self.endpoint);
        turn_stream(|out| async move { http::drive(&endpoint, body, session, limits, cancel, out).await })
    }
}
