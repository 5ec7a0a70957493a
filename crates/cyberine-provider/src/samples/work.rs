//! What programs show of a model at work before its first word, and figures that make no sense.

use cyberine_types::{Billing, CostBasis, Usd};

use super::{LIMIT, NewWire, Wire};
use crate::acp::{AcpParser, GeminiParser, OpencodeParser, Opening};
use crate::aider::AiderParser;
use crate::claude_cli::StreamJsonParser;
use crate::codex_cli::{self, AppServerParser, ExecParser};
use crate::cost::{Prices, Tariff};
use crate::port::TurnEvent;
use crate::quote::Quoter;
use crate::redact::Redactor;
use crate::wire::{Edges, End, Exit, Session};

fn acp() -> Box<dyn Wire> {
    let opening = Opening { cwd: "/w".into(), prompt: "hi".into(), model: None, model_given: false };
    Box::new(AcpParser::new(opening, LIMIT, Quoter::default()))
}

fn claude() -> Box<dyn Wire> {
    Box::new(StreamJsonParser::new("hi".into(), vec![], LIMIT, Quoter::default()))
}

fn codex() -> Box<dyn Wire> {
    Box::new(ExecParser::new(LIMIT, Quoter::default()))
}

fn app_server() -> Box<dyn Wire> {
    let opening = codex_cli::Opening { cwd: "/w".into(), prompt: "hi".into(), model: None, schema: None };
    Box::new(AppServerParser::new(opening, LIMIT, Quoter::default()))
}

fn opencode() -> Box<dyn Wire> {
    Box::new(OpencodeParser::new(LIMIT, Quoter::default()))
}

fn gemini_cli() -> Box<dyn Wire> {
    Box::new(GeminiParser::new(LIMIT, Quoter::default()))
}

fn aider() -> Box<dyn Wire> {
    Box::new(AiderParser::new(LIMIT, Quoter::default()))
}

/// What an agent answers before it is asked.
const GREETED: &str =
    "{\"id\":0,\"result\":{\"protocolVersion\":1}}\n{\"id\":1,\"result\":{\"sessionId\":\"s\"}}\n";

/// The same of `codex app-server`.
const THREAD: &str = "{\"id\":0,\"result\":{}}\n{\"id\":1,\"result\":{\"thread\":{\"id\":\"t\"},\"sandbox\":{\"type\":\"readOnly\"},\"approvalPolicy\":\"never\"}}\n{\"id\":2,\"result\":{}}\n";

/// All events of `text`, at a dollar a million tokens.
fn events(wire: NewWire, text: &str) -> Vec<TurnEvent> {
    let price = Usd::from_micros(1_000_000);
    let prices = Prices {
        input_usd_per_mtok: price,
        output_usd_per_mtok: price,
        cached_read_usd_per_mtok: None,
        cache_write_usd_per_mtok: None,
        long: None,
    };
    let tariff = Tariff { billing: Billing::Metered, prices: Some(prices), trusts_script: false };
    let mut session = Session::new(wire(), LIMIT, Edges::Kept, tariff, Redactor::default());
    let mut events = Vec::new();
    session.begin(&mut events).unwrap();
    session.push(text.as_bytes(), &mut events).unwrap();
    let exit = Exit { success: true, status: "exit status: 0".into(), stderr: String::new() };
    let _ = session.finish(End::Exit(exit), &mut events);
    events
}

#[test]
fn a_thought_of_a_programs_model_is_told_as_work_and_is_no_answer() {
    let update = |update: &str| {
        format!("{GREETED}{{\"method\":\"session/update\",\"params\":{{\"update\":{update}}}}}\n")
    };
    let thought = update(r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#);
    let call = update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","status":"pending","rawInput":{}}"#);
    let notice =
        |method: &str, params: &str| format!("{THREAD}{{\"method\":\"{method}\",\"params\":{params}}}\n");
    let delta = |delta: &str| {
        format!(
            "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"delta\":{delta}}}}}\n"
        )
    };
    let thinking = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}"#;
    let worked: [(NewWire, &str); 9] = [
        (acp, &thought),
        (acp, &call),
        (claude, &delta(r#"{"type":"thinking_delta","thinking":"hm"}"#)),
        (claude, &delta(r#"{"type":"input_json_delta","partial_json":"{"}"#)),
        (claude, &format!("{thinking}\n")),
        (
            codex,
            "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"reasoning\",\"text\":\"hm\"}}\n",
        ),
        (app_server, &notice("item/started", r#"{"item":{"type":"reasoning","id":"r"}}"#)),
        (app_server, &notice("item/reasoning/textDelta", r#"{"delta":"hm"}"#)),
        (opencode, "{\"type\":\"reasoning\",\"part\":{\"text\":\"hm\"}}\n"),
    ];
    for (wire, text) in worked {
        assert_eq!(events(wire, text), [TurnEvent::Working], "{text}");
    }
    let idle: [(NewWire, &str); 6] = [
        (acp, GREETED),
        (claude, "{\"type\":\"system\",\"subtype\":\"init\"}\n"),
        (
            codex,
            "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"error\",\"message\":\"m\"}}\n",
        ),
        (app_server, THREAD),
        (app_server, &notice("item/started", r#"{"item":{"type":"userMessage","id":"u"}}"#)),
        (opencode, "{\"type\":\"step_start\"}\n"),
    ];
    for (wire, text) in idle {
        assert_eq!(events(wire, text), [], "{text}");
    }
}

#[test]
fn work_is_told_once_and_before_the_first_word() {
    let item = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"A"}}"#;
    let events = events(codex, &format!("{item}\n{item}\n"));
    let text = || TurnEvent::Text("A".into());
    assert_eq!(events, [TurnEvent::Working, text(), TurnEvent::Retract, text()]);
}

#[test]
fn a_program_is_paid_by_its_last_figures_and_only_where_all_make_sense() {
    let acp_ended = |cost: &str, output: &str| {
        format!(
            "{GREETED}{{\"method\":\"session/update\",\"params\":{{\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"text\":\"A\"}}}}}}}}\n\
             {{\"method\":\"session/update\",\"params\":{{\"update\":{{\"sessionUpdate\":\"usage_update\",\"cost\":{{\"amount\":{cost},\"currency\":\"USD\"}}}}}}}}\n\
             {{\"id\":2,\"result\":{{\"stopReason\":\"end_turn\",\"usage\":{{\"inputTokens\":2,\"outputTokens\":{output}}}}}}}\n"
        )
    };
    let turn_completed = |output: &str| {
        format!(
            "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"A\"}}}}\n\
             {{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":2,\"output_tokens\":{output}}}}}\n"
        )
    };
    let served = |before: &str, output: &str| {
        format!(
            "{THREAD}{before}{{\"method\":\"item/agentMessage/delta\",\"params\":{{\"itemId\":\"m\",\"delta\":\"A\"}}}}\n\
             {{\"method\":\"thread/tokenUsage/updated\",\"params\":{{\"tokenUsage\":{{\"total\":{{\"inputTokens\":2,\"outputTokens\":{output}}}}}}}}}\n"
        )
    };
    let served_whole = |before: &str, output: &str| {
        served(before, output)
            + "{\"method\":\"turn/completed\",\"params\":{\"turn\":{\"status\":\"completed\"}}}\n"
    };
    let lost = "{\"method\":\"item/agentMessage/delta\",\"params\":{\"itemId\":\"l\",\"delta\":\"B\"}}\n\
                {\"method\":\"error\",\"params\":{\"willRetry\":true,\"error\":{\"message\":\"stream disconnected before completion\"}}}\n";
    let refused = "{\"method\":\"error\",\"params\":{\"willRetry\":true,\"error\":{\"message\":\"unexpected status 503\"}}}\n";
    let step = |reason: &str, cost: &str| {
        format!(
            "{{\"type\":\"step_start\"}}\n{{\"type\":\"text\",\"part\":{{\"text\":\"A\"}}}}\n\
             {{\"type\":\"step_finish\",\"part\":{{\"reason\":\"{reason}\",\"cost\":{cost},\"tokens\":{{\"input\":2,\"output\":3}}}}}}\n"
        )
    };
    let stats = |output: &str| {
        format!(
            "{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"A\"}}\n\
             {{\"type\":\"result\",\"status\":\"success\",\"stats\":{{\"input_tokens\":2,\"output_tokens\":{output}}}}}\n"
        )
    };
    let printed = |cost: &str| format!("Aider v1\n\nA\n\nTokens: 2 sent, 3 received.{cost}\n");
    let partial = "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":2,\"output_tokens\":3}}}}\n";
    let told: [(NewWire, String, Option<u64>); 23] = [
        (acp, acp_ended("0.5", "3"), Some(500_000)),
        (acp, acp_ended("0", "3"), Some(5)),
        (acp, acp_ended("-5", "3"), None),
        (acp, acp_ended("NaN", "3"), None),
        (acp, acp_ended("0", "-3"), None),
        (codex, turn_completed("3"), Some(5)),
        (codex, turn_completed("-3"), None),
        (codex, turn_completed("0"), None),
        (app_server, served_whole("", "3"), Some(5)),
        (app_server, served_whole(refused, "3"), Some(5)),
        // What broke off is paid for, and nobody counts it.
        (app_server, served_whole(lost, "3"), None),
        (app_server, served_whole("", "-3"), None),
        (app_server, served("", "3"), None),
        (opencode, step("stop", "0.5"), Some(500_000)),
        (opencode, step("tool-calls", "0.5"), None),
        (opencode, step("unknown", "0.5") + &step("stop", "0.5"), None),
        (opencode, step("stop", "-0.5"), None),
        (gemini_cli, stats("3"), Some(5)),
        (gemini_cli, stats("-3"), None),
        (aider, printed(""), Some(5)),
        (aider, printed(" Cost: $0.04 message, $0.11 session."), Some(40_000)),
        (aider, printed(" Cost: $-5 message, $-5 session."), None),
        (claude, partial.to_owned(), None),
    ];
    for (wire, text, expected) in told {
        let usage = events(wire, &text).into_iter().rev().find_map(|event| match event {
            TurnEvent::Usage(usage) => Some(usage),
            _ => None,
        });
        let usage = usage.unwrap_or_else(|| panic!("no figure: {text}"));
        assert_eq!(usage.usd.map(Usd::micros), expected, "{text}");
        assert_eq!(usage.basis == CostBasis::Unknown, expected.is_none(), "{text}");
        assert!(usage.input > 0, "{text}");
    }
}
