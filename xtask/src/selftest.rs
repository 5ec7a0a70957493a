//! The self test: the real server, over real stdio, judged by the bytes that come back.

mod approval;
mod gate;
mod handshake;
mod http;
mod messages;
mod openings;
mod orchestrate;
mod purity;
mod scripted;
mod world;

use std::time::Instant;

use anyhow::{Result, bail};

use self::world::World;

/// A check: its name, what it shows, and how.
struct Check {
    name: &'static str,
    shows: &'static str,
    run: fn(&World) -> Result<String>,
}

const CHECKS: &[Check] = &[
    Check {
        name: "mcp-handshake",
        shows: "both eras open; the server says who it is",
        run: handshake::handshake,
    },
    Check { name: "mcp-tools", shows: "every tool has a schema that says something", run: handshake::tools },
    Check {
        name: "mcp-eof",
        shows: "the end of stdin ends the server, at any time",
        run: handshake::end_of_file,
    },
    Check { name: "mcp-openings", shows: "twelve openings and their right answers", run: openings::openings },
    Check { name: "mcp-auth-gate", shows: "no tool and no resource without the token", run: gate::gate },
    Check { name: "mcp-stdout", shows: "stdout carries the protocol only", run: purity::purity },
    Check { name: "mcp-orchestrate", shows: "a run from dispatch to verdict", run: orchestrate::orchestrate },
    Check {
        name: "mcp-cancel",
        shows: "cancelled means dead, by tool and by file",
        run: orchestrate::cancel,
    },
    Check {
        name: "mcp-identity",
        shows: "who wrote a message, read back from its mailbox",
        run: messages::identity,
    },
    Check { name: "mcp-messages", shows: "hosts find each other and talk", run: messages::talk },
    Check {
        name: "mcp-approval",
        shows: "a run guided, held for approval, followed and decided",
        run: approval::approval,
    },
    Check { name: "mcp-http", shows: "over HTTP: refusals, sessions, the end", run: http::http },
    Check { name: "mcp-crash", shows: "kill -9 of server and of runner", run: orchestrate::crash },
];

/// Runs the checks named, or all of them.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    if names == ["list"] {
        for check in CHECKS {
            println!("{:<16} {}", check.name, check.shows);
        }
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|check| check.name == **name)) {
        bail!("there is no check `{unknown}`; `cargo xtask selftest list` names them");
    }
    let world = World::new()?;
    let mut failed = 0;
    for check in CHECKS.iter().filter(|check| names.is_empty() || names.contains(&check.name)) {
        let start = Instant::now();
        let outcome = (check.run)(&world);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(seen) => println!("ok   {:<16} {seconds:>5.1} s  {seen}", check.name),
            Err(error) => {
                failed += 1;
                println!("FAIL {:<16} {seconds:>5.1} s  {error:#}", check.name);
            }
        }
    }
    if failed > 0 {
        bail!("{failed} check(s) of the self test failed");
    }
    Ok(())
}
