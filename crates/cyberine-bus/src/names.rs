//! Names of files and directories for ids: injective, also on a disk that ignores letter case or
//! normalises Unicode, and never longer than a name may be.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The longest encoding used as it is; a longer one keeps its beginning and gets a digest.
const LONGEST: usize = 160;
const KEPT: usize = 80;
/// Stands before a digest, and in no other encoding.
const DIGEST: char = '~';
const SEGMENT: &str = ".jsonl";

/// The name for `id`: small letters, digits, `-` and `_` as they are, every other byte as `%` and
/// two hexadecimal digits. Long ones end in a digest of the id instead.
pub(crate) fn encode(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => write!(name, "%{byte:02x}").unwrap_or_default(),
        }
    }
    if name.len() > LONGEST {
        name.truncate(KEPT);
        name.push(DIGEST);
        for byte in Sha256::digest(id.as_bytes()) {
            write!(name, "{byte:02x}").unwrap_or_default();
        }
    }
    name
}

/// The id of a name, where the name alone tells it.
pub(crate) fn decode(name: &str) -> Option<String> {
    if name.contains(DIGEST) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    let id = String::from_utf8(bytes).ok()?;
    (encode(&id) == name).then_some(id)
}

/// The file of the messages from `first` on.
pub(crate) fn segment(first: u64) -> String {
    format!("{first:020}{SEGMENT}")
}

/// The first sequence number of the segment `name`; `None` for any other file.
pub(crate) fn segment_first(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT)?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ids_have_different_names_that_any_disk_takes() {
        let long = "x".repeat(200);
        let ids = [
            "team",
            "Team",
            "TEAM",
            "../../x",
            ".",
            "..",
            "a/b",
            "a%2fb",
            "%",
            "~",
            "caf\u{e9}",
            "cafe\u{301}",
            "ſ",
            "s",
            " ",
            "CON",
            "lock",
            "\u{1f980}",
        ];
        let mut ids: Vec<String> = ids.map(str::to_owned).to_vec();
        ids.extend([format!("{long}a"), format!("{long}b"), format!("{}A", long), "y".repeat(1024)]);
        ids.extend(["É".repeat(150), "é".repeat(150), "z".repeat(160), "z".repeat(161)]);
        let mut names: Vec<String> = ids.iter().map(|id| encode(id)).collect();
        for (id, name) in ids.iter().zip(&names) {
            assert!(name.len() <= 200 && !name.is_empty(), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_%~".contains(&b)),
                "{name}"
            );
            match decode(name) {
                Some(back) => assert_eq!(back, *id),
                None => assert!(name.contains('~'), "{name}"),
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn only_what_encoding_writes_is_decoded() {
        for name in ["%", "%4", "%zz", "Team", "%74eam", "%ff", "a.b"] {
            assert_eq!(decode(name), None, "{name}");
        }
    }

    #[test]
    fn segments_are_told_from_other_files() {
        assert_eq!(segment_first(&segment(u64::MAX)), Some(u64::MAX));
        for name in ["lock", "1.jsonl", "0000000000000000000x.jsonl", "99999999999999999999.jsonl"] {
            assert_eq!(segment_first(name), None, "{name}");
        }
    }
}
