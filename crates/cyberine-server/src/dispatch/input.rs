//! Input that a handler needs, asked for in the way of the client's era.
//!
//! A handler that needs input says so and is entered again with the answers. In the stateless era
//! the client carries its state and sends the request again; with `initialize` the rail asks the
//! client while the request waits, and the handler sees no difference.

use std::collections::BTreeMap;

use cyberine_protocol::model::{ClientCapabilities, InputRequest, InputRequired};
use cyberine_protocol::{Answer, RpcError};
use futures_util::future::try_join_all;
use serde_json::Value;

use super::Request;
use crate::seal::Binding;

/// Rounds of questions after which a request is given up; clients give up there too.
const MAX_ROUNDS: usize = 10;

/// What a handler said it needs.
pub(super) struct Needs {
    pub(super) requests: BTreeMap<String, InputRequest>,
    pub(super) state: Value,
}

/// What becomes of a request whose handler needs input.
pub(super) enum Next {
    /// The answers are there: enter the handler again.
    Again,
    /// The client is sent for the answers.
    Reply(Answer),
    /// There will be no answers.
    Unanswered(Unanswered),
}

/// Why a client of the `initialize` era gave no answers.
pub(super) enum Unanswered {
    /// It did not declare that it can be asked this.
    Unable { lacks: ClientCapabilities, said: String },
    /// It did not answer in time, or with an error: some hosts declare forms and never show one.
    Silent(String),
    /// There were too many rounds.
    GivenUp,
}

/// The input of one request, from one round of its handler to the next.
pub(super) struct Input<'a> {
    request: &'a Request,
    binding: Binding<'a>,
    responses: BTreeMap<String, Value>,
    state: Option<Value>,
    rounds: usize,
}

impl<'a> Input<'a> {
    /// The input the client brought with the request.
    ///
    /// # Errors
    /// Where the state is not one that was sealed for this request.
    pub(super) fn new(
        request: &'a Request,
        binding: Binding<'a>,
        responses: BTreeMap<String, Value>,
        sealed: Option<&str>,
    ) -> Result<Self, RpcError> {
        let server = request.server();
        let state = sealed.map(|sealed| server.seal.open(binding, sealed, server.clock.now())).transpose();
        let state = state.map_err(|error| RpcError::invalid_params(error.to_string()))?;
        Ok(Self { request, binding, responses, state, rounds: 0 })
    }

    /// What the handler is entered with.
    pub(super) fn take(&mut self) -> (BTreeMap<String, Value>, Option<Value>) {
        (std::mem::take(&mut self.responses), self.state.take())
    }

    /// Gets what the handler needs, or sends the client for it.
    pub(super) async fn ask(&mut self, needs: Needs) -> Result<Next, RpcError> {
        if self.request.revision.is_stateless() {
            return self.sealed(needs).map(Next::Reply);
        }
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Ok(Next::Unanswered(Unanswered::GivenUp));
        }
        match answers(self.request, &needs.requests).await {
            Ok(answers) => {
                (self.responses, self.state) = (answers, Some(needs.state));
                Ok(Next::Again)
            }
            Err(why) => Ok(Next::Unanswered(why)),
        }
    }

    /// The reply that sends the client for answers.
    fn sealed(&self, needs: Needs) -> Result<Answer, RpcError> {
        let server = self.request.server();
        let state = server.seal.seal(self.binding, &needs.state, server.clock.now());
        let state = state.map_err(|error| RpcError::internal(error.to_string()))?;
        Ok(Answer::InputRequired(InputRequired { requests: needs.requests, request_state: Some(state) }))
    }
}

impl Unanswered {
    /// What the client's model may read of it.
    pub(super) fn message(self) -> String {
        match self {
            Self::Unable { said, .. } | Self::Silent(said) => {
                format!("input is needed and this client gave none: {said}")
            }
            Self::GivenUp => format!("given up after {MAX_ROUNDS} rounds of questions"),
        }
    }

    /// The same as an error, for requests whose results have no place for it.
    pub(super) fn into_error(self) -> RpcError {
        match self {
            Self::Unable { lacks, .. } => RpcError::missing_capability(lacks),
            other => RpcError::internal(other.message()),
        }
    }
}

/// Asks the client, all questions at once.
async fn answers(
    request: &Request,
    questions: &BTreeMap<String, InputRequest>,
) -> Result<BTreeMap<String, Value>, Unanswered> {
    let none = ClientCapabilities::default();
    let lacks = questions.values().fold(none, |all, question| all.and(question.required()));
    if questions.is_empty() || !request.capabilities.covers(lacks) {
        return Err(Unanswered::Unable { lacks, said: said(questions) });
    }
    let asked = questions.iter().map(|(key, question)| async move {
        let answer = request.connection().ask(request.entry.key, question).map_err(|_| ())?;
        let answer = answer.await.map_err(|_| ())?.map_err(|_| ())?;
        Ok::<_, ()>((key.clone(), answer))
    });
    match tokio::time::timeout(request.server().answer_limit, try_join_all(asked)).await {
        Ok(Ok(pairs)) => Ok(pairs.into_iter().collect()),
        _ => Err(Unanswered::Silent(said(questions))),
    }
}

/// The questions in words.
fn said(questions: &BTreeMap<String, InputRequest>) -> String {
    let said = questions.values().map(|question| match question {
        InputRequest::Form(form) => form.message.as_str(),
        InputRequest::Url(page) => page.message.as_str(),
        InputRequest::Sampling(_) => "a message of the client's model",
        InputRequest::Roots => "the client's directories",
    });
    said.collect::<Vec<_>>().join("; ")
}
