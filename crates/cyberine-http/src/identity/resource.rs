use axum::http::Uri;

/// Where the metadata of a protected resource lies (RFC 9728, 3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What this server says of itself to whoever has no token yet (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    resource: String,
    host: String,
    metadata_url: String,
    path: String,
    authorization_servers: Vec<String>,
    scopes: Vec<String>,
}

/// A URL that cannot be a resource's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the URL of this server: it needs http or https, a host, and neither a query nor a fragment, such as `https://mcp.example.org/mcp`"
)]
pub struct ResourceError(String);

impl ProtectedResource {
    /// The resource at `url`, as clients reach it: that of the MCP endpoint, without a slash at its
    /// end.
    ///
    /// # Errors
    /// Where it is no absolute http or https URL, has a user in it, a query or a fragment.
    pub fn at(url: &str) -> Result<Self, ResourceError> {
        let fault = || ResourceError(url.chars().take(256).collect());
        if url.contains(['#', '?', '@', '"', '\\']) {
            return Err(fault());
        }
        let uri: Uri = url.parse().map_err(|_| fault())?;
        let scheme =
            uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or_else(fault)?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(fault)?;
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self {
            resource: format!("{scheme}://{authority}{path}"),
            host: authority.host().to_owned(),
            metadata_url: format!("{scheme}://{authority}{WELL_KNOWN}{path}"),
            path: format!("{WELL_KNOWN}{path}"),
            authorization_servers: Vec::new(),
            scopes: Vec::new(),
        })
    }

    /// Names who hands out tokens for it, by issuer.
    #[must_use]
    pub fn with_authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Names the scopes a token needs: the fewest that do.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Vec<String>) -> Self {
        self.scopes = scopes;
        self
    }

    /// The canonical URL of the resource: what the audience of a token has to be (RFC 8707).
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The host in that URL, without a port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where its metadata can be read. There is none where nobody hands out tokens by OAuth: a client
    /// that found it would go to this server for them (RFC 9728, 3.2).
    #[must_use]
    pub fn metadata_url(&self) -> Option<&str> {
        (!self.authorization_servers.is_empty()).then_some(&self.metadata_url)
    }

    /// The scopes a token needs.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The metadata, where `path` is one it can be asked for by: that of the resource, and the one
    /// that clients try after it.
    #[must_use]
    pub fn metadata_at(&self, path: &str) -> Option<String> {
        self.metadata_url().filter(|_| path == self.path || path == WELL_KNOWN).map(|_| self.metadata())
    }

    fn metadata(&self) -> String {
        let mut json = serde_json::json!({
            "resource": self.resource,
            "authorization_servers": self.authorization_servers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Cyberine",
        });
        if !self.scopes.is_empty() {
            json["scopes_supported"] = self.scopes.clone().into();
        }
        json.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_lies_where_rfc_9728_wants_it() {
        let of = |url: &str| ProtectedResource::at(url).unwrap().with_authorization_server("https://login");
        let deep = of("https://mcp.example.org:8443/team/mcp/");
        assert_eq!(deep.resource(), "https://mcp.example.org:8443/team/mcp");
        assert_eq!(
            deep.metadata_url(),
            Some("https://mcp.example.org:8443/.well-known/oauth-protected-resource/team/mcp")
        );
        for path in [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}/team/mcp")] {
            assert!(deep.metadata_at(&path).is_some(), "{path}");
        }
        for path in ["/mcp", "/.well-known/oauth-protected-resource/mcp", "/.well-known/"] {
            assert!(deep.metadata_at(path).is_none(), "{path}");
        }
        assert_eq!(of("http://127.0.0.1:8080/mcp").resource(), "http://127.0.0.1:8080/mcp");
        assert_eq!(of("https://h").metadata_url(), Some("https://h/.well-known/oauth-protected-resource"));
    }

    #[test]
    fn what_is_not_configured_is_not_in_the_metadata() {
        let bare = ProtectedResource::at("https://h/mcp").unwrap();
        assert_eq!((bare.metadata_url(), bare.metadata_at(WELL_KNOWN)), (None, None));
        let metadata = |resource: &ProtectedResource| -> serde_json::Value {
            serde_json::from_str(&resource.metadata_at(WELL_KNOWN).unwrap()).unwrap()
        };
        let issued = bare.with_authorization_server("https://login");
        let mut expected = serde_json::json!({
            "resource": "https://h/mcp",
            "authorization_servers": ["https://login"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Cyberine",
        });
        assert_eq!(metadata(&issued), expected);
        expected["scopes_supported"] = serde_json::json!(["mcp"]);
        assert_eq!(metadata(&issued.with_scopes(vec!["mcp".to_owned()])), expected);
    }

    #[test]
    fn a_url_that_is_none_of_a_server_is_refused() {
        for bad in [
            "",
            "mcp.example.org",
            "/mcp",
            "ftp://h/mcp",
            "https:///mcp",
            "https://h/mcp?x=1",
            "https://h/mcp#a",
            "https://u:p@h/mcp",
            "https://h/\"x",
            "javascript:alert(1)",
        ] {
            assert!(ProtectedResource::at(bad).is_err(), "{bad}");
        }
    }
}
