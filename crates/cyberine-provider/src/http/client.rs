//! Where requests go, and the client that carries them.

use cyberine_client::web_client;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use tokio::sync::OnceCell;

use crate::config::is_loopback_url;
use crate::error::{TurnError, chain};
use crate::quote::Quoter;

/// One address, with what is sent to it and nowhere else.
pub(crate) struct Endpoint {
    url: Url,
    headers: HeaderMap,
    quoter: Quoter,
    /// Built by the first turn: loading the machine's certificates takes milliseconds that a start
    /// does not have.
    client: OnceCell<Client>,
}

impl Endpoint {
    /// An endpoint at `url`; `None` where it is no URL.
    pub(crate) fn new(url: &str, headers: HeaderMap, quoter: Quoter) -> Option<Self> {
        Some(Self { url: Url::parse(url).ok()?, headers, quoter, client: OnceCell::new() })
    }

    /// What quotes this endpoint's words.
    pub(crate) fn quoter(&self) -> &Quoter {
        &self.quoter
    }

    /// Sends `body` and waits for the head of the answer.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Response, TurnError> {
        let request = self.client().await?.post(self.url.clone()).headers(self.headers.clone()).body(body);
        request.send().await.map_err(|error| self.failed(error))
    }

    /// Asks for what lies at `url`, an address of the same service, and waits for the head of the
    /// answer.
    pub(crate) async fn get(&self, url: Url) -> Result<Response, TurnError> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let request = self.client().await?.get(url).headers(headers);
        request.send().await.map_err(|error| self.failed(error))
    }

    async fn client(&self) -> Result<&Client, TurnError> {
        let secure = self.url.scheme() == "https";
        self.client
            .get_or_try_init(|| async {
                match tokio::task::spawn_blocking(move || build(secure)).await {
                    Ok(built) => built.map_err(|detail| self.unreachable(&detail)),
                    Err(error) => Err(self.unreachable(&error.to_string())),
                }
            })
            .await
    }

    fn failed(&self, error: reqwest::Error) -> TurnError {
        let (connect, late) = (error.is_connect(), error.is_timeout());
        let detail = chain(&error.without_url());
        if connect || late {
            return self.unreachable(&detail);
        }
        TurnError::Cut { detail: format!("no answer: {}", self.quoter.head(&detail)) }
    }

    fn unreachable(&self, detail: &str) -> TurnError {
        let here = is_loopback_url(self.url.as_str());
        let advice = if here { "; is the server running, and on this port?" } else { "" };
        let detail = format!("{}{advice}", self.quoter.head(detail));
        TurnError::Unreachable { target: self.url.to_string(), detail }
    }

    /// The failure behind `status` with what the configuration has to do with it.
    pub(crate) fn explain(&self, status: u16, error: TurnError) -> TurnError {
        let keyless = !self.headers.values().any(HeaderValue::is_sensitive);
        match error {
            TurnError::Auth { detail } if keyless => TurnError::Auth {
                detail: format!("{detail}; no key was sent: name its variable in `api_key_env`"),
            },
            TurnError::Rejected { detail } if matches!(status, 404 | 405) => TurnError::Rejected {
                detail: format!("{detail}; asked `{}`: check `base_url` and `model`", self.url),
            },
            other => other,
        }
    }
}

/// The headers of every request, with `key` under `name` where there is one.
pub(crate) fn headers(
    fixed: &[(&'static str, &'static str)],
    key: Option<(&'static str, String)>,
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some((name, value)) = key {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Some(headers)
}

/// A client that goes where it is told and nowhere else.
pub(super) fn build(secure: bool) -> Result<Client, String> {
    web_client(secure).map_err(|error| chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(key: Option<&str>) -> Endpoint {
        let key = key.map(|key| ("authorization", key.to_owned()));
        let headers = headers(&[], key).unwrap();
        Endpoint::new("http://127.0.0.1:9/v1/chat", headers, Quoter::default()).unwrap()
    }

    #[test]
    fn a_failure_names_what_the_configuration_has_to_do_with_it() {
        let auth = || TurnError::Auth { detail: "status 401: no".to_owned() };
        assert_eq!(endpoint(Some("k")).explain(401, auth()), auth());
        let keyless = endpoint(None).explain(401, auth()).to_string();
        assert!(keyless.contains("no key was sent") && keyless.contains("`api_key_env`"), "{keyless}");
        let rejected = || TurnError::Rejected { detail: "status 404: no".to_owned() };
        let lost = endpoint(None).explain(404, rejected()).to_string();
        assert!(lost.contains("`http://127.0.0.1:9/v1/chat`: check `base_url` and `model`"), "{lost}");
        assert_eq!(endpoint(None).explain(400, rejected()), rejected());
        assert!(endpoint(None).unreachable("refused").to_string().contains("is the server running"));
    }
}
