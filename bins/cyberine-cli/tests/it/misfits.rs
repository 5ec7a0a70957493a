//! Keys that could do nothing: refused, or hinted at.

use crate::place::{Place, shell};

#[test]
fn a_key_that_could_do_nothing_ends_with_its_place_and_what_to_do() {
    let pair = [shell("a", "cat"), shell("b", "cat")].concat();
    let refused = |more: &str, words: &[&str]| {
        let place = Place::with(&[&pair, more].concat());
        for command in [&["orchestrate", "x"][..], &["doctor", "providers"]] {
            place.run(command).refused(78, words);
        }
        let doctor = place.run(&["doctor", "--json"]);
        assert_eq!(doctor.code, Some(78), "{doctor:?}");
        let problem = doctor.json()["problems"][0].as_str().unwrap().to_owned();
        words.iter().for_each(|word| assert!(problem.contains(word), "{word}: {problem}"));
    };
    // The two providers take six lines.
    refused(
        "[orchestrate]\njudge_providers = [\"judge\"]\n",
        &["config.toml:8:1: `[orchestrate] judge_providers` names the provider `judge`"],
    );
    refused(
        "[orchestrate.judge_command]\ncommand = [\"true\"]\n",
        &["config.toml:7:14: `[orchestrate] judge_command` has no effect", "add it there"],
    );
    refused(
        "[orchestrate]\njudges = [\"command\"]\n",
        &["config.toml:8:1", "add `[orchestrate.judge_command]`"],
    );
    refused(
        "[orchestrate]\njudges = [\"llm-judge\"]\nequivalence = true\n",
        &["config.toml:9:1: `[orchestrate] equivalence` has no effect", "does not name `consensus`"],
    );
    refused("[orchestrate]\nfirst = 3\n", &["config.toml:8:1", "is 3, and there are 2 candidates"]);
    refused(
        "[orchestrate]\njudges = [\"consensus\"]\nrubric = \"r.md\"\n",
        &["config.toml:9:1: `[orchestrate] rubric` is read by nobody", "add `llm-judge`"],
    );
    refused("[orchestrate]\njudges = []\nrounds = 2\n", &["config.toml:9:1", "never a second round"]);
    refused(
        "[orchestrate]\nrubric = \"r.md\"\nrubric_text = \"x\"\n",
        &["config.toml:9:1", "both `rubric` and `rubric_text`; keep one"],
    );
    refused("[orchestrate]\nquorum = 0\n", &["config.toml:8:10", "`quorum` is 0, and must be at least 1"]);
    refused(
        "[providers.c]\nkind = \"ollama\"\nmodel = \"m\"\n[orchestrate.roles.c]\nfallback_model = \"m\"\n",
        &["config.toml:11:1: `[orchestrate.roles.c] fallback_model` is `m`, the provider's own model"],
    );
}

#[test]
fn what_has_no_effect_and_does_no_harm_is_a_hint() {
    let place = Place::with(&format!(
        "{}[orchestrate]\njudges = [\"consensus\"]\njudge_providers = [\"a\"]\nquorum = 5\n\
         [budget.providers]\na = 1\naa = 1\n[bus]\nbackend = \"none\"\nretention_days = 3\n[presence]\nteam = \"red\"\n",
        [shell("a", "cat"), shell("b", "cat")].concat()
    ));
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let hints: Vec<&str> = said.out.lines().filter_map(|line| line.strip_prefix("hint      ")).collect();
    for (hint, begins) in hints.iter().zip([
        "`[orchestrate] judge_providers` is read by `cyberine judge selftest` only",
        "`[orchestrate] quorum` is 5, and there are 2 candidates",
        "`[budget.providers] a` limits nothing: the provider costs nothing",
        "`[budget.providers] aa` of the home limits nothing here: there is no provider of that name; did you mean `a`? It is right where another project has one",
        "`[bus] retention_days` has no effect",
        "`[presence]` has no effect",
    ]) {
        assert!(hint.starts_with(begins), "{begins}: {hint}");
    }
    assert_eq!(hints.len(), 6, "{said:?}");
    assert_eq!(place.run(&["doctor", "--json"]).json()["hints"].as_array().unwrap().len(), 6);
    let plain = Place::with(&shell("a", "cat")).run(&["doctor"]);
    assert!(!plain.out.contains("hint "), "{plain:?}");
}
