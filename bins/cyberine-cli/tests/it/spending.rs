//! What was spent, what is left, and what a run would cost.

use std::process::{Child, Stdio};

use cyberine_scripted_llm::{Script, ScriptedServer};
use cyberine_testkit::gated;
use serde_json::{Value, json};

use crate::place::{Place, Said, shell, wait_until, write_private};

/// A program that is paid for and says nothing of its cost.
fn paid(name: &str) -> String {
    format!("{}billing = \"metered\"\n", shell(name, "cat > /dev/null; echo 'Final answer: 42'"))
}

/// A service that is never reached, with prices: a cent a token of at most ten.
const PRICED: &str = "[providers.priced]\nkind = \"openai\"\nbase_url = \"https://h.invalid/v1\"\nmodel = \"m\"\nmax_tokens = 10\nprices = { input_usd_per_mtok = 0, output_usd_per_mtok = 10000 }\n";

fn line<'a>(account: &'a Value, list: &str, key: &str, name: &str) -> &'a Value {
    let lines = account["days"][0][list].as_array().unwrap();
    lines.iter().find(|one| one[key] == name).unwrap()
}

#[test]
fn a_run_of_unknown_cost_is_charged_at_its_share_and_told_by_provider_and_caller() {
    let budget =
        "[budget]\ndaily_usd = 2\nrun_usd = 0.5\n[budget.providers]\npaid = 0.8\n[budget.callers]\ncli = 1\n";
    let free = shell("free", "cat > /dev/null; echo 'Final answer: 42'");
    let place = Place::with(&[budget, &paid("paid"), &free].concat());
    assert_eq!(place.run(&["orchestrate", "--json", "x"]).code, Some(0));
    let account = place.run(&["spend", "--json"]).json();
    let paid = line(&account, "providers", "provider", "paid");
    assert_eq!(
        (&paid["spentUsd"], &paid["heldUsd"], &paid["unknownCost"]),
        (&json!(0.5), &json!(0.0), &json!(1))
    );
    let free = line(&account, "providers", "provider", "free");
    assert_eq!(
        (&free["billing"], &free["spentUsd"], &free["turns"]),
        (&json!("free"), &json!(0.0), &json!(1))
    );
    assert_eq!(line(&account, "callers", "caller", "cli")["spentUsd"], 0.5);
    let left: Vec<&Value> = account["caps"].as_array().unwrap().iter().map(|cap| &cap["leftUsd"]).collect();
    assert_eq!(left, [&json!(1.5), &json!(0.3), &json!(0.5)]);
    let text = place.run(&["spend"]).out;
    for words in [
        "$0.50 spent",
        "1 run",
        "$1.50 left of $2.00",
        "by the token",
        "$0.30 left of $0.80",
        "free",
        "nobody knows what they cost",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Less is left than the run would hold; the whole of the cap would do, and is not there.
    let refused = place.run(&["orchestrate", "x"]);
    refused
        .refused(75, &["the daily cap of $0.80 on the provider `paid`", "$0.50 spent", "[budget.providers]"]);
    let forecast = place.run(&["orchestrate", "--dry-run", "--json", "x"]);
    assert_eq!(forecast.code, Some(75), "as the run itself would end");
    let forecast = forecast.json();
    assert!(forecast["refusal"].as_str().unwrap().contains("the provider `paid`"), "{forecast}");
    assert_eq!(place.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_dry_run_asks_nobody_and_tells_who_would_be_asked_and_what_it_may_cost() {
    let touch = shell("told", "touch asked; echo x");
    let place = Place::with(&[PRICED, &touch, "[budget]\ndaily_usd = 3\n"].concat());
    let forecast = place.run(&["orchestrate", "--dry-run", "--json", "what?"]).json();
    assert_eq!(forecast["candidates"], json!(["priced", "told"]));
    // One answer, and up to six replies as a judge, of ten cents each.
    assert_eq!((&forecast["atMostUsd"], &forecast["complete"]), (&json!(0.7), &json!(true)));
    assert_eq!((&forecast["holdsUsd"], &forecast["caps"][0]["leftUsd"]), (&json!(0.7), &json!(3.0)));
    let said = place.run(&["orchestrate", "--dry-run", "what?"]);
    assert!(said.out.contains("at most $0.70") && said.err.contains("nothing was dispatched"), "{said:?}");
    assert_eq!(place.run(&["runs", "--json"]).json()["runs"], json!([]));
    assert!(!place.project().join("asked").exists());
}

#[test]
fn a_price_is_told_with_the_table_it_is_from() {
    let claude = "[providers.c]\nkind = \"anthropic\"\nmodel = \"claude-haiku-4-5\"\napi_key_env = \"K\"\n";
    let unknown = "[providers.u]\nkind = \"openai\"\nbase_url = \"https://h.invalid/v1\"\nmodel = \"x\"\n";
    let place = Place::with(&[PRICED, claude, unknown].concat());
    let of = |name: &str| {
        let told = place.run(&["spend", "--prices", "--json"]).json();
        told["prices"].as_array().unwrap().iter().find(|one| one["provider"] == name).unwrap().clone()
    };
    assert_eq!((&of("priced")["table"], &of("c")["table"]), (&json!("provider"), &json!("built in")));
    assert_eq!(of("u").get("table"), None);
    let own = "[[model]]\nnames = [\"x\"]\ndate = \"2026-11-30\"\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 2\n";
    write_private(&place.home().join("prices.toml"), own);
    assert!(of("u")["table"].as_str().unwrap().ends_with("prices.toml"), "{}", of("u"));
    let text = place.run(&["spend", "--prices"]).out;
    for words in [
        "the table that is built in, as of 2026-10-24: https://platform.claude.com",
        "prices.toml, as of 2026-11-30",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    write_private(&place.home().join("prices.toml"), &own.replace("names", "nmaes"));
    place.run(&["spend", "--prices"]).refused(78, &["prices.toml:2:1", "did you mean `names`?"]);
    place.run(&["orchestrate", "x"]).refused(78, &["prices.toml:2:1"]);
}

#[test]
fn of_16_dispatches_at_once_the_caps_let_four_start_at_most_and_nothing_stays_held_when_some_are_killed() {
    let place = Place::new();
    let gate = place.path("gate");
    let budget = "[budget]\nrun_usd = 0.25\n[budget.providers]\nslow = 1\n[budget.callers]\ncli = 1.1\n";
    let slow = format!("{}billing = \"metered\"\n", gated("slow", &gate, "42"));
    place.configure(&[budget, &slow].concat());
    let mut started: Vec<Child> = (0..16)
        .map(|_| {
            let mut command = place.command(&["orchestrate", "--no-wait", "--json", "x"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Some who ask are killed while they do: their runs go on, or were never there.
    for one in started.drain(..3) {
        kill(&one);
    }
    let said: Vec<Said> = started.into_iter().map(|one| one.wait_with_output().unwrap().into()).collect();
    for one in said.iter().filter(|one| one.code != Some(0)) {
        one.refused(75, &["leaves no room"]);
    }
    let standing = |money: &str| -> Vec<f64> {
        let account = place.run(&["spend", "--json"]).json();
        account["caps"].as_array().unwrap().iter().map(|cap| cap[money].as_f64().unwrap()).collect()
    };
    // Who was killed between the admission and the start of its runner leaves a dead run.
    let runs = place.run(&["runs", "--json"]).json();
    let live = runs["runs"].as_array().unwrap().iter().filter(|run| run["state"] != "error");
    let ids: Vec<&str> = live.map(|run| run["runId"].as_str().unwrap()).collect();
    let held: f64 = ids.iter().map(|_| 0.25).sum();
    assert_eq!(standing("heldUsd"), [held, held]);
    assert!((2..=4).contains(&ids.len()) && said.iter().any(|one| one.code == Some(75)), "{said:?}");
    // One runner is killed, one run is cancelled, two come to their end.
    wait_until("the run has begun", || {
        place.run(&["inspect", ids[0], "--json"]).json()["steps"][0]["candidates"][0]["state"] == "running"
    });
    let engine = place.run(&["inspect", ids[0], "--json"]).json()["enginePid"].as_i64().unwrap();
    let engine = rustix::process::Pid::from_raw(i32::try_from(engine).unwrap()).unwrap();
    rustix::process::kill_process(engine, rustix::process::Signal::KILL).unwrap();
    assert_eq!(place.run(&["cancel", ids[1]]).code, Some(0));
    wait_until("it is cancelled", || {
        place.run(&["inspect", ids[1], "--json"]).json()["state"] == "cancelled"
    });
    std::fs::write(&gate, "").unwrap();
    wait_until("nothing is held", || standing("heldUsd") == [0.0, 0.0]);
    assert!(standing("spentUsd").iter().all(|spent| *spent <= 1.0), "{:?}", standing("spentUsd"));
    let states: Vec<Value> =
        ids.iter().map(|id| place.run(&["inspect", id, "--json"]).json()["state"].clone()).collect();
    assert_eq!((&states[0], &states[1]), (&json!("error"), &json!("cancelled")));
}

fn kill(one: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(one.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_run_is_charged_by_the_homes_table_as_it_was_at_dispatch_and_stops_itself_before_a_judge_it_cannot_pay() {
    let text = |word: &str| (1..=60).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join(" ");
    let rule =
        |model: &str| format!("[[rule]]\nwhen = {{ model = \"m-{model}\" }}\ntext = \"{}\"\n", text(model));
    let server = ScriptedServer::start(Script::parse(&[rule("a"), rule("b")].concat()).unwrap()).unwrap();
    let provider = |name: &str| {
        let url = server.base_url();
        format!(
            "[providers.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m-{name}\"\nbilling = \"metered\"\nmax_tokens = 100\n"
        )
    };
    // A tenth of a cent a token of at most 100, which is what an answer can cost; both are asked at once.
    let place = Place::with(&[&provider("a"), &provider("b"), "[budget]\nrun_usd = 0.21\n"].concat());
    let prices = |output: u32| {
        format!(
            "[[model]]\nnames = [\"m-*\"]\ndate = \"2026-11-30\"\ninput_usd_per_mtok = 0\noutput_usd_per_mtok = {output}\n"
        )
    };
    write_private(&place.home().join("prices.toml"), &prices(1_000));
    let forecast = place.run(&["orchestrate", "--dry-run", "--json", "x"]).json();
    assert_eq!((&forecast["atMostUsd"], &forecast["holdsUsd"]), (&json!(1.4), &json!(0.21)));
    let ended = place.run(&["orchestrate", "--json", "x"]).json();
    let candidates = ended["steps"][0]["candidates"].as_array().unwrap();
    for one in candidates {
        assert_eq!((&one["state"], &one["usd"]), (&json!("done"), &json!(0.06)), "{ended}");
    }
    // Nine cents are left, and a judge may cost ten.
    let verdict = &ended["steps"][0]["verdict"];
    assert_eq!((&verdict["outcome"], server.state().seen), (&json!("unjudged"), 2), "{ended}");
    let rationale = verdict["rationale"].as_str().unwrap();
    assert!(rationale.contains("$0.09 of the $0.21 that this run holds are left"), "{rationale}");
    let account = place.run(&["spend", "--json"]).json();
    assert_eq!(
        (&account["days"][0]["spentUsd"], &account["days"][0]["heldUsd"]),
        (&json!(0.12), &json!(0.0))
    );
    assert_eq!(line(&account, "providers", "provider", "a")["unknownCost"], 0);
}

#[test]
fn a_dry_run_needs_no_keys_and_names_all_that_a_run_would_miss() {
    let keyed = |name: &str, variable: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nbase_url = \"https://h.invalid/v1\"\nmodel = \"m\"\napi_key_env = \"{variable}\"\n"
        )
    };
    let place = Place::with(&[keyed("a", "NO_SUCH_KEY"), keyed("b", "NONE_EITHER")].concat());
    place.run(&["orchestrate", "x"]).refused(78, &["`NO_SUCH_KEY`", "`NONE_EITHER`"]);
    let forecast = place.run(&["orchestrate", "--dry-run", "--json", "x"]);
    assert_eq!(forecast.code, Some(78), "{forecast:?}");
    let forecast = forecast.json();
    assert_eq!(forecast["candidates"], json!(["a", "b"]));
    let refusal = forecast["refusal"].as_str().unwrap();
    assert!(refusal.contains("`NO_SUCH_KEY`") && refusal.contains("`NONE_EITHER`"), "{refusal}");
}
