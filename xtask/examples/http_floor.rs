//! The floor over HTTP: axum, and the answers of the floor over stdio. Prints its URL.
#![expect(clippy::print_stdout, reason = "its URL is what it prints")]

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;

#[path = "../src/bench/floor.rs"]
#[expect(dead_code, reason = "the floor over stdio is not served here")]
mod floor;
use floor::Floor;

fn main() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<()> {
    let app = Router::new().route("/mcp", post(answer)).with_state(Arc::new(Floor::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // A refusal leaves the stream as it is.
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}

async fn answer(State(floor): State<Arc<Floor>>, body: Bytes) -> Response {
    let mut answer = Vec::with_capacity(512);
    match floor.answer(&body, &mut answer) {
        Ok(true) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(false) => StatusCode::ACCEPTED.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
