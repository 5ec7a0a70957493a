//! Resources over HTTP: a token has no place in their URIs.

use cyberine_http::identity::has_parameter;
use cyberine_server::{
    ListChanges, ReadOutcome, ResourceError, ResourcePage, ResourceRead, ResourceSet, ResourceTemplate,
    ResourceWatch,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;

/// The query parameter that opens the gate on stdio.
const PARAMETER: &str = "authtoken";

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
    ResourceError::BadUri {
        message: "over HTTP a resource's URI takes no `authToken`: send a token in the Authorization header"
            .to_owned(),
        reason: "token_in_uri",
    }
}

/// Whether a query or fragment of `uri` names the parameter, however it is spelled.
fn has_token(uri: &str) -> bool {
    uri.split_once(['?', '#', '&']).is_some_and(|(_, behind)| has_parameter(behind, &[PARAMETER]))
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
            "cyberine://runs/a?authToken[]=t",
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
