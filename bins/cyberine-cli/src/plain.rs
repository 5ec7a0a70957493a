//! Text of others, made safe for a terminal.

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
    fn a_cut_is_one_line_of_at_most_its_width() {
        assert_eq!(cut("one\n two\tthree", 40), "one two three");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
