//! Resources over HTTP: a token has no place in their URIs.

use cyberine_server::{
    ListChanges, ReadOutcome, ResourceError, ResourcePage, ResourceRead, ResourceSet, ResourceTemplate,
    ResourceWatch,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::json;

/// The query parameter that opens the gate on stdio.
const PARAMETER: &str = "authtoken";

/// Invalid params (JSON-RPC 2.0, 5.1).
const INVALID_PARAMS: i64 = -32602;

/// A [`ResourceSet`] that refuses URIs with an access token in them. Over HTTP the URI stands in headers
/// and logs, and the caller is known by its own token.
pub(crate) struct NoToken<S>(pub(crate) S);

impl<S: ResourceSet> ResourceSet for NoToken<S> {
    fn templates(&self) -> Vec<ResourceTemplate> {
        self.0.templates()
    }

    fn list(
        &self,
        caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        self.0.list(caller, cursor)
    }

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        if has_token(&read.uri) {
            return Box::pin(std::future::ready(Err(refused())));
        }
        self.0.read(read)
    }

    fn changes(&self) -> Option<ListChanges> {
        self.0.changes()
    }

    fn plain_uri(&self, uri: &str) -> String {
        self.0.plain_uri(uri)
    }

    fn is_watchable(&self) -> bool {
        self.0.is_watchable()
    }

    fn watch(
        &self,
        caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        if has_token(&uri) {
            return Box::pin(std::future::ready(Err(refused())));
        }
        self.0.watch(caller, uri)
    }
}

fn refused() -> ResourceError {
    ResourceError::Other {
        code: INVALID_PARAMS,
        message: "over HTTP a resource's URI takes no `authToken`: send a token in the Authorization header"
            .to_owned(),
        data: Some(json!({ "reason": "token_in_uri" })),
    }
}

/// Whether a query or fragment of `uri` names the parameter, however it is spelled.
fn has_token(uri: &str) -> bool {
    let behind = uri.split(['?', '#', '&']).skip(1);
    behind.map(|part| part.split('=').next().unwrap_or_default()).any(|name| {
        let mut plain = Vec::new();
        let mut bytes = name.bytes();
        while let Some(byte) = bytes.next() {
            let escaped = || {
                let digits: Vec<u8> = bytes.clone().take(2).collect();
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
            };
            match (byte, escaped()) {
                (b'%', Some(value)) => {
                    plain.push(value);
                    bytes.nth(1);
                }
                _ => plain.push(byte),
            }
        }
        plain.eq_ignore_ascii_case(PARAMETER.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_however_the_parameter_is_spelled() {
        for uri in [
            "cyberine://runs/a?authToken=t",
            "cyberine://runs/a?x=1&AUTHTOKEN=t",
            "cyberine://runs/a?auth%54oken=t",
            "cyberine://runs/a?%61uth%74oken",
            "cyberine://runs/a#authToken=t",
        ] {
            assert!(has_token(uri), "{uri}");
        }
        for uri in
            ["cyberine://runs/a", "cyberine://runs/authToken", "cyberine://runs/a?x=authToken", "a?%", "a?%4"]
        {
            assert!(!has_token(uri), "{uri}");
        }
    }
}
