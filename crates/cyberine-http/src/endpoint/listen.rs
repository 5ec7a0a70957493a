//! GET: the stream of what belongs to no request of a session, or one that is taken up again.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use cyberine_protocol::Revision;
use cyberine_protocol::http::{Field, HttpHead};
use cyberine_types::Timestamp;

use super::{Endpoint, Link, header_texts};
use crate::events::{self, Manner, Messages};
use crate::identity::Admission;
use crate::reply::{self, INVALID_REQUEST};
use crate::session::{Place, Session, Stream};
use crate::visitors::{StreamPlace, Visitor};

/// The answer where there is no place for an event stream.
pub(super) fn crowded() -> Response {
    reply::busy("too many event streams are open; try again later")
}

/// The answer where what a client has not seen cannot be given to it.
fn not_kept() -> Response {
    let reason = "what follows the event of Last-Event-ID is not kept: its stream is over, or it was too long ago or too much";
    reply::refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, reason)
}

impl Endpoint {
    pub(super) async fn listen(&self, parts: &Parts, link: Link) -> Result<Response, Box<Response>> {
        let Admission { identity, until } = self.admitted(parts, link).await?;
        let head = HttpHead::read(header_texts(parts));
        let Some(session) = self.session(&head, &identity)? else { return Ok(reply::wrong_method("POST")) };
        if !head.takes_events() {
            let reason = "the answer is an event stream; send Accept: text/event-stream";
            return Ok(reply::refusal(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, reason));
        }
        let (stream, event) = match head.last_event_id() {
            Field::Absent => (Some(session.news()), u64::MAX),
            Field::One(id) => match id.parse::<Place>() {
                Ok(place) => (session.stream(place.stream), place.event),
                Err(()) => (None, 0),
            },
            Field::Many => (None, 0),
        };
        let Some(stream) = stream else { return Ok(not_kept()) };
        Ok(match self.place_of_stream(&session.visitor) {
            Some(held) => self.lasting(&session, stream, event, self.manner(until), held),
            None => crowded(),
        })
    }

    /// A place for one more event stream of `visitor`, where there is one: no one principal takes all.
    pub(super) fn place_of_stream(&self, visitor: &Visitor) -> Option<StreamPlace> {
        visitor.place_of_stream(&self.meters.streams, self.settings.max_streams)
    }

    /// An event stream that can be taken up again.
    pub(super) fn lasting(
        &self,
        session: &Arc<Session>,
        stream: Arc<Stream>,
        event: u64,
        manner: Manner,
        held: StreamPlace,
    ) -> Response {
        let primed = session.peer.revision() >= Some(Revision::V2025_11_25);
        let Some(reader) = stream.read_from(session, event) else { return not_kept() };
        reply::events(events::body(Messages::Lasting { reader, primed }, manner, held))
    }

    /// How an event stream behaves whose reader may hear no more from `until` on.
    pub(super) fn manner(&self, until: Option<Timestamp>) -> Manner {
        Manner {
            until,
            keep_alive: self.settings.keep_alive,
            lifetime: self.settings.stream_lifetime,
            retry: self.settings.retry,
            over: self.over.clone(),
        }
    }
}
