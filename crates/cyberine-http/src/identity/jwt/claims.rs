use cyberine_types::{Identity, Principal};
use serde_json::{Map, Value};

use crate::identity::{Rejection, checked_name, checked_tenant};

/// The most audiences a token may name.
const MOST_AUDIENCES: usize = 64;

/// The tenant of processes of this machine.
const LOCAL: &str = "local";

/// Which claims of a token name whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The user: a text.
    pub user: String,
    /// The tenant: a text. Where a claim is named, a token has to have it.
    pub tenant: Option<String>,
    /// The audiences: a list of texts, or one text with spaces between them.
    pub audiences: Option<String>,
    /// The part of the organisation: a text.
    pub org_scope: Option<String>,
}

impl Claims {
    /// Whom `claims` name; `tenant` is theirs where no claim is to name it.
    pub(super) fn identity(&self, claims: &Map<String, Value>, tenant: &str) -> Result<Identity, Rejection> {
        let user = text(claims, &self.user).and_then(|name| checked_name(name).ok());
        let user = user.ok_or(Rejection::Invalid("the token does not name a user"))?;
        let tenant = match &self.tenant {
            None => tenant,
            Some(claim) => {
                let named = text(claims, claim).and_then(|name| checked_tenant(name).ok());
                // This machine's is no issuer's to give.
                let named = named.filter(|name| *name != LOCAL);
                named.ok_or(Rejection::Invalid("the token does not name a tenant"))?
            }
        };
        let audiences = match &self.audiences {
            None => Vec::new(),
            Some(claim) => audiences(claims.get(claim))?,
        };
        let org_scope = match self.org_scope.as_ref().and_then(|claim| claims.get(claim)) {
            None | Some(Value::Null) => None,
            Some(value) => {
                let named = value.as_str().and_then(|name| checked_name(name).ok());
                Some(
                    named.ok_or(Rejection::Invalid("the token names no part of an organisation"))?.to_owned(),
                )
            }
        };
        let principal = Principal { tenant: tenant.to_owned(), name: user.to_owned() };
        Ok(Identity { principal, audiences, org_scope })
    }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str()
}

fn audiences(claim: Option<&Value>) -> Result<Vec<String>, Rejection> {
    const FAULT: Rejection = Rejection::Invalid("the token's audiences cannot be read");
    let named: Vec<&str> = match claim {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.split(' ').filter(|part| !part.is_empty()).collect(),
        Some(Value::Array(list)) => list.iter().map(Value::as_str).collect::<Option<_>>().ok_or(FAULT)?,
        Some(_) => return Err(FAULT),
    };
    if named.len() > MOST_AUDIENCES || named.iter().any(|name| checked_name(name).is_err()) {
        return Err(FAULT);
    }
    Ok(named.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn identity(claims: &Value) -> Result<Identity, Rejection> {
        let named = Claims {
            user: "sub".to_owned(),
            tenant: Some("org".to_owned()),
            audiences: Some("groups".to_owned()),
            org_scope: Some("unit".to_owned()),
        };
        named.identity(claims.as_object().unwrap(), "local")
    }

    #[test]
    fn claims_are_taken_where_they_are_of_the_right_kind_and_the_token_is_refused_where_not() {
        let whole = json!({ "sub": "auth0|1", "org": "acme", "groups": ["qa", "ops"], "unit": "emea" });
        let named = identity(&whole).unwrap();
        assert_eq!(named.principal, Principal { tenant: "acme".to_owned(), name: "auth0|1".to_owned() });
        assert_eq!(
            (named.audiences, named.org_scope.as_deref()),
            (vec!["qa".to_owned(), "ops".to_owned()], Some("emea"))
        );
        let spaced = identity(&json!({ "sub": "u", "org": "acme", "groups": "qa  ops" })).unwrap();
        assert_eq!((spaced.audiences, spaced.org_scope), (vec!["qa".to_owned(), "ops".to_owned()], None));
        let many: Vec<String> = (0..65).map(|at| at.to_string()).collect();
        for (claim, bad) in [
            ("sub", json!(7)),
            ("sub", json!("")),
            ("sub", json!("a\nb")),
            ("sub", json!(["a"])),
            ("org", json!("a/b")),
            ("org", Value::Null),
            ("org", json!("local")),
            ("groups", json!([1])),
            ("groups", json!({ "a": 1 })),
            ("groups", json!(["a\u{202e}"])),
            ("groups", json!(many)),
            ("unit", json!(1)),
        ] {
            let mut claims = whole.clone();
            claims[claim] = bad;
            assert!(matches!(identity(&claims), Err(Rejection::Invalid(_))), "{claims}");
        }
    }
}
