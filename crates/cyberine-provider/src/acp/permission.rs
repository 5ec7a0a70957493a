//! What agents may do: read the project, and nothing else. Nobody is there to be asked.

use serde_json::{Value, json};

/// What opencode may do: what is not listed is denied, and nothing is asked.
pub(super) const OPENCODE: &str = concat!(
    r#"{"*":"deny","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"#,
    r#""grep":"allow","glob":"allow","list":"allow","todowrite":"allow","external_directory":"deny"}"#,
);

/// The answer to `session/request_permission` with `params`: the option that rejects, once rather
/// than always; where none is offered, and while the turn is being stopped, no choice at all.
pub(super) fn reply(params: &Value, stopping: bool) -> Value {
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = |kind: &str| options.iter().find(|option| option["kind"] == kind);
    let option = of_kind("reject_once").or_else(|| of_kind("reject_always")).filter(|_| !stopping);
    match option.and_then(|option| option["optionId"].as_str()) {
        Some(id) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_rejected_with_the_option_that_is_offered_for_it() {
        let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
        let (allow, once, always) =
            (option("y", "allow_once"), option("n", "reject_once"), option("never", "reject_always"));
        let chosen = |options: &[&Value], stopping| {
            reply(&json!({ "options": options }), stopping)["outcome"]["optionId"].clone()
        };
        assert_eq!(chosen(&[&allow, &always, &once], false), "n");
        assert_eq!(chosen(&[&allow, &always], false), "never");
        assert_eq!(chosen(&[&allow], false), Value::Null);
        assert_eq!(chosen(&[&allow, &once], true), Value::Null);
        assert_eq!(reply(&json!(7), false), json!({ "outcome": { "outcome": "cancelled" } }));
    }

    #[test]
    fn opencode_reads_what_it_may_do_and_asks_nothing() {
        let rules: Value = serde_json::from_str(OPENCODE).unwrap();
        assert_eq!(rules["*"], "deny");
        assert!(!OPENCODE.contains("ask"));
    }
}
