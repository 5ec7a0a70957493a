use cyberine_protocol::{CallKey, ClientEffect, LogLine, ToolReply};

use crate::error::ClientError;
use crate::pipe::Pipe;

/// What happens during a call.
#[derive(Debug)]
pub enum CallEvent {
    /// It goes on.
    Progress {
        /// How far it is; more each time.
        progress: f64,
        /// How far it goes, where that is known.
        total: Option<f64>,
        /// What it does, where the server says so.
        message: Option<String>,
    },
    /// A line of the server's log, of whatever it does.
    Log(LogLine),
    /// It is over.
    Done(ToolReply),
}

/// A call in flight. Dropping it cancels it: the server is told, and its answer is ignored.
pub struct Call<'a> {
    pipe: &'a mut Pipe,
    /// `None` once it is over.
    key: Option<CallKey>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(pipe: &'a mut Pipe, key: CallKey) -> Self {
        Self { pipe, key: Some(key) }
    }

    /// What happens next. After [`CallEvent::Done`] or an error, [`ClientError::NotOpen`].
    ///
    /// # Errors
    /// Why there is no result, or what ended the session.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<CallEvent, ClientError> {
        let mine = self.key.ok_or(ClientError::NotOpen)?;
        loop {
            match self.pipe.next().await {
                Ok(ClientEffect::Progress { key, progress, total, message }) if key == mine => {
                    return Ok(CallEvent::Progress { progress, total, message });
                }
                Ok(ClientEffect::Log(line)) => return Ok(CallEvent::Log(line)),
                Ok(ClientEffect::Called { key, reply }) if key == mine => {
                    self.key = None;
                    return Ok(CallEvent::Done(reply));
                }
                Ok(ClientEffect::Failed { key, error }) if key == mine => {
                    self.key = None;
                    return Err(error.into());
                }
                Ok(_) => {}
                Err(error) => {
                    self.key = None;
                    return Err(error);
                }
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let cancelled =
            self.key.and_then(|key| self.pipe.session.cancel(key, "nobody waits for it any more"));
        if let Some(line) = cancelled {
            self.pipe.say(line);
        }
    }
}
