//! What a person can write, and what they are told when it cannot work.

use cyberine_provider::{BuildError, ConfigError, ProviderConfig};
use cyberine_types::Billing;
use serde_json::{Value, json};

use crate::support::try_provider;

fn parse(text: &str) -> Result<ProviderConfig, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

fn problem(config: Value) -> String {
    let config: ProviderConfig = serde_json::from_value(config).unwrap();
    config.validate("p").unwrap_err().to_string()
}

#[test]
fn every_kind_is_read_from_toml_and_survives_a_record() {
    for text in [
        "kind = 'openai'\nbase_url = 'http://127.0.0.1:11434/v1'\nmodel = 'qwen3:8b'",
        "kind = 'openai'\nbase_url = 'https://api.openai.com/v1'\nmodel = 'm'\napi_key_env = 'K'\nbilling = 'metered'\n\
         idle_seconds = 60\nwall_seconds = 600\nmax_tokens = 100\nstructured_output = false\n\
         prices = { input_usd_per_mtok = 1.25, output_usd_per_mtok = 10.0, cached_read_usd_per_mtok = 0.125 }",
        "kind = 'anthropic'\nmodel = 'claude'",
        "kind = 'openai-responses'\nmodel = 'm'",
        "kind = 'gemini'\nmodel = 'm'",
        "kind = 'ollama'\nmodel = 'qwen3:8b'",
        "kind = 'claude-cli'",
        "kind = 'claude-cli'\nprogram = '/opt/claude'\nmodel = 'opus'\nargs = ['--x']\ntools = ['Read']\nenv = ['A']",
        "kind = 'command'\ncommand = ['prog', '-x']\nenv = ['A']\ncwd = 'sub'\nmodel = 'm'\nbilling = 'subscription'",
    ] {
        let config = parse(text).unwrap();
        assert_eq!(config.validate("p"), Ok(()), "{text}");
        let record = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<ProviderConfig>(&record).unwrap(), config, "{record}");
    }
}

#[test]
fn an_unknown_key_is_named_with_those_there_are() {
    let error = parse("kind = 'openai'\nbase_url = 'x'\nmodle = 'm'").unwrap_err();
    assert!(error.starts_with("unknown field `modle`, expected one of `base_url`, `model`"), "{error}");
    let error = parse("kind = 'claude-cli'\nprices = 1").unwrap_err();
    assert!(error.starts_with("unknown field `prices`"), "{error}");
    let error = parse("kind = 'opanai'").unwrap_err();
    assert!(error.contains("unknown variant `opanai`, expected one of `openai`, "), "{error}");
    for (text, part) in [
        ("kind = 'command'", "missing field `command`"),
        ("kind = 'claude-cli'\nidle_seconds = 0", "nonzero"),
        ("kind = 'claude-cli'\nwall_seconds = -1", "nonzero"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_value_that_cannot_work_is_named() {
    let openai = |url: &str| json!({ "kind": "openai", "base_url": url, "model": "m", "api_key_env": "K" });
    for (config, expected) in [
        (openai("127.0.0.1:80"), "`base_url` of provider `p` is not a URL such as"),
        (openai("ftp://h/x"), "`base_url` of provider `p` must begin with `http://` or `https://`"),
        (openai("https://user:sk-1@h/v1"), "`base_url` of provider `p` must not hold a user or a password"),
        (openai("https://h/v1?key=1"), "`base_url` of provider `p` must not hold a query"),
        (openai("http://192.168.0.9/v1"), "`base_url` of provider `p` would send the key unencrypted"),
        (
            openai("http://localhost.evil.example/v1"),
            "`base_url` of provider `p` would send the key unencrypted",
        ),
        (json!({ "kind": "anthropic", "model": " " }), "`model` of provider `p` is empty"),
        (json!({ "kind": "command", "command": [] }), "`command` of provider `p` is empty"),
        (json!({ "kind": "command", "command": ["a", "b\0"] }), "`command` of provider `p` holds a NUL"),
        (json!({ "kind": "claude-cli", "tools": [""] }), "`tools` of provider `p` is empty"),
        (
            json!({ "kind": "claude-cli", "env": ["ANTHROPIC_API_KEY"] }),
            "`env` of provider `p` must not list `ANTHROPIC_API_KEY`: set `api_key_env",
        ),
        (json!({ "kind": "command", "command": ["a"], "env": ["A=1"] }), "`env` of provider `p` must name"),
    ] {
        let error = problem(config);
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("sk-1"), "{error}");
    }
    let pasted = problem(json!({ "kind": "anthropic", "model": "m", "api_key_env": "sk-ant-secret" }));
    assert_eq!(pasted, "`api_key_env` of provider `p` must name an environment variable, not hold its value");
}

#[test]
fn plain_http_with_a_key_is_for_loopback_or_on_request() {
    for url in ["http://127.0.0.1/v1", "http://[::1]:8080/v1", "http://localhost/v1"] {
        let config = json!({ "kind": "openai", "base_url": url, "model": "m", "api_key_env": "K" });
        let config: ProviderConfig = serde_json::from_value(config).unwrap();
        assert_eq!((config.validate("p"), config.billing()), (Ok(()), Billing::Free), "{url}");
    }
    let mut asked =
        json!({ "kind": "openai", "base_url": "http://10.0.0.1/v1", "model": "m", "api_key_env": "K" });
    asked["allow_plain_http"] = json!(true);
    let config: ProviderConfig = serde_json::from_value(asked).unwrap();
    assert_eq!((config.validate("p"), config.billing()), (Ok(()), Billing::Metered));
}

#[test]
fn names_are_plain() {
    let config: ProviderConfig = serde_json::from_value(json!({ "kind": "claude-cli" })).unwrap();
    assert_eq!(config.validate("gpt-5.2_a"), Ok(()));
    for name in ["", "a b", "a/b", "é", "a\n", &"x".repeat(65)] {
        assert!(matches!(config.validate(name), Err(ConfigError::Name { .. })), "{name:?}");
    }
}

fn billing(config: Value) -> Billing {
    serde_json::from_value::<ProviderConfig>(config).unwrap().billing()
}

#[test]
fn what_no_model_is_behind_is_scripted() {
    for config in [
        json!({ "kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "scripted/demo" }),
        json!({ "kind": "anthropic", "base_url": "http://localhost:1", "model": "scripted/demo" }),
        json!({ "kind": "claude-cli", "program": "cyberine-scripted-llm" }),
        json!({ "kind": "command", "command": ["/opt/bin/cyberine-scripted-llm", "answer"] }),
    ] {
        assert_eq!(billing(config.clone()), Billing::Scripted, "{config}");
    }
}

#[test]
fn a_model_that_ollama_only_hands_on_is_not_free() {
    let ollama = |model: &str| billing(json!({ "kind": "ollama", "model": model }));
    assert_eq!(ollama("gpt-oss:120b-cloud"), Billing::Subscription);
    assert_eq!(ollama("glm-4.6:cloud"), Billing::Subscription);
    assert_eq!(ollama("cloudy:8b"), Billing::Free);
    let elsewhere = json!({ "kind": "ollama", "base_url": "https://h", "model": "qwen3:8b" });
    assert_eq!(billing(elsewhere), Billing::Metered);
}

#[test]
fn a_scripted_name_away_from_loopback_says_nothing_about_the_cost() {
    let metered = [
        json!({ "kind": "openai", "base_url": "https://h/v1", "model": "scripted/demo" }),
        json!({ "kind": "anthropic", "model": "scripted/demo" }),
        json!({ "kind": "claude-cli", "model": "scripted/demo", "api_key_env": "K" }),
    ];
    for config in metered {
        assert_eq!(billing(config.clone()), Billing::Metered, "{config}");
    }
    assert_eq!(billing(json!({ "kind": "claude-cli", "model": "scripted/demo" })), Billing::Subscription);
    let command = json!({ "kind": "command", "command": ["x"], "model": "scripted/demo" });
    assert_eq!(billing(command), Billing::Free);
}

#[test]
fn a_written_price_goes_before_every_name() {
    for mut config in [
        json!({ "kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "scripted/demo" }),
        json!({ "kind": "anthropic", "base_url": "http://127.0.0.1:1", "model": "scripted/demo" }),
        json!({ "kind": "claude-cli", "program": "cyberine-scripted-llm" }),
        json!({ "kind": "command", "command": ["cyberine-scripted-llm"] }),
    ] {
        config["billing"] = json!("metered");
        assert_eq!(billing(config.clone()), Billing::Metered, "{config}");
        // Both cost nothing, and only one of them says that no model is called.
        config["billing"] = json!("free");
        assert_eq!(billing(config.clone()), Billing::Scripted, "{config}");
    }
}

#[test]
fn a_missing_variable_is_named() {
    let missing = |config: Value| match try_provider(config).err() {
        Some(BuildError::MissingVariable { variable, .. }) => variable,
        other => panic!("{other:?}"),
    };
    let openai =
        json!({ "kind": "openai", "base_url": "https://h/v1", "model": "m", "api_key_env": "ABSENT_KEY" });
    assert_eq!(missing(openai), "ABSENT_KEY");
    assert_eq!(missing(json!({ "kind": "claude-cli", "api_key_env": "ABSENT_KEY" })), "ABSENT_KEY");
    assert_eq!(missing(json!({ "kind": "command", "command": ["x"], "env": ["ABSENT"] })), "ABSENT");

    for (kind, variables, billing) in [
        ("anthropic", &["ANTHROPIC_API_KEY"][..], Billing::Metered),
        ("openai-responses", &["OPENAI_API_KEY"], Billing::Metered),
        ("gemini", &["GEMINI_API_KEY"], Billing::Metered),
        ("ollama", &[], Billing::Free),
    ] {
        let own: ProviderConfig = serde_json::from_value(json!({ "kind": kind, "model": "m" })).unwrap();
        assert_eq!((own.required_env(), own.billing()), (variables.to_vec(), billing), "{kind}");
        let local = json!({ "kind": kind, "base_url": "http://127.0.0.1:1", "model": "m" });
        let local: ProviderConfig = serde_json::from_value(local).unwrap();
        assert_eq!((local.required_env(), local.billing()), (Vec::new(), Billing::Free), "{kind}");
    }
}
