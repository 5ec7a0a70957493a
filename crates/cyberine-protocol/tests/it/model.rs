//! The table of requests in flight against a reference of a few lines.

use std::collections::HashMap;

use cyberine_protocol::model::{CallToolResult, InputRequest, LogLevel};
use cyberine_protocol::{Answer, Effect, RequestKey, Revision};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{parse, request, session_of};

#[derive(Debug, Clone)]
enum Step {
    Open { stateless: bool, id: u8, token: Option<u8> },
    Finish { nth: usize },
    Cancel { id: u8 },
    Progress { nth: usize, by: u8 },
    EndProgress { nth: usize },
    Log { nth: usize },
    Ask { nth: usize },
    Answer { nth: usize },
}

/// What is known of one request, kept for ever so that keys of the past are used too.
#[derive(Debug, Clone)]
struct Known {
    key: RequestKey,
    stateless: bool,
    id: u8,
    token: Option<u8>,
    answered: bool,
    gone: bool,
    progress: f64,
}

/// A question, kept for ever too.
#[derive(Debug, Clone)]
struct Asked {
    of: usize,
    id: Value,
    answered: bool,
}

#[derive(Default)]
struct Reference {
    known: Vec<Known>,
    asked: Vec<Asked>,
    /// Who a cancellation of an id reaches: whoever used it last.
    ids: HashMap<u8, usize>,
}

impl Reference {
    fn waiting(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|known| !known.gone && !known.answered)
    }

    fn may_open(&self, id: u8, token: Option<u8>) -> bool {
        self.waiting().all(|known| known.id != id && (token.is_none() || known.token != token))
    }

    fn open(&mut self, opened: Known) {
        for earlier in &mut self.known {
            if opened.token.is_some() && earlier.token == opened.token {
                earlier.token = None;
            }
        }
        self.ids.insert(opened.id, self.known.len());
        self.known.push(opened);
    }

    fn finish(&mut self, nth: usize) -> bool {
        let known = &mut self.known[nth];
        let may = !known.gone && !known.answered;
        known.answered |= may;
        known.gone |= may && (known.stateless || known.token.is_none());
        may
    }

    fn cancel(&mut self, id: u8) -> Option<RequestKey> {
        let known = &mut self.known[*self.ids.get(&id)?];
        let reached = (!known.gone).then_some(known.key);
        known.gone = true;
        reached
    }

    fn progress(&mut self, nth: usize, progress: f64) -> bool {
        let known = &mut self.known[nth];
        let may = !known.gone && known.token.is_some() && progress > known.progress;
        if may {
            known.progress = progress;
        }
        may
    }

    fn may_log(&self, nth: usize) -> bool {
        let known = &self.known[nth];
        // The stateless ones did not ask for a log.
        !known.gone && !known.stateless
    }

    fn may_ask(&self, nth: usize) -> bool {
        let known = &self.known[nth];
        !known.gone && !known.answered && !known.stateless
    }

    /// Questions of a request that wait for their answer.
    fn open_asks(&self, of: usize) -> usize {
        self.asked.iter().filter(|asked| asked.of == of && self.is_asked(asked)).count()
    }

    fn is_asked(&self, asked: &Asked) -> bool {
        let known = &self.known[asked.of];
        !asked.answered && !known.gone && !known.answered
    }

    fn answer(&mut self, nth: usize) -> bool {
        let may = self.is_asked(&self.asked[nth]);
        self.asked[nth].answered = true;
        may
    }

    fn end_progress(&mut self, nth: usize) {
        let known = &mut self.known[nth];
        known.gone |= known.answered;
        if !known.gone {
            known.token = None;
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<bool>(), 0..4_u8, prop::option::of(0..3_u8))
            .prop_map(|(stateless, id, token)| Step::Open { stateless, id, token }),
        2 => (0..40_usize).prop_map(|nth| Step::Finish { nth }),
        1 => (0..4_u8).prop_map(|id| Step::Cancel { id }),
        2 => (0..40_usize, 0..6_u8).prop_map(|(nth, by)| Step::Progress { nth, by }),
        1 => (0..40_usize).prop_map(|nth| Step::EndProgress { nth }),
        1 => (0..40_usize).prop_map(|nth| Step::Log { nth }),
        2 => (0..40_usize).prop_map(|nth| Step::Ask { nth }),
        1 => (0..40_usize).prop_map(|nth| Step::Answer { nth }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn requests_open_and_end_as_the_reference_says(steps in prop::collection::vec(step(), 1..60)) {
        let mut session = session_of(Revision::V2025_11_25);
        let mut reference = Reference::default();
        for step in steps {
            let count = reference.known.len().max(1);
            match step {
                Step::Open { stateless, id, token } => {
                    let revision = if stateless { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
                    let mut params = json!({ "name": "a" });
                    if let Some(token) = token {
                        params["_meta"] = json!({ "progressToken": token });
                    }
                    let line = request(revision, json!(id), "tools/call", params).to_string();
                    let effects = session.receive(line.as_bytes());
                    if reference.may_open(id, token) {
                        let [Effect::Request(inbound)] = &effects[..] else { panic!("{effects:?}") };
                        let progress = f64::NEG_INFINITY;
                        let key = inbound.key;
                        reference.open(Known { key, stateless, id, token, answered: false, gone: false, progress });
                    } else {
                        let [Effect::Send(line)] = &effects[..] else { panic!("{effects:?}") };
                        prop_assert!(parse(line).get("error").is_some());
                    }
                }
                _ if reference.known.is_empty() => {}
                Step::Finish { nth } => {
                    let nth = nth % count;
                    let line = session.finish(reference.known[nth].key, Ok(Answer::Call(CallToolResult::text("x", false))));
                    prop_assert_eq!(line.is_some(), reference.finish(nth));
                    if let Some(line) = line {
                        prop_assert_eq!(&parse(&line)["id"], &json!(reference.known[nth].id));
                    }
                }
                Step::Cancel { id } => {
                    let line = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
                    let line = line.to_string();
                    let would = session.would_cancel(line.as_bytes());
                    let asked = reference.ids.get(&id).map_or(0, |nth| reference.open_asks(*nth));
                    let effects = session.receive(line.as_bytes());
                    let reached = reference.cancel(id);
                    prop_assert_eq!(would, reached.is_some());
                    match (reached, &effects[..]) {
                        (Some(expected), [Effect::Cancel(key), cancelled @ ..]) => {
                            prop_assert_eq!(*key, expected);
                            prop_assert_eq!(cancelled.len(), asked);
                        }
                        (None, [Effect::Ignored(_)]) => {}
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                Step::Progress { nth, by } => {
                    let nth = nth % count;
                    let line = session.progress(reference.known[nth].key, f64::from(by), None, "");
                    prop_assert_eq!(line.is_some(), reference.progress(nth, f64::from(by)));
                    if let Some(line) = line {
                        prop_assert_eq!(&parse(&line)["params"]["progressToken"], &json!(reference.known[nth].token));
                    }
                }
                Step::Log { nth } => {
                    let nth = nth % count;
                    let line = session.log(reference.known[nth].key, LogLevel::Warning, None, &json!("x"));
                    prop_assert_eq!(line.is_some(), reference.may_log(nth));
                }
                Step::Ask { nth } => {
                    let nth = nth % count;
                    let asked = session.ask(reference.known[nth].key, &InputRequest::Roots);
                    prop_assert_eq!(asked.is_ok(), reference.may_ask(nth));
                    if let Ok((_, line)) = asked {
                        let id = parse(&line)["id"].clone();
                        prop_assert!(reference.asked.iter().all(|earlier| earlier.id != id));
                        reference.asked.push(Asked { of: nth, id, answered: false });
                    }
                }
                Step::Answer { .. } if reference.asked.is_empty() => {}
                Step::Answer { nth } => {
                    let nth = nth % reference.asked.len();
                    let id = &reference.asked[nth].id;
                    let line = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }).to_string();
                    let effects = session.receive(line.as_bytes());
                    let [effect] = &effects[..] else { panic!("{effects:?}") };
                    let key = reference.known[reference.asked[nth].of].key;
                    let reached = matches!(effect, Effect::Answered { key: of, answer: Ok(_), .. } if *of == key);
                    prop_assert_eq!(reached, reference.answer(nth));
                }
                Step::EndProgress { nth } => {
                    let nth = nth % count;
                    session.end_progress(reference.known[nth].key);
                    reference.end_progress(nth);
                }
            }
            prop_assert_eq!(session.in_flight(), reference.waiting().count());
        }
    }
}
