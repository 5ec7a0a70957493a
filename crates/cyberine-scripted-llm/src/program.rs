//! The program: a prompt on standard input, the scripted answer on standard output.

pub(crate) mod agent;
mod dialogue;
mod escape;
mod hold;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) use dialogue::converse;
pub(crate) use escape::sleep_outside;

use crate::call::Call;
use crate::script::{Program, Reply, Script, ScriptError, scripted_id};
use crate::wire::claude::{self, Options};
use crate::wire::{codex, pieces};

/// What the program is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The script; `None` is the demo.
    pub(crate) script: Option<PathBuf>,
    /// The name it answers under: its model is `scripted/<role>`.
    pub(crate) role: String,
    /// The server that releases holds.
    pub(crate) control: Option<String>,
    /// The lines of `claude -p`, or of `codex exec`, instead of plain text.
    pub(crate) claude: Option<Options>,
}

/// Why the program does not do what the script says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("the rule holds `{name}`, and no server was named that releases it: give `--control URL`")]
    NoControl { name: String },
    #[error("`{url}` could not be waited for: {detail}")]
    Control { url: String, detail: String },
    #[error("the scripted program could not go on")]
    Io(#[from] std::io::Error),
}

/// The three streams of a process.
pub(crate) struct Streams<'a> {
    pub(crate) stdin: &'a mut dyn Read,
    pub(crate) stdout: &'a mut dyn Write,
    pub(crate) stderr: &'a mut dyn Write,
}

/// Does what `request` asks, and returns how the process should end.
pub(crate) fn answer(request: &Request, streams: &mut Streams<'_>) -> Result<ExitCode, ProgramError> {
    let script = request.script.as_deref().map_or_else(|| Ok(Script::demo()), Script::load)?;
    let model = scripted_id(&request.role);
    // A rule may say that the prompt is left unread, so it cannot be chosen by the prompt.
    let blind = script.pick(&Call::program(model.clone(), String::new()));
    let mut prompt = Vec::new();
    if !blind.program.ignore_stdin {
        streams.stdin.read_to_end(&mut prompt)?;
    }
    let call = Call::program(model, String::from_utf8_lossy(&prompt).into_owned());
    let reply = script.pick(&call);
    let _ignored = reply.program.ignore_term.then(ignore_term).transpose()?;
    if let Some(name) = &reply.hold {
        hold::wait(name, request.control.as_deref(), &request.role)?;
    }
    if let Some(escape) = reply.program.escape {
        let pid = escape::leave_behind(escape)?;
        writeln!(streams.stderr, "a process has left the session: pid {pid}")?;
    }
    streams.stderr.write_all(reply.program.stderr.as_bytes())?;
    let exit = match &request.claude {
        Some(options) => say_lines(&call, &reply, options, streams.stdout)?,
        None => say(&reply, streams.stdout)?,
    };
    misbehave(&reply.program, streams.stdout)?;
    Ok(if reply.program.exit == 0 { exit } else { ExitCode::from(reply.program.exit) })
}

/// Prints the text, piece by piece.
fn say(reply: &Reply, stdout: &mut dyn Write) -> std::io::Result<ExitCode> {
    let text = reply.refusal.as_deref().unwrap_or(&reply.text);
    let whole: Vec<&[u8]> = match reply.wire_bytes {
        Some(size) => text.as_bytes().chunks(size).collect(),
        None => pieces(text, reply.chunk).into_iter().map(str::as_bytes).collect(),
    };
    for piece in whole {
        write_after(reply.delay, piece, stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the lines of a session, line by line.
fn say_lines(
    call: &Call,
    reply: &Reply,
    options: &Options,
    stdout: &mut dyn Write,
) -> std::io::Result<ExitCode> {
    let session = if options.codex { codex::session(reply) } else { claude::session(call, reply, options) };
    for line in &session.lines {
        for piece in line.as_bytes().chunks(reply.wire_bytes.unwrap_or(usize::MAX)) {
            write_after(Duration::ZERO, piece, stdout)?;
        }
        std::thread::sleep(reply.delay);
    }
    Ok(ExitCode::from(session.exit))
}

fn write_after(delay: Duration, bytes: &[u8], stdout: &mut dyn Write) -> std::io::Result<()> {
    std::thread::sleep(delay);
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// What comes after the answer.
fn misbehave(program: &Program, stdout: &mut dyn Write) -> Result<(), ProgramError> {
    let mut left = program.flood_bytes;
    let line = [b"a scripted flood, no model was called".repeat(1024), b"\n".to_vec()].concat();
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(line.len());
        stdout.write_all(&line[..size])?;
        left -= u64::try_from(size).unwrap_or(left);
    }
    if program.half_character {
        stdout.write_all(b"\xe2\x82")?;
    }
    stdout.flush()?;
    if program.hang {
        loop {
            std::thread::park();
        }
    }
    if let Some(number) = program.signal {
        let signal = rustix::process::Signal::from_named_raw(number)
            .ok_or_else(|| std::io::Error::other(format!("there is no signal {number}")))?;
        rustix::process::kill_process(rustix::process::getpid(), signal).map_err(std::io::Error::from)?;
    }
    Ok(())
}

/// Keeps SIGTERM and SIGINT from ending the process. Once taken, a signal's handler stays for the
/// life of the process; that nobody reads what it reports is the point.
fn ignore_term() -> std::io::Result<[Signal; 2]> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    Ok([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rules: &str, prompt: &str) -> (String, String) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("script.toml");
        std::fs::write(&path, rules).unwrap();
        let request = Request { script: Some(path), role: "east".into(), control: None, claude: None };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut streams = Streams { stdin: &mut prompt.as_bytes(), stdout: &mut stdout, stderr: &mut stderr };
        let ended = answer(&request, &mut streams);
        let error = ended.err().map(|error| error.to_string()).unwrap_or_default();
        (String::from_utf8_lossy(&stdout).into_owned(), error)
    }

    #[test]
    fn the_answer_is_the_script_s() {
        let rules = "[[rule]]\nwhen={model='east',user='café'}\ntext='42 🦉'\nwire_bytes=1";
        assert_eq!(run(rules, "a café?"), ("42 🦉".into(), String::new()));
        assert!(run(rules, "-x").0.contains("no model was called"));
    }

    #[test]
    fn a_hold_that_nobody_can_release_is_refused() {
        assert!(run("[[rule]]\nhold='gate'\ntext='x'", "").1.contains("--control"));
    }

    #[test]
    fn a_flood_has_its_size() {
        assert_eq!(run("[[rule]]\nprogram={flood_bytes=100000}", "").0.len(), 100_000);
    }
}
