//! JSON as text that is there when the program is built: a host waits for the list of tools at every
//! start, and nothing of it has to be put together then.

/// The text of a JSON value, on one line. Names stand for what occurs often. Texts have no escapes,
/// and numbers no underscores: they go out as they are written.
macro_rules! json_text {
    (text) => { r#"{"type":"string"}"# };
    (some_text) => { r#"{"type":"string","minLength":1}"# };
    (boolean) => { r#"{"type":"boolean"}"# };
    (integer) => { r#"{"type":"integer"}"# };
    (number) => { r#"{"type":"number"}"# };
    (object) => { r#"{"type":"object"}"# };
    (array) => { r#"{"type":"array"}"# };
    (texts) => { r#"{"type":"array","items":{"type":"string"}}"# };
    (run_id) => { r#"{"type":"string","minLength":36,"maxLength":36}"# };
    (count) => { r#"{"type":"integer","minimum":0,"maximum":9007199254740991}"# };
    (topic) => { r#"{"enum":["note","steer"],"default":"note"}"# };
    (state) => { r#"{"enum":["queued","running","suspended","done","error","cancelled"]}"# };
    (address) => { r#"{"type":"object","properties":{"kind":{"type":"string"},"id":{"type":"string"}}}"# };
    ({}) => { "{}" };
    ([]) => { "[]" };
    ({ $($members:tt)+ }) => { concat!("{", $crate::catalog::text::members!($($members)+), "}") };
    ([ $first:tt $(, $item:tt)* $(,)? ]) => {
        concat!(
            "[", $crate::catalog::text::json_text!($first),
            $(",", $crate::catalog::text::json_text!($item),)* "]"
        )
    };
    ($plain:literal) => { stringify!($plain) };
}

/// The inside of a JSON object, without its braces.
macro_rules! members {
    () => { "" };
    ($name:literal: $value:tt $(, $names:literal: $values:tt)* $(,)?) => {
        concat!(
            "\"", $name, "\":", $crate::catalog::text::json_text!($value)
            $(, ",\"", $names, "\":", $crate::catalog::text::json_text!($values))*
        )
    };
}

/// The schema of a tool's arguments: its properties, and which of them are required.
macro_rules! input {
    ({ $($members:tt)* }, $required:tt) => {
        ::cyberine_server::ObjectSchema::new(
            $crate::catalog::text::members!($($members)*),
            concat!(
                "\"required\":", $crate::catalog::text::json_text!($required),
                ",\"additionalProperties\":false"
            ),
        )
    };
}

/// As [`input`], for a tool that changes something.
macro_rules! keyed_input {
    ({ $($members:tt)+ }, $required:tt) => {
        ::cyberine_server::ObjectSchema::new(
            concat!(
                $crate::catalog::text::members!($($members)+),
                r#","idempotencyKey":{"type":"string","minLength":1,"maxLength":200,"#,
                r#""description":"Yours alone, such as a UUID. A call repeated with it gets the first result."}"#
            ),
            concat!(
                "\"required\":", $crate::catalog::text::json_text!($required),
                ",\"additionalProperties\":false"
            ),
        )
    };
}

/// The schema of a result, which is either what the tool is for or `{"error": …}`; both satisfy it.
macro_rules! output {
    ({ $($members:tt)+ }, $required:tt) => {
        ::cyberine_server::ObjectSchema::new(
            concat!($crate::catalog::text::members!($($members)+), r#","error":{"type":"string"}"#),
            concat!(
                r#""anyOf":[{"required":"#, $crate::catalog::text::json_text!($required),
                r#"},{"required":["error"]}]"#
            ),
        )
    };
}

/// As [`output`], for a tool with two kinds of result.
macro_rules! output_or {
    ({ $($members:tt)+ }, $required:tt, $other:tt) => {
        ::cyberine_server::ObjectSchema::new(
            concat!($crate::catalog::text::members!($($members)+), r#","error":{"type":"string"}"#),
            concat!(
                r#""anyOf":[{"required":"#, $crate::catalog::text::json_text!($required),
                r#"},{"required":"#, $crate::catalog::text::json_text!($other),
                r#"},{"required":["error"]}]"#
            ),
        )
    };
}

pub(super) use {input, json_text, keyed_input, members, output, output_or};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::arguments::{MAX_COMMENT, MAX_COUNT, MAX_KEY, MAX_RUNS, MAX_WAIT_MS};

    #[test]
    fn the_text_of_a_value_is_the_value() {
        let text = json_text!({
            "a": [1, 2.5, true, "x — y", [], {}], "b": { "c": text },
        });
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            json!({ "a": [1, 2.5, true, "x — y", [], {}], "b": { "c": { "type": "string" } } })
        );
    }

    /// What a schema promises is what the arguments are held to.
    #[test]
    fn the_limits_are_those_of_the_arguments() {
        let limit = |tool: &str, argument: &str, limit: &str| {
            let tools = crate::catalog::tools();
            let tool = tools.iter().find(|listed| listed.name == tool).unwrap();
            tool.input_schema.value().unwrap()["properties"][argument][limit].as_u64().unwrap()
        };
        let wait = [limit("inspect_run", "waitMs", "maximum"), limit("poll_inbox", "waitMs", "maximum")];
        assert_eq!(wait, [MAX_WAIT_MS; 2]);
        for (tool, argument) in [
            ("inspect_run", "sinceSeq"),
            ("poll_inbox", "sinceMs"),
            ("poll_inbox", "cursor"),
            ("poll_inbox", "textOffset"),
        ] {
            assert_eq!(limit(tool, argument, "maximum"), MAX_COUNT, "{argument}");
        }
        assert_eq!(limit("query_runs", "limit", "maximum"), MAX_RUNS);
        assert_eq!(limit("approve_run", "comment", "maxLength"), MAX_COMMENT as u64);
        assert_eq!(limit("orchestrate", "idempotencyKey", "maxLength"), MAX_KEY as u64);
    }
}
