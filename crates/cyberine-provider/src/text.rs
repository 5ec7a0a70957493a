//! From bytes to text that is safe to show: UTF-8 across chunk boundaries, terminal escapes out.

/// Decodes UTF-8 that arrives in pieces. What is not UTF-8 becomes U+FFFD, a character split
/// between two pieces does not.
#[derive(Debug, Default)]
pub(crate) struct Utf8Decoder {
    /// The start of a character whose rest has not come: at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes `bytes` onto `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.pending.is_empty() {
            bytes
        } else {
            joined = [&self.pending[..], bytes].concat();
            self.pending.clear();
            &joined[..]
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return out.push_str(text),
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    out.push_str(&String::from_utf8_lossy(good));
                    let Some(length) = error.error_len() else {
                        self.pending.extend_from_slice(bad);
                        return;
                    };
                    out.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
    }

    /// Ends the input: half a character becomes U+FFFD.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.pending).is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Takes terminal escapes and control characters out of text that arrives in pieces (ECMA-48:
/// CSI, OSC and the other strings, two-character escapes, C0 but `\n` and `\t`, DEL and C1).
#[derive(Debug, Default)]
pub(crate) struct EscapeStripper {
    state: Escape,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    Ground,
    /// After ESC and any intermediates.
    Introduced,
    /// Within a control sequence.
    Csi,
    /// Within OSC, DCS, SOS, PM or APC.
    String,
    /// Within a string, after an ESC that may begin its terminator.
    Terminator,
}

impl EscapeStripper {
    /// Appends what may be shown of `text` to `out`.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        for character in text.chars() {
            self.step(character, out);
        }
    }

    fn step(&mut self, character: char, out: &mut String) {
        self.state = match (self.state, character) {
            (Escape::Ground, c) => ground(c, out),
            (Escape::Introduced, '[') => Escape::Csi,
            (Escape::Introduced, ']' | 'P' | 'X' | '^' | '_') => Escape::String,
            (Escape::Introduced, ' '..='/') => Escape::Introduced,
            (Escape::Introduced, '0'..='~') => Escape::Ground,
            (Escape::Csi, ' '..='?') => Escape::Csi,
            (Escape::Csi, '@'..='~') => Escape::Ground,
            (Escape::String | Escape::Terminator, '\u{7}' | '\u{9c}') => Escape::Ground,
            (Escape::String | Escape::Terminator, '\u{1b}') => Escape::Terminator,
            (Escape::Terminator, '\\') => Escape::Ground,
            // A string ends with its line at the latest, so that one without a terminator cannot
            // hide the rest of an answer.
            (Escape::String, c) if c != '\n' => Escape::String,
            (Escape::Terminator, c) if c != '\n' => Escape::String,
            // Anything else aborts the sequence and counts for itself.
            (_, c) => ground(c, out),
        };
    }
}

fn ground(character: char, out: &mut String) -> Escape {
    match character {
        '\u{1b}' => Escape::Introduced,
        '\u{9b}' => Escape::Csi,
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Escape::String,
        '\n' | '\t' => {
            out.push(character);
            Escape::Ground
        }
        c if c.is_control() => Escape::Ground,
        c => {
            out.push(c);
            Escape::Ground
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&[u8]]) -> String {
        let (mut decoder, mut out) = (Utf8Decoder::default(), String::new());
        for piece in pieces {
            decoder.push(piece, &mut out);
        }
        decoder.finish(&mut out);
        out
    }

    fn stripped(text: &str) -> String {
        let (mut whole, mut out) = (EscapeStripper::default(), String::new());
        whole.push(text, &mut out);
        let (mut single, mut by_character) = (EscapeStripper::default(), String::new());
        for character in text.chars() {
            single.push(character.encode_utf8(&mut [0; 4]), &mut by_character);
        }
        assert_eq!(out, by_character, "{text:?}");
        out
    }

    #[test]
    fn a_character_split_anywhere_is_whole_again() {
        let text = "é—🦉 a";
        for cut in 0..=text.len() {
            assert_eq!(decoded(&[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]), text, "{cut}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(decoded(&single), text);
    }

    #[test]
    fn what_is_not_utf_8_is_replaced_and_the_rest_kept() {
        assert_eq!(decoded(&[b"a\xffb"]), "a\u{fffd}b");
        assert_eq!(decoded(&[b"caf\xc3"]), "caf\u{fffd}");
        assert_eq!(decoded(&[b"\xf0\x9f", b"x"]), "\u{fffd}x");
        assert_eq!(decoded(&[b"\xed\xa0\x80"]), "\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn escapes_go_and_text_stays() {
        for (input, expected) in [
            ("\u{1b}[31mred\u{1b}[0m\n\tx", "red\n\tx"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c", "abc"),
            ("\u{9b}2Ja\u{9d}t\u{9c}b\u{85}", "ab"),
            ("\u{1b}(Ba\u{1b}=b\u{1b}Pq#0\u{1b}\\c", "abc"),
            ("line\r\nprogress 1\rprogress 2\u{8}\u{0}\u{7f}", "line\nprogress 1progress 2"),
            ("\u{1b}]never closed\nnext line", "\nnext line"),
            ("\u{1b}[12é", "é"),
            ("\u{1b}", ""),
            ("\u{1b}\u{1b}[1mx", "x"),
        ] {
            assert_eq!(stripped(input), expected, "{input:?}");
        }
    }
}
