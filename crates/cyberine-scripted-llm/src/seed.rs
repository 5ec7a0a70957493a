//! What makes a scripted answer vary, and yet the same every time.

/// Hashes `parts` under `seed`: FNV-1a with a separator after each part, then mixed so that its
/// low bits depend on every byte.
pub(crate) fn hash(seed: u64, parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Chooses one of `count` things; `count` is at least one.
pub(crate) fn choose(seed: u64, parts: &[&str], count: usize) -> usize {
    let count = u64::try_from(count).unwrap_or(1).max(1);
    usize::try_from(hash(seed, parts) % count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_parts_give_the_same_choice() {
        assert_eq!(choose(7, &["a", "b"], 5), choose(7, &["a", "b"], 5));
        assert_ne!(hash(7, &["ab", ""]), hash(7, &["a", "b"]));
        assert_ne!(hash(7, &["a"]), hash(8, &["a"]));
    }

    #[test]
    fn every_choice_comes_up() {
        let chosen: std::collections::BTreeSet<_> = (0..64).map(|seed| choose(seed, &["q"], 3)).collect();
        assert_eq!(chosen.len(), 3);
    }
}
