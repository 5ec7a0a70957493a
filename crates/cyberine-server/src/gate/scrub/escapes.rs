//! What a text says to who takes it for JSON.

/// The text with its JSON escapes (RFC 8259, section 7) decoded; what is none stays as it is. `None`
/// where the text has none.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut rest = text;
    let mut out = text.contains('\\').then(|| String::with_capacity(text.len()))?;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let (meant, length) = meant(escape).unwrap_or(('\\', 1));
        out.push_str(before);
        out.push(meant);
        rest = &escape[length..];
    }
    out.push_str(rest);
    Some(out)
}

/// What the escape at the start of a text stands for, and how long it is.
fn meant(text: &str) -> Option<(char, usize)> {
    let meant = match text.as_bytes().get(1)? {
        b'u' => return code_point(text),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        itself @ (b'"' | b'\\' | b'/') => char::from(*itself),
        _ => return None,
    };
    Some((meant, 2))
}

fn code_point(text: &str) -> Option<(char, usize)> {
    let first = unit(text)?;
    let decode = |units: &[u16]| char::decode_utf16(units.iter().copied()).next()?.ok();
    if let Some(character) = decode(&[first]) {
        return Some((character, 6));
    }
    let second = unit(&text[6..])?;
    Some((decode(&[first, second])?, 12))
}

fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes_are_decoded_and_all_else_stays() {
        for (text, meant) in [
            ("plain é", None),
            (r#"a\"b\\c\/d"#, Some("a\"b\\c/d")),
            (r"\b\f\n\r\t", Some("\u{8}\u{c}\n\r\t")),
            (r"\u0041\u00e9\uD83e\udd89z", Some("Aé🦉z")),
            (r"\ud83e\u0041", Some(r"\ud83eA")),
            (r"\ud83e", Some(r"\ud83e")),
            (r"\u00é1\u+041\x\", Some(r"\u00é1\u+041\x\")),
        ] {
            assert_eq!(decoded(text).as_deref(), meant, "{text}");
        }
    }
}
