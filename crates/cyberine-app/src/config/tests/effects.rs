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
    place.project("").home(&format!("{LOCAL}[budget.providers]\nother = 1\n"));
    let fault = place.fault();
    let at = format!("{}:5:1: [budget.providers]: there is no", place.home.config_file().display());
    assert!(fault.starts_with(&at) && fault.contains("that project's cyberine.toml"), "{fault}");
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
        "[orchestrate]\nidle_seconds = 60\nwall_seconds = 30\n",
        "`[orchestrate] idle_seconds` is more than `wall_seconds`",
    );
}
