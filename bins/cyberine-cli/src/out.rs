//! The one place that prints.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cyberine_app::{Environment, Exit, Problem, escape_controls};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;

use crate::plain::plain;

/// Where results go: stdout for what was asked for, stderr for everything about it.
///
/// A reader that has gone away (`cyberine runs | head`) is no fault: what it does not read is not
/// written, and the command ends as it would have. Any other failure to write is kept, and the
/// command ends with it.
pub(crate) struct Out {
    format: Format,
    terminal: bool,
    colours: bool,
    failed: OnceLock<io::Error>,
    /// Set once whoever read the results has gone away.
    unread: AtomicBool,
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
        Self { format, terminal, colours, failed: OnceLock::new(), unread: AtomicBool::new(false) }
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

    /// The width at which a terminal would break a line; `None` where there is no terminal.
    pub(crate) fn breaks_at(&self) -> Option<usize> {
        (!self.is_json() && io::stdout().is_terminal()).then(|| self.width())
    }

    /// `text` in a style, where there are colours.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colours { format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()) } else { text.to_string() }
    }

    /// One line for people.
    pub(crate) fn line(&self, text: impl Display) {
        self.write(format!("{text}\n").as_bytes());
    }

    /// Text that somebody else wrote, without what could drive a terminal, indented.
    pub(crate) fn foreign(&self, text: &str, indent: &str) {
        for line in plain(text).lines() {
            self.line(format_args!("{indent}{line}"));
        }
    }

    /// Bytes that drive the terminal.
    pub(crate) fn raw(&self, text: &str) {
        self.write(text.as_bytes());
    }

    /// The JSON document of this command.
    pub(crate) fn json(&self, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.line(escape_in_strings(&text));
    }

    /// One JSON document on one line: one of many.
    pub(crate) fn json_line(&self, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        self.line(escape_in_strings(&text));
    }

    /// Whether what is printed reaches nobody any more: the reader is gone, or a write has failed.
    pub(crate) fn is_lost(&self) -> bool {
        self.unread.load(Ordering::Relaxed) || self.failed.get().is_some()
    }

    /// Resolves once whoever reads the results has gone away, where that can be told before
    /// something is written: of a pipe.
    pub(crate) async fn reader_gone(&self) {
        match tokio::task::spawn_blocking(wait_for_hang_up).await {
            Ok(true) => self.unread.store(true, Ordering::Relaxed),
            Ok(false) | Err(_) => std::future::pending().await,
        }
    }

    /// Whether a person is there to be asked.
    pub(crate) fn can_ask(&self) -> bool {
        !self.is_json() && io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// Asks a question that only a clear yes answers with yes.
    pub(crate) fn confirms(&self, question: &str) -> bool {
        self.raw(&format!("{question} [y/N] "));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        // Nobody has read the question, or nobody has answered it.
        if self.failed.get().is_some() || read.is_err() {
            return false;
        }
        matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// How the command ends: as it did, or with what could not be written of its results.
    pub(crate) fn end(&self, ended: Exit) -> Exit {
        let Some(error) = self.failed.get() else { return ended };
        self.note(format_args!("cyberine: the results could not be written to stdout: {error}"));
        if ended == Exit::Done { Exit::Internal } else { ended }
    }

    fn write(&self, bytes: &[u8]) {
        match write(&mut io::stdout().lock(), bytes) {
            Ok(Written::Whole) => {}
            Ok(Written::ReaderGone) => self.unread.store(true, Ordering::Relaxed),
            // The first failure tells most; a second one changes nothing.
            Err(error) => drop(self.failed.set(error)),
        }
    }

    /// Why the command could not do what it was asked, with a JSON document for programs.
    pub(crate) fn problem(&self, problem: &Problem) {
        if self.is_json() {
            self.document_of(problem);
        }
        self.note(format_args!("cyberine: {problem}"));
    }

    /// The JSON document of a command that could not do what it was asked.
    pub(crate) fn document_of(&self, problem: &Problem) {
        let mut document = serde_json::json!({ "error": problem.message, "exit": problem.exit as u8 });
        if let Some(code) = problem.code {
            document["code"] = code.into();
        }
        self.json(&document);
    }

    /// A remark about the work, on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        // Nobody is left to tell where stderr fails.
        let _ =
            write(&mut io::stderr().lock(), format!("{}\n", escape_controls(&text.to_string())).as_bytes());
    }
}

/// Waits until stdout has no reader; `false` where that cannot be told.
fn wait_for_hang_up() -> bool {
    let stdout = io::stdout();
    // What is asked for is nothing: of a reader that is gone is told in any case.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Err(Errno::INTR) => {}
            told => return told.is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
        }
    }
}

/// What became of a write that is no failure.
enum Written {
    Whole,
    ReaderGone,
}

fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<Written> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => Ok(Written::Whole),
        // A closed pipe is the reader's choice.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderGone),
        Err(error) => Err(error),
    }
}

/// JSON text with escapes for what it may hold as it is and a terminal must not: DEL, C1, what
/// turns the direction of text. Outside of strings JSON has none of these.
fn escape_in_strings(json: &str) -> String {
    let drives = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if drives(character) {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_drives_no_terminal_and_means_the_same() {
        let text = "a\u{1b}]\u{9d}b\u{7f}\u{202e}\n é";
        let document = escape_in_strings(&serde_json::to_string(text).unwrap_or_default());
        assert!(document.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{document}");
        assert_eq!(serde_json::from_str::<String>(&document).unwrap_or_default(), text);
    }
}
