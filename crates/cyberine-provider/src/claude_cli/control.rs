//! What is said to `claude` on its control channel, and what is answered to its questions.

use serde_json::{Value, json};

/// The id of our first request.
pub(super) const INITIALIZE: &str = "initialize";
/// The id of our request to stop.
const INTERRUPT: &str = "interrupt";

/// Tools that change nothing here, and that the program still asks about each time. What they fetch
/// is the model's choice, so they are allowed only where the configuration names them.
const WEB: &[&str] = &["WebFetch", "WebSearch"];

/// Opens the session: the handshake, then the prompt. One that begins with `/help` or another of the
/// program's commands would be carried out by the program, and no model asked; a space before it
/// makes it a question.
pub(super) fn opening(prompt: &str) -> String {
    let space = if prompt.starts_with('/') { " " } else { "" };
    let prompt = format!("{space}{prompt}");
    let hello = request(INITIALIZE, json!({ "subtype": "initialize", "hooks": null }));
    let message = json!({ "role": "user", "content": prompt });
    let user = json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "" });
    format!("{hello}{user}\n")
}

/// Stops the turn: the program then says what it has used.
pub(super) fn interrupt() -> String {
    request(INTERRUPT, json!({ "subtype": "interrupt" }))
}

fn request(id: &str, request: Value) -> String {
    format!("{}\n", json!({ "type": "control_request", "request_id": id, "request": request }))
}

/// The answer to a question of the program's. There is one to every question: it would wait for it
/// for ever.
pub(super) fn answer(question: &Value, tools: &[String]) -> String {
    let request = &question["request"];
    let id = &question["request_id"];
    let response = match request["subtype"].as_str() {
        Some("can_use_tool") => {
            json!({ "subtype": "success", "request_id": id, "response": permission(request, tools) })
        }
        other => {
            let error = format!("this client answers no `{}`", other.unwrap_or_default());
            json!({ "subtype": "error", "request_id": id, "error": error })
        }
    };
    format!("{}\n", json!({ "type": "control_response", "response": response }))
}

/// The program asks before everything that could change something, reach out of the directory or
/// onto the network. Nobody is there to decide that case by case, so it is denied; the exception is
/// the web, where the configuration names it.
fn permission(request: &Value, tools: &[String]) -> Value {
    let tool = request["tool_name"].as_str().unwrap_or_default();
    if WEB.contains(&tool) && tools.iter().any(|named| named == tool) {
        return json!({ "behavior": "allow", "updatedInput": request["input"] });
    }
    let message = format!(
        "Nobody can be asked, and this session may not change anything: `{tool}` is denied. Answer with what you can find out without it."
    );
    json!({ "behavior": "deny", "message": message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: Value, tools: &[&str]) -> Value {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let question = json!({ "type": "control_request", "request_id": "p1", "request": request });
        let said = answer(&question, &tools);
        assert_eq!(said.find('\n'), Some(said.len() - 1), "one line");
        serde_json::from_str::<Value>(&said).unwrap()["response"].clone()
    }

    fn behavior(tool: &str, tools: &[&str]) -> Value {
        let request = json!({ "subtype": "can_use_tool", "tool_name": tool, "input": { "url": "u" } });
        asked(request, tools)["response"]["behavior"].clone()
    }

    #[test]
    fn a_prompt_is_no_command() {
        for (prompt, said) in [("/help me", " /help me"), ("a\n/help", "a\n/help"), (" /x", " /x"), ("", "")]
        {
            let lines = opening(prompt);
            let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines[0]["request"]["subtype"], "initialize");
            assert_eq!((lines.len(), &lines[1]["message"]["content"]), (2, &json!(said)));
        }
    }

    #[test]
    fn what_is_asked_about_is_denied_unless_it_is_the_web_and_named() {
        assert_eq!(behavior("WebFetch", &["WebFetch"]), "allow");
        for (tool, tools) in [
            ("WebFetch", vec!["Read", "WebSearch"]),
            ("Bash", vec!["Bash"]),
            ("Write", vec!["Write"]),
            ("Read", vec!["Read"]),
            ("ExitPlanMode", vec!["ExitPlanMode"]),
            ("", vec![""]),
        ] {
            assert_eq!(behavior(tool, &tools), "deny", "{tool}");
        }
        let request = json!({ "subtype": "can_use_tool", "tool_name": "WebFetch", "input": { "url": "u" } });
        assert_eq!(asked(request, &["WebFetch"])["response"]["updatedInput"], json!({ "url": "u" }));
    }

    #[test]
    fn a_denial_says_of_what_and_why() {
        let request = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {} });
        let response = asked(request, &["Bash"]);
        assert_eq!((&response["subtype"], &response["request_id"]), (&json!("success"), &json!("p1")));
        let message = response["response"]["message"].as_str().unwrap();
        assert!(message.contains("`Bash` is denied") && message.contains("Nobody can be asked"), "{message}");
    }

    #[test]
    fn what_is_not_known_is_refused_and_not_left_waiting() {
        for request in [json!({ "subtype": "hook_callback" }), json!({}), Value::Null] {
            let response = asked(request, &[]);
            assert_eq!((&response["subtype"], &response["request_id"]), (&json!("error"), &json!("p1")));
        }
    }
}
