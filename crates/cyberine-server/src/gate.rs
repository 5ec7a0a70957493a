//! The auth gate: a wrapper that lets nobody past who does not know the token.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_types::{Caller, Secret};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use scrub::Scrub;

use crate::changes::ListChanges;
use crate::object_schema::ExtraArgument;
use crate::resource_set::{
    ReadOutcome, ResourceContents, ResourceError, ResourcePage, ResourceRead, ResourceSet, ResourceTemplate,
    ResourceWatch,
};
use crate::toolset::{Call, CallError, Outcome, Tool, ToolResult, ToolSet};

mod let_out;
mod scrub;
mod tasks;

/// The length in bytes from which a token is kept out of everything but its own argument. A shorter
/// one occurs in texts that have nothing to do with it: taken out of them it would spoil them, and the
/// gaps would show what it is.
pub const SHORTEST_MASKED: usize = 8;

/// The argument that carries the token.
const ARGUMENT: &str = "authToken";

const TOKEN_ARGUMENT: ExtraArgument = ExtraArgument {
    name: ARGUMENT,
    schema: r#"{"type":"string","description":"The server's access token, where one is configured."}"#,
};

/// A [`ToolSet`], a [`ResourceSet`] or a [`TaskSet`](crate::TaskSet) behind a token.
///
/// Every tool gets an optional `authToken` argument and every URI an optional `authToken` query
/// parameter. Both are removed before the inner set sees them, also where no token is
/// configured, so that a token can reach no record by way of an argument. The token opens the
/// gate and says nothing of who the caller is.
///
/// A token of at least [`SHORTEST_MASKED`] bytes has its place there and nowhere else: a call that carries it in
/// another argument is refused, whatever it is written into, and so is a URI that has it in its path;
/// a client whose name or version carries it is nobody (`[secret]`) to the inner set; and it is taken
/// out of everything the gate lets out. A shorter token could not be told from ordinary text.
pub struct Gate<S> {
    inner: S,
    token: Option<Secret>,
    scrub: Scrub,
}

impl<S> Gate<S> {
    /// Puts `inner` behind `token`; `None` leaves the gate open. An empty token is the caller's
    /// to refuse: it would match an empty argument.
    pub fn new(inner: S, token: Option<Secret>) -> Self {
        let scrub = Scrub::new(token.as_ref());
        Self { inner, token, scrub }
    }

    fn admits(&self, candidate: Option<&str>) -> bool {
        match &self.token {
            None => true,
            Some(token) => candidate.is_some_and(|text| token.matches(text)),
        }
    }
}

impl<S: ToolSet> ToolSet for Gate<S> {
    fn list(&self, caller: &Caller) -> Arc<[Tool]> {
        if self.scrub.is_idle() {
            return self.inner.list(caller);
        }
        self.inner.list(&self.known(caller.clone()))
    }

    fn is_public(&self) -> bool {
        self.inner.is_public()
    }

    fn changes(&self) -> Option<ListChanges> {
        self.inner.changes()
    }

    fn extra_arguments(&self) -> Vec<ExtraArgument> {
        let mut arguments = self.inner.extra_arguments();
        arguments.push(TOKEN_ARGUMENT);
        arguments
    }

    fn refuse(&self, name: &str, arguments: &Map<String, Value>) -> Option<ToolResult> {
        let token = arguments.get(ARGUMENT).and_then(Value::as_str);
        if !self.admits(token) {
            return Some(unauthorized());
        }
        let refusal = self.misplaced(arguments).or_else(|| self.inner.refuse(name, arguments));
        refusal.map(|refusal| self.scrub.result(refusal))
    }

    fn is_control(&self, name: &str) -> bool {
        self.inner.is_control(name)
    }

    fn redact(&self, text: String) -> String {
        self.inner.redact(self.scrub.text(text))
    }

    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        let token = call.arguments.remove(ARGUMENT);
        let admitted = self.admits(token.as_ref().and_then(Value::as_str));
        let refusal = if admitted {
            self.misplaced(&call.arguments).or_else(|| self.misplaced_in_answers(&call.input_responses))
        } else {
            Some(unauthorized())
        };
        if let Some(refusal) = refusal {
            return Box::pin(std::future::ready(Ok(Outcome::Complete(refusal))));
        }
        call.caller = self.known(call.caller);
        call.tasks &= self.token.is_none();
        let outcome = self.inner.call(call);
        if self.scrub.is_idle() {
            return outcome;
        }
        Box::pin(async move { self.scrubbed(outcome.await) })
    }
}

impl<S> Gate<S> {
    /// Refuses arguments that have the token in a text or a name: texts are stored and shown, and
    /// what is said of names repeats them.
    fn misplaced(&self, arguments: &Map<String, Value>) -> Option<ToolResult> {
        let mut others = arguments.iter().filter(|(name, _)| *name != ARGUMENT);
        let found = others.any(|(name, value)| self.scrub.finds_in_text(name) || self.scrub.finds_in(value));
        found.then(misplaced)
    }

    fn misplaced_in_answers(&self, answers: &BTreeMap<String, Value>) -> Option<ToolResult> {
        answers.values().any(|answer| self.scrub.finds_in(answer)).then(misplaced)
    }

    /// The caller as the inner set may know it.
    fn known(&self, caller: Caller) -> Caller {
        let Caller { identity, client } = caller;
        Caller { identity, client: client.map(|client| self.scrub.client(client)) }
    }

    /// Refuses a resource to who does not know the token, or writes it where it does not belong.
    fn refused(&self, uri: &str, token: Option<&str>) -> Option<ResourceError> {
        if !self.admits(token) {
            return Some(ResourceError::Unauthorized);
        }
        let misplaced = self.scrub.finds_in_text(uri);
        misplaced.then(|| ResourceError::NotFound { uri: self.scrub.shown_uri(uri) })
    }

    fn scrubbed(&self, outcome: Result<Outcome, CallError>) -> Result<Outcome, CallError> {
        match outcome {
            Ok(Outcome::Complete(result)) => Ok(Outcome::Complete(self.scrub.result(result))),
            Ok(Outcome::InputRequired { requests, state }) => {
                Ok(Outcome::InputRequired { requests: self.scrub.questions(requests), state })
            }
            Ok(Outcome::Task(view)) => Ok(Outcome::Task(self.scrub.task(view))),
            Err(CallError::UnknownTool(name)) => Err(CallError::UnknownTool(self.scrub.text(name))),
            Err(CallError::Internal(message)) => Err(CallError::Internal(self.scrub.text(message))),
            Err(CallError::NeedsTasks) => Err(CallError::NeedsTasks),
        }
    }

    fn scrubbed_part(&self, part: ResourceContents) -> ResourceContents {
        let ResourceContents { uri, mime_type, body } = part;
        ResourceContents { uri: self.scrub.text(uri), mime_type, body: self.scrub.body(body) }
    }

    fn scrubbed_error(&self, error: ResourceError) -> ResourceError {
        match error {
            ResourceError::NotFound { uri } => ResourceError::NotFound { uri: self.scrub.shown_uri(&uri) },
            ResourceError::Internal(message) => ResourceError::Internal(self.scrub.text(message)),
            ResourceError::Other { code, message, data } => ResourceError::Other {
                code,
                message: self.scrub.text(message),
                data: data.map(|data| self.scrub.value(data)),
            },
            ResourceError::BadUri { message, reason } => {
                ResourceError::BadUri { message: self.scrub.text(message), reason }
            }
            ResourceError::BadCursor | ResourceError::Unauthorized => error,
        }
    }
}

fn unauthorized() -> ToolResult {
    ToolResult::error("unauthorized")
}

fn misplaced() -> ToolResult {
    ToolResult::error(format!("the access token belongs into `{ARGUMENT}` and nowhere else"))
}

impl<S: ResourceSet> ResourceSet for Gate<S> {
    fn templates(&self) -> Vec<ResourceTemplate> {
        self.inner.templates()
    }

    /// With a token configured the list is empty, and no cursor is one it gave: a cursor has no
    /// place for a token.
    fn list(
        &self,
        caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        if self.token.is_none() {
            return self.inner.list(caller, cursor);
        }
        let page = if cursor.is_some() { Err(ResourceError::BadCursor) } else { Ok(ResourcePage::default()) };
        Box::pin(std::future::ready(page))
    }

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        let (uri, token) = split_token(&read.uri);
        let refusal = self.refused(&uri, token.as_deref()).or_else(|| {
            let misplaced = read.input_responses.values().any(|answer| self.scrub.finds_in(answer));
            misplaced.then(|| ResourceError::NotFound { uri: self.scrub.shown_uri(&uri) })
        });
        if let Some(refusal) = refusal {
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let outcome = self.inner.read(ResourceRead { uri, caller: self.known(read.caller), ..read });
        Box::pin(async move {
            let outcome = outcome.await.map_err(|error| self.scrubbed_error(error))?;
            Ok(match outcome {
                ReadOutcome::Contents(contents) => {
                    ReadOutcome::Contents(contents.into_iter().map(|part| self.scrubbed_part(part)).collect())
                }
                ReadOutcome::InputRequired { requests, state } => {
                    ReadOutcome::InputRequired { requests: self.scrub.questions(requests), state }
                }
            })
        })
    }

    /// With a token configured the list is empty, and stays so.
    fn changes(&self) -> Option<ListChanges> {
        if self.token.is_none() { self.inner.changes() } else { None }
    }

    fn plain_uri(&self, uri: &str) -> String {
        self.inner.plain_uri(&split_token(uri).0)
    }

    fn is_watchable(&self) -> bool {
        self.inner.is_watchable()
    }

    fn watch(
        &self,
        caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        let (uri, token) = split_token(&uri);
        if let Some(refusal) = self.refused(&uri, token.as_deref()) {
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let watch = self.inner.watch(self.known(caller), uri);
        Box::pin(async move { watch.await.map_err(|error| self.scrubbed_error(error)) })
    }
}

/// Takes every `authToken` parameter out of a URI's query. The value is percent-decoded
/// (RFC 3986, 2.1); where there are several the last one counts. The fragment goes too: it is not
/// part of what is asked for (RFC 3986, 3.5).
pub(crate) fn split_token(uri: &str) -> (String, Option<String>) {
    let uri = uri.split('#').next().unwrap_or_default();
    let Some((path, query)) = uri.split_once('?') else { return (uri.to_owned(), None) };
    let mut token = None;
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if percent_decoded(key) == ARGUMENT {
            token = Some(percent_decoded(value));
        } else {
            kept.push(parameter);
        }
    }
    let mut clean = path.to_owned();
    if !kept.is_empty() {
        clean.push('?');
        clean.push_str(&kept.join("&"));
    }
    (clean, token)
}

/// Decodes `%41` to `A`; what is no such triplet stays as it is.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_a_uri_wherever_it_stands() {
        let cases = [
            ("cyberine://runs/a", "cyberine://runs/a", None),
            ("cyberine://runs/a?authToken=t", "cyberine://runs/a", Some("t")),
            ("cyberine://runs/a?x=1&authToken=t&y=2", "cyberine://runs/a?x=1&y=2", Some("t")),
            ("cyberine://runs/a?authToken=a%20b%2F#f", "cyberine://runs/a", Some("a b/")),
            ("cyberine://runs/a?authToken=t#authToken=t", "cyberine://runs/a", Some("t")),
            ("cyberine://runs/a#?authToken=t", "cyberine://runs/a", None),
            ("cyberine://runs/a?auth%54oken=t", "cyberine://runs/a", Some("t")),
            ("cyberine://runs/a?authToken", "cyberine://runs/a", Some("")),
            ("cyberine://runs/a?authToken=1&authToken=2", "cyberine://runs/a", Some("2")),
            ("cyberine://runs/a?authToken=%+1%zz%", "cyberine://runs/a", Some("%+1%zz%")),
        ];
        for (uri, clean, token) in cases {
            assert_eq!(split_token(uri), (clean.to_owned(), token.map(str::to_owned)), "{uri}");
        }
    }
}
