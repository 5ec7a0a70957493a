use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use cyberine_types::Secret;

use super::{Rejection, has_parameter};

/// The longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 8 * 1024;

/// What clients call a token in a query.
const TOKENS: [&str; 6] = ["access_token", "authtoken", "auth_token", "token", "bearer_token", "id_token"];

/// Headers by which a proxy tells for whom it asks (RFC 7239, RFC 9110, 7.6.3, and what was there before).
const OF_PROXIES: [&str; 6] =
    ["forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"];

/// How all the others begin.
const FORWARDED: &str = "x-forwarded-";

/// What the transport knows of a request's sender. Nothing of the message is in here.
#[derive(Debug, Clone)]
pub struct TransportFacts {
    /// The bearer token of this request (RFC 6750, 2.1).
    pub bearer: Option<Secret>,
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// Whether the request says that it came by way of a proxy: then `peer` is the proxy.
    pub is_forwarded: bool,
}

impl TransportFacts {
    /// The facts of a request whose connection has `peer` at its other end.
    ///
    /// # Errors
    /// [`Rejection::Malformed`]: more than one `Authorization`, a token that cannot be one, or one in
    /// the query, where every log on the way keeps it.
    pub fn of(request: &Parts, peer: SocketAddr) -> Result<Self, Rejection> {
        if request.uri.query().is_some_and(|query| has_parameter(query, &TOKENS)) {
            return Err(Rejection::Malformed(
                "a token belongs into the Authorization header, never into the URL",
            ));
        }
        let headers = &request.headers;
        // Names of headers are in small letters here.
        let is_of_proxy = |name: &str| name.starts_with(FORWARDED) || OF_PROXIES.contains(&name);
        let is_forwarded = headers.keys().any(|name| is_of_proxy(name.as_str()));
        Ok(Self { bearer: bearer(headers)?, peer, is_forwarded })
    }

    /// Whether the other end is a process of this machine that speaks for itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.peer.ip().to_canonical().is_loopback() && !self.is_forwarded
    }
}

/// The bearer token. Another scheme than `Bearer` is no token of ours.
fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Rejection> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Rejection::Malformed("there is more than one Authorization header"));
    }
    let text = value.to_str().map_err(|_| Rejection::Malformed("the Authorization header is not ASCII"))?;
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = rest.trim_matches(' ');
    if token.len() > LONGEST_TOKEN {
        return Err(Rejection::Malformed("the bearer token is longer than 8 KiB"));
    }
    if !is_token(token) {
        return Err(Rejection::Malformed("the bearer token is empty or has characters no token has"));
    }
    Ok(Some(Secret::new(token)))
}

/// `b64token` of RFC 6750, 2.1.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn facts(uri: &str, headers: &[(&str, &str)], peer: &str) -> Result<TransportFacts, Rejection> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        TransportFacts::of(&request.body(()).unwrap().into_parts().0, peer.parse().unwrap())
    }

    fn bearer(values: &[&str]) -> Result<Option<String>, Rejection> {
        let headers: Vec<_> = values.iter().map(|value| ("authorization", *value)).collect();
        let facts = facts("/mcp", &headers, "127.0.0.1:9")?;
        Ok(facts.bearer.map(|token| token.expose().to_owned()))
    }

    #[test]
    fn a_bearer_token_is_read_from_its_header_only() {
        for good in ["Bearer abc.d-e_f~g+h/i==", "bearer  abc.d-e_f~g+h/i==", "BEARER abc.d-e_f~g+h/i== "] {
            assert_eq!(bearer(&[good]).unwrap().as_deref(), Some("abc.d-e_f~g+h/i=="), "{good}");
        }
        for none in [&[][..], &["Basic YTpi"], &["Bearerabc"]] {
            assert_eq!(bearer(none).unwrap(), None, "{none:?}");
        }
        let long = format!("Bearer {}", "a".repeat(LONGEST_TOKEN + 1));
        for bad in [
            &["Bearer"][..],
            &["Bearer "],
            &["Bearer a b"],
            &["Bearer =="],
            &["Bearer a\u{e9}"],
            &["Bearer a", "Bearer a"],
            &["Bearer a,b"],
            &[&long],
        ] {
            assert!(matches!(bearer(bad), Err(Rejection::Malformed(_))), "{bad:?}");
        }
        for query in ["access_token=a", "x=1&authToken=a", "Access_Token", "token=a", "access%5Ftoken[]=a"] {
            let refused = facts(&format!("/mcp?{query}"), &[], "127.0.0.1:9");
            assert!(matches!(refused, Err(Rejection::Malformed(_))), "{query}");
        }
        assert!(facts("/mcp?tokens=3", &[], "127.0.0.1:9").is_ok());
    }

    #[test]
    fn only_who_connects_from_this_machine_and_speaks_for_itself_is_local() {
        for peer in ["127.0.0.1:9", "127.8.0.1:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
            let plain = [("x-request-id", "1"), ("user-agent", "via forwarded")];
            assert!(facts("/mcp", &plain, peer).unwrap().is_local(), "{peer}");
            for proxy in [
                "X-Forwarded-For",
                "x-forwarded-proto",
                "X-Forwarded-Host",
                "forwarded",
                "via",
                "X-Real-IP",
                "x-client-ip",
                "CF-Connecting-IP",
                "True-Client-IP",
            ] {
                assert!(!facts("/mcp", &[(proxy, "10.0.0.1")], peer).unwrap().is_local(), "{peer} {proxy}");
            }
        }
        for peer in ["10.0.0.1:9", "[fe80::1]:9", "[::ffff:10.0.0.1]:9", "0.0.0.0:9"] {
            assert!(!facts("/mcp", &[], peer).unwrap().is_local(), "{peer}");
        }
    }

    #[test]
    fn a_token_is_not_printed_with_the_facts() {
        let facts = facts("/mcp", &[("authorization", "Bearer hunter22")], "127.0.0.1:9").unwrap();
        assert!(!format!("{facts:?}").contains("hunter22"));
    }
}
