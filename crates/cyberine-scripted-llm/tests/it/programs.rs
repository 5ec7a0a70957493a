//! The program as a real process.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use cyberine_scripted_llm::LABEL;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getsid, kill_process, test_kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{LIMIT, serve};

/// A program with a script of its own. The script is gone when this is dropped, so it has to live
/// until the program has read it.
struct Program {
    home: TempDir,
}

impl Program {
    fn new(script: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("script.toml"), script).unwrap();
        Self { home }
    }

    fn rule(rule: &str) -> Self {
        Self::new(&format!("[[rule]]\n{rule}"))
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = binary();
        command.args(args).arg("--script").arg(self.home.path().join("script.toml"));
        command.spawn().unwrap()
    }

    fn run(&self, args: &[&str], prompt: &[u8]) -> Output {
        fed(self.start(args), prompt)
    }
}

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyberine-scripted-llm"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn fed(mut child: Child, prompt: &[u8]) -> Output {
    // A program that does not read its prompt breaks the pipe; that is its affair.
    let _unread = child.stdin.take().unwrap().write_all(prompt);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Reads standard error up to the line that holds `part`.
fn line_with(reader: &mut impl BufRead, part: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no line with {part:?}");
        if line.contains(part) {
            return line;
        }
    }
}

#[test]
fn it_answers_on_standard_output_and_says_what_it_is_on_the_other() {
    let program = Program::rule("when={model='east',user='café'}\ntext='42 🦉'");
    let output = program.run(&["answer", "--role", "east"], "a café?".as_bytes());
    assert_eq!((text(&output.stdout), output.status.code()), ("42 🦉".to_owned(), Some(0)));
    assert_eq!(text(&output.stderr), format!("{LABEL}\n"));
}

#[test]
fn without_a_script_the_demo_answers() {
    let mut command = binary();
    let child = command.args(["answer", "--role=east"]).spawn().unwrap();
    let output = fed(child, b"How many minutes are in a week?");
    assert!(text(&output.stdout).starts_with("(Scripted answer: no model was called.)"));
    assert!(text(&output.stdout).ends_with("Final answer: 10800"));
}

#[test]
fn it_ends_as_its_script_says() {
    let ended = |rule: &str| Program::rule(rule).run(&["answer"], b"hi");
    let output = ended("text='x'\nprogram={exit=3,stderr='quota'}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), "x".to_owned()));
    assert!(text(&output.stderr).ends_with("quota"));
    assert_eq!(ended("program={signal=9}").status.signal(), Some(9));
    assert_eq!(ended("program={signal=15}").status.signal(), Some(15));
    let output = ended("");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert_eq!(ended("text='ab'\nprogram={half_character=true}").stdout, b"ab\xe2\x82");
}

#[test]
fn fifty_megabytes_are_fifty_megabytes() {
    let program = Program::rule("program={flood_bytes=52428800}");
    let mut child = program.start(&["answer"]);
    drop(child.stdin.take());
    let length = std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    assert_eq!((length, child.wait().unwrap().code()), (50 << 20, Some(0)));
}

#[test]
fn it_hangs_until_it_is_killed_and_may_not_listen_to_sigterm() {
    let hanging = |rule: &str| {
        let program = Program::rule(rule);
        let mut child = program.start(&["answer"]);
        drop(child.stdin.take());
        let mut word = [0; 4];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"word");
        child
    };
    let pid = |child: &Child| Pid::from_child(child);
    let mut child = hanging("text='word'\nprogram={hang=true}");
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));

    let mut child = hanging("text='word'\nprogram={hang=true,ignore_term=true}");
    kill_process(pid(&child), Signal::TERM).unwrap();
    kill_process(pid(&child), Signal::INT).unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    kill_process(pid(&child), Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn it_may_leave_its_prompt_unread() {
    let output =
        Program::rule("text='x'\nprogram={ignore_stdin=true}").run(&["answer"], &vec![b'x'; 1 << 20]);
    assert_eq!((text(&output.stdout), output.status.code()), ("x".to_owned(), Some(0)));
}

/// Starts a program that leaves a process behind, and returns that process's pid.
fn escaped(kind: &str) -> (Child, Pid) {
    let program = Program::rule(&format!("text='x'\nprogram={{escape='{kind}'}}"));
    let mut child = program.start(&["answer"]);
    drop(child.stdin.take());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let line = line_with(&mut stderr, "left the session");
    let pid = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
    (child, Pid::from_raw(pid).unwrap())
}

#[test]
fn a_process_of_it_leaves_the_session_twice_and_outlives_it() {
    let (mut child, outside) = escaped("quiet");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "x");
    test_kill_process(outside).unwrap();
    assert_eq!(getsid(Some(outside)).unwrap(), outside);
    kill_process(outside, Signal::KILL).unwrap();
}

#[test]
fn a_process_outside_may_hold_standard_output_open() {
    let (mut child, outside) = escaped("holding-stdout");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stdout = child.stdout.take().unwrap();
    let mut said = [0];
    stdout.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"x");
    // The program is dead, and yet its output has not ended: there is neither a byte nor an end.
    let mut waiting = [PollFd::new(&stdout, PollFlags::IN)];
    assert_eq!(poll(&mut waiting, Some(&Timespec::default())).unwrap(), 0);
    kill_process(outside, Signal::KILL).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn it_is_held_by_a_server_and_its_death_is_seen_there() {
    let server = serve("");
    let program = Program::rule("hold='gate'\ntext='go'");
    let control = format!("--control={}", server.base_url());
    let mut dies = program.start(&["answer", "--role=east", &control]);
    drop(dies.stdin.take());
    let state = server.wait(LIMIT, |state| state.held.len() == 1).unwrap();
    assert_eq!((state.held[0].model.as_str(), state.requests[0].wire), ("scripted/east", "program"));
    dies.kill().unwrap();
    dies.wait().unwrap();
    server.wait(LIMIT, |state| state.disconnected == 1).unwrap();

    let mut lives = program.start(&["answer", "--role=east", &control]);
    drop(lives.stdin.take());
    server.wait(LIMIT, |state| state.held.len() == 1).unwrap();
    server.release("gate");
    assert_eq!(text(&lives.wait_with_output().unwrap().stdout), "go");
}

#[test]
fn it_is_held_by_a_file_and_by_a_fifo() {
    let home = tempfile::tempdir().unwrap();
    let (file, fifo) = (home.path().join("file"), home.path().join("fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [&file, &fifo] {
        let program = Program::rule(&format!("hold='{}'\ntext='go'", path.display()));
        let mut child = program.start(&["answer"]);
        drop(child.stdin.take());
        // A writer of a FIFO waits for its reader, so this is also the proof that it is read.
        std::fs::write(path, "go").unwrap();
        assert_eq!(text(&child.wait_with_output().unwrap().stdout), "go");
    }
}

#[test]
fn a_held_program_says_nothing_before_its_release() {
    let server = serve("");
    let program = Program::rule("hold='gate'\ntext='go'");
    let mut child = program.start(&["answer", "--control", &server.base_url()]);
    drop(child.stdin.take());
    server.wait(LIMIT, |state| state.held.len() == 1).unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    rustix::io::ioctl_fionread(child.stdout.as_ref().unwrap()).map(|waiting| assert_eq!(waiting, 0)).unwrap();
    server.release("gate");
    assert_eq!(text(&child.wait_with_output().unwrap().stdout), "go");
}

#[test]
fn it_prints_the_lines_of_claude_and_skips_its_flags() {
    let program = Program::rule("text='Hello — café 🦉.'");
    // As the adapter starts the real program: no command, our own flags last.
    let real = [
        "-p",
        "--output-format",
        "stream-json",
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--no-session-persistence",
        "--include-partial-messages",
        "--tools",
        "",
        "--model=scripted/north",
        "--verbose",
    ];
    let output = program.run(&real, b"-p is no flag here");
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (lines.first().unwrap(), lines.last().unwrap());
    assert_eq!((first["type"].as_str(), first["model"].as_str()), (Some("system"), Some("scripted/north")));
    assert_eq!((last["type"].as_str(), last["result"].as_str()), (Some("result"), Some("Hello — café 🦉.")));
    assert_eq!(last["total_cost_usd"], 0);
    let streamed: String = lines.iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(streamed, "Hello — café 🦉.");
    assert_eq!(Program::rule("fault={status={code=402}}").run(&["claude", "-p"], b"").status.code(), Some(1));
}

#[test]
fn a_server_prints_its_address_and_ends_with_its_standard_input() {
    let program = Program::rule("text='x'");
    let mut child = program.start(&["serve", "--until-eof"]);
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let response = crate::client::Exchange::get(address.trim(), "/health").response().unwrap();
    assert_eq!(response.head.status, 200);
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), format!("{LABEL}\n")));
}

#[test]
fn what_is_wrong_is_said_with_a_code() {
    let ended = |args: &[&str]| {
        let output = fed(binary().args(args).spawn().unwrap(), b"");
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = ended(&["sevre"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "cyberine-scripted-llm: `sevre` is not a command: see --help\n")
    );
    assert_eq!(ended(&["answer", "--script", "/nonexistent.toml"]).0, Some(78));
    let held = Program::rule("hold='gate'");
    assert_eq!(held.run(&["answer"], b"").status.code(), Some(78));
    assert_eq!(held.run(&["answer", "--control", "http://127.0.0.1:1"], b"").status.code(), Some(69));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert_eq!(ended(&["serve", "--port", &port]).0, Some(69));
}

#[test]
fn it_passes_for_agents_one_prompt_each() {
    let program = Program::rule("text='42 🦉'\nchunk=2");
    for (agent, said, end) in [
        ("gemini", r#""content":"42""#, r#""status":"success""#),
        ("opencode", r#""text":"42 🦉""#, r#""reason":"stop""#),
    ] {
        let output = program.run(&[agent, "--model=m", "--some-flag"], b"hi");
        let printed = text(&output.stdout);
        assert!(printed.contains(said) && printed.contains(end), "{agent}: {printed}");
        assert!(
            printed.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "{agent}: {printed}"
        );
        assert_eq!(output.status.code(), Some(0), "{agent}");
    }
    let message = program.home.path().join("message");
    std::fs::write(&message, "hi").unwrap();
    let output = program.run(&["aider", &format!("--message-file={}", message.display())], b"");
    assert!(
        text(&output.stdout).ends_with("\n\n42 🦉\n\nTokens: 1 sent, 2 received.\n"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn it_holds_a_dialogue_of_the_agent_client_protocol() {
    let program = Program::rule("text='Done'\ntools=[{name='rm', input={path='x'}}]");
    let requests = concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"hi"}]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":"p0","result":{"outcome":{"outcome":"selected","optionId":"no"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"nonsense"}"#,
        "\n",
    );
    let output = program.run(&["acp"], requests.as_bytes());
    let printed = text(&output.stdout);
    let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["result"]["protocolVersion"], 1);
    assert_eq!(lines[1]["result"]["sessionId"], "scripted");
    assert_eq!(lines[2]["method"], "session/request_permission");
    assert_eq!(lines[3]["params"]["update"]["content"]["text"], "Done");
    assert_eq!(lines[4]["result"]["stopReason"], "end_turn");
    assert_eq!(lines[5]["error"]["code"], -32601);
    assert_eq!((lines.len(), output.status.code()), (6, Some(0)));
}

#[test]
fn it_holds_a_dialogue_of_codex_and_takes_the_model_for_its_role() {
    let program =
        Program::rule("when={model='m'}\ntext='Done'\ntools=[{name='exec_command', input={cmd='rm x'}}]");
    let requests = concat!(
        r#"{"id":0,"method":"initialize","params":{"clientInfo":{"name":"x","version":"0"}}}"#,
        "\n",
        r#"{"method":"initialized"}"#,
        "\n",
        r#"{"id":1,"method":"thread/start","params":{"model":"m"}}"#,
        "\n",
        r#"{"id":2,"method":"turn/start","params":{"threadId":"t","input":[{"type":"text","text":"hi"}]}}"#,
        "\n",
        r#"{"id":0,"result":{"decision":"decline"}}"#,
        "\n",
    );
    let mut child = program.start(&["app-server", "--config=a=1"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(requests.as_bytes()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = |part: &str| serde_json::from_str::<Value>(&line_with(&mut output, part)).unwrap();
    assert_eq!(line("requestApproval")["params"]["command"], "rm x");
    let turn = line("turn/completed")["params"]["turn"].clone();
    assert_eq!((&turn["status"], &turn["items"][0]["text"]), (&"completed".into(), &"Done".into()));
    // Sooner it would be taken for something about the turn.
    writeln!(input, r#"{{"id":3,"method":"nonsense"}}"#).unwrap();
    assert_eq!(line("unknown method")["id"], 3);
    drop(input);
    assert!(child.wait().unwrap().success());
}
