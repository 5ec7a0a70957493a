//! From a script and a request to what is answered: a pure function.

use std::time::Duration;

use serde_json::Value;

use super::fault::{Fault, Program};
use super::rule::{Rule, Stop, Texts, Tokens, ToolUse, UsageFault, UsageSpec};
use super::{Script, scripted_id};
use crate::call::Call;
use crate::{judge, seed};

/// How many words of a prompt an answer quotes.
const QUOTED_WORDS: usize = 12;

/// How many characters of a prompt an answer quotes at most.
const QUOTED_CHARS: usize = 160;

/// The length of a streamed piece where a rule names none, in characters.
const CHUNK: usize = 24;

/// The answer to requests that no rule matches.
const GENERIC: &str =
    "This is a scripted answer: no model was called. The prompt began: \"{{first words}}\".";

/// What is answered: everything a wire needs, decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The rule's name, or its place.
    pub(crate) rule: String,
    /// Always `scripted/<name>`.
    pub(crate) model: String,
    /// What its ids are made of.
    pub(crate) id: u64,
    pub(crate) text: String,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) refusal: Option<String>,
    pub(crate) stop: Stop,
    pub(crate) usage: ReplyUsage,
    pub(crate) chunk: usize,
    pub(crate) delay: Duration,
    pub(crate) wire_bytes: Option<usize>,
    pub(crate) comments: bool,
    pub(crate) hold: Option<String>,
    pub(crate) fault: Option<Fault>,
    pub(crate) program: Program,
}

/// What is reported as used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyUsage {
    Tokens(Tokens),
    Missing,
    Wrong,
}

impl Script {
    /// Finds the first rule that matches and makes its answer.
    pub(crate) fn pick(&self, call: &Call) -> Reply {
        let found = self.rules.iter().enumerate().find(|(_, rule)| rule.when.holds(call));
        match found {
            Some((_, rule)) if !rule.name.is_empty() => reply(self.seed, rule, rule.name.clone(), call),
            Some((at, rule)) => reply(self.seed, rule, format!("#{}", at + 1), call),
            None => {
                let rule = Rule { text: Some(Texts::One(GENERIC.to_owned())), ..Rule::default() };
                reply(self.seed, &rule, "generic".to_owned(), call)
            }
        }
    }
}

fn reply(seed: u64, rule: &Rule, name: String, call: &Call) -> Reply {
    let (text, json) = answer(seed, rule, call);
    let (text, tools) = match (&call.forced_tool, json) {
        (Some(tool), Some(input)) => (String::new(), vec![ToolUse { name: tool.clone(), input }]),
        (_, _) => (padded(text, rule.pad_bytes), rule.tools.clone()),
    };
    let usual = match (&rule.refusal, tools.is_empty()) {
        (Some(_), _) => Stop::Refusal,
        (None, false) => Stop::Tool,
        (None, true) => Stop::End,
    };
    Reply {
        rule: name,
        model: scripted_id(&call.model),
        id: seed::hash(seed, &[&call.model, &call.system, &call.user, &call.nth.to_string()]),
        usage: usage(rule.usage, call, &text),
        text,
        tools,
        refusal: rule.refusal.clone(),
        stop: rule.stop.unwrap_or(usual),
        chunk: rule.chunk.unwrap_or(CHUNK),
        delay: Duration::from_millis(rule.delay_ms),
        wire_bytes: rule.wire_bytes,
        comments: rule.comments,
        hold: rule.hold.clone(),
        fault: rule.fault.clone(),
        program: rule.program.clone(),
    }
}

/// The answer as text and, where it is JSON, as a value.
fn answer(seed: u64, rule: &Rule, call: &Call) -> (String, Option<Value>) {
    if let Some(json) = &rule.json {
        return (json.to_string(), Some(json.clone()));
    }
    if let Some(kind) = rule.judge {
        let text = judge::answer(kind, &rule.marker, &call.shown);
        let json = serde_json::from_str(&text).ok();
        return (text, json);
    }
    let text = match &rule.text {
        None => return (String::new(), None),
        Some(Texts::One(text)) => text,
        Some(Texts::Several(texts)) => &texts[seed::choose(seed, &[&call.model, &call.user], texts.len())],
    };
    (filled(text, call), None)
}

fn filled(text: &str, call: &Call) -> String {
    // One pass: what is put in is the user's, and must not be filled in again.
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{{first words}}") {
            out.push_str(&first_words(&call.user));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{{model}}") {
            out.push_str(&call.model);
            rest = after;
        } else {
            out.push_str("{{");
            rest = &rest[2..];
        }
    }
    out + rest
}

fn first_words(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(QUOTED_WORDS).collect();
    words.join(" ").chars().take(QUOTED_CHARS).collect()
}

fn padded(text: String, bytes: usize) -> String {
    if text.is_empty() || text.len() >= bytes {
        return text;
    }
    text.repeat(bytes.div_ceil(text.len()))
}

/// What is reported: as the rule says, else words, which are countable by whoever checks.
fn usage(spec: Option<UsageSpec>, call: &Call, text: &str) -> ReplyUsage {
    let words = |text: &str| u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX);
    match spec {
        Some(UsageSpec::Tokens(tokens)) => ReplyUsage::Tokens(tokens),
        Some(UsageSpec::Fault(UsageFault::Missing)) => ReplyUsage::Missing,
        Some(UsageSpec::Fault(UsageFault::Wrong)) => ReplyUsage::Wrong,
        None => ReplyUsage::Tokens(Tokens {
            input: words(&call.system) + words(&call.user),
            output: words(text).max(1),
            ..Tokens::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(model: &str, user: &str, nth: u32) -> Call {
        Call { nth, ..Call::program(scripted_id(model), user.to_owned()) }
    }

    fn text(script: &str, call: &Call) -> String {
        Script::parse(script).unwrap().pick(call).text
    }

    #[test]
    fn the_first_rule_that_matches_answers() {
        let script = "[[rule]]\nwhen={model='b'}\ntext='B'\n[[rule]]\nwhen={user='^hi'}\ntext='hi'\n[[rule]]\ntext='rest'";
        assert_eq!(text(script, &call("b", "hi", 1)), "B");
        assert_eq!(text(script, &call("a", "hi", 1)), "hi");
        assert_eq!(text(script, &call("a", "oh hi", 1)), "rest");
    }

    #[test]
    fn a_rule_can_be_for_one_call_or_from_one_on() {
        let script = "[[rule]]\nwhen={call=1}\ntext='one'\n[[rule]]\nwhen={call_from=3}\ntext='later'";
        assert_eq!(text(script, &call("a", "x", 1)), "one");
        assert!(text(script, &call("a", "x", 2)).contains("no model was called"));
        assert_eq!(text(script, &call("a", "x", 3)), "later");
    }

    #[test]
    fn system_and_words_are_matched_too() {
        let script = "[[rule]]\nwhen={system_contains='judge', user_contains='(x)'}\ntext='yes'";
        let with = Call { system: "you judge".into(), ..call("a", "the (x) is", 1) };
        assert_eq!(text(script, &with), "yes");
        assert_ne!(text(script, &call("a", "the (x) is", 1)), "yes");
    }

    #[test]
    fn the_generic_answer_quotes_the_prompt_and_says_what_it_is() {
        let said = text("", &call("a", "Name {{model}} a b c d e f g h i j k l", 1));
        assert_eq!(
            said,
            "This is a scripted answer: no model was called. The prompt began: \"Name {{model}} a b c d e f g h i j\"."
        );
    }

    #[test]
    fn variants_are_chosen_by_seed_model_and_prompt() {
        let script = |seed: u32| format!("seed={seed}\n[[rule]]\ntext=['a','b','c']");
        let chosen: std::collections::BTreeSet<_> =
            (0..32).map(|seed| text(&script(seed), &call("m", "q", 1))).collect();
        assert_eq!(chosen.len(), 3);
        assert_eq!(text(&script(4), &call("m", "q", 1)), text(&script(4), &call("m", "q", 2)));
    }

    #[test]
    fn a_forced_tool_takes_the_json_as_its_input() {
        let forced = Call { forced_tool: Some("verdict".into()), ..call("m", "q", 1) };
        let reply = Script::parse("[[rule]]\njson={winner='A'}").unwrap().pick(&forced);
        assert_eq!(reply.text, "");
        assert_eq!(
            reply.tools,
            [ToolUse { name: "verdict".into(), input: serde_json::json!({"winner": "A"}) }]
        );
        assert_eq!(reply.stop, Stop::Tool);
    }

    #[test]
    fn a_padded_answer_is_at_least_that_long() {
        assert_eq!(text("[[rule]]\ntext='abc'\npad_bytes=7", &call("m", "q", 1)), "abcabcabc");
    }
}
