//! A change of a file, as lines to show.

/// How many unchanged lines are shown on either side.
const AROUND: usize = 2;
/// The longest line that is shown whole, in characters.
const WIDE: usize = 200;
/// How much of a longer line is shown before what changed in it, in characters.
const LEAD: usize = 20;

/// One line of a change, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// As it was.
    Same(String),
    /// No longer there.
    Gone(String),
    /// There from now on.
    New(String),
}

/// What differs between two texts, with the lines around it. An edit lies in one place, so one
/// piece is enough: from the first line that differs to the last. Of a very long line only the
/// part around the change is shown.
#[must_use]
pub fn difference(before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let last =
        old[first..].iter().rev().zip(new[first..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (gone, came) = (&old[first..old.len() - last], &new[first..new.len() - last]);
    // In files of one line the change is somewhere in the middle.
    let shared = match (gone, came) {
        ([gone, ..], [came, ..]) => {
            gone.chars().zip(came.chars()).take_while(|(gone, came)| gone == came).count()
        }
        _ => 0,
    };
    let mut lines = Vec::new();
    lines.extend(old[first.saturating_sub(AROUND)..first].iter().map(|line| Line::Same(part(line, 0))));
    lines.extend(gone.iter().map(|line| Line::Gone(part(line, shared))));
    lines.extend(came.iter().map(|line| Line::New(part(line, shared))));
    let rest = &old[old.len() - last..];
    lines.extend(rest.iter().take(AROUND).map(|line| Line::Same(part(line, 0))));
    lines
}

fn part(line: &str, around: usize) -> String {
    let length = line.chars().count();
    if length <= WIDE {
        return line.to_owned();
    }
    let start = around.saturating_sub(LEAD).min(length - WIDE);
    let shown: String = line.chars().skip(start).take(WIDE).collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if start + WIDE < length { "…" } else { "" });
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_stands_around_it() {
        let (before, after) = ("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nfour\n4b\n5\n6\n7\n");
        let same = |text: &str| Line::Same(text.to_owned());
        let new = |text: &str| Line::New(text.to_owned());
        assert_eq!(
            difference(before, after),
            [same("2"), same("3"), Line::Gone("4".into()), new("four"), new("4b"), same("5"), same("6")]
        );
        assert_eq!(difference("", "a\n"), [new("a")]);
        assert_eq!(difference("a\n", "a\n"), [same("a")]);
    }

    #[test]
    fn of_a_long_line_only_the_change_is_shown() {
        let before = format!("{{\"secret\":\"{}\"}}", "s".repeat(1000));
        let after = before.replace('}', ",\"cyberine\":1}");
        let lines = difference(&before, &after);
        let [Line::Gone(_), Line::New(shown)] = &lines[..] else { panic!("{lines:?}") };
        assert!(shown.contains("cyberine") && shown.starts_with('…') && shown.chars().count() <= WIDE + 2);
    }
}
