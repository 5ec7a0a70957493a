//! The part of an answer that is tried.

use super::Extract;

/// What of `text` is tried.
pub(super) fn extract(part: Option<Extract>, text: &str) -> &str {
    match part {
        Some(Extract::Code) => first_block(text).unwrap_or(text),
        None => text,
    }
}

/// The inside of the first block between lines of at least three equal fence characters, of which
/// the second is no shorter than the first, as in Markdown.
fn first_block(text: &str) -> Option<&str> {
    let mut open: Option<(char, usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let fence = fence_of(line);
        match (open, fence) {
            (None, Some((mark, count, _))) => open = Some((mark, count, end)),
            (Some((mark, count, from)), Some((other, other_count, true)))
                if other == mark && other_count >= count =>
            {
                return text.get(from..at);
            }
            _ => {}
        }
        at = end;
    }
    None
}

/// The character and length of the fence a line is, and whether nothing follows it.
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let count = line.len() - rest.len();
    (count >= 3).then_some((mark, count, rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_taken_and_without_one_all_of_it() {
        let code = Some(Extract::Code);
        for (text, expected) in [
            ("Here:\n```rust\nfn a() {}\n```\nand\n```\nno\n```", "fn a() {}\n"),
            ("````md\n```\ninner\n```\n````\n", "```\ninner\n```\n"),
            ("~~~\nx\n```\n~~~", "x\n```\n"),
            ("no block at all", "no block at all"),
            ("```\nnever closed", "```\nnever closed"),
            ("```\n```", ""),
        ] {
            assert_eq!(extract(code, text), expected, "{text}");
        }
        assert_eq!(extract(None, "```\nx\n```"), "```\nx\n```");
    }
}
