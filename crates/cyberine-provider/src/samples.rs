//! The conformance kit: the recorded streams of every wire, read whole, cut at every byte, and byte
//! by byte, each checked against what its own head expects. One file per wire lies below.
//!
//! A sample is `### case NAME | exit=N | expect=...`, its lines, `### end`. `2> ` begins a line of
//! standard error, `>> ` one that the adapter says, `HTTP n` an answer that is no success, and `(no end
//! of line)` says that the line before it was cut off.

mod acp;
mod aider;
mod app_server;
mod chat;
mod claude;
mod codex;
mod dialogue;
mod expect;
mod gemini;
mod gemini_cli;
mod messages;
mod ollama;
mod opencode;
mod responses;
mod work;

use cyberine_types::{Billing, Timestamp, Usage};

use self::dialogue::Heard;
use crate::cost::Tariff;
use crate::error::TurnError;
use crate::fault;
use crate::port::{StopReason, ToolCall, TurnEvent};
use crate::quote::Quoter;
use crate::redact::Redactor;
use crate::wire::{Edges, End, Exit, Session, Wire};

const LIMIT: usize = 64 << 10;
const DAMAGES: usize = 100;

/// The answer of most samples.
const GREETING: &str = "Hello — café 🦉.";

struct Case {
    name: String,
    exit: Option<i32>,
    expect: String,
    lines: Vec<Line>,
    stderr: String,
    http: Option<(u16, Option<String>)>,
}

/// One stretch of what passes between the adapter and the provider.
enum Line {
    /// The provider's bytes, up to the next line that the adapter says.
    Read(String),
    /// What the adapter says.
    Said(String),
}

impl Case {
    /// Everything the provider sends.
    fn stdout(&self) -> String {
        let read = |line: &Line| match line {
            Line::Read(text) => Some(text.clone()),
            Line::Said(_) => None,
        };
        self.lines.iter().filter_map(read).collect()
    }

    fn is_dialogue(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Said(_)))
    }
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for part in file.split("### case ").skip(1) {
        let (head, rest) = part.split_once('\n').unwrap();
        let (body, _) = rest.split_once("### end").unwrap();
        let mut fields = head.splitn(3, " | ");
        let name = fields.next().unwrap().to_owned();
        let exit = fields.next().unwrap().strip_prefix("exit=").unwrap().parse().ok();
        let expect = fields.next().unwrap().strip_prefix("expect=").unwrap().to_owned();
        let (mut lines, mut stderr, mut http) = (Vec::new(), String::new(), None);
        for line in body.split_inclusive('\n') {
            if let Some(error) = line.strip_prefix("2> ") {
                stderr.push_str(error);
            } else if let Some(said) = line.strip_prefix(">> ") {
                lines.push(Line::Said(said.trim_end_matches('\n').to_owned()));
            } else if let Some(status) = line.strip_prefix("HTTP ").filter(|_| lines.is_empty()) {
                http = Some(status_line(status.trim_end()));
            } else if let Some(Line::Read(text)) = lines.last_mut() {
                if line.trim_end() == "(no end of line)" {
                    text.pop();
                } else {
                    text.push_str(line);
                }
            } else {
                lines.push(Line::Read(line.to_owned()));
            }
        }
        cases.push(Case { name, exit, expect, lines, stderr, http });
    }
    cases
}

/// `429 retry-after: 1`.
fn status_line(line: &str) -> (u16, Option<String>) {
    let (status, header) = line.split_once(' ').unwrap_or((line, ""));
    (status.parse().unwrap(), header.strip_prefix("retry-after: ").map(str::to_owned))
}

/// What was read of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Read {
    text: String,
    retracted: bool,
    calls: Vec<ToolCall>,
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

/// Cuts a stretch of bytes that begins at a place.
type Cut<'a> = &'a dyn Fn(usize, &[u8]) -> Vec<Vec<u8>>;

/// A stream that is being read.
struct Reading {
    session: Session,
    events: Vec<TurnEvent>,
    pushed: Result<(), TurnError>,
}

impl Reading {
    fn new(wire: Box<dyn Wire>) -> Self {
        let tariff = Tariff { billing: Billing::Metered, prices: None, trusts_script: false };
        let mut session = Session::new(wire, LIMIT, Edges::Kept, tariff, Redactor::default());
        let mut events = Vec::new();
        let pushed = session.begin(&mut events);
        Self { session, events, pushed }
    }

    fn push(&mut self, piece: &[u8]) {
        if !self.session.is_over() && self.pushed.is_ok() {
            self.pushed = self.session.push(piece, &mut self.events);
        }
    }

    fn finish(mut self, end: End) -> Read {
        let outcome = self.pushed.and_then(|()| self.session.finish(end, &mut self.events));
        fold(self.events, outcome)
    }
}

fn read_pieces<'a>(wire: Box<dyn Wire>, pieces: impl IntoIterator<Item = &'a [u8]>, end: End) -> Read {
    let mut reading = Reading::new(wire);
    pieces.into_iter().for_each(|piece| reading.push(piece));
    reading.finish(end)
}

/// Reads `case` with every stretch of bytes cut by `cut`.
fn read_case(case: &Case, wire: Box<dyn Wire>, cut: Cut<'_>) -> Read {
    let mut reading = Reading::new(wire);
    let mut heard = Heard::default();
    let mut begin = 0;
    for line in &case.lines {
        match line {
            Line::Said(expected) => heard.expect(&case.name, expected, &mut reading.session),
            Line::Read(text) => {
                if case.is_dialogue() {
                    heard.expect_silence(&case.name, &mut reading.session);
                }
                cut(begin, text.as_bytes()).iter().for_each(|piece| reading.push(piece));
                begin += text.len();
            }
        }
    }
    if case.is_dialogue() {
        heard.expect_silence(&case.name, &mut reading.session);
    }
    reading.finish(end(case))
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
            TurnEvent::ToolCall(call) => read.calls.push(call),
            TurnEvent::Usage(usage) => read.usage = Some(usage),
            TurnEvent::Working => {}
            over @ (TurnEvent::Stop(_) | TurnEvent::Waiting { .. }) => panic!("no wire says that: {over:?}"),
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
        let wait = wait.as_deref().and_then(|wait| fault::retry_after(wait, Timestamp::from_unix_ms(0)));
        return fold(vec![], Err(fault::http_fault(*status, wait, &case.stdout(), &Quoter::default())));
    }
    let whole = read_case(case, wire(), &|_, bytes| vec![bytes.to_vec()]);
    for place in 0..=case.stdout().len() {
        let halves = read_case(case, wire(), &|begin, bytes| {
            let (left, right) = bytes.split_at(place.saturating_sub(begin).min(bytes.len()));
            vec![left.to_vec(), right.to_vec()]
        });
        assert_eq!(halves, whole, "{} cut at {place}", case.name);
    }
    let single = read_case(case, wire(), &|_, bytes| bytes.iter().map(|byte| vec![*byte]).collect());
    assert_eq!(single, whole, "{} byte by byte", case.name);
    whole
}

/// Checks that `file` holds exactly the cases of `expected`, with these outcomes and texts and with
/// what their heads say.
fn check(file: &str, wire: NewWire, expected: &[(&str, &str, &str)]) -> Vec<(String, Read)> {
    let mut read = Vec::new();
    for case in cases(file) {
        let of_case = every_way(&case, wire);
        expect::check(&case.name, &case.expect, &of_case);
        read.push((case.name, of_case));
    }
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
    for case in cases(file).iter().filter(|case| case.http.is_none() && !case.stdout().is_empty()) {
        for _ in 0..DAMAGES {
            let mut bytes = case.stdout().into_bytes();
            let place = random(bytes.len());
            match random(4) {
                0 => bytes[place] = b"\"\\{}[]:,\n\r\0\xff"[random(12)],
                1 => bytes.truncate(place),
                2 => drop(bytes.drain(place..bytes.len().min(place + 1 + random(40)))),
                _ => bytes.extend_from_within(place..),
            }
            let whole = read_pieces(wire(), [&bytes[..]], end(case));
            let size = 1 + random(7);
            let pieces = read_pieces(wire(), bytes.chunks(size), end(case));
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
