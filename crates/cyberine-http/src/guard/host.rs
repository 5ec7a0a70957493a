use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name of a host (RFC 1035, 2.3.4).
const LONGEST: usize = 253;

/// What stands in `Host` (RFC 9110, 7.2): a name or an address, and perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: Name,
    pub(super) port: Option<u16>,
}

/// A name, in small letters, or an address. Nothing is resolved and nothing else is an address:
/// `0x7f.1` and `2130706433` are names, and a dot at the end makes another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Dns(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a host; `None` for what is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            return Some(Self { name: Name::Address(address.into()), port: port_of(port)? });
        }
        let (name, port) = text.find(':').map_or((text, ""), |colon| text.split_at(colon));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if name.is_empty() || name.len() > LONGEST || !is_name {
            return None;
        }
        let name = match name.parse::<Ipv4Addr>() {
            Ok(address) => Name::Address(address.into()),
            Err(_) => Name::Dns(name.to_ascii_lowercase()),
        };
        Some(Self { name, port: port_of(port)? })
    }

    /// Whether it is that address.
    pub(super) fn is_address(&self, address: IpAddr) -> bool {
        self.name == Name::Address(address.to_canonical())
    }
}

/// The port behind a name: nothing, or a colon and digits. A colon alone means the usual port.
#[expect(clippy::option_option, reason = "no port is a good one")]
fn port_of(rest: &str) -> Option<Option<u16>> {
    let Some(digits) = rest.strip_prefix(':') else { return rest.is_empty().then_some(None) };
    if digits.is_empty() {
        return Some(None);
    }
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).map(Some)
}
