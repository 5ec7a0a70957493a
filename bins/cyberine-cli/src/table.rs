//! Text laid out in columns.

/// Breaks `text` into lines of at most `width` characters, at spaces where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace().flat_map(|word| pieces(word, width)) {
            let room = line.chars().count() + usize::from(!line.is_empty()) + word.chars().count() <= width;
            if !room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}

/// `line` in pieces that fill at most `width` columns of a terminal, as it is. What is not ASCII
/// counts as two columns, which is the most it can take.
pub(crate) fn broken(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut filled = 0;
    for character in line.chars() {
        let columns = if character.is_ascii() { 1 } else { 2 };
        if filled > 0 && filled + columns > width {
            pieces.push(String::new());
            filled = 0;
        }
        filled += columns;
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

/// A word in pieces of at most `width` characters.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

/// Lays `columns` side by side over `width` characters, each wrapped to an equal share.
pub(crate) fn side_by_side(columns: &[String], width: usize) -> Vec<String> {
    let gap = 3;
    let share = (width + gap) / columns.len().max(1) - gap.min(width);
    let wrapped: Vec<Vec<String>> = columns.iter().map(|text| wrap(text, share)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    (0..height).map(|row| joined(&wrapped, row, share)).collect()
}

fn joined(columns: &[Vec<String>], row: usize, share: usize) -> String {
    let cells = columns.iter().map(|column| {
        let cell = column.get(row).map_or("", String::as_str);
        format!("{cell}{}", " ".repeat(share.saturating_sub(cell.chars().count())))
    });
    cells.collect::<Vec<_>>().join(" │ ").trim_end().to_owned()
}

/// How many columns of a readable width fit.
pub(crate) const fn fitting(width: usize) -> usize {
    let columns = (width + 3) / 27;
    if columns == 0 { 1 } else { columns }
}

/// Rows with their cells padded to common widths; the last column is not padded.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    rows.iter().map(|row| padded(row, &widths)).collect()
}

fn padded(row: &[String], widths: &[usize]) -> String {
    let cells = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_words_and_long_words_break() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
    }

    #[test]
    fn a_line_is_broken_before_the_terminal_would_do_it() {
        assert_eq!(broken("ab  cd", 3), ["ab ", " cd"]);
        assert_eq!(broken("漢漢a", 4), ["漢漢", "a"]);
        assert_eq!(broken("", 4), [""]);
        assert_eq!(broken("漢", 1), ["漢"]);
    }

    #[test]
    fn columns_keep_their_share_and_their_order() {
        let lines = side_by_side(&["left side".to_owned(), "r".to_owned()], 13);
        assert_eq!(lines, ["left  │ r", "side  │"]);
        assert!(side_by_side(&vec!["x y z".to_owned(); 3], 60).iter().all(|line| line.chars().count() <= 60));
        assert_eq!((fitting(20), fitting(80), fitting(100)), (1, 3, 3));
    }

    #[test]
    fn rows_align() {
        let rows = [vec!["a".to_owned(), "bb".to_owned()], vec!["ccc".to_owned(), "d".to_owned()]];
        assert_eq!(aligned(&rows), ["a    bb", "ccc  d"]);
    }
}
