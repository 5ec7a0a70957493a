/// Whether the query of a URL (RFC 3986, 3.4) has a parameter that is called one of `names`, which are in
/// small letters: in letters of any size, with any of them percent-encoded, and with the brackets behind it
/// by which some write a list.
#[must_use]
pub fn has_parameter(query: &str, names: &[&str]) -> bool {
    let parameters = query.split(['&', ';', '?', '#']);
    parameters.map(|parameter| parameter.split('=').next().unwrap_or_default()).any(|name| {
        let plain = decoded(name).to_ascii_lowercase();
        let plain = plain.split(|byte| *byte == b'[').next().unwrap_or_default().trim_ascii();
        names.iter().any(|known| known.as_bytes() == plain)
    })
}

/// `text` with its percent-encoded bytes and the pluses that stand for spaces as they are meant.
fn decoded(text: &str) -> Vec<u8> {
    let digit =
        |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        plain.push(match (byte, digit(behind.first()), digit(behind.get(1))) {
            (b'%', Some(high), Some(low)) => {
                rest = behind.get(2..).unwrap_or_default();
                16 * high + low
            }
            (b'+', ..) => b' ',
            _ => *byte,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_however_its_name_is_written() {
        for query in [
            "access_token=t",
            "x=1&ACCESS_TOKEN=t",
            "x=1;access_token=t",
            "access%5Ftoken=t",
            "access%5ftoken",
            "%61ccess_toke%6E=t",
            "access_token[]=t",
            "access_token%5B%5D=t",
            "access_token[0]=t",
            "+access_token%20=t",
            "x?access_token=t",
        ] {
            assert!(has_parameter(query, &["id", "access_token"]), "{query}");
        }
        for query in [
            "",
            "a",
            "x=access_token",
            "access_tokens=3",
            "access_token%",
            "access%255Ftoken=t",
            "access%5",
            "%",
        ] {
            assert!(!has_parameter(query, &["access_token"]), "{query}");
        }
    }
}
