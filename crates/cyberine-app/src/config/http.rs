//! What `[http]` cannot say, though it is of the right type.

use cyberine_http::identity::ProtectedResource;

use super::ConfigError;
use super::access::{HTTP, HttpConfig};
use super::document::Document;

/// No limit is higher: neither connections nor seconds of waiting are worth as much.
const MOST: u64 = 1_000_000;

/// # Errors
/// The first key that could not do what it is there for, with its place.
pub(super) fn check(http: &HttpConfig, document: &Document<'_>) -> Result<(), ConfigError> {
    let wide = |limit: Option<usize>| limit.map(|limit| u64::try_from(limit).unwrap_or(u64::MAX));
    let limits = [
        ("max_connections", wide(http.max_connections)),
        ("max_streams", wide(http.max_streams)),
        ("max_sessions", wide(http.max_sessions)),
        ("session_idle_secs", http.session_idle_secs),
    ];
    let wrong = limits.into_iter().find_map(|(key, limit)| {
        let limit = limit.filter(|limit| !(1..=MOST).contains(limit))?;
        let remedy = format!("give a number from 1 to {MOST}, or take it out for the usual one");
        Some((key, format!("`{key}` cannot be {limit}: {remedy}")))
    });
    let url = || http.public_url.as_deref().and_then(fault).map(|fault| ("public_url", fault));
    match wrong.or_else(url) {
        None => Ok(()),
        Some((key, message)) => {
            let at = document.place_at(&[HTTP, key]);
            Err(ConfigError::Invalid { at, message: format!("[{HTTP}]: {message}") })
        }
    }
}

/// Why the server cannot be reached at `url`.
fn fault(url: &str) -> Option<String> {
    if let Err(fault) = ProtectedResource::at(url) {
        return Some(format!("`public_url`: {fault}"));
    }
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    // The colons of an address are within brackets.
    let (_, port) = authority.rsplit(']').next()?.split_once(':')?;
    let fine = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse().is_ok_and(|port: u16| port > 0);
    (!fine).then(|| {
        let port: String = port.chars().take(64).collect();
        format!("`public_url` has `{port}` as its port: give one from 1 to 65535, or none")
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{AccessConfig, ConfigSource};

    fn read(line: &str) -> Result<AccessConfig, String> {
        let source = ConfigSource::of("c.toml", format!("[http]\nhosts = []\n{line}\n"));
        AccessConfig::of(&source).map_err(|error| error.to_string())
    }

    #[test]
    fn a_limit_is_something_and_not_more_than_anybody_needs() {
        for key in ["max_connections", "max_streams", "max_sessions", "session_idle_secs"] {
            for fine in ["1", "1_000_000"] {
                assert!(read(&format!("{key} = {fine}")).is_ok(), "{key} {fine}");
            }
            for bad in ["0", "1000001", "9223372036854775807"] {
                let told = read(&format!("{key} = {bad}")).unwrap_err();
                let says = format!("[http]: `{key}` cannot be {bad}: give a number from 1 to 1000000");
                assert!(told.starts_with("c.toml:3:") && told.contains(&says), "{told}");
            }
        }
    }

    #[test]
    fn a_public_url_is_one_that_can_be_reached() {
        for fine in ["https://h/mcp", "https://h:8443/mcp", "http://[::1]:80/mcp", "https://[::1]/a:b"] {
            assert!(read(&format!("public_url = \"{fine}\"")).is_ok(), "{fine}");
        }
        for bad in
            ["https://h:0/mcp", "https://h:65536/mcp", "https://h:/mcp", "http://[::1]:99999/mcp", "h:80"]
        {
            let told = read(&format!("public_url = \"{bad}\"")).unwrap_err();
            assert!(told.starts_with("c.toml:3:") && told.contains("`public_url`"), "{bad}\n{told}");
        }
    }
}
