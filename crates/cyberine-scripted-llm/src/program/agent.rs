//! Programs of agents: one that speaks the Agent Client Protocol, `codex app-server`, and what Gemini
//! CLI, opencode and aider print for one prompt.

mod app_server;
mod dialogue;
mod print;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::{ProgramError, Request, hold, ignore_term, misbehave};
use crate::call::Call;
use crate::script::{Fault, Reply, Script, scripted_id};
use crate::wire::pieces;

/// Which agent it passes for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Agent {
    /// Any that speaks the protocol.
    Acp,
    /// Gemini CLI, one shot.
    Gemini,
    /// opencode, one shot.
    Opencode,
    /// Aider; its prompt is in this file.
    Aider(PathBuf),
}

/// Passes for `agent` on the standard streams of this process.
pub(crate) fn run(request: &Request, agent: &Agent) -> Result<ExitCode, ProgramError> {
    let script = request.script.as_deref().map_or_else(|| Ok(Script::demo()), Script::load)?;
    if *agent == Agent::Acp {
        return dialogue::hold_one(request, &script);
    }
    let prompt = match agent {
        Agent::Aider(message) => std::fs::read_to_string(message)?,
        _ => {
            let mut prompt = Vec::new();
            std::io::stdin().read_to_end(&mut prompt)?;
            String::from_utf8_lossy(&prompt).into_owned()
        }
    };
    let reply = script.pick(&Call::program(scripted_id(&request.role), prompt));
    let _ignored = begin(request, &reply)?;
    let mut stdout = std::io::stdout();
    let printed = print::all(agent, &reply);
    for line in &printed.lines {
        std::thread::sleep(reply.delay);
        for piece in line.as_bytes().chunks(reply.wire_bytes.unwrap_or(usize::MAX)) {
            stdout.write_all(piece)?;
            stdout.flush()?;
        }
    }
    go_on(&reply, &mut stdout, &|text| print::piece(agent, text))?;
    misbehave(&reply.program, &mut stdout)?;
    Ok(ExitCode::from(if reply.program.exit == 0 { printed.exit } else { reply.program.exit }))
}

/// Passes for `codex app-server` on the standard streams of this process.
pub(crate) fn serve(request: &Request) -> Result<ExitCode, ProgramError> {
    let script = request.script.as_deref().map_or_else(|| Ok(Script::demo()), Script::load)?;
    app_server::hold_one(request, &script)
}

/// What the script wants done before the first word.
fn begin(request: &Request, reply: &Reply) -> Result<Option<impl Sized>, ProgramError> {
    let ignored = reply.program.ignore_term.then(ignore_term).transpose()?;
    if let Some(name) = &reply.hold {
        hold::wait(name, request.control.as_deref(), &request.role)?;
    }
    if let Some(escape) = reply.program.escape {
        let pid = super::escape::leave_behind(escape)?;
        writeln!(std::io::stderr(), "a process has left the session: pid {pid}")?;
    }
    std::io::stderr().write_all(reply.program.stderr.as_bytes())?;
    Ok(ignored)
}

/// A fault that never ends.
fn go_on(reply: &Reply, stdout: &mut dyn Write, piece: &dyn Fn(&str) -> String) -> std::io::Result<()> {
    match reply.fault {
        Some(Fault::Hang { .. }) => loop {
            std::thread::park();
        },
        Some(Fault::Drip { every_ms }) => loop {
            for text in pieces(&reply.text, reply.chunk) {
                std::thread::sleep(Duration::from_millis(every_ms));
                stdout.write_all(piece(text).as_bytes())?;
                stdout.flush()?;
            }
        },
        _ => Ok(()),
    }
}

/// The pieces of the answer that are said, and whether its end is.
fn said(reply: &Reply) -> (Vec<&str>, bool) {
    let text = reply.refusal.as_deref().unwrap_or(&reply.text);
    let mut said = pieces(text, reply.chunk);
    let whole = match reply.fault {
        Some(Fault::Disconnect { after } | Fault::EndEarly { after } | Fault::Hang { after }) => {
            said.truncate(after);
            false
        }
        Some(Fault::Drip { .. }) => {
            said.clear();
            false
        }
        Some(Fault::NoTerminator) => false,
        _ => true,
    };
    (said, whole)
}
