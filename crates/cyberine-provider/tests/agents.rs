//! Claude Code, Codex, agents of the Agent Client Protocol and aider as scripts play them: the contract suite and what a stream in a file cannot
//! show. This binary is its own scripted program, so that no other has to be built beside it; the
//! real programs are driven elsewhere.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]
#![expect(clippy::print_stdout, reason = "it says what a test harness says")]

#[path = "it/support.rs"]
#[expect(dead_code, reason = "the other tests of this crate need more of it")]
mod support;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cyberine_process::find_marked;
use cyberine_provider::contract::{Fixture, Scenario, check};
use cyberine_provider::{Limits, Provider, Turn, TurnError, TurnEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, Taken, block_on, provider, take, take_with, turn};

const CASES: &[(&str, fn())] = &[
    ("claude_keeps_the_contract", claude_keeps_the_contract),
    ("codex_keeps_the_contract", codex_keeps_the_contract),
    ("codex_keeps_the_contract_in_a_dialogue", codex_keeps_the_contract_in_a_dialogue),
    ("an_agent_keeps_the_contract", an_agent_keeps_the_contract),
    ("one_shots_keep_the_contract", one_shots_keep_the_contract),
    ("aider_keeps_the_contract", aider_keeps_the_contract),
    ("a_question_of_the_program_is_answered", a_question_of_the_program_is_answered),
    ("a_turn_that_is_stopped_says_what_it_used", a_turn_that_is_stopped_says_what_it_used),
    ("a_dialogue_is_stopped_in_its_own_words", a_dialogue_is_stopped_in_its_own_words),
    ("what_left_the_session_is_found", what_left_the_session_is_found),
    ("a_crash_is_told_without_the_key", a_crash_is_told_without_the_key),
    ("a_key_that_is_repeated_is_taken_out", a_key_that_is_repeated_is_taken_out),
    ("a_turn_counts_although_its_program_hangs", a_turn_counts_although_its_program_hangs),
];

/// The first arguments under which this is the program.
const PROGRAM: &[&str] = &["-p", "exec", "app-server", "escape", "acp", "gemini", "opencode"];
/// The one under which it is aider, whose name is not among its arguments.
const AIDER: &str = "--chat-mode=ask";

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|first| PROGRAM.iter().any(|program| first == program)) {
        return cyberine_scripted_llm::run(args);
    }
    if args.first().is_some_and(|first| first == AIDER) {
        return cyberine_scripted_llm::run([OsString::from("aider")].into_iter().chain(args));
    }
    if args.iter().any(|arg| arg == "--list") {
        CASES.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = args.iter().filter_map(|arg| arg.to_str().map(str::to_owned)).collect();
    let wanted: Vec<&String> = wanted.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, case) in CASES {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            case();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// Stands for the kind `codex-cli` in that form.
const APP_SERVER: &str = "app-server";

/// A provider of `kind` whose program answers as `rules` say.
fn scripted(home: &Path, kind: &str, model: &str, rules: &str) -> Value {
    let script = home.join("script.toml");
    std::fs::write(&script, rules).unwrap();
    let program = std::env::current_exe().unwrap();
    let args = [format!("--script={}", script.display())];
    match kind {
        APP_SERVER => {
            json!({ "kind": "codex-cli", "form": kind, "program": program, "model": model, "args": args })
        }
        kind => json!({ "kind": kind, "program": program, "model": model, "args": args }),
    }
}

struct Scripted<'a> {
    home: &'a Path,
    kind: &'static str,
}

impl Scripted<'_> {
    fn rules(&self) -> String {
        format!(
            r#"rule = [
    {{ when = {{ model = "Answers" }}, text = "Hello — café", chunk = 1, wire_bytes = 1 }},
    {{ when = {{ model = "Talks" }}, text = "on and on ", chunk = 5, pad_bytes = 100000, delay_ms = 5 }},
    {{ when = {{ model = "Structured" }}, json = {{ winner = "A", reason = "b" }} }},
    {{ when = {{ model = "Silent" }}, hold = "{}/never" }},
    {{ when = {{ model = "Empty" }} }},
    {{ when = {{ model = "Cut" }}, text = "half an answer", fault = "no-terminator" }},
    {{ when = {{ model = "Unauthorized" }}, fault = {{ status = {{ code = 401 }} }} }},
    {{ when = {{ model = "Unpaid" }}, fault = {{ status = {{ code = 402 }} }} }},
    {{ when = {{ model = "Limited" }}, fault = {{ status = {{ code = 429 }} }} }},
    {{ when = {{ model = "Overloaded" }}, fault = {{ status = {{ code = 503 }} }} }},
]"#,
            self.home.display()
        )
    }
}

impl Fixture for Scripted<'_> {
    fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>> {
        let shown = match (self.kind, scenario) {
            // Their tools are their own.
            (_, Scenario::Calls) => false,
            // It says whole messages only, and not how long to wait.
            ("codex-cli", Scenario::Talks | Scenario::Limited) | (APP_SERVER, Scenario::Limited) => false,
            _ => true,
        };
        let mut config = scripted(self.home, self.kind, &format!("{scenario:?}"), &self.rules());
        if scenario == Scenario::Absent {
            config["program"] = json!("no-such-program-anywhere");
        }
        shown.then(|| provider(config))
    }

    fn turn(&self, _: Scenario) -> Turn {
        turn("question")
    }

    fn answer(&self) -> Option<String> {
        Some("Hello — café".to_owned())
    }
}

fn keeps_the_contract(kind: &'static str, shown: fn(&Scenario) -> bool) {
    let home = tempfile::tempdir().unwrap();
    // Every check has a limit of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let checked = runtime.block_on(check(&mut Scripted { home: home.path(), kind }));
    let expected: Vec<Scenario> = Scenario::ALL.into_iter().filter(shown).collect();
    assert_eq!(checked, expected, "{kind}");
}

fn claude_keeps_the_contract() {
    keeps_the_contract("claude-cli", |scenario| *scenario != Scenario::Calls);
}

fn codex_keeps_the_contract() {
    keeps_the_contract("codex-cli", |scenario| {
        !matches!(scenario, Scenario::Calls | Scenario::Talks | Scenario::Limited)
    });
}

fn codex_keeps_the_contract_in_a_dialogue() {
    keeps_the_contract(APP_SERVER, |scenario| !matches!(scenario, Scenario::Calls | Scenario::Limited));
}

/// An agent, one shot or not, or aider; none has tools of ours or an answer of a form.
struct Played<'a> {
    home: &'a Path,
    form: &'static str,
}

impl Played<'_> {
    fn shows(&self, scenario: Scenario) -> bool {
        match (self.form, scenario) {
            (_, Scenario::Calls | Scenario::Structured) => false,
            // Its text shows no end, and no bill.
            ("aider", Scenario::Cut | Scenario::Unpaid) => false,
            _ => true,
        }
    }

    fn rules(&self) -> String {
        let rules = Scripted { home: self.home, kind: self.form }.rules();
        // Some print whole parts only: what they say for long must come in many.
        let talks = "pad_bytes = 100000, delay_ms = 5";
        rules
            .replace(talks, "fault = { drip = { every_ms = 5 } }")
            .replace("{ code = 429 }", "{ code = 429, retry_after = \"3\" }")
    }
}

impl Fixture for Played<'_> {
    fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>> {
        let script = self.home.join("script.toml");
        std::fs::write(&script, self.rules()).unwrap();
        let program = match scenario {
            Scenario::Absent => "no-such-program-anywhere".into(),
            _ => std::env::current_exe().unwrap(),
        };
        let flags = [format!("--script={}", script.display()), format!("--role={scenario:?}")];
        let config = match self.form {
            "aider" => json!({ "kind": "aider", "program": program, "args": flags }),
            form => json!({ "kind": "acp", "form": form, "command": [program, form, flags[0], flags[1]] }),
        };
        self.shows(scenario).then(|| provider(config))
    }

    fn turn(&self, _: Scenario) -> Turn {
        turn("question")
    }

    fn answer(&self) -> Option<String> {
        Some("Hello — café".to_owned())
    }
}

fn plays(form: &'static str) {
    let home = tempfile::tempdir().unwrap();
    let mut played = Played { home: home.path(), form };
    let expected: Vec<Scenario> = Scenario::ALL.into_iter().filter(|s| played.shows(*s)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(check(&mut played)), expected, "{form}");
}

fn an_agent_keeps_the_contract() {
    plays("acp");
}

fn one_shots_keep_the_contract() {
    plays("gemini");
    plays("opencode");
}

fn aider_keeps_the_contract() {
    plays("aider");
}

/// Takes a turn by `rules`, and cancels it once it has said something where `cancelled`.
fn run(kind: &str, rules: &str, limits: Limits, cancelled: bool) -> (Taken, String) {
    let home = tempfile::tempdir().unwrap();
    let mut config = scripted(home.path(), kind, "m", rules);
    config["api_key_env"] = json!("TEST_KEY");
    config["tools"] = json!(["Bash"]);
    if kind != "claude-cli" {
        config.as_object_mut().unwrap().remove("tools");
    }
    let asked = Turn { limits, ..turn("question") };
    let mark = asked.mark.clone();
    let cancel = CancellationToken::new();
    let taken = block_on(async {
        let provider = provider(config);
        if !cancelled {
            return take(&provider, asked).await;
        }
        take_with(&provider, asked, cancel.clone(), |event| {
            if matches!(event, TurnEvent::Text(_) | TurnEvent::ToolCall(_)) {
                cancel.cancel();
            }
        })
        .await
    });
    assert_eq!(find_marked(&mark), [], "nothing is left");
    (taken, mark)
}

fn a_question_of_the_program_is_answered() {
    // It asks before its tool, and something that nobody knows: unanswered, it would wait for ever.
    let rules = "[[rule]]\ntext='Done.'\ntools=[{name='Bash',input={command='touch x'}}]\nstop='end'";
    let limits = Limits { idle: Duration::from_secs(20), ..Limits::default() };
    let (taken, _) = run("claude-cli", rules, limits, false);
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Done."));
    assert_eq!(taken.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["Bash"]);
    let (taken, _) = run(APP_SERVER, rules, limits, false);
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Done."));
    assert_eq!(taken.calls[0].arguments["command"], "touch x");
}

const TALKS: &str = "[[rule]]\ntext='on and on '\nchunk=5\npad_bytes=100000\ndelay_ms=5\n";

fn a_turn_that_is_stopped_says_what_it_used() {
    let (taken, _) = run("claude-cli", TALKS, Limits::default(), true);
    assert_eq!(taken.outcome, Err(TurnError::Cancelled));
    let usage = taken.usage.unwrap();
    assert!(usage.input > 0 && usage.output > 0, "{usage:?}");
    let wall = Duration::from_millis(500);
    let (taken, _) = run("claude-cli", TALKS, Limits { wall, ..Limits::default() }, false);
    assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: wall }));
    assert!(taken.usage.unwrap().input > 0);
}

fn a_dialogue_is_stopped_in_its_own_words() {
    let (taken, _) = run(APP_SERVER, TALKS, Limits::default(), true);
    assert_eq!(taken.outcome, Err(TurnError::Cancelled));
    assert!(taken.text.starts_with("on an"), "{}", taken.text);
    let wall = Duration::from_millis(500);
    let (taken, _) = run(APP_SERVER, TALKS, Limits { wall, ..Limits::default() }, false);
    assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: wall }));
}

fn what_left_the_session_is_found() {
    for kind in ["claude-cli", "codex-cli", APP_SERVER] {
        let tool = "tools=[{name='Bash',input={command='sleep 600'}}]\nstop='end'";
        let rules = format!("{TALKS}program={{escape='holding-stdout',hang=true}}\n{tool}");
        let (taken, _) = run(kind, &rules, Limits::default(), true);
        assert_eq!(taken.outcome, Err(TurnError::Cancelled), "{kind}");
    }
}

fn a_crash_is_told_without_the_key() {
    for kind in ["claude-cli", "codex-cli", APP_SERVER] {
        let rules = format!(
            "[[rule]]\ntext='x'\nfault={{end-early={{after=1}}}}\nprogram={{stderr='boom {KEY} bang',exit=3}}"
        );
        let (taken, _) = run(kind, &rules, Limits::default(), false);
        let error = taken.error();
        assert_eq!(taken.code(), "crashed", "{kind}: {error}");
        assert!(error.contains("exit status: 3") && error.contains("boom [redacted] bang"), "{error}");
    }
}

fn a_key_that_is_repeated_is_taken_out() {
    // Once the one we know, once one that only the program's own login holds.
    for (kind, key) in
        ["codex-cli", APP_SERVER].iter().flat_map(|kind| [(kind, KEY), (kind, "sk-proj-A1b2_C3d4")])
    {
        let message = format!("Incorrect API key provided: {key}. You can find your API key elsewhere.");
        let rules = format!("[[rule]]\nfault={{status={{code=401,message='{message}'}}}}");
        let (taken, _) = run(kind, &rules, Limits::default(), false);
        let error = taken.error();
        assert_eq!(taken.code(), "auth");
        assert!(error.contains("provided: [redacted]. You can") && !error.contains(key), "{error}");
    }
}

fn a_turn_counts_although_its_program_hangs() {
    for kind in ["codex-cli", APP_SERVER] {
        let (taken, _) = run(kind, "[[rule]]\ntext='Hello'\nprogram={hang=true}", Limits::default(), false);
        assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"), "{kind}");
    }
}
