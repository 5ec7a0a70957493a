//! The auth gate: a wrapper that lets nobody past who does not know the token.

use std::sync::{Arc, OnceLock};

use cyberine_types::{Caller, Secret};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::resource_set::{ResourceContents, ResourceError, ResourcePage, ResourceSet, ResourceTemplate};
use crate::toolset::{Call, CallError, Outcome, Tool, ToolResult, ToolSet};

/// The argument that carries the token.
const ARGUMENT: &str = "authToken";

/// A [`ToolSet`] or [`ResourceSet`] behind a token.
///
/// Every tool gets an optional `authToken` argument and every URI an optional `authToken` query
/// parameter. Both are removed before the inner set sees them, also where no token is
/// configured, so that a token can reach no record by way of an argument. The token opens the
/// gate and says nothing of who the caller is.
pub struct Gate<S> {
    inner: S,
    token: Option<Secret>,
    /// The first list of the inner set, and what was made of it.
    listed: OnceLock<[Arc<[Tool]>; 2]>,
}

impl<S> Gate<S> {
    /// Puts `inner` behind `token`; `None` leaves the gate open. An empty token is the caller's
    /// to refuse: it would match an empty argument.
    pub const fn new(inner: S, token: Option<Secret>) -> Self {
        Self { inner, token, listed: OnceLock::new() }
    }

    fn admits(&self, candidate: Option<&str>) -> bool {
        match &self.token {
            None => true,
            Some(token) => candidate.is_some_and(|text| token.matches(text)),
        }
    }
}

impl<S: ToolSet> ToolSet for Gate<S> {
    fn list(&self, caller: &Caller) -> Arc<[Tool]> {
        let inner = self.inner.list(caller);
        let [of, gated] = self.listed.get_or_init(|| [Arc::clone(&inner), gated(&inner)]);
        if Arc::ptr_eq(of, &inner) { Arc::clone(gated) } else { self::gated(&inner) }
    }

    fn refuse(&self, name: &str, arguments: &Map<String, Value>) -> Option<ToolResult> {
        let token = arguments.get(ARGUMENT).and_then(Value::as_str);
        if self.admits(token) { self.inner.refuse(name, arguments) } else { Some(unauthorized()) }
    }

    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        let token = call.arguments.remove(ARGUMENT);
        if self.admits(token.as_ref().and_then(Value::as_str)) {
            return self.inner.call(call);
        }
        Box::pin(std::future::ready(Ok(Outcome::Complete(unauthorized()))))
    }
}

fn unauthorized() -> ToolResult {
    ToolResult::error("unauthorized")
}

/// The tools with the token among their arguments.
fn gated(tools: &[Tool]) -> Arc<[Tool]> {
    tools.iter().cloned().map(with_argument).collect()
}

fn with_argument(mut tool: Tool) -> Tool {
    let property = json!({
        "type": "string",
        "description": "The server's access token, where one is configured.",
    });
    if let Some(schema) = tool.input_schema.as_object_mut() {
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(ARGUMENT.to_owned(), property);
        }
    }
    tool
}

impl<S: ResourceSet> ResourceSet for Gate<S> {
    fn templates(&self) -> Vec<ResourceTemplate> {
        self.inner.templates()
    }

    /// With a token configured the list is empty: a cursor has no place for one.
    fn list(
        &self,
        caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        if self.token.is_none() {
            return self.inner.list(caller, cursor);
        }
        Box::pin(std::future::ready(Ok(ResourcePage::default())))
    }

    fn read(&self, caller: Caller, uri: String) -> BoxFuture<'_, Result<ResourceContents, ResourceError>> {
        let (uri, token) = split_token(&uri);
        if self.admits(token.as_deref()) {
            return self.inner.read(caller, uri);
        }
        Box::pin(std::future::ready(Err(ResourceError::Unauthorized)))
    }
}

/// Takes every `authToken` parameter out of a URI's query. The value is percent-decoded
/// (RFC 3986, 2.1); where there are several the last one counts.
pub(crate) fn split_token(uri: &str) -> (String, Option<String>) {
    let Some((path, query)) = uri.split_once('?') else { return (uri.to_owned(), None) };
    let (query, fragment) = match query.split_once('#') {
        Some((query, fragment)) => (query, Some(fragment)),
        None => (query, None),
    };
    let mut token = None;
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if percent_decoded(key) == ARGUMENT {
            token = Some(percent_decoded(value));
        } else {
            kept.push(parameter);
        }
    }
    let mut clean = path.to_owned();
    for (mark, rest) in
        [('?', Some(kept.join("&")).filter(|text| !text.is_empty())), ('#', fragment.map(str::to_owned))]
    {
        if let Some(rest) = rest {
            clean.push(mark);
            clean.push_str(&rest);
        }
    }
    (clean, token)
}

/// Decodes `%41` to `A`; what is no such triplet stays as it is.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_a_uri_wherever_it_stands() {
        let cases = [
            ("cyberine://runs/a", "cyberine://runs/a", None),
            ("cyberine://runs/a?authToken=t", "cyberine://runs/a", Some("t")),
            ("cyberine://runs/a?x=1&authToken=t&y=2", "cyberine://runs/a?x=1&y=2", Some("t")),
            ("cyberine://runs/a?authToken=a%20b%2F#f", "cyberine://runs/a#f", Some("a b/")),
            ("cyberine://runs/a?auth%54oken=t", "cyberine://runs/a", Some("t")),
            ("cyberine://runs/a?authToken", "cyberine://runs/a", Some("")),
            ("cyberine://runs/a?authToken=1&authToken=2", "cyberine://runs/a", Some("2")),
            ("cyberine://runs/a?authToken=%+1%zz%", "cyberine://runs/a", Some("%+1%zz%")),
        ];
        for (uri, clean, token) in cases {
            assert_eq!(split_token(uri), (clean.to_owned(), token.map(str::to_owned)), "{uri}");
        }
    }
}
