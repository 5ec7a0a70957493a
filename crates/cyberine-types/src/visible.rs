/// Whether `c` leaves no mark where it stands: zero-width characters, directional controls (Unicode
/// TR 9), variation selectors, fillers and tags. White space and controls are not among them.
///
/// The set is Unicode's `Default_Ignorable_Code_Point`, with the separators of lines and
/// paragraphs, the marks of interlinear annotation and the empty Braille pattern.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether nothing in `text` can be read: white space, controls, what [`is_invisible`], and the
/// character that stands for what was not UTF-8.
///
/// ```
/// assert!(cyberine_types::is_blank(" \u{200b}\n"));
/// assert!(!cyberine_types::is_blank("0"));
/// ```
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || c.is_control() || is_invisible(c) || c == char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_nobody_can_see_is_blank() {
        for text in [
            "",
            " \n\t\u{a0}",
            "\u{200b}",
            "\u{2060}\u{feff}",
            "\u{e0041}\u{e007f}",
            "\u{fe0f}",
            "\u{fffd}",
            "\u{2800}",
            "\u{7}",
        ] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["0", ".", "\u{200b}a", "🦉", "é"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
