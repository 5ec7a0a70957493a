//! What a process says on stderr: one line an event, whatever is in it.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::environment::{Environment, LOG_VARIABLE};

const DEFAULT_LEVEL: &str = "warn";

/// Sends events to stderr from here on, at the level `CYBERINE_LOG` names (`warn` where it names
/// none). A second call does nothing.
pub fn start(environment: &Environment) {
    let wanted = environment.text(LOG_VARIABLE).unwrap_or(DEFAULT_LEVEL);
    let (filter, fault) = match wanted.parse::<EnvFilter>() {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_LEVEL), Some(error)),
    };
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_target(false)
        .with_writer(Stderr)
        .try_init();
    if let (Ok(()), Some(error)) = (started, fault) {
        tracing::warn!("{LOG_VARIABLE} is not understood, `{DEFAULT_LEVEL}` is used: {error}");
    }
}

struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = OneLine<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        OneLine(io::stderr())
    }
}

/// Writes each event as one line: the formatter hands over an event in one call, and every
/// control character in it but the last line feed is escaped, so that no text from a model, a
/// file or a client can forge a line or drive a terminal.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut line = escape_controls(text.trim_end_matches('\n'));
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `text` with its control characters (C0, DEL, C1) and line separators written as escapes.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            out.extend(character.escape_default());
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
    fn an_event_is_one_line_without_control_characters() {
        let mut out = OneLine(Vec::new());
        out.write_all("warn: a\nb\u{1b}[31mc\u{9b}d\u{2028}e é\n".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "warn: a\\nb\\u{1b}[31mc\\u{9b}d\\u{2028}e é\n");
    }
}
