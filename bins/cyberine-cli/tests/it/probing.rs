//! `cyberine doctor providers`: what is there, before and after it is asked.

use cyberine_scripted_llm::{Script, ScriptedServer};
use cyberine_testkit::is_gone;
use serde_json::{Value, json};

use crate::place::{Place, Said, Started, shell, wait_until, write_private};

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

#[test]
fn a_configuration_that_is_not_trusted_is_said_to_be_so_and_hides_nobody() {
    let place = Place::new();
    write_private(&place.project().join("cyberine.toml"), &shell("a", "cat > /dev/null; echo x"));
    for arguments in
        [&["doctor", "providers"][..], &["doctor", "providers", "--spend"], &["spend", "--prices"]]
    {
        place.run(arguments).refused(77, &["is not trusted", "`cyberine trust`"]);
    }
    let said = place.run(&["doctor", "providers", "--json"]).json();
    assert!(said["error"].as_str().unwrap().contains("cyberine trust"), "{said}");
    assert_eq!(place.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(place.run(&["doctor", "providers"]).code, Some(0));
}

#[test]
fn a_file_that_switches_nobody_on_is_named_and_not_made_anew() {
    let place = Place::new();
    assert_eq!(place.run(&["init"]).code, Some(0));
    let file = place.project().join("cyberine.toml").display().to_string();
    for arguments in [&["orchestrate", "x"][..], &["doctor", "providers"], &["spend", "--prices"]] {
        let said = place.run(arguments);
        said.refused(69, &[&file, "[providers.NAME]"]);
    }
    let doctor = place.run(&["doctor"]);
    assert!(
        doctor.out.contains("nobody to ask: name a provider in") && doctor.out.contains(&file),
        "{doctor:?}"
    );
    place.run(&["init"]).refused(78, &[&file, "edit it", "--force"]);
}

#[test]
fn a_model_that_is_not_there_is_told_with_those_that_are() {
    let server = ScriptedServer::start(Script::parse("models = ['scripted/here']").unwrap()).unwrap();
    let place = Place::with(&format!(
        "[providers.chat]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"no-such\"\n",
        server.base_url()
    ));
    let said = place.run(&["doctor", "providers"]);
    assert_eq!(said.code, Some(69), "{said:?}");
    let lists =
        format!("`no-such` is not among those that `{}/v1/models` lists: scripted/here", server.base_url());
    assert!(said.out.contains(&lists), "{said:?}");
}

#[test]
fn a_program_whose_line_was_tried_says_its_version_and_what_that_means() {
    let place = Place::new();
    for (version, words, coverage) in [
        ("1.18.33", "version 1.18.33: tried with this version", "recorded"),
        ("1.18.40", "version 1.18.40: later than 1.18.33", "believed"),
        ("2.0.0", "version 2.0.0: not tried with this version", "untried"),
    ] {
        let program = place.path("opencode");
        std::fs::write(&program, format!("#!/bin/sh\n[ \"$1\" = --version ] && echo {version}\n")).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        place.configure(&format!(
            "[providers.o]\nkind = \"acp\"\ncommand = [\"{}\", \"acp\"]\n",
            program.display()
        ));
        let said = place.run(&["doctor", "providers"]);
        assert!(said.out.contains(words), "{words}: {said:?}");
        assert_eq!(row(&place.run(&["doctor", "providers", "--json"]).json(), "o")["coverage"], coverage);
    }
}

#[test]
fn whoever_interrupts_a_look_ends_the_programs_that_are_looked_at() {
    let place = Place::new();
    let (program, begun) = (place.path("opencode"), place.path("begun"));
    let script =
        format!("#!/bin/sh\nsleep 600 &\necho $$ $! > {0}.new\nmv {0}.new {0}\nwait\n", begun.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.configure(&format!(
        "[providers.o]\nkind = \"acp\"\ncommand = [\"{}\", \"acp\"]\n",
        program.display()
    ));
    for (arguments, end) in [
        (&["doctor", "providers"][..], Started::interrupt as fn(Started) -> Said),
        (&["doctor", "providers", "--spend"], Started::interrupt),
        (&["doctor", "providers", "--spend"], Started::terminate),
    ] {
        let looking = place.start(arguments);
        wait_until("the program is looked at", || begun.exists());
        let said = end(looking);
        assert_eq!((said.code, said.out.as_str()), (Some(130), ""), "{arguments:?}: {said:?}");
        let pids = std::fs::read_to_string(&begun).unwrap();
        let gone = |pid: &str| is_gone(pid.parse().unwrap());
        wait_until("the programs are gone", || pids.split_whitespace().all(gone));
        std::fs::remove_file(&begun).unwrap();
    }
    assert_eq!(place.run(&["runs", "--json"]).json()["runs"], json!([]), "nobody was asked");
}

#[test]
fn whoever_interrupts_a_question_stops_its_run() {
    let place = Place::new();
    let begun = place.path("begun");
    place.configure(&shell("a", &format!("cat > /dev/null; echo $$ > {0}; exec sleep 600", begun.display())));
    for end in [Started::interrupt as fn(Started) -> Said, Started::terminate] {
        let asking = place.start(&["doctor", "providers", "--spend", "--json"]);
        let pid = || std::fs::read_to_string(&begun).ok().filter(|pid| pid.ends_with('\n'));
        wait_until("the program is asked", || pid().is_some());
        let said = end(asking);
        assert_eq!(said.code, Some(1), "{said:?}");
        let run = place.run(&["inspect", said.json()["runId"].as_str().unwrap(), "--json"]).json();
        assert_eq!(run["state"], "cancelled", "{run}");
        assert!(is_gone(pid().unwrap().trim().parse().unwrap()));
        std::fs::remove_file(&begun).unwrap();
    }
}

#[test]
fn a_wait_for_a_provider_is_told_by_everything_that_shows_the_run() {
    let script = "[[rule]]\nfault = { status = { code = 429, retry_after = \"50\" } }\n";
    let server = ScriptedServer::start(Script::parse(script).unwrap()).unwrap();
    let place = Place::with(&format!(
        "[providers.chat]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n",
        server.base_url()
    ));
    let mut asking = place.start(&["orchestrate", "x"]);
    let run = asking.line_with(&["run "]).trim_start_matches("run ").to_owned();
    let told = asking.line_with(&["chat: waits until "]);
    assert!(told.contains("limits the rate of requests") && told.contains("Z ("), "{told}");
    for arguments in [&["inspect", &run][..], &["team", "--runs"]] {
        let said = place.run(arguments);
        assert!(said.out.contains("chat waits until "), "{arguments:?}: {said:?}");
    }
    let mut watching = place.start(&["watch", &run]);
    watching.line_with(&["chat waits until ", "limits the rate"]);
    let looked = place.run(&["doctor", "providers"]);
    assert!(looked.out.contains("its account is closed until ") && looked.out.contains("429"), "{looked:?}");
    assert_eq!(place.run(&["cancel", &run]).code, Some(0));
    assert_eq!(asking.end().code, Some(1));
    assert_eq!(watching.end().code, Some(1));
}
