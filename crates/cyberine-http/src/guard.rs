//! Whether a request was meant for this server. A page of a foreign site can make a browser send
//! requests here, under a name that was made to point here (DNS rebinding): then `Host` is a name
//! nobody gave this server, or `Origin` tells where the page is from.

mod host;

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::settings::Settings;
use host::Host;

/// The names this server answers to, and the origins it serves.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<Host>,
    origins: Vec<String>,
}

/// A request that was not meant for this server, or does not say whom it is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

/// A setting that can be no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// [`Settings::path`].
    #[error("`{0}` is no path of an endpoint: give one such as `/mcp`")]
    Path(String),
    /// Of [`Settings::hosts`].
    #[error("`{0}` is no host: give a name or an address without a port, such as `mcp.example.org`")]
    Host(String),
    /// Of [`Settings::origins`].
    #[error("`{0}` is no origin: give scheme, host and perhaps port, such as `https://app.example.org`")]
    Origin(String),
}

impl Guard {
    /// The guard of a server with these settings.
    ///
    /// # Errors
    /// Where a configured name cannot be one.
    pub(crate) fn new(settings: &Settings) -> Result<Self, NameFault> {
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if !settings.path.starts_with('/') || !settings.path.bytes().all(is_path) {
            return Err(NameFault::Path(settings.path.clone()));
        }
        let named = settings.hosts.iter().map(|name| {
            let host = Host::parse(name).filter(|_| !name.ends_with(':'));
            host.filter(|host| host.port.is_none()).ok_or_else(|| NameFault::Host(name.clone()))
        });
        let mut hosts = named.collect::<Result<Vec<_>, _>>()?;
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].iter().filter_map(|name| Host::parse(name)));
        let origins = settings.origins.iter().map(|origin| match origin_host(origin) {
            Some(_) => Ok(origin.to_ascii_lowercase()),
            None => Err(NameFault::Origin(origin.clone())),
        });
        Ok(Self { hosts, origins: origins.collect::<Result<_, _>>()? })
    }

    /// Whether a request was meant for this server, which it reached at `local`.
    ///
    /// # Errors
    /// What to answer otherwise.
    pub(crate) fn admit(&self, request: &Parts, local: IpAddr) -> Result<(), Foreign> {
        let host =
            one(&request.headers, &HOST).map_err(|()| Foreign::bad("there is more than one Host header"))?;
        let host = host.ok_or(Foreign::bad("the Host header is missing"))?;
        // A target in absolute form counts instead of the header (RFC 9112, 3.2.2); here both must do.
        let target = request.uri.authority().map(|authority| authority.as_str().as_bytes());
        for host in [Some(host.as_bytes()), target].into_iter().flatten() {
            if !text(host).and_then(Host::parse).is_some_and(|host| self.knows(&host, local)) {
                return Err(Foreign::denied(
                    "this server has no such name; if it should, add the name to the allowed hosts",
                ));
            }
        }
        let origin = one(&request.headers, &ORIGIN)
            .map_err(|()| Foreign::bad("there is more than one Origin header"))?;
        match origin {
            Some(origin) if !self.trusts(origin, local) => Err(Foreign::denied(
                "pages of this origin may not use this server; if they should, add the origin to the allowed ones",
            )),
            _ => Ok(()),
        }
    }

    /// The origin of a request whose page may read the answer.
    pub(crate) fn shared_with<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        headers.get(ORIGIN).filter(|origin| self.is_configured(origin))
    }

    /// Whether any page may.
    pub(crate) fn shares(&self) -> bool {
        !self.origins.is_empty()
    }

    fn is_configured(&self, origin: &HeaderValue) -> bool {
        text(origin.as_bytes())
            .is_some_and(|origin| self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)))
    }

    fn trusts(&self, origin: &HeaderValue, local: IpAddr) -> bool {
        self.is_configured(origin)
            || text(origin.as_bytes()).and_then(origin_host).is_some_and(|host| self.knows(&host, local))
    }

    /// An address in `Host` is no name that somebody could have pointed here, so the one the
    /// connection came in at is fine.
    fn knows(&self, host: &Host, local: IpAddr) -> bool {
        host.is_address(local) || self.hosts.iter().any(|known| known.name == host.name)
    }
}

impl Foreign {
    const fn bad(reason: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, reason }
    }

    const fn denied(reason: &'static str) -> Self {
        Self { status: StatusCode::FORBIDDEN, reason }
    }
}

/// The value of a header that may come once.
pub(crate) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() { Err(()) } else { Ok(value) }
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

/// The host of an origin (RFC 6454, 6.2): scheme, host and perhaps port, and nothing else.
fn origin_host(origin: &str) -> Option<Host> {
    let (scheme, host) = origin.split_once("://")?;
    let is_web = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    Host::parse(host).filter(|_| is_web)
}

#[cfg(test)]
mod tests;
