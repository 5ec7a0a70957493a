//! `poll_inbox`: what lies in a mailbox, now or after a while.

use std::time::Duration;

use cyberine_bus::{BusError, Envelope, Page, ReadRequest, Reader};
use cyberine_server::ToolResult;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::arguments::{Poll, bad};
use crate::bounded::{MAX_RESULT, cut, size};
use crate::send::told;
use crate::services::Services;
use crate::waiting::Wait;

/// How many messages one poll gives.
const MESSAGES: usize = 100;
/// How many readers are told of.
const READERS: usize = 20;
/// How many characters of a name are shown.
const LINE: usize = 400;
/// What the result takes beside its messages and readers, its note among it.
const FRAME: usize = 768;
/// How long is waited before a mailbox is looked at again that was said to have changed and had
/// not.
const PACE: Duration = Duration::from_millis(50);
/// Where every message is whole.
const WHOLE: &str = "`cyberine inbox` in a terminal";

/// Reads a mailbox for the reader `by` and takes nothing away. How far it says that it has read is
/// recorded first. Where there is nothing and the caller would wait, it waits for a message.
pub(crate) async fn poll(
    services: &Services,
    arguments: Poll,
    wait: &Wait<'_>,
    by: String,
) -> Result<ToolResult, String> {
    let page = match read(services, &arguments, wait, &by).await {
        Ok(page) => page,
        Err(error @ BusError::Off) => {
            return Ok(ToolResult::ok(json!({ "ok": false, "reason": error.to_string(), "messages": [] })));
        }
        Err(error) => return Err(told(&error)),
    };
    if arguments.text_offset.is_some() {
        check_text_of(&page, arguments.cursor)?;
    }
    let readers = match services.bus.readers(arguments.mailbox).await {
        // The caller first: not all may be told of.
        Ok(mut readers) => {
            readers.sort_by_key(|reader| reader.reader != by);
            readers
        }
        Err(error) => {
            tracing::warn!(error = told(&error), "the readers of a mailbox could not be told");
            Vec::new()
        }
    };
    let mut result = bounded(&page, &readers, arguments.text_offset);
    if is_beyond(arguments.cursor, &page) {
        result["note"] = json!(format!(
            "cursor {} is beyond the last message, {}: the mailbox was removed or put back since, or the \
             cursor is another mailbox's. cursor 0 begins with the oldest message.",
            arguments.cursor, page.last
        ));
    } else if let (Some(note), true) = (wait.note, page.messages.is_empty()) {
        result["note"] = json!(note);
    }
    Ok(ToolResult::ok(result))
}

/// Whether the mailbox ends before what is known of it.
const fn is_beyond(cursor: u64, page: &Page) -> bool {
    page.last < cursor
}

/// Whether the page holds the message whose text is to go on.
fn check_text_of(page: &Page, cursor: u64) -> Result<(), String> {
    let wanted = cursor + 1;
    match page.messages.first() {
        Some(message) if message.seq == wanted => Ok(()),
        _ => Err(bad(
            "textOffset",
            &format!(
                "message {wanted} is not in the mailbox any more, so its text cannot go on; leave textOffset out"
            ),
        )),
    }
}

async fn read(services: &Services, arguments: &Poll, wait: &Wait<'_>, by: &str) -> Result<Page, BusError> {
    if let Some(through) = arguments.ack_seq {
        services.bus.acknowledge(arguments.mailbox.clone(), by.to_owned(), through).await?;
    }
    match arguments.text_offset {
        Some(_) => services.bus.read(arguments.mailbox.clone(), one(arguments.cursor)).await,
        None => wait_for_mail(services, arguments, wait.time).await,
    }
}

/// The first message after `cursor`, whenever it was sent.
fn one(cursor: u64) -> ReadRequest {
    ReadRequest { after: cursor, limit: 1, max_bytes: MAX_RESULT, ..ReadRequest::default() }
}

async fn wait_for_mail(services: &Services, arguments: &Poll, time: Duration) -> Result<Page, BusError> {
    let Poll { mailbox, since, cursor, .. } = arguments;
    let deadline = Instant::now() + time;
    let mut after = *cursor;
    loop {
        let request =
            ReadRequest { after, since: *since, newest: false, limit: MESSAGES, max_bytes: MAX_RESULT };
        let page = services.bus.read(mailbox.clone(), request).await?;
        let goes_on = page.more && page.next > after;
        let now = Instant::now();
        let is_over = now >= deadline || is_beyond(*cursor, &page);
        if !page.messages.is_empty() || (!goes_on && is_over) {
            return Ok(page);
        }
        after = page.next;
        if !goes_on {
            services.bus.changed(mailbox.clone(), after, deadline - now).await;
            if now.elapsed() < PACE {
                tokio::time::sleep_until(deadline.min(now + PACE)).await;
            }
        }
    }
}

/// As many messages as fit, each whole. One that does not fit by itself comes alone and cut.
fn bounded(page: &Page, readers: &[Reader], offset: Option<u64>) -> Value {
    let readers: Vec<Value> = readers.iter().take(READERS).map(reader).collect();
    let mut left = (MAX_RESULT - FRAME).saturating_sub(size(&json!(readers)));
    let mut messages = Vec::new();
    let mut next = page.next;
    for envelope in &page.messages {
        let message = (envelope.text.len() <= left).then(|| show(envelope));
        let needed = message.as_ref().map_or(usize::MAX, |message| size(message) + 1);
        let Some(message) = message.filter(|_| needed <= left && offset.is_none()) else {
            if messages.is_empty() {
                messages.push(excerpt(envelope, offset.unwrap_or_default(), left));
                next = envelope.seq;
            }
            break;
        };
        left -= needed;
        next = envelope.seq;
        messages.push(message);
    }
    let all = messages.len() == page.messages.len();
    let mut result = json!({
        "ok": true,
        "messages": messages,
        "nextCursor": if all { page.next } else { next },
        "more": page.more || !all,
        "last": page.last,
    });
    if !readers.is_empty() {
        result["readers"] = json!(readers);
    }
    if page.skipped > 0 {
        result["skipped"] = json!(page.skipped);
    }
    result
}

fn reader(reader: &Reader) -> Value {
    json!({ "reader": cut(&reader.reader, LINE.min(100)), "through": reader.through, "unread": reader.unread })
}

/// A message; names that only a record forged by hand can have as long as
/// this are cut.
fn show(envelope: &Envelope) -> Value {
    let mut shown = json!(envelope);
    for (object, key) in [("from", "id"), ("sender", "principal")] {
        shorten(&mut shown[object], key);
    }
    shorten(&mut shown, "thread");
    shown
}

fn shorten(object: &mut Value, key: &str) {
    if let Some(text) = object.get(key).and_then(Value::as_str) {
        let short = cut(text, LINE);
        object[key] = json!(short);
    }
}

/// A message with what fits of its text from `offset` on, and how to get the rest.
fn excerpt(envelope: &Envelope, offset: u64, left: usize) -> Value {
    let text = envelope.text.as_str();
    let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let begin = text.floor_char_boundary(begin);
    let rest = |end: usize| json!({ "cursor": envelope.seq - 1, "textOffset": end, "whole": WHOLE });
    let mut message = show(&Envelope { text: String::new(), ..envelope.clone() });
    message["textBytes"] = json!(text.len());
    message["textOffset"] = json!(begin);
    message["truncated"] = json!(true);
    message["rest"] = rest(text.len());
    let budget = left.saturating_sub(size(&message) + 1);
    let end = begin + fitting(&text[begin..], budget);
    message["text"] = json!(&text[begin..end]);
    message["rest"] = rest(end);
    if let (true, Some(message)) = (end == text.len(), message.as_object_mut()) {
        message.remove("rest");
        if begin == 0 {
            message.remove("truncated");
        }
    }
    message
}

/// How many bytes of `text` take at most `budget` bytes in JSON; one character at least, where
/// there is one, so that whoever goes on comes to an end.
fn fitting(text: &str, budget: usize) -> usize {
    let mut left = budget;
    for (at, c) in text.char_indices() {
        let needed = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if needed > left && at > 0 {
            return at;
        }
        left = left.saturating_sub(needed);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_bus::{Address, AddressKind, Channel, From, FromKind, Importance, Sender, Topic};
    use cyberine_types::{InstanceId, MessageId, Principal, Timestamp};

    fn envelope(seq: u64, text: &str) -> Envelope {
        Envelope {
            seq,
            id: MessageId::random(),
            to: Address::new(AddressKind::Chat, "c").unwrap(),
            from: From { kind: FromKind::Mcp, id: "h@1".into() },
            sender: Sender::new(&Principal::local("u"), Channel::Mcp, InstanceId::random()),
            topic: Topic::Note,
            text: text.into(),
            sent_at: Timestamp::from_unix_ms(0),
            thread: None,
            reply_to: None,
            importance: Importance::Normal,
            ack_required: false,
        }
    }

    fn page(texts: &[&str]) -> Page {
        let messages: Vec<Envelope> = (1..).zip(texts).map(|(seq, text)| envelope(seq, text)).collect();
        let last = messages.len() as u64;
        Page { messages, next: last, more: false, last, skipped: 0 }
    }

    fn texts(shown: &Value) -> Vec<&str> {
        shown["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
    }

    #[test]
    fn messages_are_whole_while_they_fit_and_the_cursor_stays_at_what_was_shown() {
        let long = "x".repeat(15_000);
        let shown = bounded(&page(&["a", &long, &long, "b"]), &[], None);
        assert_eq!(texts(&shown), ["a", &long]);
        assert_eq!(
            (&shown["nextCursor"], &shown["more"], &shown["last"]),
            (&json!(2), &json!(true), &json!(4))
        );
        assert!(size(&shown) <= MAX_RESULT);
        let all = bounded(&page(&["a", "b"]), &[], None);
        assert_eq!((&all["nextCursor"], &all["more"]), (&json!(2), &json!(false)));
        assert_eq!(all["messages"][0].get("truncated"), None);
    }

    #[test]
    fn a_text_that_does_not_fit_comes_alone_and_is_had_whole_piece_by_piece() {
        for piece in ["x", "ß", "\u{1}", "\"\\\n", "🦉e\u{301}"] {
            let text = piece.repeat(100_000 / piece.len());
            let page = page(&[&text, "after"]);
            let (mut offset, mut got, mut polls) = (None, String::new(), 0);
            loop {
                let shown = bounded(&page, &[], offset);
                assert!(size(&shown) <= MAX_RESULT, "{}", size(&shown));
                let message = &shown["messages"][0];
                assert_eq!((&shown["nextCursor"], &shown["more"]), (&json!(1), &json!(true)));
                assert_eq!(message["textBytes"], json!(text.len()));
                assert_eq!(message["truncated"], true);
                got.push_str(message["text"].as_str().unwrap());
                polls += 1;
                match message.get("rest") {
                    Some(rest) => {
                        assert_eq!(rest["cursor"], 0);
                        offset = rest["textOffset"].as_u64();
                    }
                    None => break,
                }
            }
            assert!(got == text && polls < 40, "{polls}");
        }
    }

    #[test]
    fn an_offset_that_is_nowhere_is_no_fault() {
        let short = page(&["ßx"]);
        assert_eq!(texts(&bounded(&short, &[], Some(1))), ["ßx"]);
        assert_eq!(texts(&bounded(&short, &[], Some(2))), ["x"]);
        assert_eq!(texts(&bounded(&short, &[], Some(u64::MAX))), [""]);
    }

    #[test]
    fn a_text_goes_on_in_its_own_message_only() {
        let mut page = page(&["one", "two"]);
        page.messages.remove(0);
        assert_eq!(check_text_of(&page, 1), Ok(()));
        for cursor in [0, 2] {
            let error = check_text_of(&page, cursor).unwrap_err();
            let message = format!("message {} is not in the mailbox any more", cursor + 1);
            assert!(
                error.starts_with("bad arguments: `textOffset`: ") && error.contains(&message),
                "{error}"
            );
        }
        assert!(check_text_of(&Page::default(), 0).is_err());
    }

    #[test]
    fn readers_and_forged_names_do_not_break_the_bound() {
        let mut page = page(&["\u{1}"; 100]);
        for message in &mut page.messages {
            message.from.id = "\u{1}".repeat(4_096);
            message.sender.principal = "\u{1}".repeat(4_096);
            message.thread = Some("\u{1}".repeat(4_096));
        }
        let reader = Reader { reader: "\u{1}".repeat(4_096), through: 1, unread: 9 };
        let shown = bounded(&page, &vec![reader; 200], None);
        assert!(size(&shown) <= MAX_RESULT, "{}", size(&shown));
        assert_eq!((shown["messages"].as_array().unwrap().len(), &shown["nextCursor"]), (1, &json!(1)));
        assert_eq!(shown["readers"].as_array().unwrap().len(), READERS);
    }
}
