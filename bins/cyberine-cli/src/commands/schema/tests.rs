use std::collections::BTreeSet;

use cyberine_app::{ConfigSource, Found, FoundKey, FoundProgram, ModelServer, offer_of};
use serde_json::Value;

use super::SCHEMA;
use crate::draft::{Scope, draft};

const DOCS: &str = include_str!("../../../../../docs/configuration.md");
/// A key that nobody will ever mean.
const NOBODY: &str = "zzzzzzzzzzzzzzzz";

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// What is wrong with a configuration, by the schema.
fn faults(config: &str) -> Vec<String> {
    let config: Value = toml::from_str(config).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    validator.iter_errors(&config).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The keys the program knows at a place, by what it says of one that it does not know.
fn known(config: &str) -> BTreeSet<String> {
    let error = offer_of(&ConfigSource::of("c.toml", config)).unwrap_err().to_string();
    let (_, known) = error.split_once("known here: ").unwrap_or_else(|| panic!("{error}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn keys(properties: &Value) -> BTreeSet<String> {
    properties.as_object().unwrap().keys().cloned().collect()
}

fn provider(schema: &Value, kind: &str) -> BTreeSet<String> {
    let kinds = schema["definitions"]["provider"]["oneOf"].as_array().unwrap();
    let kind = kinds.iter().find(|one| one["properties"]["kind"]["const"] == kind).unwrap();
    let mut keys = keys(&kind["properties"]);
    keys.remove("kind");
    keys
}

const KINDS: [&str; 11] = [
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "ollama",
    "claude-cli",
    "codex-cli",
    "acp",
    "aider",
    "command",
    "mcp",
];

#[test]
fn the_schema_knows_the_keys_the_program_knows_and_no_others() {
    let schema = schema();
    assert_eq!(keys(&schema["properties"]), known(&format!("[{NOBODY}]")));
    for section in keys(&schema["properties"]) {
        if section != "providers" {
            let program = known(&format!("[{section}]\n{NOBODY} = 1"));
            assert_eq!(keys(&schema["properties"][&section]["properties"]), program, "[{section}]");
        }
    }
    for kind in KINDS {
        let program = known(&format!("[providers.a]\nkind = \"{kind}\"\n{NOBODY} = 1"));
        assert_eq!(provider(&schema, kind), program, "{kind}");
    }
    let prices = known(&format!("[providers.a]\nkind = \"openai\"\nprices = {{ {NOBODY} = 1 }}"));
    assert_eq!(keys(&schema["definitions"]["prices"]["properties"]), prices);
}

#[test]
fn every_key_of_the_schema_is_documented_and_every_documented_one_is_in_it() {
    let schema = schema();
    let providers = section("[providers.NAME]");
    let missing = |keys: BTreeSet<String>, text: &str| -> Vec<String> {
        let told = |key: &String| {
            [format!("`{key}`"), format!("`{key} "), format!(" {key}")].iter().any(|key| text.contains(key))
        };
        keys.into_iter().filter(|key| !told(key)).collect()
    };
    for kind in KINDS {
        assert_eq!(missing(provider(&schema, kind), providers), Vec::<String>::new(), "{kind}");
    }
    let prices = keys(&schema["definitions"]["prices"]["properties"]);
    assert_eq!(missing(prices, providers), Vec::<String>::new());
    for name in keys(&schema["properties"]).iter().filter(|name| *name != "providers") {
        let text = section(&format!("[{name}]"));
        let properties = keys(&schema["properties"][name]["properties"]);
        let unknown: Vec<String> =
            in_table(text).into_iter().filter(|key| !properties.contains(key)).collect();
        assert_eq!(unknown, Vec::<String>::new(), "documented, and not in the schema: [{name}]");
        assert_eq!(
            missing(properties, text),
            Vec::<String>::new(),
            "in the schema, and not documented: [{name}]"
        );
    }
}

/// What the documentation says under a heading.
fn section(name: &str) -> &'static str {
    let (_, text) =
        DOCS.split_once(&format!("## `{name}`")).unwrap_or_else(|| panic!("{name} is not documented"));
    text.split("\n## ").next().unwrap_or_default()
}

/// The keys in the first column of a table.
fn in_table(text: &str) -> Vec<String> {
    let firsts = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    firsts.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn what_init_writes_and_what_its_comments_offer_is_in_order() {
    let models = ["a", "b", "c"].map(str::to_owned).into();
    let found = Found {
        servers: vec![ModelServer {
            label: "Ollama".into(),
            base_url: "http://127.0.0.1:11434/v1".into(),
            models,
        }],
        programs: vec![FoundProgram { name: "claude".into(), path: "/bin/claude".into() }],
        keys: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"]
            .map(|key| FoundKey { variable: key.into(), vendor: key[..6].into() })
            .into(),
    };
    for (found, scope) in [(&found, Scope::Home), (&found, Scope::Project), (&Found::default(), Scope::Home)]
    {
        let text = draft(found, scope, Some("./cyberine.schema.json"));
        assert!(text.starts_with("#:schema ./cyberine.schema.json\n"), "{text}");
        assert_eq!(faults(&text), Vec::<String>::new(), "{text}");
        let on = switched_on(&text).replace("model = \"\"", "model = \"m\"");
        assert!(on.contains("daily_usd = 5.00"), "{on}");
        assert_eq!(faults(&on), Vec::<String>::new(), "{on}");
    }
}

/// A draft with every line switched on that is a setting.
fn switched_on(text: &str) -> String {
    let setting = |line: &str| {
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    text.lines()
        .map(|line| line.trim_start_matches("# "))
        .filter(|line| setting(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn examples_hold_and_mistakes_are_found() {
    let fine = "[orchestrate]\njudges = [\"consensus\"]\napproval = \"required\"\napproval_seconds = 60\napproval_default = \"approve\"\n\
                [budget]\ndaily_usd = 5\n[run]\non_host_exit = \"cancel\"\n[presence]\nteam = \"core\"\nrole = \"reviewer\"\n\
                [bus]\nbackend = \"file\"\nretention_days = 30\n\
                [providers.a]\nkind = \"command\"\ncommand = [\"cat\"]\nbilling = \"metered\"\n\
                [providers.b]\nkind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\n\
                prices = { input_usd_per_mtok = 1, output_usd_per_mtok = 2.5 }\n";
    assert_eq!(faults(fine), Vec::<String>::new());
    for wrong in [
        "[budgte]\n",
        "[orchestrate]\nqorum = 1\n",
        "[orchestrate]\napproval = \"maybe\"\n",
        "[providers.a]\nkind = \"command\"\n",
        "[providers.a]\nkind = \"commnad\"\ncommand = [\"cat\"]\n",
        "[providers.a]\nkind = \"command\"\ncommand = [\"cat\"]\nmax_tokens = 1\n",
        "[providers.\"a b\"]\nkind = \"command\"\ncommand = [\"cat\"]\n",
        "[providers.b]\nkind = \"openai\"\nbase_url = \"ftp://h\"\nmodel = \"m\"\n",
        "[providers.b]\nkind = \"openai\"\nbase_url = \"https://h\"\nmodel = \"m\"\napi_key_env = \"sk-123\"\n",
        "[bus]\nbackend = \"nats\"\n",
        "[budget]\nrun_usd = -1\n",
        "[orchestrate]\napproval_seconds = 0\n",
        "[presence]\nteam = \"\"\n",
    ] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
}

/// Everything people read about it.
const PAGES: [&str; 2] = [include_str!("../../../../../README.md"), DOCS];

#[test]
fn every_example_of_the_docs_is_in_order() {
    for page in PAGES {
        for example in page.split("```toml\n").skip(1) {
            let example = example.split("```").next().unwrap_or_default();
            assert_eq!(faults(example), Vec::<String>::new(), "{example}");
            let read = offer_of(&ConfigSource::of("example.toml", example));
            assert!(read.is_ok(), "{read:?}: {example}");
        }
    }
}
