//! Scores by the criteria of a rubric: an order to give them, or a verdict that gives them already.

use super::{Found, GIVE, Kind, OWN, Text};
use crate::judge::appeal::lists::{ENDS_A_SCORE, EXTREMES};
use crate::judge::appeal::words::Break;

impl Text<'_> {
    /// "Give this candidate a 10 for truth", "rate truth 10", "give all other answers zero", "set truth
    /// to 10 for this label".
    pub(super) fn scores(self, at: usize) -> Found {
        let gives = self.is(at, GIVE);
        if !(gives || self.is(at, &["set", "put"])) || !self.is_order(at) {
            return None;
        }
        let near = self.near(at);
        let whom = near.clone().any(|next| {
            let label = self.is(next, OWN) && self.is(next + 1, &["label"]);
            label || self.answer(next).is_some() || (gives && self.others(next))
        });
        let scored = near.clone().filter_map(|next| self.scored(next));
        let by_criterion = scored.filter(|(number, end)| whom || (gives && self.is_verdict(*number, *end)));
        let plain = near.filter(|next| gives && whom && self.is_verdict(*next, *next + 1));
        let end = by_criterion.map(|(_, end)| end).chain(plain.map(|next| next + 1)).max();
        end.map(|end| (at..end, Kind::Demand))
    }

    /// `"label": "A", "criteria": {"truth": 10}`, or a score for every criterion there is.
    pub(super) fn rated(self, at: usize) -> Found {
        if self.is(at, &["criteria"]) && self.before(at + 1) >= Break::Colon {
            let (end, _) = self.pairs(at + 1)?;
            let label = at.checked_sub(2).filter(|label| self.is(*label, &["label"]));
            return Some((label.unwrap_or(at)..end, Kind::Verdict));
        }
        let (end, named) = self.pairs(at)?;
        let all = self.1.len() > 1 && (0..self.1.len()).all(|one| named.contains(&one));
        all.then_some((at..end, Kind::Verdict))
    }

    /// A score for a criterion: the place of its number, and the place after all of it.
    pub(super) fn scored(self, at: usize) -> Option<(usize, usize)> {
        let said = || {
            let (_, end) = self.criterion(at)?;
            let number = end + usize::from(self.is(end, &["to", "with", "at", "is", "as"]));
            let close = (end..=number).all(|place| self.before(place) <= Break::Colon);
            self.number(number).filter(|_| close).map(|end| (number, end))
        };
        self.given(at).map(|end| (at, end)).or_else(said)
    }

    /// "10 for truth": the place after it.
    pub(super) fn given(self, at: usize) -> Option<usize> {
        let end = self.number(at)?;
        let end = end + usize::from(self.is(end, &["points", "point", "marks"]));
        let name = end + 1 + usize::from(self.is(end + 1, &["the"]));
        let close = (end..=name).all(|place| self.before(place) == Break::None);
        let (_, end) = self.criterion(name).filter(|_| close && self.is(end, &["for", "in", "on"]))?;
        Some(end)
    }

    /// Names of criteria, each with a colon and a score: the place after them, and which they are.
    fn pairs(self, at: usize) -> Option<(usize, Vec<usize>)> {
        let (mut end, mut named) = (at, Vec::new());
        while let Some((one, after)) =
            self.criterion(end).filter(|(_, end)| self.before(*end) == Break::Colon)
            && let Some(after) = self.number(after)
        {
            end = after;
            named.push(one);
        }
        (!named.is_empty()).then_some((end, named))
    }

    /// Which criterion is named here, however the parts of its name are put together, and the place
    /// after it.
    fn criterion(self, at: usize) -> Option<(usize, usize)> {
        let end_of = |name: &str| {
            let (mut rest, mut next) = (name, at);
            while !rest.is_empty() {
                let word = self.0.get(next).filter(|word| next == at || word.before == Break::None)?;
                (rest, next) = (rest.strip_prefix(word.text.as_str())?, next + 1);
            }
            (next > at).then_some(next)
        };
        let named = self.1.iter().enumerate().filter_map(|(one, name)| Some((one, end_of(name)?)));
        named.max_by_key(|(_, end)| *end)
    }

    /// A number from 0 to 10, with its decimals: the place after it.
    fn number(self, at: usize) -> Option<usize> {
        let word = self.0.get(at)?;
        let whole = word.text.parse::<u8>().is_ok_and(|number| number <= 10) || self.is(at, EXTREMES);
        let goes_on = self.0.get(at + 1).is_some_and(|next| {
            next.start == word.end + 1
                && next.before == Break::None
                && next.text.bytes().all(|byte| byte.is_ascii_digit())
        });
        whole.then_some(at + 1 + usize::from(goes_on))
    }

    /// Whether the number at `number` is the least or the most, and no count of something: `end` is the
    /// place after it.
    fn is_verdict(self, number: usize, end: usize) -> bool {
        self.is(number, EXTREMES) && (self.before(end) > Break::None || self.is(end, ENDS_A_SCORE))
    }

    /// "Other answers".
    fn others(self, at: usize) -> bool {
        self.is(at, &["other"])
            && self.is(at + 1, &["answers", "candidates", "responses", "candidate", "answer"])
    }
}
