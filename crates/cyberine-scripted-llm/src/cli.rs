//! The command line: a handful of flags, read by hand.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::LABEL;
use crate::program::agent::Agent;
use crate::program::{self, ProgramError, Request, Streams};
use crate::script::{Script, ScriptError};
use crate::server::{ScriptedServer, StartError};
use crate::wire::claude::Options;

const HELP: &str = "\
Answers from a script, over the wires of real models. No model is called.

Usage:
  cyberine-scripted-llm serve  [--script FILE] [--port N] [--until-eof]
  cyberine-scripted-llm answer [--script FILE] [--role NAME] [--control URL]
  cyberine-scripted-llm claude [--script FILE] [--role NAME] [--control URL] [flags of `claude -p`]
  cyberine-scripted-llm exec   [--script FILE] [--role NAME] [--control URL] [flags of `codex exec`]
  cyberine-scripted-llm app-server [--script FILE] [--role NAME] [--control URL] [flags of its own]
  cyberine-scripted-llm acp | gemini | opencode | aider
                               [--script FILE] [--role NAME] [--control URL] [flags of theirs]

serve   listens on 127.0.0.1 and prints its address as the first line of standard output.
        With --until-eof it ends when standard input does, so that it cannot outlive its parent.
answer  reads a prompt on standard input and prints the answer.
claude  does the same, and prints the lines of `claude -p --output-format stream-json`.
        It is also what runs when the first argument is a flag. With `--input-format stream-json` it
        holds the dialogue of the real program: handshake, permissions, interrupt.
exec    does the same, and prints the lines of `codex exec --json`.
app-server
        holds the dialogue of `codex app-server`, and asks before it runs a command.
acp     holds the dialogue of an agent of the Agent Client Protocol, and asks before it uses a tool.
gemini, opencode and aider print what those programs print for one prompt; aider's is in a file.

A script is TOML: rules in order, of which the first that fits a request answers it.
  [[rule]]
  when = { model = \"scripted/a\", user = \"(?i)capital\", call = 1 }   # each optional; `user` is a pattern
  text = \"Paris.\"                      # or json = {}, judge = \"fair\", refusal = \"…\"
  fault = { status = { code = 429, retry_after = \"1\" } }            # in place of an answer
Beside the rules: seed = 7, key = \"what a request must carry\", models = [\"scripted/more\"]. A wrong
key is refused with the right ones.

Without --script the built-in demo answers. --control names a server that releases holds.
";

/// Exit codes, as the whole product uses them.
const USAGE: u8 = 2;
const UNAVAILABLE: u8 = 69;
const CONFIGURATION: u8 = 78;

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Say(String),
    Serve { script: Option<PathBuf>, port: u16, until_eof: bool },
    Answer(Request),
    Agent(Request, Agent),
    AppServer(Request),
    Escape(String),
}

/// Why a command line is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum UsageError {
    #[error("`{0}` is not a command: see --help")]
    Command(String),
    #[error("`{0}` is not a flag of this command: see --help")]
    Flag(String),
    #[error("`{0}` needs a value")]
    Value(&'static str),
    #[error("`{0}` is not a port")]
    Port(String),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("standard input or output failed")]
    Io(#[from] std::io::Error),
}

/// Runs the program with `args` (without its name) and returns how the process should end.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match parse(&args).map_err(Failure::from).and_then(perform) {
        Ok(code) => code,
        Err(failure) => {
            let cause =
                std::error::Error::source(&failure).map(|cause| format!(": {cause}")).unwrap_or_default();
            // Nobody is left to tell when standard error is gone.
            let _untold = writeln!(std::io::stderr(), "cyberine-scripted-llm: {failure}{cause}");
            ExitCode::from(code_of(&failure))
        }
    }
}

fn code_of(failure: &Failure) -> u8 {
    match failure {
        Failure::Usage(_) => USAGE,
        Failure::Script(_) | Failure::Program(ProgramError::Script(_) | ProgramError::NoControl { .. }) => {
            CONFIGURATION
        }
        Failure::Start(_) | Failure::Program(ProgramError::Control { .. }) => UNAVAILABLE,
        Failure::Program(ProgramError::Io(_)) | Failure::Io(_) => 1,
    }
}

fn perform(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Say(text) => write!(std::io::stdout(), "{text}")?,
        Command::Agent(request, agent) => {
            say_label();
            return Ok(program::agent::run(&request, &agent)?);
        }
        Command::AppServer(request) => {
            say_label();
            return Ok(program::agent::serve(&request)?);
        }
        Command::Escape(depth) => program::sleep_outside(&depth, &mut std::io::stderr())?,
        Command::Serve { script, port, until_eof } => serve(script, port, until_eof)?,
        Command::Answer(mut request) => {
            if let Some(options) = &mut request.claude {
                options.cwd = std::env::current_dir()?.to_string_lossy().into_owned();
            }
            say_label();
            if request.claude.as_ref().is_some_and(|options| options.dialogue) {
                return Ok(program::converse(&request)?);
            }
            let (mut stdin, mut stdout, mut stderr) =
                (std::io::stdin().lock(), std::io::stdout().lock(), std::io::stderr());
            let mut streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr };
            return Ok(program::answer(&request, &mut streams)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what this is. A standard error that is closed is no reason not to answer.
fn say_label() {
    let _untold = writeln!(std::io::stderr(), "{LABEL}");
}

fn serve(script: Option<PathBuf>, port: u16, until_eof: bool) -> Result<(), Failure> {
    let script = script.as_deref().map_or_else(|| Ok(Script::demo()), Script::load)?;
    let server = ScriptedServer::start_on(port, script)?;
    say_label();
    writeln!(std::io::stdout(), "{}", server.base_url())?;
    if until_eof {
        std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    } else {
        server.serve_for_ever();
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<Command, UsageError> {
    let (first, rest) = args.split_first().map_or(("--help", args), |(first, rest)| (first.as_str(), rest));
    match first {
        "--help" | "-h" | "help" => Ok(Command::Say(HELP.to_owned())),
        "--version" | "-v" => {
            Ok(Command::Say(format!("{} (scripted, no model is called)\n", env!("CARGO_PKG_VERSION"))))
        }
        "serve" | "answer" | "exec" | "app-server" | "acp" | "gemini" | "opencode" | "aider"
            if rest.iter().any(|arg| arg == "--help" || arg == "-h") =>
        {
            Ok(Command::Say(HELP.to_owned()))
        }
        "serve" => parse_serve(rest),
        "answer" => parse_answer(rest),
        "claude" => parse_claude(rest),
        "exec" => parse_codex(rest),
        "app-server" | "acp" | "gemini" | "opencode" | "aider" => parse_agent(first, rest),
        "escape" => Ok(Command::Escape(rest.first().cloned().unwrap_or_default())),
        flag if flag.starts_with('-') => parse_claude(args),
        other => Err(UsageError::Command(other.to_owned())),
    }
}

fn parse_serve(args: &[String]) -> Result<Command, UsageError> {
    let (mut script, mut port, mut until_eof) = (None, 0, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match split(arg) {
            ("--script", value) => script = Some(taken("--script", value, &mut args)?.into()),
            ("--port", value) => {
                let value = taken("--port", value, &mut args)?;
                port = value.parse().map_err(|_| UsageError::Port(value))?;
            }
            ("--until-eof", None) => until_eof = true,
            _ => return Err(UsageError::Flag(arg.clone())),
        }
    }
    Ok(Command::Serve { script, port, until_eof })
}

fn parse_answer(args: &[String]) -> Result<Command, UsageError> {
    let mut request = Request { script: None, role: "program".to_owned(), control: None, claude: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if !own_flag(&mut request, arg, &mut args)? {
            return Err(UsageError::Flag(arg.clone()));
        }
    }
    Ok(Command::Answer(request))
}

/// Flags of the real program are read where they change what is printed, and skipped otherwise;
/// a value that stands on its own is skipped like a flag.
fn parse_claude(args: &[String]) -> Result<Command, UsageError> {
    let mut request = Request { script: None, role: "claude".to_owned(), control: None, claude: None };
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if own_flag(&mut request, arg, &mut args)? {
            continue;
        }
        match split(arg) {
            ("--version" | "-v", None) => {
                return Ok(Command::Say(format!(
                    "{} (scripted, no model is called)\n",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            ("--model", value) => request.role = taken("--model", value, &mut args)?,
            ("--json-schema", _) => options.structured = true,
            ("--include-partial-messages", _) => options.partial = true,
            ("--input-format", value) => {
                options.dialogue = taken("--input-format", value, &mut args)? == "stream-json";
            }
            _ => {}
        }
    }
    request.claude = Some(options);
    Ok(Command::Answer(request))
}

/// The same of `codex exec`, which takes its prompt on standard input whatever else it is given.
fn parse_codex(args: &[String]) -> Result<Command, UsageError> {
    let mut request = Request { script: None, role: "codex".to_owned(), control: None, claude: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if !own_flag(&mut request, arg, &mut args)?
            && let ("--model" | "-m", value) = split(arg)
        {
            request.role = taken("--model", value, &mut args)?;
        }
    }
    request.claude = Some(Options { codex: true, ..Options::default() });
    Ok(Command::Answer(request))
}

/// The same of agents and of `codex app-server`, whose further words and flags are skipped too.
fn parse_agent(name: &str, args: &[String]) -> Result<Command, UsageError> {
    let mut request = Request { script: None, role: name.to_owned(), control: None, claude: None };
    let mut message = PathBuf::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if own_flag(&mut request, arg, &mut args)? {
            continue;
        }
        match split(arg) {
            ("--model" | "-m", value) => request.role = taken("--model", value, &mut args)?,
            ("--message-file", value) => message = taken("--message-file", value, &mut args)?.into(),
            _ => {}
        }
    }
    let agent = match name {
        "app-server" => return Ok(Command::AppServer(request)),
        "gemini" => Agent::Gemini,
        "opencode" => Agent::Opencode,
        "aider" => Agent::Aider(message),
        _ => Agent::Acp,
    };
    Ok(Command::Agent(request, agent))
}

fn own_flag<'a>(
    request: &mut Request,
    arg: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<bool, UsageError> {
    match split(arg) {
        ("--script", value) => request.script = Some(taken("--script", value, rest)?.into()),
        ("--role", value) => request.role = taken("--role", value, rest)?,
        ("--control", value) => request.control = Some(taken("--control", value, rest)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// `--flag=value` as two parts.
fn split(arg: &str) -> (&str, Option<&str>) {
    arg.split_once('=').map_or((arg, None), |(flag, value)| (flag, Some(value)))
}

fn taken<'a>(
    flag: &'static str,
    value: Option<&str>,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<String, UsageError> {
    value.map(str::to_owned).or_else(|| rest.next().cloned()).ok_or(UsageError::Value(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, UsageError> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_take_their_value_in_both_forms() {
        let serve = Command::Serve { script: Some("a.toml".into()), port: 80, until_eof: true };
        assert_eq!(parsed("serve --script a.toml --port=80 --until-eof"), Ok(serve));
        let request = Request {
            script: Some("s.toml".into()),
            role: "east".into(),
            control: Some("http://127.0.0.1:1".into()),
            claude: None,
        };
        assert_eq!(
            parsed("answer --script=s.toml --role east --control=http://127.0.0.1:1"),
            Ok(Command::Answer(request))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parsed("sevre"), Err(UsageError::Command("sevre".into())));
        assert_eq!(parsed("serve --prot 1"), Err(UsageError::Flag("--prot".into())));
        assert_eq!(parsed("serve --port x"), Err(UsageError::Port("x".into())));
        assert_eq!(parsed("answer --role"), Err(UsageError::Value("--role")));
    }

    #[test]
    fn the_flags_of_the_real_program_are_skipped() {
        let line = "-p --output-format stream-json --verbose --model=opus --include-partial-messages --tools= --max-turns 3";
        let options = Options { partial: true, ..Options::default() };
        let request = Request { script: None, role: "opus".into(), control: None, claude: Some(options) };
        assert_eq!(parsed(line), Ok(Command::Answer(request)));
    }
}
