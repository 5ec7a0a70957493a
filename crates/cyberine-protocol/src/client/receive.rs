use cyberine_types::mended;

use super::decode::{self, Discovered};
use super::effect::{
    CallKey, ClientEffect, ClientFault, ClientIgnored, RemoteError, RequestError, ServerFacts,
};
use super::quote::quote;
use super::{Asked, ClientSession, Flight, Stage};
use crate::encode;
use crate::jsonrpc::{Incoming, RequestId, RpcError, classify, elements, excerpt};
use crate::revision::Revision;
use crate::strict::{self, StrictError};

/// The codes that only a server of the stateless era has: it is one, whatever it refuses.
const UNSUPPORTED_VERSION: i64 = -32022;
const STATELESS_CODES: [i64; 3] = [-32020, -32021, UNSUPPORTED_VERSION];

type Step = Result<(), ClientFault>;

pub(super) fn receive(session: &mut ClientSession, bytes: &[u8], out: &mut Vec<ClientEffect>) -> Step {
    let mut rest = bytes;
    while session.stage != Stage::Over
        && let Some(end) = rest.iter().position(|byte| *byte == b'\n')
    {
        let (line, behind) = (&rest[..end], &rest[end + 1..]);
        rest = behind;
        keep(session, line)?;
        end_line(session, out)?;
    }
    if session.stage == Stage::Over { Ok(()) } else { keep(session, rest) }
}

pub(super) fn finish(session: &mut ClientSession, out: &mut Vec<ClientEffect>) -> Step {
    if session.stage == Stage::Over { Ok(()) } else { end_line(session, out) }
}

/// Adds to the line whose end has not come.
fn keep(session: &mut ClientSession, bytes: &[u8]) -> Step {
    let limit = session.limits.frame;
    session.pending.extend_from_slice(bytes);
    if session.pending.len() <= limit {
        return Ok(());
    }
    session.stage = Stage::Over;
    Err(ClientFault::TooLong { limit, line: quote(&std::mem::take(&mut session.pending)) })
}

fn end_line(session: &mut ClientSession, out: &mut Vec<ClientEffect>) -> Step {
    let mut line = std::mem::take(&mut session.pending);
    let outcome = take(session, &line, out);
    if outcome.is_err() {
        session.stage = Stage::Over;
        return outcome;
    }
    // The next line goes to the same place, unless this one was large.
    if line.capacity() <= 64 * 1024 {
        line.clear();
        session.pending = line;
    }
    Ok(())
}

fn take(session: &mut ClientSession, line: &[u8], out: &mut Vec<ClientEffect>) -> Step {
    let fault = |reason: String| ClientFault::NoMessage { reason, line: quote(line) };
    let checked = strict::check(line, session.limits);
    if let (Err(StrictError::LoneSurrogate { .. }), Ok(text)) = (&checked, std::str::from_utf8(line)) {
        // A server that cuts text within a character says so in the text, and nothing else is wrong.
        return take(session, mended(text).as_bytes(), out);
    }
    let Some(json) = checked.map_err(|error| fault(error.to_string()))? else { return Ok(()) };
    if json.starts_with('[') && session.revision().is_some_and(Revision::has_batches) {
        return elements(json).try_for_each(|element| message(session, element, out).map_err(&fault)?);
    }
    message(session, json, out).map_err(fault)?
}

/// One message. The outer error is what is wrong with it where it is none.
fn message(session: &mut ClientSession, json: &str, out: &mut Vec<ClientEffect>) -> Result<Step, String> {
    let incoming = classify(json).map_err(|malformed| malformed.reason.to_owned())?;
    Ok(match incoming {
        Incoming::Request { id, method, .. } => asked(session, &id, &method, out),
        Incoming::Notification { method, params } => {
            out.extend(told(session, &method, params));
            Ok(())
        }
        Incoming::Response { id, answer } => answered(session, id.as_ref(), answer, out),
    })
}

/// A request of the server: it is answered at once, or cannot be.
fn asked(session: &ClientSession, id: &RequestId, method: &str, out: &mut Vec<ClientEffect>) -> Step {
    let revision = session.revision().unwrap_or(Revision::NEWEST_LEGACY);
    let shown = excerpt(method);
    if revision.is_stateless() {
        return Err(ClientFault::Asked { method: quote(shown.as_bytes()) });
    }
    if method == "ping" {
        out.push(ClientEffect::Send(encode::empty_line(id)));
        return Ok(());
    }
    let error = RpcError::method_not_found(method);
    out.push(ClientEffect::Send(encode::error_line(Some(id), &error, revision)));
    out.push(ClientEffect::Ignored(ClientIgnored::Declined(shown.to_owned())));
    Ok(())
}

fn told(session: &mut ClientSession, method: &str, params: Option<&str>) -> Option<ClientEffect> {
    match method {
        "notifications/progress" => Some(progressed(session, params)),
        "notifications/message" => decode::log_line(params).map(ClientEffect::Log),
        // Nothing of the kind is kept here, and no request of the server is ever open.
        "notifications/cancelled"
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/resources/updated" => None,
        unknown => {
            Some(ClientEffect::Ignored(ClientIgnored::UnknownNotification(excerpt(unknown).to_owned())))
        }
    }
}

fn progressed(session: &mut ClientSession, params: Option<&str>) -> ClientEffect {
    let stray = ClientEffect::Ignored(ClientIgnored::StrayProgress);
    let Some(news) = decode::progress(params) else { return stray };
    let Some(flight) = session.flights.get_mut(news.token.value()) else { return stray };
    let Asked::CallTool { progress } = &mut flight.asked else { return stray };
    if news.progress <= *progress {
        return stray;
    }
    *progress = news.progress;
    ClientEffect::Progress {
        key: CallKey(flight.serial),
        progress: news.progress,
        total: news.total,
        message: news.message,
    }
}

/// A response. One without an id says that a request could not be read: that is the one in flight,
/// where it is the only one.
fn answered(
    session: &mut ClientSession,
    id: Option<&RequestId>,
    answer: Result<&str, &str>,
    out: &mut Vec<ClientEffect>,
) -> Step {
    let flight = match id {
        Some(id) => session.flights.remove(id.value()),
        None if session.flights.len() == 1 => session.flights.pop_first().map(|(_, flight)| flight),
        None => None,
    };
    let Some(flight) = flight else {
        out.push(ClientEffect::Ignored(ClientIgnored::StrayResponse));
        return Ok(());
    };
    let answer = answer.map_err(decode::error);
    match flight.asked {
        Asked::Discover => return discovered(session, answer, out),
        Asked::Initialize => return initialized(session, answer, out),
        Asked::ListTools | Asked::CallTool { .. } => out.push(reply(session, &flight, answer)),
    }
    Ok(())
}

fn reply(session: &ClientSession, flight: &Flight, answer: Result<&str, RemoteError>) -> ClientEffect {
    let key = CallKey(flight.serial);
    let lists = flight.asked == Asked::ListTools;
    let method = if lists { "tools/list" } else { "tools/call" };
    let result = answer
        .map_err(|error| RequestError::Remote { method, error })
        .and_then(|raw| decode::complete(raw, method, session.revision()));
    let effect = result.and_then(|raw| {
        let read = if lists {
            decode::tools(raw).map(|page| ClientEffect::Tools { key, page })
        } else {
            decode::reply(raw).map(|reply| ClientEffect::Called { key, reply })
        };
        read.map_err(|reason| RequestError::Unreadable { method, reason })
    });
    effect.unwrap_or_else(|error| ClientEffect::Failed { key, error })
}

/// The answer to `server/discover`, which may be an answer to `initialize` later than it.
fn discovered(
    session: &mut ClientSession,
    answer: Result<&str, RemoteError>,
    out: &mut Vec<ClientEffect>,
) -> Step {
    let Stage::Opening { initializing } = session.stage else { return Ok(()) };
    let outcome = match answer {
        Ok(raw) => decode::discovered(raw),
        Err(error) if error.code == UNSUPPORTED_VERSION => {
            Discovered { offered: decode::supported(&error), ..Discovered::default() }
        }
        Err(error) if STATELESS_CODES.contains(&error.code) && !initializing => {
            return Err(ClientFault::Refused { method: "server/discover", error });
        }
        // Any other error is that of a server which knows no such method.
        Err(_) => Discovered::default(),
    };
    let speaks = |revision: &Revision| outcome.offered.iter().any(|offered| offered == revision.as_str());
    if let Some(revision) = Revision::STATELESS.into_iter().rev().find(speaks) {
        // An `initialize` sent meanwhile is of no account.
        session.flights.clear();
        open(session, revision, outcome.label, outcome.tools, out);
    } else if !outcome.offered.is_empty() && !Revision::ALL.iter().any(speaks) && !initializing {
        return Err(ClientFault::NoCommonRevision { offered: outcome.offered });
    } else if !initializing {
        out.push(ClientEffect::Send(session.initialize()));
    }
    Ok(())
}

fn initialized(
    session: &mut ClientSession,
    answer: Result<&str, RemoteError>,
    out: &mut Vec<ClientEffect>,
) -> Step {
    let method = "initialize";
    let raw = answer.map_err(|error| ClientFault::Refused { method, error })?;
    let agreed = decode::initialized(raw).map_err(|reason| ClientFault::Unreadable { method, reason })?;
    let revision = Revision::parse(&agreed.version).filter(|revision| !revision.is_stateless());
    let Some(revision) = revision else {
        return Err(ClientFault::NoCommonRevision { offered: vec![quote(agreed.version.as_bytes())] });
    };
    session.flights.clear();
    out.push(ClientEffect::Send(encode::initialized_line()));
    open(session, revision, agreed.label, agreed.tools, out);
    Ok(())
}

fn open(
    session: &mut ClientSession,
    revision: Revision,
    label: Option<String>,
    tools: bool,
    out: &mut Vec<ClientEffect>,
) {
    session.stage = Stage::Open(revision);
    out.push(ClientEffect::Opened(ServerFacts { revision, label, tools }));
}
