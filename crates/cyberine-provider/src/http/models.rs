//! What a service says of its models, which costs nothing and tells whether it lets us in.

use std::time::Duration;

use reqwest::{Response, Url};
use tokio::time::timeout;

use super::client::Endpoint;
use crate::error::TurnError;
use crate::fault;
use crate::probe::{Asked, Probe};

/// How long a service may take to say it.
const PATIENCE: Duration = Duration::from_secs(15);
/// How much of a list is read.
const LIST_BYTES: usize = 4 << 20;

/// Asks for the list of models at `url`, `model` among them.
pub(crate) async fn probe(endpoint: &Endpoint, url: &str, model: &str, keyed: bool) -> Probe {
    let asking = async {
        let target = Url::parse(url)
            .map_err(|error| TurnError::Unreachable { target: url.to_owned(), detail: error.to_string() })?;
        let response = endpoint.get(target).await?;
        Ok((response.status().as_u16(), start_of(response).await))
    };
    match timeout(PATIENCE, asking).await {
        Err(_) => Probe::absent(TurnError::IdleTimeout { limit: PATIENCE }),
        Ok(Err(error)) => Probe::absent(error),
        Ok(Ok((status, body))) => {
            let fault = endpoint.explain(status, fault::http_fault(status, None, &body, endpoint.quoter()));
            Probe::of_models(&Asked { url, model, keyed }, status, &body, fault)
        }
    }
}

async fn start_of(mut response: Response) -> String {
    let mut body = Vec::new();
    while let (true, Ok(Some(bytes))) = (body.len() < LIST_BYTES, response.chunk().await) {
        body.extend_from_slice(&bytes[..bytes.len().min(LIST_BYTES - body.len())]);
    }
    String::from_utf8_lossy(&body).into_owned()
}
