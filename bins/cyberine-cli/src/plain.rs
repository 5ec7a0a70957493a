//! Text of others, made safe for a terminal.

use cyberine_types::is_invisible;

/// `text` without terminal escapes (ECMA-48 control sequences and strings) and without control
/// characters other than line feed and tab.
pub(crate) fn plain(text: &str) -> String {
    let mut state = State::Text;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let (next, keep) = state.step(character);
        state = next;
        if keep {
            out.push(character);
        }
    }
    out
}

#[derive(Debug, Clone, Copy)]
enum State {
    Text,
    /// After ESC.
    Escape,
    /// After CSI, until a final byte.
    Sequence,
    /// After OSC, DCS, SOS, PM or APC, until BEL or ST.
    Command,
    /// After ESC within such a string.
    StringEscape,
}

impl State {
    const fn step(self, character: char) -> (Self, bool) {
        match (self, character) {
            (Self::Text | Self::Escape | Self::Sequence, '\u{1b}') => (Self::Escape, false),
            (Self::Text, '\u{9b}') | (Self::Escape, '[') => (Self::Sequence, false),
            (Self::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}')
            | (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => (Self::Command, false),
            (Self::Escape | Self::Sequence, ' '..='/') | (Self::Sequence, '0'..='?') => (self, false),
            (Self::Escape | Self::Sequence, '\n') => (Self::Text, true),
            (Self::Escape | Self::Sequence, _) => (Self::Text, false),
            (Self::Command | Self::StringEscape, '\u{7}' | '\u{9c}') | (Self::StringEscape, '\\') => {
                (Self::Text, false)
            }
            (Self::Command | Self::StringEscape, '\u{1b}') => (Self::StringEscape, false),
            (Self::Command | Self::StringEscape, _) => (Self::Command, false),
            (Self::Text, '\n' | '\t') => (Self::Text, true),
            (Self::Text, character) => (Self::Text, !control(character)),
        }
    }
}

/// C0, DEL, C1, and what turns the direction of the text around it.
const fn control(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many of one character in a row are written out; more are counted.
const WRITTEN_OUT: usize = 8;
/// The same for spaces, which nobody can count on a screen.
const SPACES_WRITTEN_OUT: usize = 2;

/// `text` in quotation marks, as [`escaped`], so that it shows where it begins and ends.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace('"', "\\\""))
}

/// As [`quoted`], with every character beyond ASCII as its escape: in an address, a letter of
/// another alphabet leads elsewhere than the one it looks like.
pub(crate) fn quoted_address(text: &str) -> String {
    let ascii = |c: char| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() };
    quoted(text).chars().map(ascii).collect()
}

/// The whole of `text` on one line: nothing in it is dropped, everything that a screen would not
/// show as itself is an escape (`\n`, `\u{1b}`), and a long run of one character is its count
/// (`\{3000 spaces}`). A backslash is doubled, so that nothing else can look like an escape.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let mut run = 1;
        while rest.next_if_eq(&character).is_some() {
            run += 1;
        }
        let shown = shown(character);
        match (character, run) {
            (' ', run) if run > SPACES_WRITTEN_OUT => out.push_str(&format!("\\{{{run} spaces}}")),
            (_, run) if run > WRITTEN_OUT => out.push_str(&format!("\\{{{run} times {shown}}}")),
            (_, run) => out.push_str(&shown.repeat(run)),
        }
    }
    out
}

/// One line of a text that is to be read: it keeps its shape, and what cannot be seen or would
/// drive the terminal is an escape (`\u{1b}`). A tab is four spaces.
pub(crate) fn escaped_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\t' => out.push_str("    "),
            // What emoji are made of.
            joiner @ ('\u{200d}' | '\u{fe0f}') => out.push(joiner),
            unseen if unseen.is_control() || is_invisible(unseen) => out.extend(unseen.escape_unicode()),
            seen => out.push(seen),
        }
    }
    out
}

/// One character as itself, or as its escape.
fn shown(character: char) -> String {
    match character {
        '\'' | '"' => character.to_string(),
        // Letters and signs that look like a space.
        '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => {
            character.escape_unicode().to_string()
        }
        other => other.escape_debug().to_string(),
    }
}

/// The first `width` characters of one line, with an ellipsis where there was more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let one_line: String = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.chars().count() <= width {
        return one_line;
    }
    let mut short: String = one_line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_go_and_text_stays() {
        let check = |text: &str, want: &str| assert_eq!(plain(text), want, "{text:?}");
        check("plain é 漢\n\ttext", "plain é 漢\n\ttext");
        check("a\u{1b}[31;1mred\u{1b}[0mb", "aredb");
        check("a\u{9b}2Jb", "ab");
        check("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c", "abc");
        check("a\u{9d}52;c;cGF5\u{9c}b", "ab");
        check("a\u{1b}Pq#0\u{1b}\\b", "ab");
        check("a\u{1b}(Bb\u{1b}cd", "abd");
        check("over\rwrite\u{8}\0\u{7f}", "overwrite");
        check("\u{202e}txt.exe", "txt.exe");
        check("half a sequence \u{1b}[31", "half a sequence ");
        check("\u{1b}[1\nnext", "\nnext");
    }

    #[test]
    fn what_is_quoted_is_shown_whole_on_one_line_and_cannot_be_mistaken() {
        let check = |text: &str, want: &str| assert_eq!(quoted(text), format!("\"{want}\""), "{text:?}");
        check("plain é 漢 'x'", "plain é 漢 'x'");
        check("echo 42 \u{1b}]\n touch x #\u{7}", r"echo 42 \u{1b}]\n touch x #\u{7}");
        check("a\u{9d}b\u{202e}c\u{200b}d\u{a0}e\u{2028}f", r"a\u{9d}b\u{202e}c\u{200b}d\u{a0}e\u{2028}f");
        check(r#"say "\n""#, r#"say \"\\n\""#);
        check(&format!("a{}b", " ".repeat(3000)), r"a\{3000 spaces}b");
        check(r"a\{3000 spaces}b", r"a\\{3000 spaces}b");
        check(&"\n".repeat(40), r"\{40 times \n}");
        check("a  b \u{2800}\u{3164}", r"a  b \u{2800}\u{3164}");
        check("", "");
        assert_eq!(quoted_address("https://\u{430}pi.example/\n"), r#""https://\u{430}pi.example/\n""#);
    }

    #[test]
    fn a_line_keeps_its_shape_and_shows_what_cannot_be_seen() {
        let check = |line: &str, want: &str| assert_eq!(escaped_line(line), want, "{line:?}");
        check(r#"    if a == "\n" {     // é 漢 ☃"#, r#"    if a == "\n" {     // é 漢 ☃"#);
        check("a\u{1b}[2Jb\r\u{9d}c\u{202e}\0\t.", r"a\u{1b}[2Jb\u{d}\u{9d}c\u{202e}\u{0}    .");
        check("\u{93f}\u{915}\u{301}", "\u{93f}\u{915}\u{301}");
    }

    #[test]
    fn a_cut_is_one_line_of_at_most_its_width() {
        assert_eq!(cut("one\n two\tthree", 40), "one two three");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
