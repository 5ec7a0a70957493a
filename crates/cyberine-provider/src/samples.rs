//! The recorded streams of every wire, read whole, cut at every byte, and byte by byte.

use cyberine_types::{Billing, CostBasis, Usage, Usd};

use crate::anthropic::MessageParser;
use crate::claude_cli::StreamJsonParser;
use crate::cost::Tariff;
use crate::error::TurnError;
use crate::fault;
use crate::openai::ChatParser;
use crate::port::{StopReason, TurnEvent};
use crate::quote::Quoter;
use crate::wire::{Edges, End, Exit, Session, Wire};

const LIMIT: usize = 64 << 10;
const DAMAGES: usize = 100;

const OPENAI: &str = include_str!("../tests/samples/openai.chat-completions.sse.txt");
const ANTHROPIC: &str = include_str!("../tests/samples/anthropic.messages.sse.txt");
const CLAUDE: &str = include_str!("../tests/samples/claude.stream-json.txt");

struct Case {
    name: String,
    exit: Option<i32>,
    stdout: String,
    stderr: String,
    http: Option<(u16, Option<String>)>,
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for part in file.split("### case ").skip(1) {
        let (head, rest) = part.split_once('\n').unwrap();
        let (body, _) = rest.split_once("### end").unwrap();
        let mut fields = head.split(" | ");
        let name = fields.next().unwrap().to_owned();
        let exit = fields.next().unwrap().strip_prefix("exit=").unwrap().parse().ok();
        let (errors, output): (Vec<&str>, Vec<&str>) =
            body.split_inclusive('\n').partition(|line| line.starts_with("2> "));
        let stderr = errors.iter().map(|line| &line[3..]).collect();
        let (http, stdout) = split_status(&output.concat());
        cases.push(Case { name, exit, stdout, stderr, http });
    }
    cases
}

/// `HTTP 429 retry-after: 1` and the body below it.
fn split_status(output: &str) -> (Option<(u16, Option<String>)>, String) {
    let Some(rest) = output.strip_prefix("HTTP ") else { return (None, output.to_owned()) };
    let (line, body) = rest.split_once('\n').unwrap();
    let (status, header) = line.split_once(' ').unwrap_or((line, ""));
    let wait = header.strip_prefix("retry-after: ").map(str::to_owned);
    (Some((status.parse().unwrap(), wait)), body.to_owned())
}

#[derive(Debug, Clone, PartialEq)]
struct Read {
    text: String,
    retracted: bool,
    calls: Vec<String>,
    usage: Option<Usage>,
    outcome: Result<StopReason, TurnError>,
}

impl Read {
    fn code(&self) -> &'static str {
        self.outcome.as_ref().map_or_else(TurnError::code, |stop| match stop {
            StopReason::EndTurn => "ok",
            StopReason::ToolUse => "tool-use",
        })
    }
}

type NewWire = fn() -> Box<dyn Wire>;

fn read(wire: Box<dyn Wire>, pieces: &[&[u8]], end: End) -> Read {
    let tariff = Tariff { billing: Billing::Metered, prices: None, trusts_script: false };
    let mut session = Session::new(wire, LIMIT, Edges::Kept, tariff, crate::redact::Redactor::default());
    let mut events = Vec::new();
    let mut pushed = Ok(());
    for piece in pieces {
        if session.is_over() || pushed.is_err() {
            break;
        }
        pushed = session.push(piece, &mut events);
    }
    let outcome = pushed.and_then(|()| session.finish(end, &mut events));
    fold(events, outcome)
}

fn fold(events: Vec<TurnEvent>, outcome: Result<StopReason, TurnError>) -> Read {
    let mut read = Read { text: String::new(), retracted: false, calls: vec![], usage: None, outcome };
    for event in events {
        match event {
            TurnEvent::Text(text) => read.text.push_str(&text),
            TurnEvent::Retract => {
                read.text.clear();
                read.retracted = true;
            }
            TurnEvent::ToolCall(call) => read.calls.push(call.name),
            TurnEvent::Usage(usage) => read.usage = Some(usage),
            TurnEvent::Stop(stop) => panic!("a wire cannot stop a turn: {stop:?}"),
        }
    }
    read
}

fn end(case: &Case) -> End {
    case.exit.map_or(End::Closed, |code| {
        End::Exit(Exit {
            success: code == 0,
            status: format!("exit status: {code}"),
            stderr: Quoter::default().tail(&case.stderr),
        })
    })
}

/// Reads `case` in every way its bytes can arrive and demands the same of all.
fn every_way(case: &Case, wire: NewWire) -> Read {
    if let Some((status, wait)) = &case.http {
        let wait = wait
            .as_deref()
            .and_then(|wait| fault::retry_after(wait, cyberine_types::Timestamp::from_unix_ms(0)));
        return fold(vec![], Err(fault::http_fault(*status, wait, &case.stdout, &Quoter::default())));
    }
    let bytes = case.stdout.as_bytes();
    let whole = read(wire(), &[bytes], end(case));
    for cut in 0..=bytes.len() {
        let halves = read(wire(), &[&bytes[..cut], &bytes[cut..]], end(case));
        assert_eq!(halves, whole, "{} cut at {cut}", case.name);
    }
    let single = read(wire(), &bytes.chunks(1).collect::<Vec<_>>(), end(case));
    assert_eq!(single, whole, "{} byte by byte", case.name);
    whole
}

/// Checks that `file` holds exactly the cases of `expected`, with these outcomes and texts.
fn check(file: &str, wire: NewWire, expected: &[(&str, &str, &str)]) -> Vec<(String, Read)> {
    let read: Vec<(String, Read)> =
        cases(file).iter().map(|case| (case.name.clone(), every_way(case, wire))).collect();
    let found: Vec<(&str, &str, &str)> =
        read.iter().map(|(name, read)| (name.as_str(), read.code(), read.text.as_str())).collect();
    assert_eq!(found, expected);
    read
}

fn of<'a>(read: &'a [(String, Read)], name: &str) -> &'a Read {
    &read.iter().find(|(found, _)| found == name).unwrap().1
}

/// Damages every stream of `file` in many ways: no damage may stop a parser, and none may make the
/// outcome depend on how the bytes arrive.
fn check_damaged(file: &str, wire: NewWire) {
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        // A linear congruential generator (Knuth's constants): enough to pick places.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for case in cases(file).iter().filter(|case| case.http.is_none() && !case.stdout.is_empty()) {
        for _ in 0..DAMAGES {
            let mut bytes = case.stdout.clone().into_bytes();
            let place = random(bytes.len());
            match random(4) {
                0 => bytes[place] = b"\"\\{}[]:,\n\r\0\xff"[random(12)],
                1 => bytes.truncate(place),
                2 => drop(bytes.drain(place..bytes.len().min(place + 1 + random(40)))),
                _ => bytes.extend_from_within(place..),
            }
            let whole = read(wire(), &[&bytes], end(case));
            let size = 1 + random(7);
            let pieces = read(wire(), &bytes.chunks(size).collect::<Vec<_>>(), end(case));
            assert_eq!(
                pieces,
                whole,
                "{} in pieces of {size}: {}",
                case.name,
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}

#[test]
fn damage_stops_no_parser_and_chunks_never_matter() {
    check_damaged(OPENAI, || Box::new(ChatParser::wire(LIMIT, Quoter::default())));
    check_damaged(ANTHROPIC, || Box::new(MessageParser::wire(LIMIT, Quoter::default())));
    check_damaged(CLAUDE, || Box::new(StreamJsonParser::new(LIMIT, Quoter::default())));
}

const GREETING: &str = "Hello — café 🦉.";

#[test]
fn chat_completions_are_read_however_they_arrive() {
    let read = check(
        OPENAI,
        || Box::new(ChatParser::wire(LIMIT, Quoter::default())),
        &[
            ("ok", "ok", GREETING),
            ("no_usage_chunk", "ok", "A"),
            ("length", "truncated", "trunc"),
            ("content_filter", "refused", ""),
            ("refusal_field", "refused", ""),
            ("cut_before_done", "cut", "half"),
            ("error_inside_stream", "overloaded", ""),
            ("http_429", "rate-limit", ""),
            ("http_429_quota", "billing", ""),
            ("http_401", "auth", ""),
            ("http_502_html", "overloaded", ""),
        ],
    );
    let usage = Usage { input: 1200, cached_read: 1000, output: 44, reasoning: 20, ..Usage::default() };
    assert_eq!(of(&read, "ok").usage, Some(usage));
    assert_eq!(of(&read, "length").usage, Some(usage));
    assert_eq!(of(&read, "no_usage_chunk").usage, None);
    let one = std::time::Duration::from_secs(1);
    let limited = &of(&read, "http_429").outcome;
    assert!(matches!(limited, Err(TurnError::RateLimited { retry_after, .. }) if *retry_after == Some(one)));
}

#[test]
fn messages_are_read_however_they_arrive() {
    let read = check(
        ANTHROPIC,
        || Box::new(MessageParser::wire(LIMIT, Quoter::default())),
        &[
            ("ok", "ok", GREETING),
            ("max_tokens", "truncated", "trunc"),
            ("refusal", "refused", ""),
            ("context_window", "truncated", ""),
            ("empty", "empty", ""),
            ("error_in_stream", "overloaded", "half"),
            ("cut", "cut", "half"),
            ("http_529", "overloaded", ""),
            ("http_429", "rate-limit", ""),
            ("http_400_billing", "billing", ""),
        ],
    );
    let usage = Usage { input: 2150, cached_read: 2000, cache_write: 30, output: 25, ..Usage::default() };
    assert_eq!(of(&read, "ok").usage, Some(usage));
    assert_eq!(of(&read, "cut").usage, Some(Usage { output: 1, ..usage }));
}

#[test]
fn headless_sessions_are_read_however_they_arrive() {
    let read = check(
        CLAUDE,
        || Box::new(StreamJsonParser::new(LIMIT, Quoter::default())),
        &[
            ("ok_text", "ok", GREETING),
            ("ok_tool_same_message_id_twice", "ok", "Done."),
            ("ok_structured", "ok", r#"{"winner":"B"}"#),
            ("empty_answer_looks_like_success", "empty", ""),
            ("billing_subtype_success", "billing", ""),
            ("auth_retry_then_fail", "auth", ""),
            ("rate_limited_killed_by_us", "rate-limit", ""),
            ("prompt_too_long", "rejected", ""),
            ("max_turns", "truncated", ""),
            ("budget_overshoot", "truncated", ""),
            ("refusal", "refused", ""),
            ("interrupted_exit_zero", "cancelled", ""),
            ("sigterm_no_result", "crashed", "partial"),
            ("no_result_after_success_then_hang", "ok", "A"),
            ("missing_verbose", "crashed", ""),
            ("resume_unknown_session", "rejected", ""),
            ("partial_messages_interrupt", "cancelled", "tick 0 tick 1 "),
            ("permission_request", "ok", "Not done."),
            ("garbage_and_unknown_lines", "ok", "A"),
        ],
    );
    let ok = of(&read, "ok_text");
    let cost = Usage { usd: Some(Usd::from_micros(1530)), basis: CostBasis::Reported, ..Usage::default() };
    assert_eq!(ok.usage, Some(Usage { input: 2150, cached_read: 2000, cache_write: 30, output: 25, ..cost }));
    let tool = of(&read, "ok_tool_same_message_id_twice");
    assert_eq!((&tool.calls[..], tool.retracted), (&["Bash".to_owned()][..], true));
    // Of the result's own count, not of the two lines that carry one message's.
    let counted = tool.usage.unwrap();
    assert_eq!((counted.input, counted.output, counted.usd), (4300, 65, Some(Usd::from_micros(3360))));
    assert_eq!(of(&read, "max_turns").usage.unwrap().usd, Some(Usd::from_micros(5490)));
    let crashed = &of(&read, "missing_verbose").outcome;
    assert!(
        matches!(crashed, Err(TurnError::Crashed { stderr, .. }) if stderr.contains("requires --verbose"))
    );
}
