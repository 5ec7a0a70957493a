//! How a secret looks within Base64. It depends on how many bytes stand before it, so that there are
//! three looks of one: of each, those characters count that tell of nothing but the secret.

use std::collections::BTreeSet;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Everything that `secret` can look like, in the standard alphabet and in that for URLs. Padding tells
/// nothing and is none of it.
pub(super) fn looks(secret: &str) -> BTreeSet<String> {
    let of =
        |alphabet: &'static [u8; 64]| (0..3).map(move |before| look(secret.as_bytes(), before, alphabet));
    of(STANDARD).chain(of(FOR_URLS)).collect()
}

/// `secret` after `before` bytes that are not known.
fn look(secret: &[u8], before: usize, alphabet: &[u8; 64]) -> String {
    let bits = |at: usize| -> usize {
        (0..6).fold(0, |value, bit| {
            let (byte, shift) = ((at * 6 + bit) / 8 - before, 7 - (at * 6 + bit) % 8);
            (value << 1) | usize::from((secret[byte] >> shift) & 1)
        })
    };
    let whole = (before * 8).div_ceil(6)..(before + secret.len()) * 8 / 6;
    whole.map(|at| char::from(alphabet[bits(at)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_look_for_each_place_and_each_alphabet() {
        // As other programs write `-??>hunter`, and the same after `x` and after `xy`.
        assert_eq!(look(b"-??>hunter", 0, STANDARD), "LT8/Pmh1bnRlc");
        assert_eq!(look(b"-??>hunter", 0, FOR_URLS), "LT8_Pmh1bnRlc");
        assert_eq!(look(b"-??>hunter", 1, STANDARD), "0/Pz5odW50ZX");
        assert_eq!(look(b"-??>hunter", 2, STANDARD), "tPz8+aHVudGVy");
        assert_eq!(looks("hunter-2").len(), 3, "the alphabets do not differ in it");
    }
}
