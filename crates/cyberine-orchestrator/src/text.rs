//! Cutting text for people and records.

/// One line of at most `limit` characters: white space runs become one space, and what was cut
/// is marked by an ellipsis.
pub(crate) fn preview(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    capped(&line, limit)
}

/// At most `limit` characters, the last of them an ellipsis where something was cut.
pub(crate) fn capped(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(capped("äöü", 3), "äöü");
        assert_eq!(capped("äöüß", 3), "äö…");
        assert_eq!(preview(" a\n b\t c ", 80), "a b c");
    }
}
