//! Orders drawn from a seed, the same on every machine.

/// A permutation of `0..len`, drawn by `seed` (Fisher–Yates over SplitMix64).
pub(crate) fn order(len: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut order: Vec<usize> = (0..len).collect();
    for last in (1..len).rev() {
        order.swap(last, below(&mut state, last + 1));
    }
    order
}

/// The next number below `bound`. The bias of the remainder is beyond measure for the few
/// candidates of a run.
fn below(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let bound = u64::try_from(bound).unwrap_or(u64::MAX);
    usize::try_from(mixed % bound).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_order_of_three_is_drawn_and_each_seed_draws_one() {
        let orders: BTreeSet<_> = (0..60).map(|seed| order(3, seed)).collect();
        assert_eq!(orders.len(), 6);
        assert_eq!(order(7, 99), order(7, 99));
        assert_eq!(order(0, 1), Vec::<usize>::new());
    }
}
