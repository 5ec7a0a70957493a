use std::fmt::Write as _;

use cyberine_types::is_invisible;

use crate::jsonrpc::excerpt;

/// How many bytes of a line are looked at for its quotation.
const LOOKED_AT: usize = 1024;

/// The beginning of what a server wrote, fit for an error: what is not UTF-8 replaced, what cannot
/// be seen escaped.
pub(super) fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(LOOKED_AT)]);
    let text = text.trim();
    let shown = excerpt(text);
    let mut quoted = String::with_capacity(shown.len());
    for c in shown.chars() {
        if c.is_control() || is_invisible(c) {
            // Writing to a string cannot fail.
            let _ = write!(quoted, "{}", c.escape_default());
        } else {
            quoted.push(c);
        }
    }
    if shown.len() < text.len() || line.len() > LOOKED_AT {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_short_and_shows_everything() {
        assert_eq!(quote(b" starting\t\x1b[31m\xff\r"), "starting\\t\\u{1b}[31m\u{fffd}");
        assert_eq!(quote("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(quote(&[b'x'; 201]), format!("{}…", "x".repeat(200)));
        assert_eq!(quote(&[b'x'; 200]), "x".repeat(200));
    }
}
