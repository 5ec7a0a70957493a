//! Pairs of answers of which it is known whether they are the same.

use crate::shuffle;

/// Two answers with one number, differently put, and two with different ones; numbers and order are
/// drawn from the seed. Every juror is put them first: one that always says yes, always no, or what
/// it last read, is told by them.
#[derive(Debug)]
pub(super) struct Control {
    number: usize,
    other: usize,
    same_first: bool,
}

impl Control {
    pub(super) fn of(seed: u64) -> Self {
        let drawn = shuffle::order(900, seed);
        let at = |place: usize| 100 + drawn.get(place).copied().unwrap_or(place);
        Self { number: at(0), other: at(1), same_first: at(2).is_multiple_of(2) }
    }

    /// The pair at this place and whether both are the same; `None` once there is no further one.
    pub(super) fn pair(&self, place: usize) -> Option<(Vec<String>, bool)> {
        let same = match place {
            0 => self.same_first,
            1 => !self.same_first,
            _ => return None,
        };
        let second = if same { self.number } else { self.other };
        Some((vec![format!("The answer is {}.", self.number), format!("It comes to {second}.")], same))
    }
}
