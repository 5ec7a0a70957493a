//! Server-sent events (WHATWG HTML, "Server-sent events"): a message is the data of one event.

mod decode;

pub use decode::{SseDecoder, SseError, SseEvent};

/// One event to send. All of it is optional, but what has nothing is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outgoing<'a> {
    /// What a client names in `Last-Event-ID` when it comes back: without NUL and line ends.
    pub id: Option<&'a str>,
    /// How long a client waits before it comes back, in milliseconds.
    pub retry_ms: Option<u64>,
    /// The data. Empty data makes an event without a message, which carries an id alone.
    pub data: Option<&'a [u8]>,
}

impl Outgoing<'_> {
    /// Appends it to what goes out. Data of several lines arrives with line feeds between them.
    pub fn put(&self, out: &mut Vec<u8>) {
        if let Some(id) = self.id {
            out.extend_from_slice(b"id: ");
            out.extend(id.bytes().filter(|byte| !matches!(byte, b'\0' | b'\r' | b'\n')));
            out.push(b'\n');
        }
        if let Some(retry) = self.retry_ms {
            out.extend_from_slice(format!("retry: {retry}\n").as_bytes());
        }
        if let Some(data) = self.data {
            put_data(out, data);
        }
        out.push(b'\n');
    }
}

fn put_data(out: &mut Vec<u8>, data: &[u8]) {
    let mut rest = data;
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        rest = match &rest[end..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => return,
        };
    }
}

/// A comment, which says only that the stream is alive.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put(event: Outgoing<'_>) -> String {
        let mut out = Vec::new();
        event.put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_event_has_the_members_it_was_given() {
        let all = Outgoing { id: Some("7"), retry_ms: Some(500), data: Some(b"{}") };
        assert_eq!(put(all), "id: 7\nretry: 500\ndata: {}\n\n");
        let priming = Outgoing { id: Some("a\r\nb\0"), data: Some(b""), ..Outgoing::default() };
        assert_eq!(put(priming), "id: ab\ndata: \n\n");
        let lines = Outgoing { data: Some(b"a\nb\r\nc\rd\n"), ..Outgoing::default() };
        assert_eq!(put(lines), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives(
            events in prop::collection::vec((prop::option::of("[a-z0-9 :]{0,5}"), "[^\r]{0,40}"), 0..6),
            cuts in prop::collection::vec(1..9_usize, 1..60),
        ) {
            let mut out = Vec::new();
            for (id, data) in &events {
                Outgoing { id: id.as_deref(), retry_ms: None, data: Some(data.as_bytes()) }.put(&mut out);
                out.extend_from_slice(KEEP_ALIVE);
            }
            let mut decoder = SseDecoder::new(1000);
            let (mut arrived, mut rest, mut cuts) = (Vec::new(), &out[..], cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                decoder.push(now, &mut arrived).unwrap();
                rest = later;
            }
            let data: Vec<&[u8]> = arrived.iter().map(|event| &*event.data).collect();
            let sent: Vec<&[u8]> = events.iter().map(|(_, data)| data.as_bytes()).collect();
            prop_assert_eq!(data, sent);
            let last = events.iter().filter_map(|(id, _)| id.as_deref()).next_back().unwrap_or_default();
            prop_assert_eq!(decoder.last_event_id(), last);
        }
    }
}
