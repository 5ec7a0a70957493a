//! `cyberine doctor providers`: what is there, before and after it is asked.

use cyberine_scripted_llm::{Script, ScriptedServer};
use serde_json::{Value, json};

use crate::place::{Place, shell};

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["providers"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

/// Three providers of one server: one it knows, one whose model it does not list, one of another wire.
fn configured(server: &ScriptedServer) -> Place {
    let address = server.base_url().trim_end_matches("/v1").to_owned();
    Place::with(&format!(
        "[providers.chat]\nkind = \"openai\"\nbase_url = \"{address}/v1\"\nmodel = \"scripted/demo\"\n\
         [providers.gone]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
         [providers.keyless]\nkind = \"gemini\"\nmodel = \"m\"\napi_key_env = \"NO_SUCH_KEY\"\n\
         {}",
        shell("shell", "cat > /dev/null; echo ready")
    ))
}

#[test]
fn each_provider_is_looked_at_without_a_request_that_costs() {
    let server = ScriptedServer::start(Script::parse("[[rule]]\ntext = 'ready'").unwrap()).unwrap();
    let place = configured(&server);
    let looked = place.run(&["doctor", "providers", "--json"]);
    assert_eq!(looked.code, Some(69), "{looked:?}");
    let report = looked.json();
    assert_eq!(row(&report, "chat")["login"], "not_needed");
    assert_eq!(row(&report, "chat")["problem"], Value::Null);
    assert!(row(&report, "gone")["problem"].as_str().unwrap().contains("could not be reached"), "{report}");
    assert!(row(&report, "keyless")["problem"].as_str().unwrap().contains("NO_SUCH_KEY"), "{report}");
    assert_eq!(server.state().seen, 0, "no model was asked");
    assert_eq!(place.run(&["runs", "--json"]).json()["runs"], json!([]));

    let one = place.run(&["doctor", "providers", "chat", "shell"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(one.out.contains("needs no key") && one.out.contains("is there"), "{one:?}");
    place.run(&["doctor", "providers", "nobody"]).refused(69, &["`nobody`", "chat, gone, keyless, shell"]);
}

#[test]
fn a_question_to_each_is_a_run_like_any_other() {
    let server = ScriptedServer::start(Script::parse("[[rule]]\ntext = 'ready'").unwrap()).unwrap();
    let place = configured(&server);
    let asked = place.run(&["doctor", "providers", "--spend", "--json"]).json();
    for name in ["chat", "shell"] {
        assert_eq!(row(&asked, name)["problem"], Value::Null, "{asked}");
        assert!(row(&asked, name)["answered"].is_object(), "{asked}");
    }
    assert!(
        row(&asked, "gone")["answered"].is_null() && row(&asked, "gone")["problem"].is_string(),
        "{asked}"
    );
    assert_eq!(server.state().seen, 1);
    let run = place.run(&["inspect", asked["runId"].as_str().unwrap(), "--json"]).json();
    assert_eq!(run["state"], "done", "{run}");
}
