//! Judges from the command line: those that are examined, and those that run programs.

use cyberine_orchestrator::{Group, cases};
use cyberine_scripted_llm::{Script, ScriptedServer};
use serde_json::{Value, json};

use crate::place::{Place, shell, wait_until};

#[test]
fn a_selftest_that_is_told_to_end_stops_its_question_and_says_nothing_of_the_judge() {
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::with(&shell("slow", "cat > /dev/null; setsid sleep 600 & sleep 600"));
    for signal in ["-INT", "-TERM", "cancel"] {
        let mut child = place.command(&["judge", "selftest", "--json", "--cases", "1"]);
        let child =
            child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let running = || {
            let listed = place.run(&["runs", "--json", "judge selftest"]).json();
            let runs = listed["runs"].as_array().unwrap().clone();
            runs.into_iter()
                .find(|run| run["state"] == "running")
                .map(|run| run["runId"].as_str().unwrap().to_owned())
        };
        let mut id = None;
        wait_until("a question is asked", || {
            id = running();
            id.as_ref().is_some_and(|id| cyberine_process::find_marked(id).len() >= 2)
        });
        let id = id.unwrap();
        if signal == "cancel" {
            assert_eq!(place.run(&["cancel", &id]).code, Some(0));
        } else {
            let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(killed.unwrap().success());
        }
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), None);
        assert_eq!(ended.status.code(), Some(if signal == "cancel" { 1 } else { 130 }), "{signal}");
        let said: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let judge = &said["judges"][0];
        assert_eq!((&judge["fit"], &judge["quality"]["failed"]), (&Value::Null, &json!(0)), "{said}");
        assert!(cyberine_process::find_marked(&id).is_empty(), "{signal}");
        assert_eq!(place.run(&["inspect", &id, "--json"]).json()["state"], "cancelled");
    }
}

/// A rule for every case: `model` judges as `kind`, and knows the good answer by its text.
fn rules(model: &str, kind: &str) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let mut rules = String::new();
    for case in cases(usize::MAX) {
        let (task, good) = (text(case.task), text(&case.good));
        rules.push_str(&format!(
            "[[rule]]\nwhen = {{ model = \"{model}\", judging = true, user_contains = {task} }}\njudge = \"{kind}\"\nmarker = {good}\n"
        ));
        if case.group == Group::Own {
            rules.push_str(&format!(
                "[[rule]]\nwhen = {{ model = \"{model}\", judging = false, user_contains = {task} }}\ntext = \"In words of my own.\"\n"
            ));
        }
    }
    rules
}

fn provider(server: &ScriptedServer, name: &str) -> String {
    format!(
        "[providers.{name}]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"scripted/{name}\"\n",
        server.base_url()
    )
}

#[test]
fn a_selftest_tells_a_fair_judge_from_biased_and_injectable_ones() {
    let judges =
        [("fair", "fair"), ("first", "first"), ("last", "last"), ("led", "injectable"), ("prose", "prose")];
    let script: String = judges.iter().map(|(model, kind)| rules(model, kind)).collect();
    let server = ScriptedServer::start(Script::parse(&script).unwrap()).unwrap();
    let config: String = judges.iter().map(|(name, _)| provider(&server, name)).collect();
    let place = Place::with(&config);

    let said = place.run(&["judge", "selftest", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("38 cases for each judge, 44 to 227 questions in all for each:"), "{said:?}");
    let report = said.json();
    let of =
        |name: &str| report["judges"].as_array().unwrap().iter().find(|one| one["judge"] == name).unwrap();
    for (name, fit, flips, wrong) in
        [("fair", true, 0, 0), ("first", false, 31, 0), ("last", false, 31, 0), ("led", false, 0, 16)]
    {
        let judge = of(name);
        assert_eq!((&judge["fit"], &judge["flips"]["count"]), (&json!(fit), &json!(flips)), "{judge}");
        assert_eq!(judge["decidedWrongly"], json!({ "count": wrong, "of": 28 }), "{judge}");
    }
    assert_eq!((&of("fair")["quality"]["right"], &of("fair")["injection"]["right"]), (&json!(8), &json!(16)));
    assert_eq!(
        (&of("led")["injection"]["misledAtFirst"], &of("led")["injection"]["wrong"]),
        (&json!(16), &json!(16))
    );
    assert_eq!(of("prose")["faults"][0], "no verdict that holds in 31 of 31 cases");

    let said = place.run(&["judge", "selftest", "--judge", "fair", "--cases", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.contains(
            "judge  quality  flips   injected  length  own     same    critic  decided wrongly  fit"
        ),
        "{said:?}"
    );
    assert!(said.out.contains("fair   2 of 2   0 of"), "{said:?}");
    let listed = place.run(&["runs", "--json", "judge selftest"]).json();
    let runs: Vec<_> = listed["runs"].as_array().unwrap().iter().map(|run| run["state"].clone()).collect();
    assert_eq!(runs, [json!("done"), json!("done")]);
    place.run(&["judge", "selftest", "--judge", "nobody"]).refused(78, &["`nobody`"]);
}

#[test]
fn a_selftest_that_may_cost_asks_before_it_starts_and_ends_where_its_money_does() {
    let server = ScriptedServer::start(Script::parse(&rules("fair", "fair")).unwrap()).unwrap();
    let metered = "billing = \"metered\"\nmax_tokens = 100\nprices = { input_usd_per_mtok = 0, output_usd_per_mtok = 1000 }\n";
    let place = Place::with(&format!("{}{metered}[budget]\nrun_usd = 0.25\n", provider(&server, "fair")));
    let said = place.run(&["judge", "selftest"]);
    said.refused(77, &["at most $22.70", "$0.25 are held for it", "cyberine judge selftest --yes"]);
    assert_eq!(server.state().seen, 0, "nobody was asked");
    let said = place.run(&["judge", "selftest", "--yes", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let report = said.json();
    assert!(report["stopped"].as_str().unwrap().contains("the next request can cost $0.10"), "{report}");
    let spent = place.run(&["inspect", report["runId"].as_str().unwrap(), "--json"]).json();
    let usd = spent["usage"]["usd"].as_f64().unwrap();
    assert!(usd > 0.1 && usd <= 0.25, "{spent}");
}

const CHECKED: &str = "[orchestrate]\njudges = [\"consensus\", \"command\"]\n[orchestrate.judge_command]\n";

#[test]
fn a_program_decides_by_its_exit_code() {
    let answers = [
        shell("a", "cat > /dev/null; printf 'Take\\n```\\n41\\n```\\n'"),
        shell("b", "cat > /dev/null; printf 'Take\\n```\\n42\\n```\\n'"),
    ];
    let checked =
        "command = [\"grep\", \"-qx\", \"42\", \"given.txt\"]\nfile = \"given.txt\"\nextract = \"code\"\n";
    let place = Place::with(&[&answers.concat(), CHECKED, checked].concat());
    let said = place.run(&["orchestrate", "six times seven?", "--json"]);
    let verdict = said.json()["steps"][0]["verdict"].clone();
    assert_eq!((&verdict["kind"], &verdict["winner"]), (&json!("command"), &json!("b")), "{verdict}");
    assert_eq!(verdict["votes"][0]["reason"], "exit 1");
}

#[test]
fn a_program_that_tries_an_answer_dies_with_its_run() {
    let answers = [shell("a", "cat > /dev/null; echo one"), shell("b", "cat > /dev/null; echo two")];
    let hangs = "command = [\"sh\", \"-c\", \"setsid sleep 600 & sleep 600\"]\n";
    let place = Place::with(&[&answers.concat(), CHECKED, hangs].concat());
    let id =
        place.run(&["orchestrate", "x", "--no-wait", "--json"]).json()["runId"].as_str().unwrap().to_owned();
    let marked = || cyberine_process::find_marked(&id);
    wait_until("an answer is tried", || {
        let run = place.run(&["inspect", &id, "--json"]).json();
        let candidates = run["steps"][0]["candidates"].as_array().cloned().unwrap_or_default();
        candidates.len() == 2 && candidates.iter().all(|one| one["state"] == "done") && marked().len() >= 2
    });
    let said = place.run(&["cancel", &id]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let ended = place.run(&["inspect", &id, "--wait", "--json"]).json();
    assert_eq!(ended["state"], "cancelled");
    wait_until("nothing is left", || marked().is_empty());
}

#[test]
fn critics_rule_an_answer_out_and_a_model_finds_two_the_same_over_a_real_wire() {
    let script = "[[rule]]\nwhen = { model = \"critic\", judging = true }\njudge = \"fair\"\nmarker = \"to the north\"\n";
    let server = ScriptedServer::start(Script::parse(script).unwrap()).unwrap();
    let says = |name: &str, text: &str| shell(name, &format!("cat > /dev/null; echo '{text}'"));
    let judging = |more: &str| {
        let first = "[orchestrate]\ncandidates = [\"a\", \"b\", \"c\"]\njudge_providers = [\"critic\"]\n";
        let answers = [says("a", "go to the north"), says("b", "go south"), says("c", "to the north it is")];
        Place::with(&[&answers.concat(), &provider(&server, "critic"), first, more].concat())
    };
    let ended = judging("equivalence = true\n").run(&["orchestrate", "whither?", "--json"]).json();
    let verdict = &ended["steps"][0]["verdict"];
    assert_eq!(
        (&verdict["kind"], &verdict["outcome"]),
        (&json!("consensus"), &json!("majority")),
        "{verdict}"
    );
    assert_eq!(verdict["winner"], "a", "the first of the two: {verdict}");

    let place = judging("judges = [\"adversarial\"]\nrubric_text = \"Only the direction counts.\"\n");
    let ended = place.run(&["orchestrate", "whither?", "--json"]).json();
    let verdict = &ended["steps"][0]["verdict"];
    // Two survive, and the judge prefers neither.
    assert_eq!((&verdict["kind"], &verdict["outcome"]), (&json!("adversarial"), &json!("tie")), "{verdict}");
    let attack = &verdict["attacks"][0];
    assert_eq!((&attack["candidate"], &attack["confirmed"]), (&json!("b"), &json!(true)), "{verdict}");
    let shown = place.run(&["inspect", ended["runId"].as_str().unwrap()]);
    assert!(shown.out.contains("critic against b (fatal, confirmed): scripted reply"), "{shown:?}");
}

/// Scores what holds `sound` with 8 and 0, and everything else with 4 and 9.
const BY_CRITERIA: &str = r#"awk '/begin candidate [AB]\]$/ { at = $4; sub(/\]/, "", at); want = 1; next }
want { of[at] = ($0 ~ /sound/) ? "8,\"clarity\":0" : "4,\"clarity\":9"; want = 0 }
END { printf "{\"scores\":["; for (i = 1; i <= 2; i++) { at = substr("AB", i, 1)
printf "%s{\"label\":\"%s\",\"criteria\":{\"correctness\":%s},\"reason\":\"read\"}", (i > 1 ? "," : ""), at, of[at] }
print "],\"rationale\":\"weighed\"}" }'"#;

#[test]
fn criteria_are_scored_one_by_one_added_up_here_and_shown() {
    let place = Place::new();
    let criteria = "[[criteria]]\nname = \"correctness\"\nweight = 3\n[[criteria]]\nname = \"clarity\"\n";
    let judge = toml::Value::String(BY_CRITERIA.to_owned());
    place.configure(&format!(
        "{}{}[providers.j]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {judge}]\n\
         [orchestrate]\ncandidates = [\"a\", \"b\"]\njudge_providers = [\"j\"]\njudges = [\"llm-judge\"]\nrubric = \"rubric.toml\"\n",
        shell("a", "cat > /dev/null; echo sound"),
        shell("b", "cat > /dev/null; echo smooth")
    ));
    cyberine_testkit::write_private(&place.home().join("rubric.toml"), criteria);
    let ended = place.run(&["orchestrate", "which?", "--json"]).json();
    let verdict = &ended["steps"][0]["verdict"];
    assert_eq!((&verdict["winner"], &verdict["outcome"]), (&json!("a"), &json!("winner")), "{verdict}");
    let votes = verdict["votes"].as_array().unwrap();
    let of = |id: &str| {
        let scored = |vote: &&Value| vote["candidate"] == id && vote.get("criteria").is_some();
        votes.iter().filter(scored).cloned().collect::<Vec<_>>()
    };
    let score =
        |name: &str, weight: u32, score: f64| json!({ "name": name, "weight": weight, "score": score });
    for (id, total, correctness, clarity) in [("a", 6.0, 8.0, 0.0), ("b", 5.25, 4.0, 9.0)] {
        let votes = of(id);
        assert_eq!(votes.len(), 2, "one for each order: {verdict}");
        for vote in votes {
            assert_eq!(vote["score"], json!(total), "{vote}");
            assert_eq!(
                vote["criteria"],
                json!([score("correctness", 3, correctness), score("clarity", 1, clarity)])
            );
        }
    }
    let shown = place.run(&["inspect", ended["runId"].as_str().unwrap()]);
    assert!(shown.out.contains("(score) → a (6 = correctness 8 ×3, clarity 0 ×1): read"), "{shown:?}");
}

#[test]
fn why_a_judge_could_not_judge_is_shown_to_people() {
    let answers = [shell("a", "cat > /dev/null; echo one"), shell("b", "cat > /dev/null; echo two")];
    let missing = "[orchestrate]\njudges = [\"command\", \"consensus\"]\n\
        [orchestrate.judge_command]\ncommand = [\"no-such-program\"]\n";
    let place = Place::with(&[&answers.concat(), missing].concat());
    let said = place.run(&["orchestrate", "x"]);
    let run = place.run(&["runs", "--json"]).json()["runs"][0]["runId"].as_str().unwrap().to_owned();
    let whole = place.run(&["inspect", &run, "--json"]).json();
    let step = &whole["steps"][0];
    let of_command =
        step["verdicts"].as_array().unwrap().iter().find(|one| one["kind"] == "command").unwrap();
    assert_eq!((&of_command["outcome"], &step["verdict"]["kind"]), (&json!("unjudged"), &json!("consensus")));
    let why = format!("command: unjudged: {}", &of_command["rationale"].as_str().unwrap()[..20]);
    assert!(said.out.contains(&why), "told while it runs: {said:?}");
    let shown = place.run(&["inspect", &run]).out;
    let (_, others) = shown.split_once("Other verdicts\n").unwrap();
    assert!(others.trim_start().starts_with(&why), "{shown}");
}
