//! One turn of one provider, read to its end.

use std::sync::Arc;
use std::time::Duration;

use cyberine_provider::{Provider, StopReason, Turn, TurnError, TurnEvent};
use cyberine_run_store::TickKind;
use cyberine_types::{Clock as _, SystemClock, Timestamp, Usage, is_blank};
use futures_util::stream::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::text::preview;
use crate::ticks::{TickSink, about};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finished {
    /// The answer, not empty, or the failure.
    pub(crate) answer: Result<String, TurnError>,
    /// Whether anything of an answer had come: text, or a call of a tool.
    pub(crate) begun: bool,
    /// What was used, also where the turn failed.
    pub(crate) usage: Usage,
    pub(crate) duration_ms: u64,
}

impl Finished {
    /// A turn of which there is nothing but its failure.
    pub(crate) fn failed(error: TurnError) -> Self {
        Self { answer: Err(error), begun: false, usage: Usage::default(), duration_ms: 0 }
    }
}

/// What a turn's events have come to so far.
#[derive(Debug, Default)]
struct Collected {
    text: String,
    begun: bool,
    usage: Usage,
}

impl Collected {
    /// Takes one event; `Some` once the turn is over.
    fn take(&mut self, event: TurnEvent, limit: usize) -> Option<Result<(), TurnError>> {
        self.begun |= matches!(event, TurnEvent::Text(_) | TurnEvent::ToolCall(_));
        match event {
            TurnEvent::Text(more) if self.text.len() + more.len() > limit => {
                return Some(Err(TurnError::TooLong { limit }));
            }
            TurnEvent::Text(more) => self.text.push_str(&more),
            TurnEvent::Retract => self.text.clear(),
            TurnEvent::Working | TurnEvent::ToolCall(_) | TurnEvent::Waiting { .. } => {}
            TurnEvent::Usage(usage) => self.usage = usage,
            TurnEvent::Stop(StopReason::EndTurn) if is_blank(&self.text) => {
                return Some(Err(TurnError::Empty));
            }
            TurnEvent::Stop(StopReason::EndTurn) => return Some(Ok(())),
            TurnEvent::Stop(StopReason::ToolUse) => {
                let detail = "it waits for the result of a tool it was not offered".to_owned();
                return Some(Err(TurnError::Protocol { detail }));
            }
        }
        None
    }
}

/// Takes `turn` to its end and tells `ticks` about it under the name `candidate`.
///
/// The stream is dropped once the turn is over, which ends whatever of it is still alive.
pub(crate) async fn take(
    provider: Arc<dyn Provider>,
    turn: Turn,
    candidate: String,
    ticks: Arc<dyn TickSink>,
    cancel: CancellationToken,
) -> Finished {
    let (begun, limit) = (Instant::now(), turn.limits.answer_bytes);
    let mut stream = provider.turn(turn, cancel);
    let mut collected = Collected::default();
    let tell = |kind, collected: &Collected, note| {
        ticks.tick(&about(&candidate, kind, &collected.text, &collected.usage, note));
    };
    tell(TickKind::Started, &collected, String::new());
    let answer = loop {
        let event = match stream.next().await {
            Some(Ok(event)) => event,
            Some(Err(error)) => break Err(error),
            None => {
                break Err(TurnError::Cut { detail: "the adapter's stream ended without a stop".to_owned() });
            }
        };
        let news = news(&event);
        if let Some(end) = collected.take(event, limit) {
            break end;
        }
        if let Some((kind, note)) = news {
            tell(kind, &collected, note);
        }
    };
    drop(stream);
    match &answer {
        Ok(()) => tell(TickKind::Done, &collected, String::new()),
        Err(error) => tell(TickKind::Error, &collected, preview(&error.to_string(), 200)),
    }
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let Collected { text, begun, usage } = collected;
    Finished { answer: answer.map(|()| text), begun, usage, duration_ms }
}

fn news(event: &TurnEvent) -> Option<(TickKind, String)> {
    match event {
        TurnEvent::Text(_) | TurnEvent::Retract => Some((TickKind::Text, String::new())),
        TurnEvent::ToolCall(call) => Some((TickKind::Tool, preview(&call.name, 80))),
        TurnEvent::Usage(_) => Some((TickKind::Usage, String::new())),
        TurnEvent::Waiting { wait, reason } => {
            Some((TickKind::Waiting, waits(*wait, reason, SystemClock.now())))
        }
        TurnEvent::Working | TurnEvent::Stop(_) => None,
    }
}

/// What is said of a wait that begins `now`: `waits until 02:10:05Z (12 s): the provider limits the
/// rate of requests`.
fn waits(wait: Duration, reason: &str, now: Timestamp) -> String {
    let seconds = i64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
    let until = Timestamp::from_unix_ms(now.unix_ms().saturating_add(seconds.saturating_mul(1000)));
    let long = match until.to_string().get(11..19) {
        Some(clock) if seconds > 0 => format!(" until {clock}Z ({seconds} s)"),
        _ => String::new(),
    };
    preview(&format!("waits{long}: {reason}"), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(events: Vec<TurnEvent>) -> Option<Result<String, TurnError>> {
        let mut collected = Collected::default();
        let end = events.into_iter().find_map(|event| collected.take(event, 10));
        end.map(|end| end.map(|()| collected.text))
    }

    #[test]
    fn an_answer_is_what_was_said_since_the_last_retraction() {
        let text = |words: &str| TurnEvent::Text(words.to_owned());
        let stop = TurnEvent::Stop(StopReason::EndTurn);
        assert_eq!(
            end(vec![text("no"), TurnEvent::Retract, text("a"), text("b"), stop.clone()]),
            Some(Ok("ab".into()))
        );
        assert_eq!(end(vec![text(" \n"), stop.clone()]), Some(Err(TurnError::Empty)));
        assert_eq!(end(vec![text("\u{200b}\u{2060}"), stop.clone()]), Some(Err(TurnError::Empty)));
        assert_eq!(end(vec![stop]), Some(Err(TurnError::Empty)));
        assert_eq!(end(vec![text("12345678901")]), Some(Err(TurnError::TooLong { limit: 10 })));
        assert!(matches!(
            end(vec![text("a"), TurnEvent::Stop(StopReason::ToolUse)]),
            Some(Err(TurnError::Protocol { .. }))
        ));
        assert_eq!(end(vec![text("a")]), None);
    }
}
