//! Command lines that are no command: help, version, and what cannot be understood.

use std::ffi::OsStr;

use cyberine_app::{Environment, Exit, Problem};

use crate::out::{Format, Out};

/// Says what was asked for in place of a command (help, version), or what is wrong with the
/// command line: in words, and as a document where the command line asks for one.
pub(crate) fn say(error: &clap::Error, environment: &Environment) -> Exit {
    let text = error.render().to_string();
    if !error.use_stderr() {
        let out = Out::new(Format::Text, environment);
        out.raw(&text);
        return out.end(Exit::Done);
    }
    let mut arguments = std::env::args_os().skip(1).take_while(|argument| argument != OsStr::new("--"));
    if arguments.any(|argument| argument == OsStr::new("--json")) {
        let out = Out::new(Format::Json, environment);
        out.document_of(&Problem::new(Exit::Usage, text.trim_start_matches("error: ").trim_end()));
        out.end(Exit::Usage);
    }
    // Nobody is left to tell where stderr fails.
    let _ = error.print();
    Exit::Usage
}
