//! The one place that prints.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use cyberine_app::{Environment, Problem};
use serde::Serialize;

use crate::plain::plain;

/// Where results go: stdout for what was asked for, stderr for everything about it.
///
/// A reader that has gone away (`cyberine runs | head`) is no fault: what it does not read is not
/// written, and the command ends as it would have.
pub(crate) struct Out {
    format: Format,
    terminal: bool,
    colours: bool,
}

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON document for programs.
    Json,
}

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Strong,
    Faint,
    Good,
    Bad,
    Busy,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Busy => "36",
        }
    }
}

impl Out {
    pub(crate) fn new(format: Format, environment: &Environment) -> Self {
        let dumb = environment.text("TERM") == Some("dumb");
        let terminal = io::stdout().is_terminal() && !dumb && format == Format::Text;
        let colours = terminal && environment.text("NO_COLOR").is_none();
        Self { format, terminal, colours }
    }

    /// Whether programs read this.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether a person watches, so that lines may be drawn again.
    pub(crate) const fn is_live(&self) -> bool {
        self.terminal
    }

    /// The width of the terminal, or a good one.
    #[expect(clippy::unused_self, reason = "the width belongs to where this prints")]
    pub(crate) fn width(&self) -> usize {
        rustix::termios::tcgetwinsize(io::stdout())
            .map_or(100, |size| usize::from(size.ws_col).clamp(40, 200))
    }

    /// `text` in a style, where there are colours.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colours { format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()) } else { text.to_string() }
    }

    /// One line for people.
    pub(crate) fn line(&self, text: impl Display) {
        write(&mut io::stdout().lock(), format!("{text}\n").as_bytes());
    }

    /// Text that somebody else wrote, without what could drive a terminal, indented.
    pub(crate) fn foreign(&self, text: &str, indent: &str) {
        for line in plain(text).lines() {
            self.line(format_args!("{indent}{line}"));
        }
    }

    /// Bytes that drive the terminal.
    pub(crate) fn raw(&self, text: &str) {
        write(&mut io::stdout().lock(), text.as_bytes());
    }

    /// The JSON document of this command.
    pub(crate) fn json(&self, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.line(text);
    }

    /// Why the command could not do what it was asked, with a JSON document for programs.
    pub(crate) fn problem(&self, problem: &Problem) {
        if self.is_json() {
            self.json(&serde_json::json!({ "error": problem.message, "exit": problem.exit as u8 }));
        }
        self.note(format_args!("cyberine: {problem}"));
    }

    /// A remark about the work, on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        write(&mut io::stderr().lock(), format!("{}\n", plain(&text.to_string())).as_bytes());
    }
}

fn write(to: &mut impl Write, bytes: &[u8]) {
    // A closed pipe is the reader's choice, and there is nobody left to tell of anything else.
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}
