/// What stands for half of a surrogate pair: U+FFFD, as an escape of the same length.
const REPLACEMENT: &str = "\\ufffd";

/// `json` with every escape that is half of a surrogate pair replaced. Programs that count text in
/// UTF-16 write one where they cut a text within a character.
#[must_use]
pub fn mended(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        // Two escapes are a pair, one is two bytes or six; what is shorter is no JSON.
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(REPLACEMENT);
                rest = &escape[6..];
                continue;
            }
            _ => escape.ceil_char_boundary(2),
        };
        let (whole, behind) = escape.split_at(length);
        out.push_str(whole);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The number of the `\u` escape that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
        for (json, expected) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\udd89b""#, r#""\ufffdb""#),
            (r#""\ud83d\n\ud83e\udd89\udd89""#, r#""\ufffd\n\ud83e\udd89\ufffd""#),
            (r#""\ud83d\ud83d\udd89""#, r#""\ufffd\ud83d\udd89""#),
            (r#""\\ud83d \\\ud83d é""#, r#""\\ud83d \\\ufffd é""#),
            (r#""\u00e9\"\\""#, r#""\u00e9\"\\""#),
            ("\\", "\\"),
            ("\\é\\ud8", "\\é\\ud8"),
        ] {
            assert_eq!(mended(json), expected);
        }
    }
}
