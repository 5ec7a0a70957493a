//! Configuration: written, trusted, checked, and refused.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::place::{Place, shell, write_private};

#[test]
fn every_wrong_configuration_ends_with_its_code_and_what_to_do() {
    let ask = |place: &Place| place.run(&["orchestrate", "x"]);
    ask(&Place::new()).refused(69, &["no provider is configured", "cyberine init"]);

    let place = Place::new();
    std::fs::create_dir_all(place.home().join("config.toml")).unwrap();
    ask(&place).refused(78, &["config.toml", "not a regular file"]);

    let place = Place::with(&shell("a", "cat"));
    std::fs::set_permissions(place.home().join("config.toml"), PermissionsExt::from_mode(0o620)).unwrap();
    ask(&place).refused(78, &["can be written by others (mode 0620)", "chmod go-w"]);

    let place = Place::with("[orchestrate]\nqorum = 1\n");
    ask(&place).refused(78, &["config.toml:2:1", "unknown key `qorum`", "did you mean `quorum`?"]);

    let place = Place::with(
        "[orchestrate]\ncandidates = [\"b\"]\n[providers.a]\nkind = \"command\"\ncommand = [\"cat\"]\n",
    );
    ask(&place).refused(78, &["`[orchestrate] candidates` names the provider `b`"]);

    let place = Place::with(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"https://h.invalid/v1\"\nmodel = \"m\"\napi_key_env = \"NO_SUCH_KEY\"\n",
    );
    ask(&place).refused(78, &["provider `a` needs the environment variable `NO_SUCH_KEY`"]);

    let place = Place::new();
    write_private(&place.project().join("cyberine.toml"), &shell("a", "cat"));
    ask(&place).refused(77, &["is not trusted", "cyberine trust"]);

    let place = Place::with(&shell("a", "cat"));
    std::fs::set_permissions(place.home(), PermissionsExt::from_mode(0o777)).unwrap();
    ask(&place).refused(78, &["can be written by other users (mode 0777)"]);

    let place = Place::new();
    place.run(&["runs", "--project", "/nonexistent"]).refused(78, &["/nonexistent"]);
    place.run(&["orchestrat"]).refused(2, &["orchestrate"]);
    place.run(&["inspect", "zz"]).refused(2, &["is not a run's id"]);
    place.run(&["inspect", "5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11"]).refused(69, &["there is no run"]);
}

#[test]
fn an_error_is_a_document_too_where_programs_read() {
    let said = Place::new().run(&["orchestrate", "x", "--json"]);
    assert_eq!((said.code, &said.json()["exit"]), (Some(69), &json!(69)));
    assert!(said.json()["error"].as_str().unwrap().contains("no provider"));
}

#[test]
fn a_project_is_shown_and_trusted_by_a_clear_yes_only_and_its_change_is_noticed() {
    let place = Place::new();
    let file = place.project().join("cyberine.toml");
    place.run(&["trust"]).refused(69, &["cyberine init"]);
    let spy = "[providers.net]\nkind = \"openai\"\nbase_url = \"http://h.invalid/v1\"\nmodel = \"m\"\napi_key_env = \"THE_KEY\"\nallow_plain_http = true\n";
    write_private(
        &file,
        &format!(
            "{}cwd = \"/etc\"\n{spy}[orchestrate]\ncandidates = [\"a\"]\njudge_providers = [\"a\"]\n",
            shell("a", "cat > /dev/null; echo yes")
        ),
    );
    for arguments in [&["trust"][..], &["trust", "--json"]] {
        let said = place.run(arguments);
        said.refused(77, &["nothing was trusted", "cyberine trust --yes"]);
        place.run(&["orchestrate", "x"]).refused(77, &["is not trusted", "cyberine trust"]);
    }
    let said = place.run(&["trust", "--json"]).json();
    assert_eq!((&said["trusted"], &said["exit"]), (&json!(false), &json!(77)), "{said}");
    let said = place.run(&["trust", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for shown in [
        "runs    \"sh\" \"-c\" \"cat > /dev/null; echo yes\"\n",
        "in      \"/etc\"\n",
        "asks    \"http://h.invalid/v1\"\n",
        "without encryption",
        "\"THE_KEY\"",
        "costs nothing",
        "billed by the token",
        "[orchestrate] candidates = [\"a\"]\n",
    ] {
        assert!(said.out.contains(shown), "{shown}: {said:?}");
    }
    let said = place.run(&["trust", "--json"]);
    assert_eq!(
        (said.code, &said.json()["before"], &said.json()["trusted"]),
        (Some(0), &json!("trusted"), &json!(true))
    );
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));

    let changed = std::fs::read_to_string(&file).unwrap() + "\n# one more line\n";
    std::fs::write(&file, changed).unwrap();
    place.run(&["orchestrate", "x"]).refused(77, &["has changed since you trusted it"]);
    place.run(&["trust"]).refused(77, &["nothing was trusted"]);
}

#[test]
fn nothing_of_what_a_project_would_run_is_hidden_or_forged() {
    let check = |script: &str, shown: &str| {
        let place = Place::new();
        write_private(&place.project().join("cyberine.toml"), &toml_shell("a", script));
        let said = place.run(&["trust"]);
        assert_eq!(said.code, Some(77));
        let runs: Vec<&str> = said.out.lines().filter(|line| line.contains("runs ")).collect();
        assert_eq!(runs, [format!("    runs    \"sh\" \"-c\" \"{shown}\"")], "{said:?}");
        assert_eq!(place.run(&["trust", "--yes"]).code, Some(0));
        let doctor = place.run(&["doctor"]);
        assert!(doctor.out.contains(&format!("\"sh\" \"-c\" \"{shown}\"\n")), "{doctor:?}");
    };
    check("echo 42 \u{1b}]\n touch ../PWNED #\u{7}", r"echo 42 \u{1b}]\n touch ../PWNED #\u{7}");
    check("echo 42 #\u{9d}\ntouch ../PWNED", r"echo 42 #\u{9d}\ntouch ../PWNED");
    check(&format!("echo 42{}; touch ../PWNED", " ".repeat(3000)), r"echo 42\{3000 spaces}; touch ../PWNED");
    check(
        "echo 42; touch ../PWNED\n\n  b (command, costs nothing)\n    runs    true",
        r"echo 42; touch ../PWNED\n\n  b (command, costs nothing)\n\{4 spaces}runs\{4 spaces}true",
    );
}

/// As [`shell`], with every character of the script that TOML or a reader could stumble over as an
/// escape.
fn toml_shell(name: &str, script: &str) -> String {
    let script: String = script
        .chars()
        .map(|c| if c.is_control() { format!("\\u{:04X}", u32::from(c)) } else { c.to_string() })
        .collect();
    format!("[providers.{name}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n")
}

#[test]
fn a_project_that_is_not_trusted_does_not_decide_who_is_asked() {
    let place = Place::with(&format!(
        "{}{}[orchestrate]\ncandidates = [\"cheap\"]\n",
        shell("cheap", "cat > /dev/null; echo yes"),
        shell("dear", "cat > /dev/null; touch ../SPENT; echo yes")
    ));
    write_private(&place.project().join("cyberine.toml"), "[orchestrate]\ncandidates = [\"dear\"]\n");
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
    assert!(!place.path("SPENT").exists());
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let line = doctor.out.lines().find(|line| line.starts_with("untrusted ")).unwrap();
    assert!(line.contains("cyberine.toml") && line.contains("[orchestrate]"), "{line}");
    assert!(!doctor.out.contains("All is well"), "{doctor:?}");
    assert_eq!(doctor.out.matches("is not trusted").count(), 1, "{doctor:?}");

    assert_eq!(place.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
    assert!(place.path("SPENT").exists());
}

#[test]
fn a_path_cannot_drive_the_terminal() {
    let place = Place::with(&shell("a", "cat"));
    let name = "p\u{1b}]0;owned\u{7}\nhome      forged";
    std::fs::create_dir(place.path(name)).unwrap();
    for arguments in
        [&["init"][..], &["doctor"], &["trust"], &["trust", "--yes"], &["orchestrate", "x"], &["init"]]
    {
        let mut command = place.command(arguments);
        let said: crate::place::Said = command.current_dir(place.path(name)).output().unwrap().into();
        let all = format!("{}{}", said.out, said.err);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{7}'), "{arguments:?}: {said:?}");
        assert!(!all.lines().any(|line| line.starts_with("home      forged")), "{arguments:?}: {said:?}");
        assert!(all.contains(r"p\u{1b}]0;owned\u{7}\nhome"), "{arguments:?}: {said:?}");
    }
}

#[test]
fn results_that_cannot_be_written_are_a_failure_and_a_reader_that_left_is_none() {
    let place = Place::new();
    for arguments in [&["--json", "runs"][..], &["runs"], &["guide"], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let said: crate::place::Said = place.command(arguments).stdout(full).output().unwrap().into();
        said.refused(70, &["could not be written"]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said: crate::place::Said = place.command(arguments).stdout(writer).output().unwrap().into();
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_wrong_command_line_is_a_document_too_where_programs_read() {
    let place = Place::new();
    for arguments in [&["--json", "orchestrat"][..], &["runs", "--limit", "0", "--json"], &["--json"]] {
        let said = place.run(arguments);
        said.refused(2, &["error: "]);
        assert_eq!(said.json()["exit"], json!(2), "{said:?}");
        assert!(!said.json()["error"].as_str().unwrap().is_empty(), "{said:?}");
    }
    for arguments in [&["orchestrat"][..], &["orchestrate", "--wat", "--", "--json"]] {
        let said = place.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    }
}

#[test]
fn init_writes_what_it_found_never_a_value_and_never_over_what_is_there() {
    let place = Place::new();
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("claude"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(bin.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    let init = |arguments: &[&str]| -> crate::place::Said {
        let mut command = place.command(arguments);
        command.env("PATH", &bin).env("OPENAI_API_KEY", "sk-canary").output().unwrap().into()
    };
    let said = init(&["init"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("cyberine trust") && said.out.contains("OPENAI_API_KEY"), "{said:?}");
    let text = std::fs::read_to_string(place.project().join("cyberine.toml")).unwrap();
    assert!(
        text.contains("kind = \"claude-cli\"") && text.contains("# api_key_env = \"OPENAI_API_KEY\""),
        "{text}"
    );
    assert!(!text.contains("canary") && !said.out.contains("canary"));

    init(&["init"]).refused(78, &["is there already", "--force"]);
    assert_eq!(init(&["init", "--force"]).code, Some(0));
    assert_eq!(
        init(&["init", "--home", "--json"]).json()["file"],
        place.home().join("config.toml").to_str().unwrap()
    );
    let doctor = init(&["doctor", "--json"]);
    assert_eq!(doctor.json()["providers"][0]["kind"], "claude-cli", "{doctor:?}");
}

#[test]
fn doctor_tells_what_is_there_and_ends_with_the_code_of_what_is_wrong() {
    let place = Place::with(&shell("a", "cat"));
    let said = place.run(&["doctor", "--json"]);
    let report = said.json();
    assert_eq!(
        (said.code, &report["problems"], &report["runs"]),
        (Some(0), &json!([]), &json!(0)),
        "{report}"
    );
    assert_eq!(report["providers"][0]["program"], json!(["sh", "-c", "cat"]));

    let place = Place::new();
    write_private(&place.project().join("cyberine.toml"), &shell("a", "cat"));
    let said = place.run(&["doctor", "--json"]);
    assert_eq!((said.code, &said.json()["untrusted"]["providers"]), (Some(77), &json!(["a"])));

    let place = Place::with("[budgte]\n");
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(78), "{said:?}");
    assert!(said.out.contains("did you mean `budget`?"), "{said:?}");
}

#[test]
fn a_lost_database_is_rebuilt_from_the_projects() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let run = place.run(&["orchestrate", "remember me", "--json"]).json()["runId"].clone();
    place.lose_database();
    let said = place.run(&["doctor", "--rebuild", "--json"]);
    assert_eq!((said.code, &said.json()["rebuilt"]), (Some(0), &json!(1)), "{said:?}");
    let runs = place.run(&["runs", "remember", "--json"]).json();
    assert_eq!(runs["runs"][0]["runId"], run);
}

#[test]
fn a_rebuild_that_leaves_something_out_says_what_and_is_no_success() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let run = |prompt: &str| place.run(&["orchestrate", prompt, "--json"]).json()["runId"].clone();
    let (lost, _kept) = (run("lost"), run("kept"));
    let lost = lost.as_str().unwrap();
    std::fs::write(place.project().join(".local/runs").join(lost).join("events.jsonl"), "").unwrap();
    place.lose_database();
    let said = place.run(&["doctor", "--rebuild"]);
    assert_eq!(said.code, Some(70), "{said:?}");
    assert!(said.out.contains("rebuilt   1 runs"), "{said:?}");
    assert!(said.out.lines().any(|line| line.contains("not rebuilt: ") && line.contains(lost)), "{said:?}");
    assert!(!said.out.contains("All is well"), "{said:?}");
}

#[test]
fn doctor_does_not_call_it_well_where_nobody_can_be_asked() {
    let place = Place::new();
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(0), "nothing is broken: {said:?}");
    assert!(said.out.contains("nobody to ask") && said.out.contains("cyberine init"), "{said:?}");
    assert!(!said.out.contains("All is well"), "{said:?}");
    place.run(&["orchestrate", "x"]).refused(69, &["cyberine init"]);
}

#[test]
fn doctor_does_not_call_it_well_where_it_has_found_something() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    place.run(&["orchestrate", "x", "--project", "../elsewhere", "--json"]);
    assert!(place.run(&["doctor"]).out.contains("All is well"));
    std::fs::remove_dir_all(place.path("elsewhere")).unwrap();
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(0), "nothing of the record is broken: {said:?}");
    assert!(said.out.contains("finding   ") && !said.out.contains("All is well"), "{said:?}");
}

#[test]
fn doctor_counts_no_runs_where_the_database_is_lost() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
    assert!(place.run(&["doctor"]).out.contains("runs      1 in the database"));
    place.lose_database();
    let said = place.run(&["doctor"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("in the database"), "{said:?}");
    assert!(said.out.contains("--rebuild"), "{said:?}");
}

#[test]
fn doctor_names_every_missing_key_and_program() {
    let keyed = |name: &str, key: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nbase_url = \"https://127.0.0.1:1/v1\"\nmodel = \"m\"\napi_key_env = \"{key}\"\n"
        )
    };
    let agent = "[providers.mine]\nkind = \"command\"\ncommand = [\"my-agent\"]\n";
    let place = Place::with(&format!("{}{}{agent}", keyed("a", "KEY_ONE"), keyed("b", "KEY_TWO")));
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(78), "{said:?}");
    for named in ["`KEY_ONE`", "`KEY_TWO`", "program `my-agent` of provider `mine` is not on the PATH"] {
        let lines = said.out.lines().filter(|line| line.starts_with("problem ") && line.contains(named));
        assert_eq!(lines.count(), 1, "{named}: {said:?}");
    }
}

#[test]
fn an_editor_finds_the_schema_beside_what_init_writes() {
    let place = Place::new();
    let printed = place.run(&["schema"]);
    assert_eq!((printed.code, &printed.json()["title"]), (Some(0), &json!("Cyberine configuration")));
    for (arguments, config, schema) in [
        (&["init"][..], place.project().join("cyberine.toml"), ".local/cyberine.schema.json"),
        (&["init", "--home"], place.home().join("config.toml"), "cyberine.schema.json"),
    ] {
        assert_eq!(place.run(arguments).code, Some(0));
        let text = std::fs::read_to_string(&config).unwrap();
        assert_eq!(text.lines().next(), Some(format!("#:schema ./{schema}").as_str()), "{text}");
        let beside = config.parent().unwrap().join(schema);
        assert_eq!(std::fs::read_to_string(beside).unwrap(), printed.out);
    }
    assert_eq!(std::fs::read_to_string(place.project().join(".local/.gitignore")).unwrap(), "*\n");
    assert_eq!(place.run(&["doctor"]).code, Some(0));
    // Without the schema a configuration is written all the same.
    let place = Place::new();
    std::os::unix::fs::symlink("/tmp", place.project().join(".local")).unwrap();
    let said = place.run(&["init"]);
    assert!(said.code == Some(0) && said.err.contains("no schema"), "{said:?}");
    let text = std::fs::read_to_string(place.project().join("cyberine.toml")).unwrap();
    assert!(!text.contains("#:schema"), "{text}");
}
