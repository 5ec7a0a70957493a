//! From a reply to what the server does with the connection: a pure function.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::call::{Call, Wire};
use crate::script::{Fault, Reply};
use crate::wire::{self, Event, Failure};

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) retry_after: Option<String>,
    pub(crate) frames: VecDeque<Frame>,
}

/// One thing to do with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Hand these bytes over, and have them written before anything else happens.
    Data(Bytes),
    /// Wait.
    Pause(Duration),
    /// Break the connection.
    Abort,
    /// Hand over the bytes, again and again, with a pause before each time.
    Repeat(Bytes, Duration),
    /// Do nothing any more.
    Hang,
}

const JSON: &str = "application/json";

/// A JSON response.
pub(crate) fn json(status: u16, body: &Value) -> Delivery {
    whole(status, JSON, body.to_string())
}

fn whole(status: u16, content_type: &'static str, body: String) -> Delivery {
    Delivery { status, content_type, retry_after: None, frames: VecDeque::from([Frame::Data(body.into())]) }
}

/// A failure in the words of `wire`.
pub(crate) fn refusal(wire: Wire, status: u16, message: &str) -> Delivery {
    json(status, &wire::failure(wire, Failure { status, kind: None, message, retry_after: None }))
}

/// What is done for `call` with `reply`.
pub(crate) fn deliver(call: &Call, reply: &Reply) -> Delivery {
    if let Some(Fault::Status { code, retry_after, kind, message, body }) = &reply.fault {
        let failure = Failure {
            status: *code,
            kind: kind.as_deref(),
            message: message.as_deref().unwrap_or("scripted failure"),
            retry_after: retry_after.as_deref(),
        };
        let failed = match body {
            Some(body) => whole(*code, "text/html", body.clone()),
            None => json(*code, &wire::failure(call.wire, failure)),
        };
        return Delivery { retry_after: retry_after.clone(), ..failed };
    }
    let (content_type, events) = if call.stream {
        (streamed(call.wire), wire::events(call, reply))
    } else {
        (JSON, vec![Event { text: wire::whole(call, reply).to_string(), piece: false }])
    };
    let frames = recut(faulty(call, reply, events), reply.wire_bytes);
    Delivery { status: 200, content_type, retry_after: None, frames }
}

fn streamed(wire: Wire) -> &'static str {
    match wire {
        Wire::Ollama => "application/x-ndjson",
        _ => "text/event-stream; charset=utf-8",
    }
}

/// Puts the fault of a reply into its events and paces them.
fn faulty(call: &Call, reply: &Reply, mut events: Vec<Event>) -> VecDeque<Frame> {
    let limit = |after: usize| after.min(events.len());
    match &reply.fault {
        None | Some(Fault::Status { .. }) => paced(reply, &events).collect(),
        Some(Fault::StreamError { after, kind }) => {
            events.truncate(*after);
            events.push(wire::stream_error(call.wire, kind.as_deref()));
            paced(reply, &events).collect()
        }
        Some(Fault::Disconnect { after }) if !call.stream && *after > 0 => {
            let body = &events[0].text.as_bytes();
            VecDeque::from([Frame::Data(Bytes::copy_from_slice(&body[..body.len() / 2])), Frame::Abort])
        }
        Some(Fault::Disconnect { after }) => {
            paced(reply, &events[..limit(*after)]).chain([Frame::Abort]).collect()
        }
        Some(Fault::EndEarly { after }) => paced(reply, &events[..limit(*after)]).collect(),
        Some(Fault::Hang { after }) => paced(reply, &events[..limit(*after)]).chain([Frame::Hang]).collect(),
        Some(Fault::NoTerminator) => {
            events.truncate(events.len().saturating_sub(1));
            paced(reply, &events).collect()
        }
        Some(Fault::Garbage) => {
            let text = match call.wire {
                Wire::Ollama => "{\"message\": [not json\n",
                _ => "data: {\"choices\": [not json\n\n",
            };
            let garbage = Event { text: text.to_owned(), piece: false };
            events.insert(limit(1), garbage);
            paced(reply, &events).collect()
        }
        Some(Fault::BrokenUtf8) => broken_utf8(reply, &events),
        Some(Fault::Drip { every_ms }) => {
            let opening = events.iter().position(|event| event.piece).unwrap_or(0);
            let drop = wire::piece(call.wire, reply, ". ").text;
            let repeat = Frame::Repeat(drop.into(), Duration::from_millis(*every_ms));
            paced(reply, &events[..opening]).chain([repeat]).collect()
        }
    }
}

/// Events as frames: comments between them (lines of JSON have none), and the pause before each piece of the answer.
fn paced<'a>(reply: &'a Reply, events: &'a [Event]) -> impl Iterator<Item = Frame> + 'a {
    events.iter().flat_map(|event| {
        let comment = (reply.comments && !event.text.starts_with('{'))
            .then(|| Frame::Data(Bytes::from_static(b": scripted keep-alive\n\n")));
        let pause = (event.piece && !reply.delay.is_zero()).then_some(Frame::Pause(reply.delay));
        let data = Frame::Data(Bytes::copy_from_slice(event.text.as_bytes()));
        comment.into_iter().chain(pause).chain([data])
    })
}

/// Cuts the first piece in two, and ends the first half with the start of a character that the
/// second half does not go on with. The JSON around it stays whole.
fn broken_utf8(reply: &Reply, events: &[Event]) -> VecDeque<Frame> {
    let mut frames: VecDeque<Frame> = paced(reply, events).collect();
    let text_in = |frame: &Frame| match frame {
        Frame::Data(bytes) => reply.text.chars().next().and_then(|first| start_of_text(bytes, first)),
        _ => None,
    };
    let Some((at, cut)) = frames.iter().enumerate().find_map(|(at, frame)| Some((at, text_in(frame)?)))
    else {
        return frames;
    };
    if let Frame::Data(bytes) = frames[at].clone() {
        let first = [&bytes[..cut], b"\xe2\x82"].concat();
        frames[at] = Frame::Data(bytes.slice(cut..));
        frames.insert(at, Frame::Data(first.into()));
    }
    frames
}

/// Where the text that begins with `first` begins in the JSON of an event.
fn start_of_text(event: &[u8], first: char) -> Option<usize> {
    let event = std::str::from_utf8(event).ok()?;
    ["\"content\":\"", "\"text\":\"", "\"delta\":\""].iter().find_map(|key| {
        let at = event.find(key)? + key.len();
        event[at..].starts_with(first).then_some(at)
    })
}

/// Cuts the bytes into writes of `size`, through characters if it falls that way.
fn recut(frames: VecDeque<Frame>, size: Option<usize>) -> VecDeque<Frame> {
    let Some(size) = size else { return frames };
    let cut = |frame: Frame| match frame {
        Frame::Data(bytes) => bytes.chunks(size).map(|chunk| Frame::Data(bytes.slice_ref(chunk))).collect(),
        other => vec![other],
    };
    frames.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn frames(rule: &str) -> VecDeque<Frame> {
        let call =
            Call { wire: Wire::OpenAi, stream: true, ..Call::program("scripted/m".into(), "hi".into()) };
        deliver(&call, &reply(rule)).frames
    }

    fn bytes(frames: &VecDeque<Frame>) -> Vec<u8> {
        let data = |frame: &Frame| if let Frame::Data(bytes) = frame { bytes.to_vec() } else { Vec::new() };
        frames.iter().flat_map(data).collect()
    }

    #[test]
    fn writes_of_one_byte_lose_nothing() {
        let small = frames("text='café 🦉'\nwire_bytes=1");
        assert_eq!(bytes(&small), bytes(&frames("text='café 🦉'")));
        assert!(small.iter().all(|frame| matches!(frame, Frame::Data(data) if data.len() == 1)));
    }

    #[test]
    fn a_broken_character_stands_at_the_end_of_a_write() {
        let frames = frames("text='Hello'\nfault='broken-utf8'");
        let broken = |frame: &Frame| matches!(frame, Frame::Data(bytes) if bytes.ends_with(b"\xe2\x82"));
        assert!(frames.iter().any(broken));
        assert!(String::from_utf8(bytes(&frames)).is_err());
        assert!(String::from_utf8_lossy(&bytes(&frames)).contains("\u{fffd}Hello"));
    }

    #[test]
    fn pieces_wait_and_the_rest_does_not() {
        let frames = frames("text='abcd'\nchunk=2\ndelay_ms=5");
        let pauses = frames.iter().filter(|frame| **frame == Frame::Pause(Duration::from_millis(5))).count();
        assert_eq!(pauses, 2);
    }

    #[test]
    fn faults_end_the_frames_in_their_way() {
        assert_eq!(frames("text='x'\nfault={disconnect={after=0}}"), [Frame::Abort]);
        assert_eq!(frames("text='x'\nfault={disconnect={after=99}}").back(), Some(&Frame::Abort));
        assert_eq!(frames("text='x'\nfault={hang={}}"), [Frame::Hang]);
        assert_eq!(frames("text='x'\nfault={end-early={after=2}}").len(), 2);
        assert!(
            !String::from_utf8(bytes(&frames("text='x'\nfault='no-terminator'"))).unwrap().contains("[DONE]")
        );
        assert!(matches!(frames("text='x'\nfault={drip={every_ms=1}}").back(), Some(Frame::Repeat(..))));
    }
}
