//! What is said to `codex app-server`: JSON-RPC without the member that names its revision.

use serde_json::{Value, json};

use super::Opening;
use crate::rpc;

pub(super) fn initialize(id: u64) -> Value {
    let client = json!({ "name": "cyberine", "version": env!("CARGO_PKG_VERSION") });
    json!({ "id": id, "method": "initialize", "params": { "clientInfo": client } })
}

pub(super) fn initialized() -> Value {
    json!({ "method": "initialized" })
}

/// The policy of a thread in which nobody is asked.
const NEVER: &str = "never";

/// A thread that is nowhere kept, in which nothing may be changed and nobody is asked.
pub(super) fn start_thread(id: u64, opening: &Opening) -> Value {
    let mut params = json!({
        "cwd": opening.cwd, "approvalPolicy": NEVER, "sandbox": "read-only", "ephemeral": true,
    });
    if let Some(model) = &opening.model {
        params["model"] = json!(model);
    }
    json!({ "id": id, "method": "thread/start", "params": params })
}

/// What of the answer to [`start_thread`] is not as it was asked for: it is to say that nothing can be
/// changed, that commands have no network and that nobody is asked.
pub(super) fn is_not_as_asked(thread: &Value) -> Option<String> {
    let (sandbox, policy) = (&thread["sandbox"], &thread["approvalPolicy"]);
    let network = &sandbox["networkAccess"];
    if sandbox["type"] != "readOnly" || !(network.is_null() || *network == false) {
        return Some(format!("`sandbox` {sandbox}"));
    }
    (*policy != NEVER).then(|| format!("`approvalPolicy` {policy}"))
}

/// The question; takes the prompt and the schema out of `opening`.
pub(super) fn start_turn(id: u64, thread: &str, opening: &mut Opening) -> Value {
    let input = json!([{ "type": "text", "text": std::mem::take(&mut opening.prompt) }]);
    let mut params = json!({ "threadId": thread, "input": input });
    if let Some(schema) = opening.schema.take() {
        params["outputSchema"] = schema;
    }
    json!({ "id": id, "method": "turn/start", "params": params })
}

pub(super) fn interrupt(id: u64, thread: &str, turn: &str) -> Value {
    json!({ "id": id, "method": "turn/interrupt", "params": { "threadId": thread, "turnId": turn } })
}

/// The answer to what the program asks: nothing is approved, and what is no approval is not offered.
/// While the turn is being stopped, a denial stops it too.
pub(super) fn answer(id: &Value, method: &str, stopping: bool) -> Value {
    let result = match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            json!({ "decision": if stopping { "cancel" } else { "decline" } })
        }
        // The same in the words of its first protocol.
        "execCommandApproval" | "applyPatchApproval" if stopping => json!({ "decision": "abort" }),
        "execCommandApproval" | "applyPatchApproval" => {
            json!({ "decision": { "denied": { "rejection": "nothing may be changed here" } } })
        }
        "item/permissions/requestApproval" => json!({ "permissions": {}, "scope": "turn" }),
        "mcpServer/elicitation/request" => json!({ "action": "decline", "content": null, "_meta": null }),
        _ => return rpc::no_method(id, method),
    };
    rpc::reply(id, &result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_approved_and_what_is_not_known_is_refused() {
        let decision =
            |method: &str, stopping| answer(&json!(7), method, stopping)["result"]["decision"].clone();
        for method in ["item/commandExecution/requestApproval", "item/fileChange/requestApproval"] {
            assert_eq!(
                (decision(method, false), decision(method, true)),
                (json!("decline"), json!("cancel"))
            );
        }
        for method in ["execCommandApproval", "applyPatchApproval"] {
            assert!(decision(method, false)["denied"]["rejection"].is_string(), "{method}");
            assert_eq!(decision(method, true), "abort");
        }
        let granted = answer(&json!("p"), "item/permissions/requestApproval", false);
        assert_eq!(granted, json!({ "id": "p", "result": { "permissions": {}, "scope": "turn" } }));
        assert_eq!(answer(&json!(1), "mcpServer/elicitation/request", false)["result"]["action"], "decline");
        for method in ["item/tool/call", "item/tool/requestUserInput", "account/chatgptAuthTokens/refresh"] {
            assert_eq!(answer(&json!(1), method, false)["error"]["code"], -32601, "{method}");
        }
    }

    #[test]
    fn a_thread_is_as_asked_only_where_it_says_so() {
        let told = |sandbox: Value, policy: Value| {
            is_not_as_asked(&json!({ "sandbox": sandbox, "approvalPolicy": policy }))
        };
        let closed = json!({ "type": "readOnly", "networkAccess": false });
        assert_eq!(told(closed.clone(), json!("never")), None);
        assert_eq!(told(json!({ "type": "readOnly" }), json!("never")), None);
        for policy in [json!("on-request"), json!("untrusted"), json!({ "granular": {} }), Value::Null] {
            assert!(
                told(closed.clone(), policy.clone()).unwrap().starts_with("`approvalPolicy` "),
                "{policy}"
            );
        }
        for sandbox in [
            Value::Null,
            json!("read-only"),
            json!({}),
            json!({ "type": "workspaceWrite" }),
            json!({ "type": "dangerFullAccess" }),
            json!({ "type": "externalSandbox", "networkAccess": "enabled" }),
            json!({ "type": "fullAccess" }),
            json!({ "type": "readOnly", "networkAccess": true }),
            json!({ "type": "readOnly", "networkAccess": "enabled" }),
        ] {
            assert!(told(sandbox.clone(), json!("never")).unwrap().starts_with("`sandbox` "), "{sandbox}");
        }
        assert!(is_not_as_asked(&json!({})).is_some());
    }

    #[test]
    fn a_schema_and_a_model_are_named_where_there_are_any() {
        let mut opening = Opening {
            cwd: "/w".into(),
            prompt: "hi".into(),
            model: None,
            schema: Some(json!({ "type": "object" })),
        };
        assert_eq!(start_thread(1, &opening)["params"].get("model"), None);
        opening.model = Some("m".into());
        assert_eq!(start_thread(1, &opening)["params"]["model"], "m");
        assert_eq!(start_turn(2, "t", &mut opening)["params"]["outputSchema"]["type"], "object");
        assert_eq!(start_turn(2, "t", &mut opening)["params"].get("outputSchema"), None);
    }
}
