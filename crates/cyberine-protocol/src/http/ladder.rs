use std::borrow::Cow;

use super::head::{Field, HttpHead};
use super::params::HeaderParams;
use super::refusal::Refusal;
use super::value::{decode_value, encode_value};
use super::{METHOD, NAME, PROTOCOL_VERSION};
use crate::jsonrpc::{
    Incoming, Malformed, RequestId, RpcError, classify, elements, excerpt, members, request_id, text,
};
use crate::revision::Revision;
use crate::session::{Meta, Params};
use crate::strict::{self, Limits, StrictError};

/// What a POST brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Post {
    /// A request that speaks for itself, its headers checked but for [`Posted::check_params`].
    Stateless {
        /// By which rules.
        revision: Revision,
        /// The tool it calls, if it calls one.
        tool: Option<String>,
    },
    /// `initialize`, which opens a session.
    Initialize,
    /// A request or a batch of a session.
    Legacy {
        /// What `MCP-Protocol-Version` says. A client that says nothing is of 2025-03-26, or one that
        /// relies on its session.
        version: Option<Revision>,
        /// Whether anything in it is answered; a batch of notifications is not.
        answered: bool,
    },
    /// A notification.
    Notification {
        /// Whether it speaks for itself, so that no session is meant.
        stateless: bool,
        /// As of [`Post::Legacy`].
        version: Option<Revision>,
    },
    /// The answer to a question that a session asked.
    Response {
        /// The scope its question was asked in, if this server asked it: see
        /// [`ServerSession::resumed`](crate::ServerSession::resumed).
        scope: Option<u64>,
        /// As of [`Post::Legacy`].
        version: Option<Revision>,
    },
}

/// A POST that may be served.
#[derive(Debug)]
pub struct Posted<'a> {
    /// What it is.
    pub post: Post,
    /// The method of a request or a notification, as it was written.
    pub method: Option<Cow<'a, str>>,
    json: &'a str,
    id: Option<RequestId>,
    params: Option<&'a str>,
    arguments: Option<&'a str>,
}

impl<'a> Posted<'a> {
    /// `traceparent` and `tracestate` of its `_meta` (2026-07-28, `basic`, "Trace context"), unchecked.
    /// `None` where the first is not there.
    #[must_use]
    pub fn trace(&self) -> Option<(Cow<'a, str>, Option<Cow<'a, str>>)> {
        let (_, meta) = members(self.params?).find(|(key, _)| key == "_meta")?;
        let member = |name| members(meta).find(|(key, _)| key == name).and_then(|(_, value)| text(value));
        Some((member("traceparent")?, member("tracestate")))
    }

    /// The messages in it, one by one: those of a batch, or itself. Each goes to the session that has
    /// what it answers or cancels.
    pub fn parts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let one = Some(self.json).filter(|json| !json.starts_with('['));
        one.into_iter().chain(elements(self.json)).map(str::as_bytes)
    }

    /// Checks the headers that mirror arguments of the tool that is called.
    ///
    /// # Errors
    /// 400 and `-32020`: one of them is missing, is there without its argument, or says something else.
    pub fn check_params(&self, head: &HttpHead<'_>, params: &HeaderParams) -> Result<(), Refusal> {
        params.check(head, self.arguments).map_err(|reason| {
            let error = RpcError::header_mismatch(reason);
            Refusal::of(400, self.id.as_ref(), &error)
        })
    }

    /// The answer to a message of the `initialize` era that names no session.
    #[must_use]
    pub fn without_session(&self) -> Refusal {
        self.refusal(400, &Meta::missing())
    }

    /// The answer to a message of a session that never was, is over, or is somebody else's.
    #[must_use]
    pub fn of_unknown_session(&self) -> Refusal {
        let message = "this session is not known, or is over; send `initialize` again";
        self.refusal(404, &RpcError::invalid_request(message))
    }

    /// The answer to a message of a session that agreed on another revision than the message names;
    /// `None` where there is nothing wrong with it.
    #[must_use]
    pub fn of_wrong_version(&self, agreed: Revision) -> Option<Refusal> {
        let (Post::Legacy { version, .. }
        | Post::Notification { version, .. }
        | Post::Response { version, .. }) = self.post
        else {
            return None;
        };
        let wrong = version.filter(|version| *version != agreed)?;
        let message = format!("`{PROTOCOL_VERSION}` is {wrong}, and this session is of {agreed}");
        Some(self.refusal(400, &RpcError::invalid_request(message)))
    }

    /// Any other refusal of this message, with its id.
    #[must_use]
    pub fn refusal(&self, status: u16, error: &RpcError) -> Refusal {
        Refusal::of(status, self.id.as_ref(), error)
    }
}

/// Judges a POST by its headers and its body, in the order of the [table](super).
///
/// # Errors
/// The first step it falls off.
pub fn judge<'a>(head: &HttpHead<'_>, body: &'a [u8], limits: Limits) -> Result<Posted<'a>, Refusal> {
    if !head.is_json() {
        let error = RpcError::invalid_request("`Content-Type` must be `application/json`");
        return Err(Refusal::new(415, &error));
    }
    if !(head.accept.json && head.accept.events) {
        let message = "`Accept` must list `application/json` and `text/event-stream`";
        return Err(Refusal::new(406, &RpcError::invalid_request(message)));
    }
    let json = match strict::check(body, limits) {
        Ok(Some(json)) => json,
        Ok(None) => return Err(Refusal::new(400, &RpcError::parse("the body is empty"))),
        Err(error) => return Err(unreadable(body, &error)),
    };
    if json.starts_with('[') {
        return batch(head, json);
    }
    match classify(json) {
        Ok(Incoming::Request { id, method, params }) => match request(head, &method, params) {
            Ok((post, arguments)) => {
                Ok(Posted { post, method: Some(method), json, id: Some(id), params, arguments })
            }
            Err(error) => Err(Refusal::of(400, Some(&id), &error)),
        },
        Ok(Incoming::Notification { method, params }) => {
            let post = notification(head, &method, params).map_err(|error| Refusal::new(400, &error))?;
            Ok(Posted { post, method: Some(method), json, id: None, params, arguments: None })
        }
        Ok(Incoming::Response { id, .. }) => {
            let post = response(head, id.as_ref()).map_err(|error| Refusal::new(400, &error))?;
            Ok(Posted { post, method: None, json, id: None, params: None, arguments: None })
        }
        Err(Malformed { id, reason }) => {
            Err(Refusal::of(400, id.as_ref(), &RpcError::invalid_request(reason)))
        }
    }
}

/// A body that the strict layer refuses.
fn unreadable(body: &[u8], error: &StrictError) -> Refusal {
    if matches!(error, StrictError::TooLong { .. }) {
        return Refusal::new(413, &error.to_rpc());
    }
    let shape = Some(body).filter(|_| error.has_shape());
    let json = shape.and_then(|body| std::str::from_utf8(body).ok());
    match json.and_then(|json| request_id(json.trim_start())) {
        Some(id) => Refusal::of(400, Some(&id), &error.to_rpc_of_request()),
        None => Refusal::new(400, &error.to_rpc()),
    }
}

fn batch<'a>(head: &HttpHead<'_>, json: &'a str) -> Result<Posted<'a>, Refusal> {
    let refused = |error: RpcError| Refusal::new(400, &error);
    let version = match head.version.one().and_then(Revision::parse) {
        Some(version) => Some(version),
        None => legacy_version(head).map_err(refused)?,
    };
    if version.is_some_and(|version| !version.has_batches()) {
        let message = "an array is a message in revision 2025-03-26 only; send its parts one by one";
        return Err(refused(RpcError::invalid_request(message)));
    }
    let silent =
        |part| matches!(classify(part), Ok(Incoming::Notification { .. } | Incoming::Response { .. }));
    let answered = elements(json).next().is_none() || !elements(json).all(silent);
    let post = Post::Legacy { version, answered };
    Ok(Posted { post, method: None, json, id: None, params: None, arguments: None })
}

type Judged<'a> = Result<(Post, Option<&'a str>), RpcError>;

fn request<'a>(head: &HttpHead<'_>, method: &str, params: Option<&'a str>) -> Judged<'a> {
    let params = Params::read(params);
    let meta = params.as_ref().map_err(RpcError::clone).and_then(Params::meta);
    match (params, meta) {
        (Ok(params), Ok(meta)) if meta.is_stateless() => stateless(head, method, &params, &meta),
        // Parameters that hold no `_meta` are refused by the session, which knows the era.
        _ => {
            let version = legacy_version(head)?;
            let post = match method {
                "initialize" => Post::Initialize,
                _ => Post::Legacy { version, answered: true },
            };
            Ok((post, None))
        }
    }
}

fn stateless<'a>(head: &HttpHead<'_>, method: &str, params: &Params<'a>, meta: &Meta<'_>) -> Judged<'a> {
    agrees(PROTOCOL_VERSION, head.version, meta.claimed_version().as_deref())?;
    let envelope = meta.envelope()?;
    let revision = stateless_revision(&envelope.version)?;
    for (name, field) in [(PROTOCOL_VERSION, head.version), (METHOD, head.method)] {
        if field == Field::Absent {
            return Err(RpcError::header_mismatch(format!("the header `{name}` is missing")));
        }
    }
    agrees(METHOD, head.method, Some(method))?;
    let named = named_by(method, params);
    if let Some((member, value)) = named {
        name_agrees(head.name, member, value)?;
    }
    let tool = named.filter(|_| method == "tools/call").and_then(|(_, value)| value.and_then(text));
    let post = Post::Stateless { revision, tool: tool.map(Cow::into_owned) };
    Ok((post, params.arguments))
}

/// The member of the parameters that `Mcp-Name` mirrors, and its value.
fn named_by<'a>(method: &str, params: &Params<'a>) -> Option<(&'static str, Option<&'a str>)> {
    Some(match method {
        "tools/call" | "prompts/get" => ("name", params.name),
        "resources/read" => ("uri", params.uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => ("taskId", params.member("taskId")),
        _ => return None,
    })
}

/// Refuses a header that does not say the same as the body. One that is absent says nothing.
fn agrees(name: &str, field: Field<'_>, body: Option<&str>) -> Result<(), RpcError> {
    let said = match (field, body) {
        (Field::Absent, _) | (Field::One(_), None) => return Ok(()),
        (Field::Many, _) => {
            return Err(RpcError::header_mismatch(format!("the header `{name}` occurs more than once")));
        }
        (Field::One(said), Some(body)) if said == body => return Ok(()),
        (Field::One(said), Some(_)) => said,
    };
    let said = excerpt(said);
    Err(RpcError::header_mismatch(format!("the header `{name}` says `{said}`, and the body something else")))
}

fn name_agrees(field: Field<'_>, member: &str, value: Option<&str>) -> Result<(), RpcError> {
    let value = value.and_then(text);
    let wrong = match (field, value) {
        // What is missing in both is refused as a parameter.
        (Field::Absent, None) => return Ok(()),
        (Field::Absent, Some(_)) => "is missing",
        (Field::Many, _) => "occurs more than once",
        (Field::One(_), None) => "is there, and the body names nothing",
        (Field::One(said), Some(value)) => match decode_value(said) {
            Some(said) if said == value => return Ok(()),
            Some(_) => "and the body name different things",
            None => "holds no text: it has characters a header must not have, or bad Base64",
        },
    };
    Err(RpcError::header_mismatch(format!("the header `{NAME}` (`params.{member}`) {wrong}")))
}

fn stateless_revision(version: &str) -> Result<Revision, RpcError> {
    let revision = Revision::parse(version).filter(|revision| revision.is_stateless());
    revision.ok_or_else(|| RpcError::unsupported_version(version))
}

/// What the version header says of a message that does not speak for itself.
fn legacy_version(head: &HttpHead<'_>) -> Result<Option<Revision>, RpcError> {
    match head.version {
        Field::Absent => Ok(None),
        Field::Many => {
            Err(RpcError::invalid_request(format!("the header `{PROTOCOL_VERSION}` occurs more than once")))
        }
        Field::One(version) => match Revision::parse(version) {
            Some(revision) if revision.is_stateless() => Err(Meta::unclaimed()),
            Some(revision) => Ok(Some(revision)),
            None if head.session_id() != Field::Absent => {
                let version = excerpt(version);
                let message =
                    format!("the header `{PROTOCOL_VERSION}` says `{version}`, which is not served");
                Err(RpcError::invalid_request(message))
            }
            None => Err(RpcError::unsupported_version(version)),
        },
    }
}

/// No revision says which headers a notification of the stateless era must have; those that are there
/// must be right.
fn notification(head: &HttpHead<'_>, method: &str, params: Option<&str>) -> Result<Post, RpcError> {
    let claimed = Params::read(params)?.meta()?.claimed_version();
    let header = head.version.one().and_then(Revision::parse);
    if claimed.is_none() && !header.is_some_and(Revision::is_stateless) {
        return Ok(Post::Notification { stateless: false, version: legacy_version(head)? });
    }
    agrees(PROTOCOL_VERSION, head.version, claimed.as_deref())?;
    if let Some(version) = &claimed {
        stateless_revision(version)?;
    }
    agrees(METHOD, head.method, Some(method))?;
    Ok(Post::Notification { stateless: true, version: None })
}

fn response(head: &HttpHead<'_>, id: Option<&RequestId>) -> Result<Post, RpcError> {
    let header = head.version.one().and_then(Revision::parse);
    if header.is_some_and(Revision::is_stateless) {
        return Err(RpcError::invalid_request(
            "this revision has no questions to answer; put answers into `inputResponses` of a request",
        ));
    }
    Ok(Post::Response { scope: id.and_then(RequestId::scope), version: legacy_version(head)? })
}

/// The headers that mirror a stateless request, given as the line it is; none for other messages.
/// Those of a tool's arguments come from [`HeaderParams::mirror`].
#[must_use]
pub fn headers_of(line: &[u8]) -> Vec<(&'static str, String)> {
    let Ok(Some(json)) = strict::check(line, Limits::default()) else { return Vec::new() };
    let Ok(Incoming::Request { method, params, .. } | Incoming::Notification { method, params }) =
        classify(json)
    else {
        return Vec::new();
    };
    let Ok(params) = Params::read(params) else { return Vec::new() };
    let Some(version) = params.meta().ok().and_then(|meta| meta.claimed_version()) else {
        return Vec::new();
    };
    let name = named_by(&method, &params).and_then(|(_, value)| text(value?));
    let mut headers = vec![(PROTOCOL_VERSION, version.into_owned()), (METHOD, method.into_owned())];
    headers.extend(name.map(|name| (NAME, encode_value(&name).into_owned())));
    headers
}
