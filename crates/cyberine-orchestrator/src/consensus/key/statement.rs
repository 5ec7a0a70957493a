//! The final answer that a text of several lines states.

use super::dress::{after, undressed, unquoted};
use super::{Key, value};

/// Lead-ins that announce the final answer and nothing else.
const ANNOUNCEMENTS: [&str; 4] = ["the final answer is", "the answer is", "final answer:", "answer:"];
/// What no text with one final answer has twice.
const MARKS: [&str; 2] = ["answer:", "answer is"];
/// What may take back the statement that follows it.
const DOUBTS: [&str; 14] = [
    "not",
    "never",
    "no",
    "false",
    "wrong",
    "untrue",
    "incorrect",
    "mistaken",
    "disagree",
    "refuse",
    "claim",
    "claims",
    "claimed",
    "following",
];
/// The longest quoted literal that is an answer of its own, in characters.
const LITERAL: usize = 40;

/// The key of the final answer that `text` states, where there is no doubt about it: its last line
/// announces it and stands for itself, nothing else in the text announces one, it is a number, a
/// yes or no, a single letter or a quoted literal, and there is no code that could be the answer.
pub(super) fn of(text: &str) -> Option<Key> {
    if text.contains("```") || text.contains("~~~") || announcements(text) != 1 {
        return None;
    }
    let (before, last) = text.rsplit_once('\n')?;
    let last = last.trim();
    if !last.trim_start_matches('*').starts_with(char::is_uppercase) || !ends(before) {
        return None;
    }
    let stated = after(undressed(last), &ANNOUNCEMENTS)?;
    let stated = stated.strip_suffix('.').unwrap_or(stated);
    let literal = unquoted(stated).is_some_and(|inner| inner.chars().count() <= LITERAL);
    let key = value(undressed(stated));
    let short = match &key {
        Key::Number(..) => true,
        Key::Words(words) => is_choice(words) || literal,
        Key::Lines(_) => false,
    };
    short.then_some(key)
}

fn announcements(text: &str) -> usize {
    text.to_lowercase().replace('*', "").lines().map(announced_by).sum()
}

/// How many answers a line announces. A remark in parentheses, such as that an answer is scripted,
/// announces none unless it begins with one.
fn announced_by(line: &str) -> usize {
    let line = line.trim();
    let begins = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let remark = line.starts_with('(') && line.ends_with(')');
    if remark && !ANNOUNCEMENTS.iter().any(|lead_in| begins.starts_with(lead_in)) {
        return 0;
    }
    MARKS.iter().map(|mark| line.matches(mark).count()).sum()
}

/// Whether what stands before the last line is complete, so that the line does not go on with a
/// sentence ("I will not say that") or with a quotation ("Some claim:") begun there, and whether the
/// line before it holds no word that may take it back ("The following is false.").
fn ends(before: &str) -> bool {
    let told = before.trim_end();
    let blank = before[told.len()..].contains('\n');
    let open = told.ends_with([':', ',', ';']);
    let last = told.lines().next_back().unwrap_or_default().to_lowercase();
    let mut words = last.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let doubt = words.any(|word| DOUBTS.contains(&word) || word.ends_with("n't") || word.ends_with("n’t"));
    !open && !doubt && (blank || told.ends_with(['.', '!', '?', '。', ')']))
}

fn is_choice(words: &str) -> bool {
    words.chars().count() == 1 && words.chars().all(char::is_alphabetic) || matches!(words, "yes" | "no")
}
