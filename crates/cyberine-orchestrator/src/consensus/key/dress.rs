//! What may be around an answer without being part of it.

/// Pairs that are dressing where they are around the whole text. Straight quotation marks are none:
/// `"a"` and `a` are two values.
const PAIRS: [(&str, &str); 4] = [("`", "`"), ("“", "”"), ("‘", "’"), ("«", "»")];

/// Characters that code is made of. Where one of them stands, nothing is left out but what is
/// around all of it.
const SIGNS: [char; 22] = [
    '`', '"', '\\', '/', '=', '<', '>', '|', '&', ';', '{', '}', '[', ']', '_', '#', '~', '^', '@', '+', '*',
    '$',
];

/// Whether `text` may be code, a command or a path: a sign of it, a flag, a call, a name with a
/// point at its start or within it, or a quotation that begins.
pub(super) fn is_code(text: &str) -> bool {
    let of_word = |word: &str| {
        let mut chars = word.chars();
        let (first, second) = (chars.next(), chars.next());
        let flag = first == Some('-') && second.is_some();
        let within = word.trim_end_matches(['.', '…', ',']).chars().any(|c| c == '.');
        let dot = first == Some('.') || (within && super::number(word).is_none());
        let call = word.find('(').is_some_and(|at| at > 0);
        flag || dot || call || first == Some('\'')
    };
    text.contains(SIGNS) || text.split_whitespace().any(of_word)
}

/// `text` without white space, quotation marks, emphasis and LaTeX's box around all of it, and
/// without a full stop. What would be nothing but dressing stays.
pub(super) fn undressed(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let next = [unquoted(text), unemphasised(text), unboxed(text), unstopped(text)].into_iter().flatten();
        match next.map(str::trim).find(|next| !next.is_empty()) {
            Some(next) => text = next,
            None => return text,
        }
    }
}

/// The inside of one pair of quotation marks.
pub(super) fn unquoted(text: &str) -> Option<&str> {
    PAIRS.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains(open) && !inner.contains(close)).then_some(inner)
    })
}

/// The inside of `**…**`, where that is prose or a number. A single asterisk and underscores are
/// never taken for emphasis: `*p` and `__init__` mean what they say.
fn unemphasised(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("**")?.strip_suffix("**")?;
    let prose = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                ' ' | '.' | ',' | ':' | '?' | '!' | '\'' | '’' | '-' | '\u{2212}' | '$' | '€' | '£' | '%'
            )
    };
    let edge = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    (inner.chars().all(prose) && edge(inner.chars().next()) && edge(inner.chars().next_back()))
        .then_some(inner)
}

/// The inside of LaTeX's `\boxed{…}`, with the dollar signs around it gone.
fn unboxed(text: &str) -> Option<&str> {
    let math = ["$$", "$"].iter().find_map(|sign| text.strip_prefix(sign)?.strip_suffix(sign));
    let inner = math.unwrap_or(text).trim().strip_prefix("\\boxed{")?.strip_suffix('}')?;
    (!inner.contains(['{', '}'])).then_some(inner)
}

/// `text` without the full stop at its end, where it ends a sentence, a plain word, a number or
/// what has dressing around it. `git add .` ends with its argument, an ellipsis is no full stop, and
/// neither is an exclamation mark: `5!` is 120.
fn unstopped(text: &str) -> Option<&str> {
    let rest = text.strip_suffix(['.', '。'])?;
    let whole = || {
        super::number(rest).is_some()
            || [unquoted(rest), unemphasised(rest), unboxed(rest)].iter().any(Option::is_some)
    };
    (whole() || is_word(rest) || is_sentence(rest)).then_some(rest)
}

/// A word of two letters and more.
fn is_word(text: &str) -> bool {
    text.chars().nth(1).is_some() && text.chars().all(char::is_alphabetic)
}

fn is_sentence(text: &str) -> bool {
    let begins = text.starts_with(char::is_uppercase) || after(text, &LEAD_INS).is_some();
    let several = text.split_whitespace().nth(1).is_some();
    begins && several && text.ends_with(char::is_alphanumeric) && !is_code(text)
}

const LEAD_INS: [&str; 8] = [
    "the final answer is",
    "the correct answer is",
    "the answer is",
    "final answer:",
    "the result is",
    "answer:",
    "result:",
    "answer is",
];

/// What follows a lead-in, undressed; `text` where there is none, or nothing after it.
pub(super) fn without_lead_in(text: &str) -> &str {
    after(text, &LEAD_INS).map(undressed).filter(|rest| !rest.is_empty()).unwrap_or(text)
}

/// What follows one of `lead_ins`, whatever its case; one that ends in a colon must have it, any
/// other may, and else a word must end there. The lead-in alone may be emphasised: `**Answer:** 42`,
/// `**Answer**: 42`.
pub(super) fn after<'a>(text: &'a str, lead_ins: &[&str]) -> Option<&'a str> {
    let (emphasised, text) = text.strip_prefix("**").map_or((false, text), |rest| (true, rest));
    lead_ins.iter().find_map(|lead_in| {
        let words = lead_in.trim_end_matches(':');
        let head = text.get(..words.len())?;
        let rest = head.eq_ignore_ascii_case(words).then(|| &text[words.len()..])?;
        let (colon, rest) = if emphasised {
            let colons = [":**", "**:"].iter().find_map(|end| rest.strip_prefix(end));
            colons.map(|rest| (true, rest)).or_else(|| Some((false, rest.strip_prefix("**")?)))?
        } else {
            rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest))
        };
        let ends =
            colon || (!lead_in.ends_with(':') && (rest.is_empty() || rest.starts_with(char::is_whitespace)));
        ends.then(|| rest.trim())
    })
}
