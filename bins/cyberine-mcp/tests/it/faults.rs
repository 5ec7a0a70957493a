//! Dispatches that cannot start: an error, no status, and nothing spent.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::host::{Place, shell, write_private};

fn refusal(place: &Place, says: &[&str]) {
    let mut host = place.host();
    let error = host.refused("orchestrate", &json!({ "prompt": "x" }));
    for words in says {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert_eq!(host.ok("query_runs", &json!({}))["runs"], json!([]));
    assert!(!place.project().join(".local").exists());
}

#[test]
fn without_a_provider_the_advice_is_to_choose_one() {
    refusal(&Place::new(), &["no provider is configured", "cyberine init"]);
}

#[test]
fn a_wrong_key_is_told_with_its_place_and_the_right_one() {
    let place = Place::with("[providers.a]\nkind = \"command\"\ncomand = [\"cat\"]\n");
    refusal(&place, &["config.toml:3:1", "unknown key `comand`", "did you mean `command`?"]);
}

#[test]
fn a_configuration_that_cannot_be_read_or_that_others_can_write_is_refused() {
    let place = Place::new();
    std::fs::create_dir_all(place.home().join("config.toml")).unwrap();
    refusal(&place, &["config.toml", "not a regular file"]);
    let place = Place::with(&shell("a", "cat"));
    std::fs::set_permissions(place.home().join("config.toml"), PermissionsExt::from_mode(0o660)).unwrap();
    refusal(&place, &["can be written by others", "chmod go-w"]);
}

#[test]
fn a_provider_without_its_key_is_refused_by_the_name_of_the_variable() {
    let keyed = "[providers.a]\nkind = \"openai\"\nbase_url = \"https://example.invalid/v1\"\nmodel = \"m\"\napi_key_env = \"NOT_SET_ANYWHERE\"\n";
    refusal(&Place::with(keyed), &["provider `a`", "NOT_SET_ANYWHERE"]);
}

#[test]
fn an_untrusted_project_defines_nobody() {
    let place = Place::new();
    write_private(
        &place.project().join("cyberine.toml"),
        &shell("a", "cat > /dev/null; echo pwned > pwned; echo yes"),
    );
    refusal(&place, &["is not trusted", "cyberine trust"]);
    assert!(!place.project().join("pwned").exists());
}

#[test]
fn a_prompt_that_is_empty_is_refused_and_a_wrong_argument_is_named() {
    let place = Place::with(&shell("a", "cat"));
    let mut host = place.host();
    let error = host.refused("orchestrate", &json!({ "prompt": "  " }));
    assert!(error.contains("prompt"), "{error}");
    let error = host.refused("orchestrate", &json!({ "promt": "x" }));
    assert!(error.contains("prompt") || error.contains("promt"), "{error}");
    let error = host.refused("inspect_run", &json!({ "runId": "../../etc" }));
    assert!(error.contains("runId"), "{error}");
}

#[test]
fn a_project_that_cannot_be_written_to_is_told_before_anything_is_spent() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    std::fs::write(place.project().join(".local"), "in the way").unwrap();
    let mut host = place.host();
    let error = host.refused("orchestrate", &json!({ "prompt": "x" }));
    assert!(error.contains(".local"), "{error}");
    assert_eq!(host.ok("query_runs", &json!({}))["runs"], json!([]));
}
