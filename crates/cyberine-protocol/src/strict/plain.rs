/// Where the run of plain characters of a string ends that starts at `at`: at the first quote,
/// backslash or control character, or at the end of `bytes`.
///
/// It looks at eight bytes at a time: nearly all of a message is inside strings.
pub(crate) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let marks = special(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        at += 1;
    }
    at
}

/// Sets the high bit of each byte that is a quote, a backslash or below a space. Bytes above the
/// first such byte may be marked falsely, by the borrow of the subtraction; the first is exact.
const fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash | control) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_judged_as_by_itself() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut bytes = [b'!'; 20];
                bytes[place] = byte;
                let special = matches!(byte, b'"' | b'\\' | 0..=0x1f);
                assert_eq!(plain_end(&bytes, 0), if special { place } else { 20 }, "{byte:#x} at {place}");
                bytes[19] = b'"';
                assert_eq!(plain_end(&bytes, 0), if special { place } else { 19 }, "{byte:#x} at {place}");
            }
        }
        assert_eq!(plain_end(b"", 0), 0);
        assert_eq!(plain_end(b"a", 5), 5);
    }
}
