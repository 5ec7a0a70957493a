use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::storm::Storm;
use super::{Admission, ProtectedResource, Rejection, Resolver, TransportFacts};
use crate::metrics::Metrics;

/// Lets requests in by who sent them. Its clones are one door.
#[derive(Clone)]
pub struct Door {
    resolver: Arc<dyn Resolver>,
    resource: Option<ProtectedResource>,
    metrics: Option<Arc<Metrics>>,
    storm: Arc<Mutex<Storm>>,
}

/// A request that was not let in: a response that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    rejection: Rejection,
    challenge: Option<HeaderValue>,
}

impl Door {
    /// A door at which `resolver` says who is calling.
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, resource: None, metrics: None, storm: Arc::default() }
    }

    /// Tells whoever is refused for want of a token where to learn about tokens.
    #[must_use]
    pub fn with_resource(mut self, resource: ProtectedResource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Counts whom it refuses.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Who sent a request over a connection with `peer` at its other end, and until when that counts. To be
    /// asked for every request: neither a connection nor a session is a credential.
    ///
    /// # Errors
    /// The response to send instead of one.
    pub async fn admit(&self, request: &Parts, peer: SocketAddr) -> Result<Admission, Refusal> {
        let resolved = match TransportFacts::of(request, peer) {
            Ok(facts) => self.resolver.resolve(&facts).await,
            Err(rejection) => Err(rejection),
        };
        resolved.map_err(|rejection| self.refused(rejection, peer))
    }

    /// The metadata of the protected resource, where there is any and `path` is that of it (RFC 9728, 3).
    #[must_use]
    pub fn metadata(&self, path: &str) -> Option<Response> {
        let json = self.resource.as_ref()?.metadata_at(path)?;
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "max-age=300")];
        Some((headers, json).into_response())
    }

    fn refused(&self, rejection: Rejection, peer: SocketAddr) -> Refusal {
        // Only who tries credentials in vain is held back: whoever has none yet asks where to get one, and
        // what is no matter of the token stays what it is.
        let is_try =
            matches!(rejection, Rejection::Malformed(_) | Rejection::Unknown | Rejection::Invalid(_));
        let weather = {
            let mut storm = self.storm.lock().unwrap_or_else(PoisonError::into_inner);
            storm.rejected(is_try.then(|| peer.ip()), Instant::now())
        };
        if let Some(rejected) = weather.tell {
            tracing::warn!(
                rejected,
                %peer,
                last = rejection.description(),
                "requests without a valid identity were refused"
            );
        }
        // Where to get a token is worth knowing in a storm, too.
        let challenge = self.challenge(&rejection);
        let rejection = weather.wait.map_or(rejection, |after| Rejection::TooMany { after });
        if let Some(metrics) = &self.metrics {
            metrics.rejected(rejection.reason());
        }
        Refusal { rejection, challenge }
    }

    /// `WWW-Authenticate` (RFC 6750, 3, and RFC 9728, 5.1).
    fn challenge(&self, rejection: &Rejection) -> Option<HeaderValue> {
        let error = match rejection {
            Rejection::Missing => None,
            Rejection::Malformed(_) => Some("invalid_request"),
            Rejection::Unknown | Rejection::Invalid(_) => Some("invalid_token"),
            Rejection::Scope(_) => Some("insufficient_scope"),
            Rejection::Denied(_) | Rejection::TooMany { .. } | Rejection::Unavailable { .. } => return None,
        };
        let mut parameters = vec!["realm=\"cyberine\"".to_owned()];
        if let Some(error) = error {
            parameters.push(format!("error=\"{error}\""));
            parameters.push(format!("error_description=\"{}\"", rejection.description()));
        }
        let scopes = match (rejection, &self.resource) {
            (Rejection::Scope(needed), _) => needed.as_slice(),
            (_, Some(resource)) => resource.scopes(),
            (_, None) => &[],
        };
        if !scopes.is_empty() {
            parameters.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
        if let Some(url) = self.resource.as_ref().and_then(ProtectedResource::metadata_url) {
            parameters.push(format!("resource_metadata=\"{url}\""));
        }
        HeaderValue::from_str(&format!("Bearer {}", parameters.join(", "))).ok()
    }
}

impl Refusal {
    /// Why the request was not let in.
    #[must_use]
    pub const fn rejection(&self) -> &Rejection {
        &self.rejection
    }

    /// The status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.rejection {
            Rejection::Malformed(_) => StatusCode::BAD_REQUEST,
            Rejection::Missing | Rejection::Unknown | Rejection::Invalid(_) => StatusCode::UNAUTHORIZED,
            Rejection::Denied(_) | Rejection::Scope(_) => StatusCode::FORBIDDEN,
            Rejection::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Rejection::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn retry_after(&self) -> Option<HeaderValue> {
        match self.rejection {
            Rejection::TooMany { after } | Rejection::Unavailable { after, .. } => {
                let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                Some(seconds.max(1).into())
            }
            _ => None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, retry) = (self.status(), self.retry_after());
        let body = serde_json::json!({
            "error": self.rejection.reason(),
            "error_description": self.rejection.description(),
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(retry) = retry {
            headers.insert(RETRY_AFTER, retry);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use axum::http::Request;
    use futures_util::future::BoxFuture;

    /// Lets nobody in, and always says the same.
    struct Shut(Rejection);

    impl Resolver for Shut {
        fn resolve<'a>(&'a self, _facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
            Box::pin(std::future::ready(Err(self.0.clone())))
        }
    }

    fn door(rejection: Rejection) -> Door {
        let resource = ProtectedResource::at("https://h/mcp").unwrap().with_scopes(vec!["mcp".to_owned()]);
        let resource = resource.with_authorization_server("https://login");
        Door::new(Arc::new(Shut(rejection))).with_resource(resource)
    }

    async fn refusal(door: &Door) -> Refusal {
        let parts = Request::builder().uri("/mcp").body(()).unwrap().into_parts().0;
        door.admit(&parts, "127.0.0.1:9".parse().unwrap()).await.unwrap_err()
    }

    async fn answered(rejection: Rejection) -> (u16, String, Option<String>) {
        let response = refusal(&door(rejection)).await.into_response();
        let header = |name| Some(response.headers().get(name)?.to_str().unwrap().to_owned());
        let challenge = header(WWW_AUTHENTICATE).unwrap_or_default();
        (response.status().as_u16(), challenge, header(RETRY_AFTER))
    }

    #[tokio::test]
    async fn every_refusal_is_worded_as_the_rfcs_want_it() {
        let metadata =
            "scope=\"mcp\", resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\"";
        assert_eq!(
            answered(Rejection::Missing).await,
            (401, format!("Bearer realm=\"cyberine\", {metadata}"), None)
        );
        assert_eq!(
            answered(Rejection::Invalid("the token has expired")).await,
            (
                401,
                format!(
                    "Bearer realm=\"cyberine\", error=\"invalid_token\", error_description=\"the token has expired\", {metadata}"
                ),
                None
            )
        );
        let (status, challenge, _) =
            answered(Rejection::Scope(vec!["mcp".to_owned(), "spend".to_owned()])).await;
        assert_eq!(status, 403);
        assert!(
            challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"mcp spend\""),
            "{challenge}"
        );
        let (status, challenge, _) = answered(Rejection::Malformed("no")).await;
        assert!(status == 400 && challenge.contains("error=\"invalid_request\""), "{challenge}");
        assert_eq!(answered(Rejection::Denied("no")).await, (403, String::new(), None));
        for (after_ms, seconds) in [(0, "1"), (4_000, "4"), (4_001, "5")] {
            let after = Duration::from_millis(after_ms);
            let expected = (503, String::new(), Some(seconds.to_owned()));
            assert_eq!(answered(Rejection::Unavailable { what: "no", after }).await, expected);
        }
    }

    #[tokio::test]
    async fn nobody_is_sent_for_a_token_where_none_is_issued() {
        let bare = ProtectedResource::at("https://h/mcp").unwrap();
        let door = Door::new(Arc::new(Shut(Rejection::Missing))).with_resource(bare);
        let response = refusal(&door).await.into_response();
        assert_eq!(response.headers().get(WWW_AUTHENTICATE).unwrap(), "Bearer realm=\"cyberine\"");
        assert!(door.metadata("/.well-known/oauth-protected-resource/mcp").is_none());
    }

    #[tokio::test]
    async fn a_storm_of_bad_tokens_is_answered_with_429_and_a_time_to_wait() {
        let last = hundredth(Rejection::Invalid("no")).await;
        assert_eq!(last.rejection().reason(), "too_many_rejected");
        let response = last.into_response();
        assert_eq!(response.status(), 429);
        let challenge = response.headers().get(WWW_AUTHENTICATE).unwrap().to_str().unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(response.headers().contains_key(RETRY_AFTER));
    }

    #[tokio::test]
    async fn whoever_tries_no_token_is_not_held_back() {
        let unavailable = Rejection::Unavailable { what: "no", after: Duration::ZERO };
        let scope = Rejection::Scope(vec!["mcp".to_owned()]);
        for rejection in [Rejection::Missing, Rejection::Denied("no"), scope, unavailable] {
            let first = refusal(&door(rejection.clone())).await;
            assert_eq!(hundredth(rejection).await, first);
        }
    }

    async fn hundredth(rejection: Rejection) -> Refusal {
        let door = door(rejection);
        for _ in 1..100 {
            refusal(&door).await;
        }
        refusal(&door).await
    }
}
