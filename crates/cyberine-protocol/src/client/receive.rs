use cyberine_types::mended;

use super::decode::{self, Discovered, Heard, Kind};
use super::effect::{
    CallKey, ClientEffect, ClientFault, ClientIgnored, QuestionKey, RemoteError, RequestError, ServerFacts,
};
use super::question::{self, Asking, Unanswerable};
use super::quote::quote;
use super::{Asked, ClientSession, ReplyKind, Stage, Thing};
use crate::encode;
use crate::jsonrpc::{Incoming, RequestId, RpcError, classify, elements, excerpt};
use crate::model::ListKind;
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

/// One message that came by itself.
pub(super) fn message_alone(
    session: &mut ClientSession,
    message: &[u8],
    out: &mut Vec<ClientEffect>,
) -> Step {
    let limit = session.limits.frame;
    if message.len() > limit {
        return Err(ClientFault::TooLong { limit, line: quote(message) });
    }
    take(session, message, out)
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
        Incoming::Request { id, method, params } => asked(session, id, &method, params, out),
        Incoming::Notification { method, params } => {
            out.extend(told(session, &method, params));
            Ok(())
        }
        Incoming::Response { id, answer } => answered(session, id.as_ref(), answer, out),
    })
}

/// A request of the server: it is put to the driver, or answered at once, or cannot be.
fn asked(
    session: &mut ClientSession,
    id: RequestId,
    method: &str,
    params: Option<&str>,
    out: &mut Vec<ClientEffect>,
) -> Step {
    let revision = session.revision().unwrap_or(Revision::NEWEST_LEGACY);
    let shown = excerpt(method);
    if revision.is_stateless() {
        return Err(ClientFault::Asked { method: quote(shown.as_bytes()) });
    }
    if method == "ping" {
        out.push(ClientEffect::Send(encode::empty_line(&id)));
        return Ok(());
    }
    let error = match questioned(session, &id, method, params) {
        Ok(effect) => {
            out.push(effect);
            return Ok(());
        }
        Err(error) => error,
    };
    out.push(ClientEffect::Send(encode::error_line(Some(&id), &error, revision)));
    out.push(ClientEffect::Ignored(ClientIgnored::Declined(shown.to_owned())));
    Ok(())
}

fn questioned(
    session: &mut ClientSession,
    id: &RequestId,
    method: &str,
    params: Option<&str>,
) -> Result<ClientEffect, RpcError> {
    let params = params.map_or_else(|| Ok(serde_json::Map::new()), serde_json::from_str);
    let params = params.map_err(|error| RpcError::invalid_params(error.to_string()))?;
    let asking = Asking { method: method.to_owned(), params };
    let request = question::read(asking, session.capabilities).map_err(|why| match why {
        Unanswerable::NotOffered => RpcError::method_not_found(method),
        Unanswerable::Malformed(what) => RpcError::invalid_params(what),
    })?;
    if session.questions.len() >= question::LIMIT {
        return Err(RpcError::internal("too many questions wait for their answers"));
    }
    session.serial += 1;
    session.questions.insert(session.serial, id.clone());
    Ok(ClientEffect::Question { question: QuestionKey(session.serial), request })
}

fn told(session: &mut ClientSession, method: &str, params: Option<&str>) -> Option<ClientEffect> {
    let ignored = |what| Some(ClientEffect::Ignored(what));
    match method {
        "notifications/progress" => Some(progressed(session, params)),
        "notifications/message" => decode::log_line(params).map(ClientEffect::Log),
        "notifications/cancelled" => cancelled(session, params),
        "notifications/elicitation/complete" => None,
        "notifications/tasks" => task_changed(session, params),
        _ => {
            let news = [
                ("notifications/subscriptions/acknowledged", News::Acknowledged),
                ("notifications/tools/list_changed", News::Changed(ListKind::Tools)),
                ("notifications/prompts/list_changed", News::Changed(ListKind::Prompts)),
                ("notifications/resources/list_changed", News::Changed(ListKind::Resources)),
                ("notifications/resources/updated", News::Updated),
            ];
            match news.iter().find(|(name, _)| *name == method) {
                Some((_, news)) => heard(session, *news, params),
                None => ignored(ClientIgnored::UnknownNotification(excerpt(method).to_owned())),
            }
        }
    }
}

/// A notification of what a client wanted to hear of.
#[derive(Clone, Copy)]
enum News {
    Acknowledged,
    Changed(ListKind),
    Updated,
}

fn heard(session: &ClientSession, news: News, params: Option<&str>) -> Option<ClientEffect> {
    let stray = Some(ClientEffect::Ignored(ClientIgnored::StrayNews));
    let Some(Heard { listen, uri, served }) = decode::heard(params) else { return stray };
    let key = listen.as_ref().and_then(|id| listening(session, id));
    // In the stateless era every one belongs to a listen.
    if key.is_none() && (listen.is_some() || session.revision().is_some_and(Revision::is_stateless)) {
        return stray;
    }
    match (news, key, uri) {
        (News::Acknowledged, Some(key), _) => Some(ClientEffect::Acknowledged { key, served }),
        (News::Changed(list), key, _) => Some(ClientEffect::Changed { key, list }),
        (News::Updated, key, Some(uri)) => Some(ClientEffect::Updated { key, uri }),
        _ => stray,
    }
}

fn task_changed(session: &ClientSession, params: Option<&str>) -> Option<ClientEffect> {
    let key = decode::heard(params).and_then(|heard| heard.listen).and_then(|id| listening(session, &id));
    let task = params.and_then(|params| decode::whole(params).ok());
    match (key, task) {
        (Some(key), Some(task)) => Some(ClientEffect::TaskChanged { key, task }),
        _ => Some(ClientEffect::Ignored(ClientIgnored::StrayNews)),
    }
}

/// The listen of that id.
fn listening(session: &ClientSession, id: &RequestId) -> Option<CallKey> {
    let flight = session.flights.get(id.value())?;
    let Asked::Thing(Thing { reply: ReplyKind::Listen, .. }) = flight.asked else { return None };
    Some(CallKey(flight.serial))
}

/// A question is withdrawn, or a listen has ended.
fn cancelled(session: &mut ClientSession, params: Option<&str>) -> Option<ClientEffect> {
    let id = decode::cancelled(params)?;
    if let Some(key) = listening(session, &id) {
        session.flights.remove(id.value());
        let error = RequestError::Ended { method: "subscriptions/listen" };
        return Some(ClientEffect::Failed { key, error });
    }
    let (number, _) = session.questions.iter().find(|(_, question)| **question == id)?;
    let number = *number;
    session.questions.remove(&number);
    Some(ClientEffect::Withdrawn(QuestionKey(number)))
}

fn progressed(session: &mut ClientSession, params: Option<&str>) -> ClientEffect {
    let stray = ClientEffect::Ignored(ClientIgnored::StrayProgress);
    let Some(news) = decode::progress(params) else { return stray };
    let Some(flight) = session.flights.get_mut(news.token.value()) else { return stray };
    let Asked::Thing(thing) = &mut flight.asked else { return stray };
    if thing.reply != ReplyKind::Call || news.progress <= thing.progress {
        return stray;
    }
    thing.progress = news.progress;
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
        Asked::Thing(thing) => out.push(reply(session, CallKey(flight.serial), &thing, answer)),
    }
    Ok(())
}

fn reply(
    session: &ClientSession,
    key: CallKey,
    thing: &Thing,
    answer: Result<&str, RemoteError>,
) -> ClientEffect {
    let method = thing.method;
    let effect = answer.map_err(|error| RequestError::Remote { method, error }).and_then(|raw| {
        let read = match (decode::kind(raw, thing, session.revision(), session.capabilities)?, thing.reply) {
            (Kind::NeedsInput(needs), _) => Ok(ClientEffect::NeedsInput { key, needs }),
            (Kind::Complete, ReplyKind::Tools) => {
                decode::tools(raw).map(|page| ClientEffect::Tools { key, page })
            }
            (Kind::Complete, ReplyKind::Call) => {
                decode::reply(raw).map(|reply| ClientEffect::Called { key, reply })
            }
            (Kind::Complete | Kind::Task, _) => {
                decode::whole(raw).map(|result| ClientEffect::Result { key, result })
            }
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
