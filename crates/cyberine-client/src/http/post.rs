//! One exchange: a request that is sent, and what comes back on it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cyberine_protocol::CallKey;
use cyberine_protocol::http::{LAST_EVENT_ID, SESSION_ID};
use cyberine_protocol::sse::{SseDecoder, SseEvent};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};

use crate::error::ClientError;

/// How long to wait before a broken stream is taken up again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait that is kept to.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// How much of the body of a refusal is read, in bytes.
const REFUSAL_BYTES: usize = 64 << 10;

/// What comes of an exchange.
pub(super) enum Event {
    /// The server has opened a session.
    Session(HeaderValue),
    /// A message.
    Message(Vec<u8>),
    /// It is over. Nothing comes after this.
    Over { resume: Option<Resume>, why: Option<ClientError> },
}

/// Where a stream can be taken up.
pub(super) struct Resume {
    after: HeaderValue,
    pause: Duration,
}

pub(super) struct Exchange {
    of: Option<CallKey>,
    /// Whether it is the stream that belongs to no request.
    standalone: bool,
    /// How often it was taken up without a message in between.
    resumed: u32,
    events: BoxStream<'static, Event>,
}

impl Exchange {
    pub(super) fn post(of: Option<CallKey>, request: RequestBuilder, limit: usize) -> Self {
        Self { of, standalone: false, resumed: 0, events: events(request, Duration::ZERO, limit) }
    }

    pub(super) fn standalone(client: &Client, url: &Url, headers: HeaderMap, limit: usize) -> Self {
        let request = client.get(url.clone()).headers(listening(headers));
        Self { of: None, standalone: true, resumed: 0, events: events(request, Duration::ZERO, limit) }
    }

    /// The same, from where it broke.
    pub(super) fn again(
        self,
        client: &Client,
        url: &Url,
        headers: HeaderMap,
        resume: Resume,
        limit: usize,
    ) -> Self {
        let mut headers = listening(headers);
        headers.insert(LAST_EVENT_ID, resume.after);
        let request = client.get(url.clone()).headers(headers);
        Self { resumed: self.resumed + 1, events: events(request, resume.pause, limit), ..self }
    }

    pub(super) const fn of(&self) -> Option<CallKey> {
        self.of
    }

    pub(super) const fn may_resume(&self, most: u32) -> bool {
        (self.standalone || self.of.is_some()) && self.resumed < most
    }
}

impl Stream for Exchange {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = self.events.poll_next_unpin(context);
        if matches!(event, Poll::Ready(Some(Event::Message(_)))) {
            self.resumed = 0;
        }
        event
    }
}

/// A stream is asked for by GET, and has no body.
fn listening(mut headers: HeaderMap) -> HeaderMap {
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers
}

enum Stage {
    Send { request: RequestBuilder, pause: Duration },
    Answered(Response),
    Streaming(Streaming),
    Over,
}

struct Streaming {
    response: Response,
    decoder: SseDecoder,
    /// Messages that have come.
    ready: VecDeque<Vec<u8>>,
    limit: usize,
    /// An event was longer than that: what came before it is given, and nothing after.
    too_long: bool,
}

fn events(request: RequestBuilder, pause: Duration, limit: usize) -> BoxStream<'static, Event> {
    stream::unfold(Stage::Send { request, pause }, move |stage| step(stage, limit)).boxed()
}

fn over(why: Option<ClientError>) -> Option<(Event, Stage)> {
    Some((Event::Over { resume: None, why }, Stage::Over))
}

async fn step(stage: Stage, limit: usize) -> Option<(Event, Stage)> {
    let response = match stage {
        Stage::Over => return None,
        Stage::Streaming(streaming) => return streaming.next().await,
        Stage::Answered(response) => response,
        Stage::Send { request, pause } => {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let mut response = match request.send().await {
                Ok(response) => response,
                Err(error) => return over(Some(ClientError::unreachable(&error))),
            };
            if let Some(session) = response.headers_mut().remove(SESSION_ID) {
                return Some((Event::Session(session), Stage::Answered(response)));
            }
            response
        }
    };
    answered(response, limit).await
}

async fn answered(response: Response, limit: usize) -> Option<(Event, Stage)> {
    let status = response.status();
    if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
        return over(None);
    }
    if !status.is_success() {
        return refused(response).await;
    }
    match kind(&response) {
        Kind::Stream => {
            let decoder = SseDecoder::new(limit);
            Streaming { response, decoder, ready: VecDeque::new(), limit, too_long: false }.next().await
        }
        Kind::Json => match body(response, limit).await {
            Ok(message) => Some((Event::Message(message), Stage::Over)),
            Err(why) => over(Some(why)),
        },
        Kind::Other(kind) => over(Some(ClientError::Foreign { kind })),
    }
}

/// What a refusal says: a message, where its body is one, else its status.
async fn refused(response: Response) -> Option<(Event, Stage)> {
    let status = response.status().as_u16();
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.map(str::to_owned);
    let json = matches!(kind(&response), Kind::Json);
    let text = body(response, REFUSAL_BYTES).await.unwrap_or_default();
    let message = json && !matches!(status, 401 | 403) && text.starts_with(b"{");
    if message && text.windows(9).any(|part| part == b"\"jsonrpc\"") {
        return Some((Event::Message(text), Stage::Over));
    }
    over(Some(ClientError::Status { status, challenge }))
}

enum Kind {
    Json,
    Stream,
    Other(String),
}

fn kind(response: &Response) -> Kind {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => Kind::Json,
        "text/event-stream" => Kind::Stream,
        _ => Kind::Other(kind.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()),
    }
}

async fn body(mut response: Response, limit: usize) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) if body.len() + bytes.len() <= limit => body.extend_from_slice(&bytes),
            Ok(Some(_)) => return Err(ClientError::TooMuch { limit }),
            Ok(None) => return Ok(body),
            Err(_) => return Err(ClientError::Cut),
        }
    }
}

impl Streaming {
    async fn next(mut self) -> Option<(Event, Stage)> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some((Event::Message(message), Stage::Streaming(self)));
            }
            if self.too_long {
                let why = Some(ClientError::TooMuch { limit: self.limit });
                return Some((Event::Over { resume: None, why }, Stage::Over));
            }
            let why = match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    let mut events = Vec::new();
                    self.too_long = self.decoder.push(&bytes, &mut events).is_err();
                    let messages = events.into_iter().filter(SseEvent::is_message);
                    self.ready.extend(messages.map(|event| event.data));
                    continue;
                }
                // What breaks a stream is told only where it cannot be taken up.
                Ok(None) => None,
                Err(_) => Some(ClientError::Cut),
            };
            return Some((Event::Over { resume: self.resume(), why }, Stage::Over));
        }
    }

    /// Where the stream can be taken up.
    fn resume(&self) -> Option<Resume> {
        let after = Some(self.decoder.last_event_id()).filter(|id| !id.is_empty())?;
        let pause = self.decoder.retry_ms().map_or(RETRY, Duration::from_millis).min(LONGEST_RETRY);
        Some(Resume { after: HeaderValue::from_str(after).ok()?, pause })
    }
}
