//! What a page says is printed, against what is.

/// Stands for any part of a line, and alone on a line for any number of lines.
const ANY: &str = "…";

/// Whether `seen` is what `expected` says, white space at the ends of lines and of the text aside.
pub(super) fn fits(expected: &str, seen: &str) -> bool {
    lines_fit(&lines(expected), &lines(seen))
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).skip_while(|line| line.is_empty()).collect()
}

fn lines_fit(expected: &[&str], seen: &[&str]) -> bool {
    // Which beginnings of `seen` the expectations so far can stand for.
    let mut reach = vec![false; seen.len() + 1];
    reach[0] = true;
    for pattern in expected {
        let mut next = vec![false; seen.len() + 1];
        if pattern.trim() == ANY {
            let mut any = false;
            for (index, reached) in reach.iter().enumerate() {
                any |= reached;
                next[index] = any;
            }
        } else {
            for (index, line) in seen.iter().enumerate() {
                next[index + 1] = reach[index] && line_fits(pattern, line);
            }
        }
        reach = next;
    }
    reach[seen.len()]
}

fn line_fits(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split(ANY);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_in_a_line_stands_for_any_part_of_it_and_of_no_other() {
        for (expected, seen) in [
            ("run … done", "run 1234 done"),
            ("run …", "run 5"),
            ("…", "anything"),
            ("a … b … c", "a 1 b 2 b 3 c"),
            ("… c", "a b c"),
            ("plain", "plain  \n\n"),
            ("\nplain\n", "plain"),
        ] {
            assert!(fits(expected, seen), "{expected:?} {seen:?}");
        }
        for (expected, seen) in [
            ("run … done", "run\ndone"),
            ("run …", "ran 1"),
            ("plain", "plain and more"),
            ("plain", "plain\nmore"),
            ("a … b", "a 1 b 2"),
            ("x…x", "x"),
            ("plain", ""),
        ] {
            assert!(!fits(expected, seen), "{expected:?} {seen:?}");
        }
    }

    #[test]
    fn a_line_of_a_wildcard_stands_for_any_number_of_lines() {
        for (expected, seen) in [
            ("a\n…\nz", "a\nz"),
            ("a\n…\nz", "a\nb\nc\nz"),
            ("…\nz", "z"),
            ("a\n…", "a\nb\nc"),
            ("…\nb\n…\nb", "a\nb\nb"),
            ("…", ""),
        ] {
            assert!(fits(expected, seen), "{expected:?} {seen:?}");
        }
        assert!(!fits("a\n…\nz", "a\nb"));
        assert!(!fits("…\nb\n…\nb", "a\nb"));
    }
}
