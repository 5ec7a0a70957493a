//! Keeping results within what hosts take.

use serde_json::Value;

/// The most bytes of JSON a tool result may have.
pub(crate) const MAX_RESULT: usize = 24_000;

/// One step of cutting: how much of each text stays, and how much of each list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Characters of a text of which a preview is shown.
    pub(crate) preview: usize,
    /// Characters of the winning answer.
    pub(crate) winner: usize,
    /// Characters of a name, a path or a line.
    pub(crate) line: usize,
    /// Entries of a list.
    pub(crate) list: usize,
    /// Steps of a run, the latest.
    pub(crate) steps: usize,
}

/// From generous to sparse. The last one fits whatever a run holds.
const BUDGETS: [Budget; 6] = [
    Budget { preview: 2_000, winner: 12_000, line: 4_096, list: 200, steps: 200 },
    Budget { preview: 1_000, winner: 4_000, line: 1_000, list: 200, steps: 5 },
    Budget { preview: 500, winner: 2_000, line: 400, list: 64, steps: 5 },
    Budget { preview: 200, winner: 1_000, line: 200, list: 24, steps: 3 },
    Budget { preview: 60, winner: 400, line: 80, list: 12, steps: 2 },
    Budget { preview: 20, winner: 100, line: 36, list: 4, steps: 1 },
];

/// The most generous result that fits, and whether it is less than the most generous one.
pub(crate) fn fit(make: impl Fn(Budget, bool) -> Value) -> Value {
    let mut last = Value::Null;
    for (at, budget) in BUDGETS.into_iter().enumerate() {
        last = make(budget, at > 0);
        if size(&last) <= MAX_RESULT {
            break;
        }
    }
    last
}

/// The length of `value` as compact JSON.
pub(crate) fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// At most `limit` characters of `text`, an ellipsis in place of what was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_budget_that_fits_is_taken() {
        let text = "\u{1}".repeat(3_000);
        let made = fit(
            |budget, less| serde_json::json!({ "text": cut(&text, budget.preview), "list": vec![cut(&text, budget.preview); 8], "less": less }),
        );
        assert!(size(&made) <= MAX_RESULT && made["less"] == true);
        assert_eq!(made["text"].as_str().unwrap().chars().count(), 200);
        assert_eq!(size(&made), made.to_string().len());
    }
}
