//! What whoever runs the server asks of it: whether it lives, and what it counted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use crate::identity::{Door, TransportFacts};
use crate::metrics::{self, Metrics};
use crate::observe::Meters;

/// Routes for [`HttpServer::with_routes`](crate::HttpServer::with_routes):
///
/// - `/healthz`: 200, or 503 once `stop` is cancelled. Opens nothing, and is for everybody who may
///   connect.
/// - `/metrics`: for processes of this machine that did not come by way of a proxy, and for whoever
///   `door` lets in. `meters` says what goes on.
pub fn operations(door: Door, metrics: Arc<Metrics>, meters: Meters, stop: CancellationToken) -> Router {
    let health = move || std::future::ready(health(stop.is_cancelled()));
    let counted = move |ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Parts| async move {
        if let Some(refusal) = refusal(&door, &request, peer).await {
            return refusal;
        }
        let headers = [(CONTENT_TYPE, metrics::CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
        (headers, metrics.render(meters.load())).into_response()
    };
    Router::new().route("/healthz", get(health)).route("/metrics", get(counted))
}

async fn refusal(door: &Door, request: &Parts, peer: SocketAddr) -> Option<Response> {
    let is_local = TransportFacts::of(request, peer).is_ok_and(|facts| facts.is_local());
    if is_local {
        return None;
    }
    door.admit(request, peer).await.err().map(axum::response::IntoResponse::into_response)
}

fn health(is_draining: bool) -> Response {
    let (status, body) = if is_draining {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#)
    } else {
        (StatusCode::OK, r#"{"status":"ok"}"#)
    };
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use cyberine_types::{Identity, Secret};
    use tower_service::Service as _;

    use super::*;
    use crate::identity::{Token, TokenDigest, TokenTable};

    async fn status(stop: &CancellationToken, peer: &str, request: axum::http::request::Builder) -> u16 {
        let token = Token {
            digest: TokenDigest::of(&Secret::new("t")),
            identity: Arc::new(Identity::local("ada")),
            expires: None,
        };
        let door = Door::new(Arc::new(TokenTable::new(vec![token])));
        let mut routes = operations(door, Metrics::new(), Meters::default(), stop.clone());
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
        let Ok(response) = routes.call(request).await;
        response.status().as_u16()
    }

    fn of(path: &str) -> axum::http::request::Builder {
        Request::builder().uri(path)
    }

    #[tokio::test]
    async fn the_counters_are_for_this_machine_and_for_whoever_has_an_identity() {
        let (stop, here, there) = (CancellationToken::new(), "127.0.0.1:9", "10.0.0.1:9");
        assert_eq!(status(&stop, here, of("/metrics")).await, 200);
        assert_eq!(status(&stop, here, of("/metrics").header("x-forwarded-for", "10.0.0.1")).await, 401);
        assert_eq!(status(&stop, there, of("/metrics")).await, 401);
        assert_eq!(status(&stop, there, of("/metrics").header("authorization", "Bearer x")).await, 401);
        assert_eq!(status(&stop, there, of("/metrics").header("authorization", "Bearer t")).await, 200);
    }

    #[tokio::test]
    async fn health_is_for_everybody_and_says_when_the_end_has_begun() {
        let (stop, there) = (CancellationToken::new(), "10.0.0.1:9");
        assert_eq!(status(&stop, there, of("/healthz")).await, 200);
        assert_eq!(status(&stop, there, of("/healthz").method("POST")).await, 405);
        assert_eq!(status(&stop, there, of("/health")).await, 404);
        stop.cancel();
        assert_eq!(status(&stop, there, of("/healthz")).await, 503);
    }
}
