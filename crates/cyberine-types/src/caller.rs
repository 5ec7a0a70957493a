use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::visible::{is_blank, is_invisible};

/// What records call a client that gives no name.
const NAMELESS: &str = "unknown-mcp-client";

/// Who is allowed to act: authority. Minted only by a transport, from facts of the connection;
/// no argument, parameter or client-supplied name ever becomes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Principal {
    /// The tenant the principal belongs to; `local` for a process of this machine's user.
    pub tenant: String,
    /// The name within the tenant, such as the operating system's user.
    pub name: String,
}

impl Principal {
    /// The principal of a stdio server: the user whose host spawned it.
    #[must_use]
    pub fn local(user: impl Into<String>) -> Self {
        Self { tenant: "local".to_owned(), name: user.into() }
    }
}

/// What a client says of itself. For display and attribution, never for authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// The client's name as it wrote it.
    pub name: String,
    /// The client's version as it wrote it.
    pub version: String,
}

impl ClientInfo {
    /// `name@version`, without characters that are not seen and each part cut to 128 characters,
    /// so that a name can neither break a log line, nor fill a record, nor pass for another. Without
    /// a version it is the name; without a name that can be seen, `unknown-mcp-client`.
    #[must_use]
    pub fn label(&self) -> String {
        fn part(text: &str) -> String {
            text.chars().filter(|c| !c.is_control() && !is_invisible(*c)).take(128).collect()
        }
        let (name, version) = (part(&self.name), part(&self.version));
        match (is_blank(&name), is_blank(&version)) {
            (true, _) => NAMELESS.to_owned(),
            (false, true) => name,
            (false, false) => format!("{name}@{version}"),
        }
    }
}

/// Everything a transport vouches for: who it is, and what that one may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Who it is.
    pub principal: Principal,
    /// What the identity was made for, such as names of agents or of groups of them. Somebody who
    /// belongs to no audience reaches what is open to everybody admitted.
    pub audiences: Vec<String>,
    /// The part of an organisation the identity acts in, where there is one.
    pub org_scope: Option<String>,
}

impl Identity {
    /// `principal`, without an audience.
    #[must_use]
    pub const fn of(principal: Principal) -> Self {
        Self { principal, audiences: Vec::new(), org_scope: None }
    }

    /// As [`Principal::local`], without an audience.
    #[must_use]
    pub fn local(user: impl Into<String>) -> Self {
        Self::of(Principal::local(user))
    }
}

/// One request's caller: the transport's identity beside the client's own description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Authority, from the transport.
    pub identity: Arc<Identity>,
    /// Self-description: from this request's `_meta`, else from the latest `initialize`.
    pub client: Option<ClientInfo>,
}

impl Caller {
    /// Who it is.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.identity.principal
    }

    /// How records name this caller: `name@version`, or `unknown-mcp-client`.
    #[must_use]
    pub fn attribution(&self) -> String {
        self.client.as_ref().map_or_else(|| NAMELESS.to_owned(), ClientInfo::label)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.attribution())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_bounded_line() {
        let info = ClientInfo { name: format!("a\nb\u{1b}[31m{}", "x".repeat(500)), version: "1\r".into() };
        let label = info.label();
        assert!(!label.chars().any(char::is_control), "{label}");
        assert!(label.starts_with("ab[31mxxx") && label.ends_with("@1") && label.len() < 140, "{label}");
    }

    #[test]
    fn a_label_hides_nothing() {
        let info = ClientInfo { name: "a\u{202e}b\u{200b}c\u{e0041}".into(), version: "1".into() };
        assert_eq!(info.label(), "abc@1");
    }

    #[test]
    fn a_label_names_somebody() {
        let label =
            |name: &str, version: &str| ClientInfo { name: name.into(), version: version.into() }.label();
        for nobody in ["", " ", "\u{200b}", "\n\u{202e}", "\u{fffd}"] {
            assert_eq!(label(nobody, "1"), "unknown-mcp-client", "{nobody:?}");
            assert_eq!(label("host", nobody), "host", "{nobody:?}");
        }
        assert_eq!(label("host", "1"), "host@1");
    }

    #[test]
    fn a_silent_client_has_a_name_of_its_own() {
        let caller = Caller { identity: Arc::new(Identity::local("u")), client: None };
        assert_eq!(caller.attribution(), "unknown-mcp-client");
    }
}
