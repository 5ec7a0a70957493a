//! What a judge may reply that scores candidates by criteria, and nothing else.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::reply::{RATIONALE_CHARS, Reply, Scored};
use crate::criteria::{Criterion, highest, named, total};
use crate::judge::prompt::label;
use crate::judge::question::REASON_CHARS;
use crate::judge::reply::{Object, ReplyError, object, position};
use crate::text::{capped, preview};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    scores: Vec<Object<WireScores>>,
    rationale: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireScores {
    label: String,
    criteria: Named,
    reason: String,
}

/// Members as they stand, one that is repeated among them.
struct Named(Vec<(String, f64)>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Named;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with a score for each criterion")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Named, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = members.next_entry()? {
                    all.push(one);
                }
                Ok(Named(all))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The JSON Schema of a reply on `count` candidates: each is scored for each criterion.
pub(crate) fn schema(count: usize, criteria: &[Criterion]) -> Value {
    let labels: Vec<String> = (0..count).map(label).collect();
    let score = json!({ "type": "number", "minimum": 0, "maximum": 10 });
    let scores: Map<String, Value> = criteria.iter().map(|one| (one.name.clone(), score.clone())).collect();
    let names: Vec<&str> = criteria.iter().map(|one| one.name.as_str()).collect();
    let criteria = json!({
        "type": "object",
        "properties": scores,
        "required": names,
        "additionalProperties": false,
    });
    let entry = json!({
        "type": "object",
        "properties": {
            "label": { "type": "string", "enum": labels },
            "criteria": criteria,
            "reason": { "type": "string", "maxLength": REASON_CHARS },
        },
        "required": ["label", "criteria", "reason"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "scores": { "type": "array", "minItems": count, "maxItems": count, "items": entry },
            "rationale": { "type": "string", "maxLength": RATIONALE_CHARS },
        },
        "required": ["scores", "rationale"],
        "additionalProperties": false,
    })
}

/// Reads a reply on `count` candidates. Totals and winner are not the judge's to say: they follow
/// from its scores.
///
/// # Errors
/// [`ReplyError`] says what to put right: a candidate or a criterion that is missing, unknown or
/// there twice, a score out of its range, and whatever is no reply at all.
pub(crate) fn parse(text: &str, count: usize, criteria: &[Criterion]) -> Result<Reply, ReplyError> {
    let wire: Wire = object(text)?;
    let mut all: Vec<Option<Scored>> = vec![None; count];
    for Object(WireScores { label, criteria: given, reason }) in wire.scores {
        let at = position(&label, count)?;
        let by_criterion = by_criterion(&label, given.0, criteria)?;
        let score = total(criteria, &by_criterion);
        let scored = Scored { score, reason: preview(&reason, REASON_CHARS), by_criterion };
        if all[at].replace(scored).is_some() {
            return Err(ReplyError::Scores(label));
        }
    }
    let missing = |at: usize| ReplyError::Scores(label(at));
    let scores = all.into_iter().enumerate().map(|(at, one)| one.ok_or_else(|| missing(at)));
    let scores: Vec<Scored> = scores.collect::<Result<_, _>>()?;
    let totals: Vec<f64> = scores.iter().map(|one| one.score).collect();
    let rationale = capped(wire.rationale.trim(), RATIONALE_CHARS);
    Ok(Reply { winner: highest(&totals), scores, rationale })
}

/// The scores of one candidate in the order of the criteria.
fn by_criterion(
    label: &str,
    given: Vec<(String, f64)>,
    criteria: &[Criterion],
) -> Result<Vec<f64>, ReplyError> {
    let mut scores: Vec<Option<f64>> = vec![None; criteria.len()];
    for (name, score) in given {
        let at = named(criteria, &name).ok_or_else(|| ReplyError::Criterion(preview(&name, 40)))?;
        if !(0.0..=10.0).contains(&score) {
            return Err(ReplyError::CriterionRange { label: label.to_owned(), criterion: name });
        }
        // A zero has no sign.
        if scores[at].replace(score + 0.0).is_some() {
            return Err(ReplyError::CriterionScores { label: label.to_owned(), criterion: name });
        }
    }
    let missing = |one: &Criterion| ReplyError::CriterionScores {
        label: label.to_owned(),
        criterion: one.name.clone(),
    };
    criteria.iter().zip(scores).map(|(one, score)| score.ok_or_else(|| missing(one))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn criteria() -> Vec<Criterion> {
        let one = |name: &str, weight| Criterion { name: name.to_owned(), weight, description: None };
        vec![one("truth", 3), one("style", 1)]
    }

    const GOOD: &str = r#"{"scores":[{"label":"A","criteria":{"style":9,"truth":2},"reason":"thin"},{"label":"B","criteria":{"truth":8.5,"style":1},"reason":"right"}],"rationale":"B is right"}"#;

    #[test]
    fn totals_and_winner_follow_from_the_scores() {
        let reply = parse(GOOD, 2, &criteria()).unwrap();
        assert_eq!(reply.winner, Some(1));
        let read: Vec<_> = reply.scores.iter().map(|one| (one.score, one.by_criterion.clone())).collect();
        assert_eq!(read, [(3.75, vec![2.0, 9.0]), (6.63, vec![8.5, 1.0])]);
        let less = GOOD.replace("\"style\":1", "\"style\":-0.0").replace("\"truth\":8.5", "\"truth\":-0");
        let nothing = &parse(&less, 2, &criteria()).unwrap().scores[1];
        let said = [nothing.score, nothing.by_criterion[0], nothing.by_criterion[1]];
        assert_eq!(said.map(|score| score.to_string()), ["0"; 3]);
        let even = GOOD.replace("\"truth\":8.5,\"style\":1", "\"truth\":2,\"style\":9");
        assert_eq!(parse(&even, 2, &criteria()).unwrap().winner, None);
    }

    #[test]
    fn anything_else_is_refused_with_what_to_put_right() {
        let cases = [
            (GOOD.replace(",\"style\":1", ""), "candidate `B` must have exactly one score for `style`"),
            (
                GOOD.replace("\"style\":1", "\"truth\":1"),
                "candidate `B` must have exactly one score for `truth`",
            ),
            (GOOD.replace("\"style\":1", "\"style\":1,\"wit\":1"), "`wit` is not a criterion"),
            (GOOD.replace("8.5", "10.5"), "the score of candidate `B` for `truth` is not between 0 and 10"),
            (GOOD.replace("8.5", "-1"), "the score of candidate `B` for `truth` is not between 0 and 10"),
            (GOOD.replace("8.5", "\"8\""), "JSON"),
            (GOOD.replace("{\"style\":9,\"truth\":2}", "[9,2]"), "a score for each criterion"),
            (GOOD.replace("\"label\":\"A\"", "\"label\":\"B\""), "candidate `B` must have exactly one score"),
            (GOOD.replace("\"label\":\"A\"", "\"label\":\"C\""), "`C` is not the label"),
            (GOOD.replace("{\"scores\"", "{\"winner\":\"A\",\"scores\""), "unknown field `winner`"),
            (format!("Sure! {GOOD}"), "JSON"),
        ];
        for (text, part) in cases {
            let error = parse(&text, 2, &criteria()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = parse(GOOD, 3, &criteria()).unwrap_err().to_string();
        assert!(error.contains("`C` must have exactly one score"), "{error}");
    }

    proptest! {
        #[test]
        fn no_part_of_a_reply_is_one(cut in 0..GOOD.len()) {
            prop_assert!(parse(&GOOD[..cut], 2, &criteria()).is_err());
        }
    }

    #[test]
    fn the_schema_asks_for_every_criterion_of_every_label() {
        let schema = schema(3, &criteria());
        let list = &schema["properties"]["scores"];
        assert_eq!((&list["minItems"], &list["maxItems"]), (&json!(3), &json!(3)));
        let entry = &list["items"]["properties"];
        assert_eq!(entry["label"]["enum"], json!(["A", "B", "C"]));
        assert_eq!(entry["criteria"]["required"], json!(["truth", "style"]));
        assert_eq!(entry["criteria"]["additionalProperties"], json!(false));
        let score = json!({ "type": "number", "minimum": 0, "maximum": 10 });
        assert_eq!(entry["criteria"]["properties"], json!({ "truth": score, "style": score }));
        assert_eq!(schema["required"], json!(["scores", "rationale"]));
    }
}
