//! A future and its events as one stream, without a task of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream};
use tokio::sync::mpsc;

use crate::error::TurnError;
use crate::port::{StopReason, TurnEvent};

/// Events that wait to be read; a full queue stops the reading of the provider.
const QUEUE: usize = 16;

type Outcome = Result<StopReason, TurnError>;

/// Where a turn's driver puts its events.
#[derive(Clone)]
pub(crate) struct Emitter(mpsc::Sender<TurnEvent>);

impl Emitter {
    /// Hands over `events`, waiting for room.
    pub(crate) async fn send(&self, events: &mut Vec<TurnEvent>) {
        for event in events.drain(..) {
            // The receiver lives in the stream that polls this future.
            let _ = self.0.send(event).await;
        }
    }
}

/// The stream of a turn that `driver` takes: its events, then its outcome, then nothing. The
/// driver runs while the stream is polled, and dies with it.
pub(crate) fn turn_stream<D, F>(driver: D) -> BoxStream<'static, Result<TurnEvent, TurnError>>
where
    D: FnOnce(Emitter) -> F,
    F: Future<Output = Outcome> + Send + 'static,
{
    let (sender, events) = mpsc::channel(QUEUE);
    TurnStream { events, driver: Some(Box::pin(driver(Emitter(sender)))), outcome: None }.boxed()
}

struct TurnStream {
    events: mpsc::Receiver<TurnEvent>,
    driver: Option<BoxFuture<'static, Outcome>>,
    outcome: Option<Outcome>,
}

impl Stream for TurnStream {
    type Item = Result<TurnEvent, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(outcome) = driver.as_mut().poll(cx)
        {
            self.outcome = Some(outcome);
            // Drops the sender, which ends the queue after what is in it.
            self.driver = None;
        }
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(Some(Ok(event))),
            Poll::Ready(None) => Poll::Ready(self.outcome.take().map(|outcome| outcome.map(TurnEvent::Stop))),
            Poll::Pending => Poll::Pending,
        }
    }
}
