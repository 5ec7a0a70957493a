//! Pieces of text: where lines break, how they are indented, what is put in.

/// How a file breaks its lines: as its first line does.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The white space the line of `at` begins with, up to `at`.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only white space stands before `at` in its line.
pub(crate) fn begins_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.ends_with('\n')
}

/// Where the white space before `at` begins: back over the line break before it where there is
/// one, else over the one space that parts members on one line.
pub(crate) fn gap_before(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end_matches([' ', '\t']);
    if let Some(before) = before.strip_suffix('\n') {
        return before.strip_suffix('\r').unwrap_or(before).len();
    }
    if text[..at].ends_with(' ') { at - 1 } else { at }
}

/// The line and column of a byte, both from 1; columns count characters.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Puts texts in where they belong; `pieces` are in ascending order.
pub(crate) fn insert(text: &str, pieces: &[(usize, &str)]) -> String {
    let mut out =
        String::with_capacity(text.len() + pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>());
    let mut done = 0;
    for (at, piece) in pieces {
        out.push_str(&text[done..*at]);
        out.push_str(piece);
        done = *at;
    }
    out.push_str(&text[done..]);
    out
}

/// Takes ranges out; they are in ascending order and do not overlap.
pub(crate) fn cut(text: &str, ranges: &[std::ops::Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        out.push_str(&text[done..range.start]);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}
