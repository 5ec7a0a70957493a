//! Characters that are legal in JSON text and yet break readers of lines or of terminals.

/// Rewrites the line separators U+2028 and U+2029 and the C1 control characters U+0080 to U+009F
/// as `\u` escapes. In valid JSON they occur only inside strings, so the value stays the same.
///
/// Some line readers (JavaScript's among them) break a line at U+2028; terminals take U+009B as
/// the start of a command.
pub(crate) fn escape_line(line: Vec<u8>) -> Vec<u8> {
    if line.is_ascii() { line } else { rewrite(&line) }
}

/// The same for text.
pub(crate) fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => push_escape(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

fn push_escape(out: &mut String, c: char) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    let _ = write!(out, "\\u{:04x}", u32::from(c));
}

fn rewrite(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len() + 16);
    let mut rest = line;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0xc2 | 0xe2)) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        let taken = match from {
            [0xc2, low @ 0x80..=0x9f, ..] => {
                out.extend_from_slice(format!("\\u00{low:02x}").as_bytes());
                2
            }
            [0xe2, 0x80, low @ (0xa8 | 0xa9), ..] => {
                out.extend_from_slice(if *low == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                3
            }
            _ => {
                out.extend_from_slice(&from[..1]);
                1
            }
        };
        rest = &from[taken..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_c1_controls_leave_as_escapes_with_the_same_value() {
        let text = "a\u{2028}b\u{2029}c\u{80}\u{85}\u{9b}31m\u{9f}\u{a0}é€日\u{2027}\u{202a}😀";
        let line = serde_json::to_vec(&serde_json::json!({ text: [text] })).unwrap();
        let escaped = escape_line(line.clone());
        let shown = String::from_utf8(escaped.clone()).unwrap();
        assert!(
            !shown.chars().any(|c| matches!(c, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}')),
            "{shown}"
        );
        assert!(shown.contains('\u{a0}') && shown.contains("é€日\u{2027}\u{202a}😀"));
        let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        assert_eq!(value(&escaped), value(&line));
        assert_eq!(escape_text(std::str::from_utf8(&line).unwrap()), shown);
    }
}
