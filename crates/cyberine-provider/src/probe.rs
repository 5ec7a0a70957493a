//! Whether a provider could answer, found out at no cost.

use std::fmt;

use serde_json::Value;

use crate::error::TurnError;

/// What was found. Nothing of it called a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What the program says of its version; `None` for a service, and for a program that cannot be
    /// asked without being made to work.
    pub version: Option<String>,
    /// Whether it was there, and what kept it from answering where it was not.
    pub reached: Result<(), TurnError>,
    /// Whether it lets us in.
    pub login: Login,
    /// Whether the configured model is among those the service lists; `None` where it lists none.
    pub model_listed: Option<bool>,
}

/// Whether a provider lets us in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Nothing tells without a paid request.
    Unknown,
    /// It says so.
    Yes,
    /// It says that it does not, in these words.
    No(String),
    /// It asks for none.
    NotNeeded,
}

impl fmt::Display for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => out.write_str("not known before the first turn"),
            Self::Yes => out.write_str("yes"),
            Self::No(why) => write!(out, "no: {why}"),
            Self::NotNeeded => out.write_str("not needed"),
        }
    }
}

impl Probe {
    /// It was there, and nothing more is known.
    pub(crate) const fn there() -> Self {
        Self { version: None, reached: Ok(()), login: Login::Unknown, model_listed: None }
    }

    /// It was not there.
    pub(crate) fn absent(error: TurnError) -> Self {
        Self { reached: Err(error), ..Self::there() }
    }

    /// What an answer to the request for a service's models says.
    pub(crate) fn of_models(status: u16, body: &str, model: &str, keyed: bool, fault: TurnError) -> Self {
        let login = if keyed { Login::Yes } else { Login::NotNeeded };
        match (status, fault) {
            (200..=299, _) => Self { login, model_listed: listed(body, model), ..Self::there() },
            (_, TurnError::Auth { detail }) => Self { login: Login::No(detail), ..Self::there() },
            // A service without such a list.
            (404 | 405 | 501, _) => Self::there(),
            (_, fault) => Self::absent(fault),
        }
    }
}

/// Whether `model` is in a list of models, in any of the forms services give one.
fn listed(body: &str, model: &str) -> Option<bool> {
    let body: Value = serde_json::from_str(body).ok()?;
    let list = ["data", "models"].iter().find_map(|key| body[*key].as_array())?;
    let names = list.iter().flat_map(|entry| ["id", "name", "model"].map(|key| entry[key].as_str()));
    let mut names = names.flatten().map(|name| name.strip_prefix("models/").unwrap_or(name)).peekable();
    names.peek()?;
    Some(names.any(|name| name == model || name.strip_suffix(":latest") == Some(model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(detail: &str) -> TurnError {
        TurnError::Rejected { detail: detail.to_owned() }
    }

    #[test]
    fn a_list_of_models_is_read_in_every_form() {
        for (body, model, found) in [
            (r#"{"data":[{"id":"a"},{"id":"b"}]}"#, "b", Some(true)),
            (r#"{"data":[{"id":"a"}]}"#, "b", Some(false)),
            (r#"{"models":[{"name":"models/g"}]}"#, "g", Some(true)),
            (r#"{"models":[{"name":"qwen3:latest","model":"qwen3:latest"}]}"#, "qwen3", Some(true)),
            (r#"{"data":[]}"#, "b", None),
            ("[]", "b", None),
            ("<html>", "b", None),
        ] {
            assert_eq!(listed(body, model), found, "{body}");
        }
    }

    #[test]
    fn a_status_says_whether_a_key_is_taken() {
        let of = |status, keyed, fault| Probe::of_models(status, "", "m", keyed, fault);
        assert_eq!(of(200, true, fault("")).login, Login::Yes);
        assert_eq!(of(200, false, fault("")).login, Login::NotNeeded);
        let refused = of(401, true, TurnError::Auth { detail: "status 401: bad".to_owned() });
        assert_eq!((refused.reached, refused.login), (Ok(()), Login::No("status 401: bad".to_owned())));
        assert_eq!(of(404, true, fault("no such page")), Probe::there());
        let down = TurnError::Overloaded { detail: "status 503".to_owned(), retry_after: None };
        assert_eq!(of(503, true, down.clone()).reached, Err(down));
    }
}
