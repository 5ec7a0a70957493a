//! A response body that does what its frames say.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame as HttpFrame, SizeHint};
use tokio::time::Sleep;

use crate::control::Ticket;
use crate::deliver::Frame;

/// A scripted body.
#[derive(Debug)]
pub(crate) struct ScriptedBody {
    frames: VecDeque<Frame>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Bytes were handed over and have to be written before the next frame is looked at.
    unwritten: bool,
    /// The account of the request; requests about the server itself have none.
    ticket: Option<Ticket>,
}

/// What hyper is told when the script breaks the connection.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection")]
pub(crate) struct Broken;

impl ScriptedBody {
    pub(crate) fn new(frames: VecDeque<Frame>, ticket: Option<Ticket>) -> Self {
        Self { frames, sleep: None, unwritten: false, ticket }
    }

    fn pause(&mut self, pause: Duration) {
        self.sleep = Some(Box::pin(tokio::time::sleep(pause)));
    }

    /// Told together with the last bytes, because a client may close as soon as it has them.
    fn done(&mut self) {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.done();
        }
    }

    fn broken(&mut self) {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.broken();
        }
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<HttpFrame<Bytes>, Broken>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            // hyper writes what it has when a body is pending; without this, bytes before a
            // break would be lost and small writes would be joined.
            if std::mem::take(&mut self.unwritten) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            match self.frames.pop_front() {
                None => {
                    self.done();
                    return Poll::Ready(None);
                }
                Some(Frame::Data(bytes)) => {
                    self.unwritten = true;
                    if self.frames.is_empty() {
                        self.done();
                    }
                    return Poll::Ready(Some(Ok(HttpFrame::data(bytes))));
                }
                Some(Frame::Pause(pause)) => self.pause(pause),
                Some(Frame::Abort) => {
                    self.broken();
                    return Poll::Ready(Some(Err(Broken)));
                }
                Some(Frame::Repeat(bytes, every)) => {
                    self.frames.push_front(Frame::Repeat(bytes.clone(), every));
                    self.frames.push_front(Frame::Data(bytes));
                    self.pause(every);
                }
                Some(Frame::Hang) => {
                    self.frames.push_front(Frame::Hang);
                    return Poll::Pending;
                }
            }
        }
    }

    /// A body of one piece is sent with its length, as the services send their JSON.
    fn size_hint(&self) -> SizeHint {
        match (self.frames.len(), self.frames.front()) {
            (1, Some(Frame::Data(bytes))) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            _ => SizeHint::default(),
        }
    }
}
