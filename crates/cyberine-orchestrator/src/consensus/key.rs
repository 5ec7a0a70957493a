//! What an answer says, without how it is written.

use super::decimal::Decimal;

/// What two answers have in common when they say the same. Equality of keys is an equivalence,
/// so clusters do not depend on the order answers are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// A number and its unit (empty for none).
    Number(Decimal, String),
    /// Words: lower case, single spaces, no dressing.
    Words(String),
    /// Several lines, where case and indentation may mean something.
    Lines(String),
}

/// A one-line answer longer than this is compared with its case.
const SHORT: usize = 400;

/// The key of `answer`.
///
/// A short one-line answer loses its dressing: lead-ins such as "the answer is", quotation
/// marks, Markdown emphasis, the full stop, case and runs of white space. Of a long answer whose
/// last line states a final answer, that statement counts. Any other long answer is compared as
/// it is, line ends aside: in code, case and indentation carry meaning.
pub(super) fn key(answer: &str) -> Key {
    let answer = answer.trim();
    if answer.lines().count() <= 1 && answer.chars().count() <= SHORT {
        return short(answer);
    }
    if let Some(stated) = final_statement(answer) {
        return short(stated);
    }
    let lines: Vec<&str> = answer.lines().map(str::trim_end).collect();
    Key::Lines(lines.join("\n"))
}

fn short(text: &str) -> Key {
    let words = without_lead_in(&plain(text));
    number(&words).unwrap_or(Key::Words(words))
}

/// Lower case, single spaces, emphasis and quotation marks and the full stop gone.
fn plain(text: &str) -> String {
    let visible: String =
        text.chars().filter(|c| !matches!(c, '\u{200b}' | '\u{200d}' | '\u{2060}' | '\u{feff}')).collect();
    let unboxed = unboxed(&visible).replace("**", "").replace("__", "");
    let lower = unboxed.to_lowercase();
    let spaced = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    undressed(&spaced).to_owned()
}

/// The inside of LaTeX's `\boxed{…}`, with the dollar signs around it gone.
fn unboxed(text: &str) -> &str {
    let inner = text.trim().trim_matches('$').trim();
    inner.strip_prefix("\\boxed{").and_then(|rest| rest.strip_suffix('}')).unwrap_or(text)
}

fn undressed(text: &str) -> &str {
    let dress = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*' | '“' | '”' | '‘' | '’' | '«' | '»')
    };
    let stop = |c: char| matches!(c, '.' | '!' | ';' | ',' | '。' | '！');
    let mut text = text;
    loop {
        let next = text.trim_matches(dress).trim_end_matches(stop);
        if next == text || next.is_empty() {
            return text;
        }
        text = next;
    }
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

fn without_lead_in(words: &str) -> String {
    let rest = LEAD_INS
        .iter()
        .find_map(|lead_in| words.strip_prefix(lead_in))
        .map(|rest| rest.trim_start_matches([':', ' ']));
    match rest.map(undressed) {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => words.to_owned(),
    }
}

/// What the last line states, where it begins with one of the lead-ins that announce an answer.
fn final_statement(answer: &str) -> Option<&str> {
    let last = answer.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let announces = |words: String| LEAD_INS.iter().any(|lead_in| words.starts_with(lead_in));
    (last.chars().count() <= SHORT && announces(plain(last))).then_some(last)
}

/// A number with nothing beside it but a unit.
fn number(words: &str) -> Option<Key> {
    let (dollar, bare) = words.strip_prefix('$').map_or((false, words), |rest| (true, rest));
    let (value, rest) = Decimal::take(bare)?;
    let unit = rest.trim();
    let one_word =
        unit.chars().all(|c| c.is_alphabetic() || matches!(c, '%' | '°' | '/' | '²' | '³' | '€' | '£'));
    if !one_word || (dollar && !unit.is_empty()) {
        return None;
    }
    let unit = match unit {
        "" if dollar => "usd",
        "dollar" | "dollars" => "usd",
        "percent" => "%",
        other => other,
    };
    Some(Key::Number(value, unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(texts: &[&str]) {
        for text in texts {
            assert_eq!(key(text), key(texts[0]), "`{text}` and `{}`", texts[0]);
        }
    }

    #[test]
    fn dressing_does_not_matter() {
        same(&[
            "42",
            "42.0",
            " **42** ",
            "The answer is 42.",
            "Answer: 42",
            "\"42\"",
            "`42`",
            "$\\boxed{42}$",
            "The answer is: **42.0**.",
        ]);
        same(&[
            "Paris",
            "paris.",
            "  PARIS!  ",
            "“Paris”",
            "*Paris*",
            "The answer is Paris.",
            "**Answer:** Paris",
        ]);
        same(&["1,234.50", "1234.5", "1 234.5"]);
        same(&["$1,000", "1000 dollars", "1000 USD"]);
        same(&["12 %", "12%", "12 percent"]);
        same(&["new   york", "New York", "New\u{a0}York"]);
        same(&["Let me think.\n6 × 7 = 42.\n\nFinal answer: 42", "42"]);
        same(&["ÉCOLE", "école"]);
    }

    #[test]
    fn what_differs_stays_apart() {
        let apart = [
            ("42", "43"),
            ("42", "-42"),
            ("42 km", "42 m"),
            ("42", "42 km"),
            ("$5", "5 %"),
            ("yes", "no"),
            ("yes", "yes?"),
            ("Paris has 2", "London has 2"),
            ("3,14", "314"),
            ("if x:\n    y()", "if x:\ny()"),
            ("Let A\nLet b", "let a\nlet b"),
            ("First line.\nIt is 42", "Other line.\nIt is 42"),
            ("*", "**"),
            ("not 42", "42"),
        ];
        for (left, right) in apart {
            assert_ne!(key(left), key(right), "`{left}` and `{right}`");
        }
    }

    #[test]
    fn nothing_but_dressing_keeps_itself() {
        assert_eq!(key("..."), Key::Words("...".into()));
        assert_eq!(key("The answer is"), Key::Words("the answer is".into()));
    }
}
