//! What a judge may reply, and nothing else.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::judge::prompt::label;
use crate::judge::question::REASON_CHARS;
use crate::judge::reply::{Object, ReplyError, object, position};
use crate::text::{capped, preview};

/// The word for "no candidate is better than every other".
const TIE: &str = "tie";
pub(super) const RATIONALE_CHARS: usize = 2_000;

/// A reply that holds, by positions in the order the judge was shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The position of the winner; `None` for a tie.
    pub(crate) winner: Option<usize>,
    /// What each position was given.
    pub(crate) scores: Vec<Scored>,
    /// Why, at most 2,000 characters.
    pub(crate) rationale: String,
}

/// What one candidate was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scored {
    /// From 0 to 10: the total where it is scored by criteria.
    pub(crate) score: f64,
    /// Why, in short.
    pub(crate) reason: String,
    /// The scores in the order of the criteria; empty where there are none.
    pub(crate) by_criterion: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    winner: String,
    scores: Vec<Object<WireScore>>,
    rationale: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireScore {
    label: String,
    score: f64,
    reason: String,
}

/// The JSON Schema of a reply on `count` candidates.
pub(crate) fn schema(count: usize) -> Value {
    let labels: Vec<String> = (0..count).map(label).collect();
    let winners: Vec<&str> = labels.iter().map(String::as_str).chain([TIE]).collect();
    json!({
        "type": "object",
        "properties": {
            "winner": { "type": "string", "enum": winners },
            "scores": {
                "type": "array",
                "minItems": count,
                "maxItems": count,
                "items": {
                    "type": "object",
                    "properties": {
                        "label": { "type": "string", "enum": labels },
                        "score": { "type": "number", "minimum": 0, "maximum": 10 },
                        "reason": { "type": "string", "maxLength": REASON_CHARS },
                    },
                    "required": ["label", "score", "reason"],
                    "additionalProperties": false,
                },
            },
            "rationale": { "type": "string", "maxLength": RATIONALE_CHARS },
        },
        "required": ["winner", "scores", "rationale"],
        "additionalProperties": false,
    })
}

/// Reads a reply on `count` candidates: the whole text is the object, bare or in one fenced
/// block. Prose around it, unknown or repeated members and unknown labels are all refused; too
/// long reasons are cut.
///
/// # Errors
/// [`ReplyError`] says what to put right.
pub(crate) fn parse(text: &str, count: usize) -> Result<Reply, ReplyError> {
    let wire: Wire = object(text)?;
    let winner = match wire.winner.as_str() {
        TIE => None,
        name => Some(position(name, count)?),
    };
    let scores = scores(wire.scores, count)?;
    if let Some(winner) = winner {
        consistent(winner, &scores)?;
    }
    Ok(Reply { winner, scores, rationale: capped(wire.rationale.trim(), RATIONALE_CHARS) })
}

fn scores(given: Vec<Object<WireScore>>, count: usize) -> Result<Vec<Scored>, ReplyError> {
    let mut scores: Vec<Option<Scored>> = vec![None; count];
    for Object(one) in given {
        let at = position(&one.label, count)?;
        if !(0.0..=10.0).contains(&one.score) {
            return Err(ReplyError::Range(one.label));
        }
        let reason = preview(&one.reason, REASON_CHARS);
        // A zero has no sign.
        let scored = Scored { score: one.score + 0.0, reason, by_criterion: Vec::new() };
        if scores[at].replace(scored).is_some() {
            return Err(ReplyError::Scores(one.label));
        }
    }
    scores
        .into_iter()
        .enumerate()
        .map(|(at, score)| score.ok_or_else(|| ReplyError::Scores(label(at))))
        .collect()
}

fn consistent(winner: usize, scores: &[Scored]) -> Result<(), ReplyError> {
    match scores.iter().position(|one| one.score > scores[winner].score) {
        Some(better) => Err(ReplyError::Inconsistent { winner: label(winner), better: label(better) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"winner":"B","scores":[{"label":"A","score":3,"reason":"thin"},{"label":"B","score":8.5,"reason":"right"}],"rationale":"B is right"}"#;

    #[test]
    fn a_bare_object_and_one_fenced_block_are_read() {
        let scored =
            |score, reason: &str| Scored { score, reason: reason.to_owned(), by_criterion: Vec::new() };
        let expected = Reply {
            winner: Some(1),
            scores: vec![scored(3.0, "thin"), scored(8.5, "right")],
            rationale: "B is right".into(),
        };
        let nothing = parse(&GOOD.replace("\"score\":3", "\"score\":-0"), 2).unwrap();
        assert_eq!(nothing.scores[0].score.to_string(), "0");
        for text in [
            GOOD.to_owned(),
            format!("  {GOOD}\n"),
            format!("```json\n{GOOD}\n```"),
            format!("```\n{GOOD}\n```\n"),
        ] {
            assert_eq!(parse(&text, 2), Ok(expected.clone()), "{text}");
        }
        let tie = GOOD.replace("\"B\",\"scores", "\"tie\",\"scores");
        assert_eq!(parse(&tie, 2).unwrap().winner, None);
    }

    #[test]
    fn anything_else_is_refused_with_what_to_put_right() {
        let cases = [
            (String::new(), "JSON"),
            ("The winner is B.".to_owned(), "JSON"),
            (format!("Sure! {GOOD}"), "JSON"),
            (format!("{GOOD} {GOOD}"), "JSON"),
            (format!("```json\n{GOOD}\n```\n```json\n{GOOD}\n```"), "JSON"),
            (GOOD[..GOOD.len() - 4].to_owned(), "JSON"),
            ("{}".to_owned(), "winner"),
            (
                r#"["B",[{"label":"A","score":3,"reason":""},{"label":"B","score":8,"reason":""}],"r"]"#
                    .to_owned(),
                "expected an object",
            ),
            (
                GOOD.replace(r#"{"label":"A","score":3,"reason":"thin"}"#, r#"["A",3,"thin"]"#),
                "expected an object",
            ),
            (GOOD.replace("{\"winner\"", "{\"winner\":\"A\",\"winner\""), "duplicate"),
            (GOOD.replace("\"rationale\"", "\"extra\":1,\"rationale\""), "unknown field"),
            (GOOD.replace("\"winner\":\"B\"", "\"winner\":\"D\""), "`D` is not the label"),
            (GOOD.replace("\"winner\":\"B\"", "\"winner\":\"b\""), "`b` is not the label"),
            (GOOD.replace("\"label\":\"A\"", "\"label\":\"B\""), "exactly one score"),
            (GOOD.replace("8.5", "11"), "between 0 and 10"),
            (GOOD.replace("8.5", "\"8\""), "JSON"),
            (GOOD.replace("\"winner\":\"B\"", "\"winner\":\"A\""), "`B` scores higher"),
        ];
        for (text, part) in cases {
            let error = parse(&text, 2).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse(GOOD, 3).unwrap_err().to_string().contains("`C` must have exactly one score"));
    }

    proptest! {
        #[test]
        fn no_text_but_a_reply_is_one(text in "\\PC{0,80}", cut in 0..GOOD.len()) {
            prop_assert!(parse(&text, 2).is_err());
            prop_assert!(parse(&GOOD[..cut], 2).is_err());
            let wrapped = format!("{}{GOOD}", text);
            prop_assert_eq!(parse(&wrapped, 2).is_ok(), text.trim().is_empty());
        }
    }

    #[test]
    fn the_schema_names_every_label_and_closes_every_object() {
        let schema = schema(3);
        assert_eq!(schema["properties"]["winner"]["enum"], json!(["A", "B", "C", "tie"]));
        assert_eq!(
            schema["properties"]["scores"]["items"]["properties"]["label"]["enum"],
            json!(["A", "B", "C"])
        );
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}
