//! Keys that could do nothing, and those that do no harm.

use super::*;

#[test]
fn what_could_do_nothing_is_told_in_the_file_that_says_it() {
    let place = place();
    place.home(&format!("{LOCAL}[orchestrate]\ncandidates = [\"local\"]\n"));
    place.project("[orchestrate]\nfirst = 3\n").load();
    let fault = place.trust().fault();
    let at = format!("{}:2:1: `[orchestrate] first` is 3", place.project.config_file().display());
    assert!(fault.starts_with(&at), "{fault}");

    place.project("[budget.providers]\nlokal = 1\n");
    let fault = place.fault();
    let at = format!("{}:2:1: [budget.providers]: there is no", place.project.config_file().display());
    assert!(fault.starts_with(&at) && fault.contains("did you mean `local`?"), "{fault}");
    // One that a project would define once it is trusted is no mistake.
    place.project(&format!("{}[budget.providers]\nother = 1\n", LOCAL.replace("local", "other"))).load();
    place.home("[budget.providers]\nother = 1\n").load();
    place.trust().load();
}

#[test]
fn a_cap_of_the_home_may_be_on_a_provider_of_other_projects() {
    let place = place();
    place.home(&format!("{LOCAL}[budget.providers]\nother = 1\n"));
    let hints = place.load().hints();
    let want =
        "`[budget.providers] other` of the home limits nothing here: there is no provider of that name";
    assert!(hints.len() == 1 && hints[0].starts_with(want), "{hints:?}");
    place.project(&LOCAL.replace("local", "other"));
    assert_eq!(place.load().hints(), [""; 0], "not trusted yet");
    let hints = place.trust().load().hints();
    assert!(hints.iter().all(|hint| !hint.contains("of the home limits nothing here")), "{hints:?}");
}

#[test]
fn a_role_that_does_not_fit_a_project_s_own_provider_is_told_in_the_project_s_file() {
    let place = place();
    let model = "[providers.local]\nkind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\n";
    place.home(&format!("{model}[orchestrate.roles.local]\nfallback_model = \"small\"\n")).load();
    let program = "[providers.local]\nkind = \"command\"\ncommand = [\"x\"]\n";
    place.project(program).load();
    let fault = place.trust().fault();
    let at =
        format!("{}:1:12: `[providers.local]` takes the place of", place.project.config_file().display());
    assert!(fault.starts_with(&at), "{fault}");
    assert!(fault.contains("fallback_model` cannot be asked for"), "{fault}");
    assert!(fault.contains("another name here"), "{fault}");
    place.project(&format!("{program}[orchestrate.roles.local]\nfallback_model = \"m\"\n"));
    let fault = place.trust().fault();
    let at = format!("{}:5:1: `[orchestrate.roles.local] fallback", place.project.config_file().display());
    assert!(fault.starts_with(&at), "{fault}");
}

#[test]
fn a_hint_is_given_for_what_does_no_harm_and_for_nothing_else() {
    let hints = |text: &str| place().home(text).load().hints();
    assert_eq!(hints(&format!("{LOCAL}[budget]\ndaily_usd = 5\n")), [""; 0]);
    let metered = "[providers.a]\nkind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\n";
    let prices = "prices = { input_usd_per_mtok = 1, output_usd_per_mtok = 2 }\n";
    assert_eq!(hints(&format!("{metered}{prices}[budget.providers]\na = 1\n")), [""; 0]);
    let check = |text: &str, want: &str| {
        let hints = hints(text);
        assert!(hints.len() == 1 && hints[0].contains(want), "{text}: {hints:?}");
    };
    check(&format!("{metered}billing = \"free\"\n{prices}"), "`[providers.a] prices` has no effect");
    check(&format!("{metered}allow_plain_http = true\n"), "`[providers.a] allow_plain_http` has no effect");
    check(
        &format!("{LOCAL}idle_seconds = 60\nwall_seconds = 30\n"),
        "`[providers.local] idle_seconds` is more than its `wall_seconds`",
    );
    check(
        &format!("{LOCAL}idle_seconds = 60\n[orchestrate]\nwall_seconds = 30\n"),
        "`[providers.local] idle_seconds` is more than `[orchestrate] wall_seconds`",
    );
    check(
        &format!("{LOCAL}[orchestrate]\napproval = \"required\"\n"),
        "`[orchestrate] approval` is \"required\", and there is one candidate",
    );
    check(
        "[orchestrate]\njudges = []\napproval = \"required\"\n",
        "`[orchestrate] approval` is \"required\", and `judges` is empty",
    );
    let two = format!("{LOCAL}{}", LOCAL.replace("local", "other"));
    assert_eq!(hints(&format!("{two}[orchestrate]\napproval = \"required\"\n")), [""; 0]);
    check(
        "[orchestrate]\nidle_seconds = 60\nwall_seconds = 30\n",
        "`[orchestrate] idle_seconds` is more than `wall_seconds`",
    );
}
