//! What a turn has used, as its figures come.

use cyberine_types::{Billing, Usage, Usd};

use super::{Counted, Tariff};

/// The most tokens and the most money that one turn can have used; figures beyond are no figures.
const MOST_TOKENS: u64 = 100_000_000;
const MOST_USD: Usd = Usd::from_micros(1_000_000_000);

/// Takes a turn's figures and says what each comes to. The cost is known once the wire has told its
/// final figure, and only where that figure can be one of what the model has done.
#[derive(Debug)]
pub(crate) struct Meter {
    tariff: Tariff,
    last: Option<Counted>,
    /// The model has done something: said a word, called a tool, thought.
    worked: bool,
}

impl Meter {
    /// A meter that has seen nothing.
    pub(crate) fn new(tariff: Tariff) -> Self {
        Self { tariff, last: None, worked: false }
    }

    /// The use by the next figure.
    pub(crate) fn count(&mut self, newer: Counted) -> Usage {
        let counted = self.last.map_or(newer, |before| over(before, newer));
        self.last = Some(counted);
        self.usage(counted)
    }

    /// The model has done something; the use, where that makes it another.
    pub(crate) fn work(&mut self) -> Option<Usage> {
        if self.worked {
            return None;
        }
        let before = self.last.map(|counted| self.usage(counted));
        self.worked = true;
        let now = self.last.map(|counted| self.usage(counted));
        now.filter(|_| now != before)
    }

    /// The use of a turn that is over and of which nothing was counted, where it is still known.
    pub(crate) fn uncounted(&self) -> Option<Usage> {
        let known = self.last.is_none() && self.tariff.billing != Billing::Metered;
        known.then(|| self.tariff.apply(Counted::default()))
    }

    fn usage(&self, counted: Counted) -> Usage {
        let Usage { input, output, .. } = counted.tokens;
        let paid = counted.reported.filter(|usd| *usd > Usd::ZERO);
        let told = counted.reported.filter(|usd| counted.free_is_said || *usd > Usd::ZERO);
        let reported = if self.worked || input > 0 || output > 0 { told } else { counted.reported };
        // No model works without a token read and one written.
        let possible = !self.worked || paid.is_some() || (input > 0 && output > 0);
        let absurd = input.max(output) > MOST_TOKENS || paid.is_some_and(|usd| usd > MOST_USD);
        self.tariff.apply(Counted { reported, whole: counted.whole && possible && !absurd, ..counted })
    }
}

/// `newer` in the place of `before`, unless it takes back that there was something.
fn over(before: Counted, newer: Counted) -> Counted {
    let gone = |then: u64, now: u64| then > 0 && now == 0;
    if !gone(before.tokens.input, newer.tokens.input) && !gone(before.tokens.output, newer.tokens.output) {
        return newer;
    }
    let paid = newer.reported.filter(|usd| *usd > Usd::ZERO);
    Counted {
        tokens: before.tokens,
        reported: paid.or(before.reported),
        whole: before.whole || (newer.whole && paid.is_some()),
        ..newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beyond_all_reason_are_no_cost() {
        let metered = Tariff { billing: Billing::Metered, prices: None, trusts_script: false };
        let usd = |input, micros| {
            let tokens = Usage { input, output: 1, ..Usage::default() };
            let reported = Some(Usd::from_micros(micros));
            Meter::new(metered).count(Counted { tokens, reported, whole: true, ..Counted::default() }).usd
        };
        assert_eq!(usd(MOST_TOKENS, 7), Some(Usd::from_micros(7)));
        assert_eq!(usd(MOST_TOKENS + 1, 7), None);
        assert_eq!(usd(1, MOST_USD.micros()), Some(MOST_USD));
        assert_eq!(usd(1, MOST_USD.micros() + 1), None);
    }
    use crate::cost::Prices;
    use cyberine_types::CostBasis;

    const PRICE: Usd = Usd::from_micros(1_000_000);

    fn meter(billing: Billing) -> Meter {
        let prices = Prices {
            input_usd_per_mtok: PRICE,
            output_usd_per_mtok: PRICE,
            cached_read_usd_per_mtok: None,
            cache_write_usd_per_mtok: None,
            long: None,
        };
        Meter::new(Tariff { billing, prices: Some(prices), trusts_script: false })
    }

    fn figure(input: u64, output: u64, whole: bool) -> Counted {
        Counted { tokens: Usage { input, output, ..Usage::default() }, whole, ..Counted::default() }
    }

    fn told(usage: Usage) -> (u64, u64, Option<u64>, CostBasis) {
        (usage.input, usage.output, usage.usd.map(Usd::micros), usage.basis)
    }

    #[test]
    fn figures_on_the_way_are_shown_and_the_last_one_costs() {
        let mut meter = meter(Billing::Metered);
        assert_eq!(told(meter.count(figure(25, 1, false))), (25, 1, None, CostBasis::Unknown));
        assert_eq!(meter.work(), None);
        assert_eq!(told(meter.count(figure(25, 400, true))), (25, 400, Some(425), CostBasis::Computed));
        let reported = Counted { reported: Some(Usd::from_micros(7)), ..figure(25, 400, false) };
        assert_eq!(meter.count(reported).basis, CostBasis::Unknown, "a sum of the steps so far");
    }

    #[test]
    fn a_figure_of_nothing_costs_nothing_only_where_nothing_was_done() {
        for (input, output) in [(0, 0), (25, 0), (0, 9)] {
            let mut meter = meter(Billing::Metered);
            let nothing_done = meter.count(figure(input, output, true));
            assert_eq!(nothing_done.usd, Some(Usd::from_micros(input + output)));
            let usage = meter.work().unwrap();
            assert_eq!(told(usage), (input, output, None, CostBasis::Unknown));
            assert_eq!(meter.count(figure(input, output, true)), usage);
            assert_eq!(meter.work(), None);
        }
    }

    #[test]
    fn a_later_figure_of_nothing_takes_no_real_one_back() {
        let mut meter = meter(Billing::Metered);
        meter.work();
        let real = meter.count(figure(25, 400, true));
        assert_eq!(meter.count(figure(0, 0, true)), real);
        assert_eq!(meter.count(figure(25, 0, false)), real);
        let mut cut = self::meter(Billing::Metered);
        cut.count(figure(25, 1, false));
        assert_eq!(told(cut.count(figure(0, 0, true))), (25, 1, None, CostBasis::Unknown));
        let paid = Counted { reported: Some(Usd::from_micros(7)), ..figure(0, 0, true) };
        assert_eq!(told(cut.count(paid)), (25, 1, Some(7), CostBasis::Reported));
    }

    #[test]
    fn a_report_of_no_cost_is_believed_only_where_nothing_was_done() {
        let free = Counted { reported: Some(Usd::ZERO), ..figure(0, 0, true) };
        let mut idle = meter(Billing::Metered);
        assert_eq!(told(idle.count(free)), (0, 0, Some(0), CostBasis::Reported));
        assert_eq!(idle.work().map(told), Some((0, 0, None, CostBasis::Unknown)));
        let counted = Counted { reported: Some(Usd::ZERO), ..figure(2, 3, true) };
        assert_eq!(told(idle.count(counted)), (2, 3, Some(5), CostBasis::Computed));
    }

    #[test]
    fn who_says_no_cost_only_of_what_is_free_is_believed_once_there_are_tokens() {
        let free = |input, output| Counted {
            reported: Some(Usd::ZERO),
            free_is_said: true,
            ..figure(input, output, true)
        };
        let mut worked = meter(Billing::Metered);
        worked.work();
        assert_eq!(told(worked.count(free(0, 0))), (0, 0, None, CostBasis::Unknown));
        assert_eq!(told(worked.count(free(2, 3))), (2, 3, Some(0), CostBasis::Reported));
    }

    #[test]
    fn what_is_not_paid_per_token_needs_no_figure() {
        let mut meter = meter(Billing::Free);
        meter.work();
        assert_eq!(meter.uncounted().map(told), Some((0, 0, Some(0), CostBasis::Included)));
        assert_eq!(told(meter.count(figure(0, 0, false))), (0, 0, Some(0), CostBasis::Included));
        assert_eq!(meter.uncounted(), None);
        assert_eq!(self::meter(Billing::Metered).uncounted(), None);
    }
}
