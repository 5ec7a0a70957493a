use super::*;

fn providers(names: &[&str]) -> BTreeMap<String, ProviderConfig> {
    let text = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"scripted/m"}"#;
    let mut all: BTreeMap<String, ProviderConfig> =
        names.iter().map(|name| ((*name).to_owned(), serde_json::from_str(text).unwrap())).collect();
    all.insert("agent".to_owned(), serde_json::from_str(r#"{"kind":"command","command":["x"]}"#).unwrap());
    all
}

fn config(text: &str) -> OrchestrateConfig {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_key_that_could_do_nothing_is_told_with_what_to_do() {
    let cases = [
        (
            r#"{"candidates":["d"]}"#,
            "`[orchestrate] candidates` names the provider `d`, which is not configured; known are: a, agent, b",
        ),
        (r#"{"candidates":["a","a"]}"#, "`[orchestrate] candidates` names `a` twice"),
        (r#"{"judge_providers":["a","d"]}"#, "`[orchestrate] judge_providers` names the provider `d`"),
        (r#"{"roles":{"d":{}}}"#, "`[orchestrate] roles` names the provider `d`"),
        (
            r#"{"candidates":["a"],"roles":{"b":{"samples":2}}}"#,
            "`[orchestrate.roles] b` has no effect: the provider is not among `candidates`",
        ),
        (
            r#"{"roles":{"a":{"fallback_model":"scripted/m"}}}"#,
            "`[orchestrate.roles.a] fallback_model` is `scripted/m`, the provider's own model",
        ),
        (
            r#"{"roles":{"agent":{"fallback_model":"m"}}}"#,
            "`[orchestrate.roles.agent] fallback_model` cannot be asked for: what kind `command` starts",
        ),
        (r#"{"judges":["llm-judge","llm-judge"]}"#, "`[orchestrate] judges` names `llm-judge` twice"),
        (
            r#"{"judges":["command"]}"#,
            "`[orchestrate] judges` names `command`, and there is nothing to run: add `[orchestrate.judge_command]`",
        ),
        (
            r#"{"judge_command":{"command":["x"]}}"#,
            "`[orchestrate] judge_command` has no effect: `judges` does not name `command`",
        ),
        (
            r#"{"judges":["llm-judge"],"equivalence":true}"#,
            "`[orchestrate] equivalence` has no effect: `judges` does not name `consensus`",
        ),
        (r#"{"judges":["llm-judge"],"judge_always":true}"#, "`[orchestrate] judge_always` has no effect"),
        (
            r#"{"judges":["llm-judge","consensus"],"judge_always":true}"#,
            "`[orchestrate] judge_always` has no effect",
        ),
        (
            r#"{"judges":["consensus"],"rubric":"r.md"}"#,
            "`[orchestrate] rubric` is read by nobody: add `llm-judge` or `adversarial`",
        ),
        (
            r#"{"judges":["consensus","command"],"equivalence":true,"judge_command":{"command":["x"]},"rubric":"r.Toml"}"#,
            "`[orchestrate] rubric` has criteria, being TOML, and no judge scores by them: add `llm-judge`",
        ),
        (r#"{"judges":[],"rubric_text":"x"}"#, "`[orchestrate] rubric_text` is read by nobody"),
        (r#"{"first":4}"#, "`[orchestrate] first` is 4, and there are 3 candidates"),
        (r#"{"first":1}"#, "`[orchestrate] first` is 1 and `quorum` is 2: so few answers are never judged"),
        (
            r#"{"judges":[],"rounds":2}"#,
            "`[orchestrate] rounds` is 2, and there is never a second round: nobody judges",
        ),
        (
            r#"{"candidates":["a"],"rounds":3}"#,
            "`[orchestrate] rounds` is 3, and there is never a second round: there is one candidate",
        ),
        (r#"{"quorum":1,"first":1,"rounds":2}"#, "never a second round: `first` is 1"),
        (
            r#"{"approval_seconds":60}"#,
            "`[orchestrate] approval_seconds` has no effect: `approval` is \"never\"",
        ),
        (r#"{"approval_default":"approve"}"#, "`[orchestrate] approval_default` has no effect"),
    ];
    for (text, said) in cases {
        let error = config(text).check(&providers(&["a", "b"])).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn a_key_that_has_an_effect_is_left_alone() {
    let fine = [
        "{}",
        r#"{"judges":["consensus","command"],"judge_command":{"command":["x"]}}"#,
        r#"{"judges":["consensus"],"equivalence":true,"rubric_text":"x"}"#,
        r#"{"judges":["llm-judge","consensus"],"judge_always":true,"equivalence":true}"#,
        r#"{"judge_always":true,"rounds":5,"first":3}"#,
        r#"{"candidates":["a"],"roles":{"a":{"samples":2,"fallback_model":"small"}},"rounds":2,"first":2}"#,
        r#"{"judges":[],"quorum":1,"first":1}"#,
        r#"{"judges":[],"first":1}"#,
        r#"{"judges":["consensus"],"equivalence":true,"rubric":"r.md"}"#,
        r#"{"judges":["consensus","adversarial"],"rubric":"r.TOML"}"#,
        r#"{"candidates":["a"],"first":1}"#,
        r#"{"approval":"required","approval_seconds":60,"approval_default":"approve"}"#,
        r#"{"quorum":9}"#,
    ];
    for text in fine {
        assert_eq!(config(text).check(&providers(&["a", "b"])), Ok(()), "{text}");
    }
    let found_later = config(r#"{"candidates":["d"],"first":9,"roles":{"e":{"fallback_model":"m"}}}"#);
    assert_eq!(found_later.check(&BTreeMap::new()), Ok(()), "nobody is configured");
}

#[test]
fn a_misfit_names_where_its_key_stands() {
    let text = r#"{"roles":{"a":{"fallback_model":"scripted/m"}}}"#;
    let error = config(text).check(&providers(&["a"])).unwrap_err();
    assert_eq!(error.key, ["roles", "a", "fallback_model"]);
}
