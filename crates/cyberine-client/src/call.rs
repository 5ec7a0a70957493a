use std::collections::BTreeMap;

use cyberine_protocol::model::{InputRequest, InputRequired, ListKind, SubscriptionFilter};
use cyberine_protocol::{
    Answers, Ask, CallKey, ClientEffect, LogLine, QuestionKey, RequestError, ToolReply, ToolsPage,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::error::ClientError;
use crate::link::Next;
use crate::tools;

/// The code of a header that is missing or wrong (2026-07-28).
const HEADER_MISMATCH: i64 = -32020;
/// How often a server may want to know something more before it answers.
const ROUNDS: u32 = 10;

/// What happens while a request waits.
#[derive(Debug)]
#[non_exhaustive]
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
    /// The server asks something, and waits: [`Call::answer`] it. Only what the options declare.
    Question {
        /// The question.
        question: QuestionKey,
        /// What it wants to know.
        request: InputRequest,
    },
    /// The server does not want to know any more.
    Withdrawn(QuestionKey),
    /// The server wants to know something before it answers: [`Call::go_on`] with the answers. Only
    /// what the options declare.
    NeedsInput(BTreeMap<String, InputRequest>),
    /// A listen has begun: of these news will come.
    Listening(SubscriptionFilter),
    /// A list has changed.
    Changed(ListKind),
    /// A resource has changed.
    Updated(String),
    /// A task has changed: it is as the result of `tasks/get` has it.
    TaskChanged(Box<RawValue>),
    /// A call of a tool is over.
    Done(ToolReply),
    /// A page of tools.
    Tools(ToolsPage),
    /// Any other request is over, or a call goes on as a task (`resultType` says so): the result as the
    /// server wrote it, an object.
    Result(Box<RawValue>),
}

/// A request in flight. Dropping it cancels it: the server is told, and its answer is ignored.
pub struct Call<'a> {
    client: &'a mut Client,
    ask: Ask,
    /// `None` once it is over, and while the server waits for [`go_on`](Self::go_on).
    key: Option<CallKey>,
    /// What the server gave to be brought back. `None` where it does not wait.
    paused: Option<Option<String>>,
    rounds: u32,
    /// Whether the tools were asked for anew, because a header was wrong.
    refreshed: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(client: &'a mut Client, ask: Ask) -> Result<Self, ClientError> {
        let mirrored = mirrored(client, &ask);
        let key = client.link.ask(&ask, None, mirrored)?;
        Ok(Self { client, ask, key: Some(key), paused: None, rounds: 0, refreshed: false })
    }

    /// What happens next. After the end or an error, [`ClientError::NotOpen`].
    ///
    /// # Errors
    /// Why there is no result, or what ended the session.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<CallEvent, ClientError> {
        loop {
            let mine = self.key.ok_or(ClientError::NotOpen)?;
            let effect = match self.client.link.next().await {
                Ok(Next::Effect(effect)) => effect,
                Ok(Next::Lost(key, why)) if key == mine => {
                    self.key = None;
                    return Err(why);
                }
                Ok(Next::Lost(..)) => continue,
                Err(error) => {
                    self.key = None;
                    return Err(error);
                }
            };
            if let ClientEffect::Failed { key, error } = effect {
                if key != mine {
                    continue;
                }
                self.key = None;
                if !self.may_refresh(&error) {
                    return Err(error.into());
                }
                self.refresh().await?;
                continue;
            }
            if let Some(event) = self.event(mine, effect) {
                return Ok(event);
            }
        }
    }

    /// What an effect says of this request. `None` where it is of another.
    fn event(&mut self, mine: CallKey, effect: ClientEffect) -> Option<CallEvent> {
        let mut over = |event| {
            self.key = None;
            Some(event)
        };
        match effect {
            ClientEffect::Progress { key, progress, total, message } if key == mine => {
                Some(CallEvent::Progress { progress, total, message })
            }
            ClientEffect::Log(line) => Some(CallEvent::Log(line)),
            ClientEffect::Question { question, request } => Some(CallEvent::Question { question, request }),
            ClientEffect::Withdrawn(question) => Some(CallEvent::Withdrawn(question)),
            ClientEffect::Acknowledged { key, served } if key == mine => Some(CallEvent::Listening(served)),
            ClientEffect::Changed { list, .. } => Some(CallEvent::Changed(list)),
            ClientEffect::Updated { uri, .. } => Some(CallEvent::Updated(uri)),
            ClientEffect::TaskChanged { task, .. } => Some(CallEvent::TaskChanged(task)),
            ClientEffect::Called { key, reply } if key == mine => over(CallEvent::Done(reply)),
            ClientEffect::Tools { key, page } if key == mine => over(CallEvent::Tools(page)),
            ClientEffect::Result { key, result } if key == mine => over(CallEvent::Result(result)),
            ClientEffect::NeedsInput { key, needs } if key == mine => {
                let InputRequired { requests, request_state } = needs;
                self.key = None;
                self.paused = Some(request_state);
                Some(CallEvent::NeedsInput(requests))
            }
            _ => None,
        }
    }

    /// Answers a question, or says why there is no answer. `false` where it was answered or withdrawn.
    pub fn answer(&mut self, question: QuestionKey, answer: Result<&Value, &str>) -> bool {
        let line = self.client.link.session.answer(question, answer);
        line.is_some_and(|line| {
            self.client.link.say(line);
            true
        })
    }

    /// Asks again, with answers by the keys of the questions.
    ///
    /// # Errors
    /// [`ClientError::NotOpen`] where the server does not wait for any, [`ClientError::Rounds`] where it
    /// has asked too often.
    pub fn go_on(&mut self, responses: BTreeMap<String, Value>) -> Result<(), ClientError> {
        let state = self.paused.take().ok_or(ClientError::NotOpen)?;
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return Err(ClientError::Rounds { limit: ROUNDS });
        }
        self.again(Some(&Answers { responses, state }))
    }

    fn again(&mut self, answers: Option<&Answers>) -> Result<(), ClientError> {
        let mirrored = mirrored(self.client, &self.ask);
        self.key = Some(self.client.link.ask(&self.ask, answers, mirrored)?);
        Ok(())
    }

    /// Whether the server misses a header that an older list of tools did not ask for.
    fn may_refresh(&mut self, error: &RequestError) -> bool {
        let missed = matches!(error, RequestError::Remote { error, .. } if error.code == HEADER_MISMATCH);
        let call = matches!(self.ask, Ask::CallTool { .. }) && self.rounds == 0;
        missed && call && self.client.link.http().is_some() && !std::mem::replace(&mut self.refreshed, true)
    }

    /// Asks for the tools anew, and calls once more.
    async fn refresh(&mut self) -> Result<(), ClientError> {
        let mut listed = tools::all(&mut self.client.link).await?;
        self.client.marks = tools::marked(&mut listed);
        self.again(None)
    }
}

/// The headers of the marked arguments of a call.
fn mirrored(client: &mut Client, ask: &Ask) -> Vec<(String, String)> {
    let Ask::CallTool { name, arguments } = ask else { return Vec::new() };
    client.marks.get(name).map(|marks| marks.mirror(arguments)).unwrap_or_default()
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.client.link.cancel(key);
        }
    }
}
