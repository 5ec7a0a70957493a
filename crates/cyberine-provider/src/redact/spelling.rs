//! The spellings in which a text can carry a secret: what somebody decodes later would bring it out
//! again, so each of its characters is known as it is and as JSON, as another program's string or
//! as a URL has it, in any mixture.

/// The most backslashes before an escape: it stood in three strings, one within the other.
const RUN_MAX: usize = 8;

/// What stands at the beginning of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The length of the longest spelling of the secret.
    pub(super) whole: Option<usize>,
    /// Whether all of the text may be the beginning of one that goes on.
    pub(super) begun: bool,
}

/// Whether a spelling of `secret` may begin with `byte`.
pub(super) fn may_begin(secret: &str, byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&') || secret.as_bytes().first() == Some(&byte)
}

/// Looks for `secret` at the beginning of `text`, however it is spelled.
pub(super) fn find(secret: &str, text: &str) -> Found {
    let mut begun = false;
    // Where the characters so far may end. More than one place only where the secret holds
    // backslashes: how many of them stand for one cannot be told.
    let mut ends = vec![0];
    for c in secret.chars() {
        let mut next = Vec::new();
        for at in ends {
            // A text that is wrapped may be wrapped within.
            let wrapped = ["\n", "\r\n"].into_iter().find(|line| at > 0 && text[at..].starts_with(line));
            for at in [Some(at), wrapped.map(|line| at + line.len())].into_iter().flatten() {
                begun |= spellings(c, &text[at..], &mut |length| next.push(at + length));
            }
        }
        if next.is_empty() {
            return Found { whole: None, begun };
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
    }
    Found { whole: ends.last().copied(), begun }
}

/// Tells `end` the length of each spelling of `c` that `text` begins with, and the caller whether
/// all of `text` may be the beginning of another.
fn spellings(c: char, text: &str, end: &mut impl FnMut(usize)) -> bool {
    if text.starts_with(c) {
        end(c.len_utf8());
    }
    match text.as_bytes().first() {
        None => true,
        Some(b'\\') => escapes(c, text, end),
        Some(b'%') => percent(c, text, end),
        Some(b'&') => entity(c, text, end),
        Some(b'\r') => text.len() == 1,
        Some(_) => false,
    }
}

/// Backslashes, and `u` with the number of `c`, or what is short for `c`, or `c` itself.
fn escapes(c: char, text: &str, end: &mut impl FnMut(usize)) -> bool {
    let run = run(text);
    if c == '\\' {
        (2..=run.min(RUN_MAX)).for_each(&mut *end);
    }
    if run > RUN_MAX {
        return false;
    }
    let after = &text[run..];
    if after.is_empty() {
        return true;
    }
    let short = match c {
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\\' => None,
        c => c.is_ascii_punctuation().then_some(c),
    };
    if short.is_some_and(|short| after.starts_with(short)) {
        end(run + 1);
    }
    numbered(c, text, end)
}

/// `\u` and four digits for each unit of `c` in UTF-16.
fn numbered(c: char, text: &str, end: &mut impl FnMut(usize)) -> bool {
    let mut at = 0;
    for unit in c.encode_utf16(&mut [0; 2]) {
        let run = run(&text[at..]);
        if run > RUN_MAX {
            return false;
        }
        at += run;
        if at == text.len() {
            return true;
        }
        if run == 0 || text.as_bytes()[at] != b'u' {
            return false;
        }
        at += 1;
        match digits(&text.as_bytes()[at..], &format!("{unit:04x}")) {
            Digits::Whole => at += 4,
            Digits::Begun => return true,
            Digits::Others => return false,
        }
    }
    end(at);
    false
}

/// `%` and two digits for each byte of `c` in UTF-8.
fn percent(c: char, text: &str, end: &mut impl FnMut(usize)) -> bool {
    let mut at = 0;
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        match text.as_bytes().get(at) {
            None => return true,
            Some(b'%') => at += 1,
            Some(_) => return false,
        }
        match digits(&text.as_bytes()[at..], &format!("{byte:02x}")) {
            Digits::Whole => at += 2,
            Digits::Begun => return true,
            Digits::Others => return false,
        }
    }
    end(at);
    false
}

/// `&#`, the number of `c` and `;`.
fn entity(c: char, text: &str, end: &mut impl FnMut(usize)) -> bool {
    let number = u32::from(c);
    let mut begun = false;
    for entity in [format!("&#{number};"), format!("&#x{number:x};"), format!("&#x{number:02x};")] {
        let there = text.len().min(entity.len());
        if text.as_bytes()[..there].eq_ignore_ascii_case(&entity.as_bytes()[..there]) {
            if there == entity.len() {
                end(there);
            } else {
                begun = true;
            }
        }
    }
    begun
}

/// How many backslashes `text` begins with; one more than counts at most.
fn run(text: &str) -> usize {
    text.bytes().take(RUN_MAX + 1).take_while(|byte| *byte == b'\\').count()
}

enum Digits {
    Whole,
    Begun,
    Others,
}

/// Whether `text` begins with `wanted`, in letters of either case, or is the beginning of it.
fn digits(text: &[u8], wanted: &str) -> Digits {
    let length = text.len().min(wanted.len());
    if !text[..length].eq_ignore_ascii_case(&wanted.as_bytes()[..length]) {
        return Digits::Others;
    }
    if length == wanted.len() { Digits::Whole } else { Digits::Begun }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(secret: &str, text: &str) -> Option<usize> {
        find(secret, text).whole
    }

    #[test]
    fn a_character_has_many_spellings() {
        for (c, spellings) in [
            ("a", &["a", r"\u0061", r"\\u0061", r"\\\\u0061", "%61"][..]),
            ("\"", &["\"", r#"\""#, r#"\\\""#, r"\u0022", "%22"]),
            ("/", &["/", r"\/", r"\u002f", r"\u002F", "%2f", "%2F"]),
            ("\\", &[r"\", r"\\", r"\\\\", r"\u005c", r"\u005C", r"\\u005c", "%5c", "%5C"]),
            ("é", &["é", r"\u00e9", r"\u00E9", "%c3%a9", "%C3%A9"]),
            ("🦉", &["🦉", r"\ud83e\udd89", r"\uD83E\uDD89", r"\\uD83E\\uDD89", "%f0%9f%A6%89"]),
            ("\n", &["\n", r"\n", r"\u000a", r"\\n", "%0A"]),
            ("-", &["-", r"\-", r"\u002d", "%2d"]),
        ] {
            for text in spellings {
                assert_eq!(whole(c, text), Some(text.len()), "{c:?} {text}");
                assert_eq!(whole(c, &format!("{text}x")), Some(text.len()), "{c:?} {text}");
                for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                    assert!(find(c, &text[..cut]).begun, "{c:?} {}", &text[..cut]);
                }
            }
        }
    }

    #[test]
    fn what_is_something_else_is_neither_found_nor_waited_for() {
        for (c, text) in [
            ("a", "b"),
            ("a", r"\u0062"),
            ("a", r"\u00g"),
            ("a", r"\a"),
            ("a", "%62"),
            ("a", "%g"),
            ("é", "%c3x"),
            ("🦉", r"\ud83e\udd8a"),
            ("🦉", r"\ud83ex"),
            ("🦉", r"\ud83eu"),
            ("n", r"\n"),
            ("a", r"\\\\\\\\\u0061"),
        ] {
            assert_eq!(find(c, text), Found::default(), "{c:?} {text}");
        }
    }

    #[test]
    fn spellings_mix_and_the_longest_counts() {
        let text = r#"\u0061\"%2f\\\u00e9b rest"#;
        assert_eq!(whole(r#"a"/\éb"#, text), Some(text.len() - " rest".len()));
        assert_eq!(whole(r"ab\", r"ab\\\\."), Some(6));
        // More backslashes may follow, and would belong to it.
        assert_eq!(find(r"ab\", r"ab\"), Found { whole: Some(3), begun: true });
    }
}
