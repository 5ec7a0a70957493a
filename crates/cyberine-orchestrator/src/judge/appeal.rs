//! Words in an answer that speak to whoever judges it.

mod lists;
mod rules;
mod words;

use std::ops::Range;

use crate::criteria::Criterion;
use rules::Kind;
use words::{Break, Word};

/// `text` without the words that speak to whoever judges it, by `criteria` where there are any; `None`
/// where there are none.
///
/// What is left out is no more than the part of a sentence that does so, up to the next comma, bracket or
/// end of a line, never code beside it, and what kind it was stands in its place. Such words can be
/// put in ways no list knows: this keeps a judge from following those that it knows, and no more.
pub(crate) fn without(text: &str, criteria: &[Criterion]) -> Option<String> {
    let words = words::words(text);
    let name = |one: &Criterion| words::words(&one.name).into_iter().map(|word| word.text).collect();
    let names: Vec<String> = criteria.iter().map(name).collect();
    let found = rules::found(&words, &names).into_iter();
    let mut parts: Vec<(Range<usize>, Kind)> =
        found.map(|(range, kind)| (whole(&words, range), kind)).collect();
    parts.sort_by_key(|(range, _)| (range.start, range.end));
    let mut merged: Vec<(Range<usize>, Kind)> = Vec::new();
    for (range, kind) in parts {
        match merged.last_mut().filter(|(last, of)| is_one(text, last, &range, *of == kind)) {
            Some((last, _)) => last.end = last.end.max(range.end),
            None => merged.push((range, kind)),
        }
    }
    if merged.is_empty() {
        return None;
    }
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for (range, kind) in merged {
        shown.push_str(text.get(end..range.start).unwrap_or_default());
        shown.push_str(&format!("(words to the judge left out: {})", kind.name()));
        end = range.end;
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Some(shown)
}

/// Whether `next` overlaps `last`, or is of its kind and follows at once.
fn is_one(text: &str, last: &Range<usize>, next: &Range<usize>, is_of_its_kind: bool) -> bool {
    let between = text.get(last.end..next.start).unwrap_or_default();
    let parts = |c: char| c.is_whitespace() || matches!(c, ',' | '.' | ':' | ';' | '!' | '?' | '-' | '*');
    next.start < last.end || (is_of_its_kind && between.chars().all(parts))
}

/// What has to be said of those whose words were left out; empty where there were none.
pub(crate) fn said<'a>(speaking: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = speaking.map(|id| format!("`{id}`")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("Words to the judge were left out of {}. ", names.join(", "))
}

/// The bytes of the part of the sentence in which the words of `range` stand.
fn whole(words: &[Word], range: Range<usize>) -> Range<usize> {
    let parts = |at: usize| words.get(at).is_none_or(|word| word.before > Break::None);
    let first = (0..=range.start).rev().find(|at| parts(*at)).unwrap_or_default();
    let end = (range.end..=words.len()).find(|at| parts(*at)).unwrap_or(words.len());
    words[first].start..words[end - 1].end
}

#[cfg(test)]
mod tests;
