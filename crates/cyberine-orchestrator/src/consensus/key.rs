//! What an answer says, without how it is written.

mod dress;
mod statement;

use super::decimal::Decimal;
use dress::{is_code, undressed, without_lead_in};

/// What two answers have in common when they say the same. Equality of keys is an equivalence,
/// so clusters do not depend on the order answers are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// A number and its unit (empty for none).
    Number(Decimal, String),
    /// Words: single spaces, no dressing, and lower case where case is only a way to write.
    Words(String),
    /// Several lines, where case and indentation may mean something.
    Lines(String),
}

/// A one-line answer longer than this is compared as it is.
const SHORT: usize = 400;

/// The key of `answer`.
///
/// Whatever is in doubt stays apart: a majority that is missed costs a judge, a false one is a
/// wrong answer. A short one-line answer loses its dressing: lead-ins such as "the answer is",
/// typographic quotation marks, backticks and emphasis around all of it, the full stop of a sentence,
/// runs of white space, and its case where it is one plain word. What may be code keeps all that is
/// inside it. Of an answer of several lines that states its final answer, and nothing
/// but a number or another short literal, that statement counts. Any other is compared as it is,
/// line ends aside: in code, case and indentation carry meaning.
pub(super) fn key(answer: &str) -> Key {
    let bare = answer.trim_matches(|c: char| c.is_whitespace() || is_padding(c));
    // What is nothing but padding is told apart by it.
    let answer = if bare.is_empty() { answer } else { bare };
    if answer.lines().count() <= 1 && answer.chars().count() <= SHORT {
        return short(answer);
    }
    if let Some(stated) = statement::of(answer) {
        return stated;
    }
    let lines: Vec<&str> = answer.lines().map(str::trim_end).collect();
    Key::Lines(lines.join("\n"))
}

/// Characters without a mark that tools put around text: zero-width and no-break spaces.
const fn is_padding(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

fn short(text: &str) -> Key {
    // What stands between backticks is code, and keeps its case.
    let bare = without_lead_in(undressed(text));
    let code = text.contains('`') && number(bare).is_none();
    if code { Key::Words(bare.to_owned()) } else { value(bare) }
}

/// The key of a text that has lost its dressing and its lead-in.
fn value(text: &str) -> Key {
    number(text).unwrap_or_else(|| {
        let words: Vec<&str> = text.split_whitespace().collect();
        Key::Words(match words.as_slice() {
            _ if is_code(text) => text.to_owned(),
            [word] => folded(word),
            _ => words.join(" "),
        })
    })
}

/// A word of three letters and more in lower case where its case is that of prose: all small, one
/// capital at the start, or all capitals. `mW` and `MW`, `US` and `us`, `getName` and `$HOME` keep
/// theirs. Of shorter words only "No" is one that is written either way.
fn folded(word: &str) -> String {
    let core = word.trim_matches(|c: char| matches!(c, ',' | '.' | ';' | ':' | '?' | '(' | ')'));
    let mut letters = core.chars().filter(|c| !matches!(c, '\'' | '’' | '-'));
    let plain = letters.clone().all(char::is_alphabetic);
    let count = letters.clone().count();
    let first_only = letters.next().is_some() && letters.clone().all(|c| !c.is_uppercase());
    let all = core.chars().all(|c| !c.is_lowercase());
    if core == "No" || (plain && count >= 3 && (first_only || all)) {
        return word.to_lowercase();
    }
    word.to_owned()
}

/// A number with nothing beside it but a unit. Units keep their case: `mW` is not `MW`.
fn number(text: &str) -> Option<Key> {
    let (dollar, bare) = text.strip_prefix('$').map_or((false, text), |rest| (true, rest));
    let (value, rest) = Decimal::take(bare)?;
    let unit = rest.trim();
    let one_word =
        unit.chars().all(|c| c.is_alphabetic() || matches!(c, '%' | '°' | '/' | '²' | '³' | '€' | '£'));
    if !one_word || (dollar && !unit.is_empty()) {
        return None;
    }
    let unit = match unit {
        "" if dollar => "USD",
        "dollar" | "dollars" => "USD",
        "percent" => "%",
        other => other,
    };
    Some(Key::Number(value, unit.to_owned()))
}

#[cfg(test)]
mod tests;
