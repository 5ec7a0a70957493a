//! Whether a provider could answer, found out at no cost.

use std::fmt;

use serde_json::Value;

use crate::error::TurnError;

/// How many models are named where the configured one is not there, and how much of each name.
const SHOWN: usize = 10;
const NAME: usize = 60;

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
    /// What else there is to tell people: which models there are instead, which address has no list.
    pub remark: Option<String>,
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
        Self { version: None, reached: Ok(()), login: Login::Unknown, model_listed: None, remark: None }
    }

    /// It was not there.
    pub(crate) fn absent(error: TurnError) -> Self {
        Self { reached: Err(error), ..Self::there() }
    }

    /// What an answer to the request for a service's models at `url` says.
    pub(crate) fn of_models(asked: &Asked<'_>, status: u16, body: &str, fault: TurnError) -> Self {
        let Asked { url, model, keyed } = *asked;
        let login = if keyed { Login::Yes } else { Login::NotNeeded };
        match (status, fault) {
            (200..=299, _) => {
                let names = names(body);
                let has = |name: &String| name == model || name.strip_suffix(":latest") == Some(model);
                let model_listed = (!names.is_empty()).then(|| names.iter().any(has));
                let remark = (model_listed == Some(false)).then(|| instead(url, model, &names));
                Self { login, model_listed, remark, ..Self::there() }
            }
            (_, TurnError::Auth { detail }) => Self { login: Login::No(detail), ..Self::there() },
            // A service without such a list.
            (404 | 405 | 501, _) => Self {
                remark: Some(format!("`{url}` says {status}: check `base_url` where it should list models")),
                ..Self::there()
            },
            (_, fault) => Self::absent(fault),
        }
    }
}

/// The request for a service's models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) url: &'a str,
    /// The configured model.
    pub(crate) model: &'a str,
    /// Whether a key was sent.
    pub(crate) keyed: bool,
}

/// The models of a list, each once, in any of the forms services give one.
fn names(body: &str) -> Vec<String> {
    let Ok(body) = serde_json::from_str::<Value>(body) else { return Vec::new() };
    let list = ["data", "models"].iter().find_map(|key| body[*key].as_array());
    let entries = list.into_iter().flatten();
    let said = entries.flat_map(|entry| ["id", "name", "model"].map(|key| entry[key].as_str()));
    let mut names: Vec<String> = Vec::new();
    for name in said.flatten().map(|name| name.strip_prefix("models/").unwrap_or(name)) {
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// What to say where `model` is none of `names`.
fn instead(url: &str, model: &str, names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(|name| cut(name, NAME)).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the model `{model}` is not among those that `{url}` lists: {shown}{more}")
}

fn cut(name: &str, characters: usize) -> String {
    name.chars().take(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(detail: &str) -> TurnError {
        TurnError::Rejected { detail: detail.to_owned() }
    }

    fn of(status: u16, body: &str, model: &str, keyed: bool, fault: TurnError) -> Probe {
        Probe::of_models(&Asked { url: "http://h/v1/models", model, keyed }, status, body, fault)
    }

    #[test]
    fn a_model_that_is_not_there_is_told_with_the_address_and_some_that_are() {
        let all = (1..=12).map(|number| format!(r#"{{"id":"m{number}","name":"m{number}"}}"#));
        let body = format!(r#"{{"data":[{}]}}"#, all.collect::<Vec<_>>().join(","));
        let told = of(200, &body, "gone", false, fault("")).remark.unwrap();
        assert!(told.contains("`gone`") && told.contains("`http://h/v1/models` lists: m1, m2"), "{told}");
        assert!(told.ends_with("m10 and 2 more"), "{told}");
        assert_eq!(of(200, &body, "m12", false, fault("")).remark, None);
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
            assert_eq!(of(200, body, model, true, fault("")).model_listed, found, "{body}");
        }
    }

    #[test]
    fn a_status_says_whether_a_key_is_taken() {
        let of = |status, keyed, fault| of(status, "", "m", keyed, fault);
        assert_eq!(of(200, true, fault("")).login, Login::Yes);
        assert_eq!(of(200, false, fault("")).login, Login::NotNeeded);
        let refused = of(401, true, TurnError::Auth { detail: "status 401: bad".to_owned() });
        assert_eq!((refused.reached, refused.login), (Ok(()), Login::No("status 401: bad".to_owned())));
        let pageless = of(404, true, fault("no such page"));
        assert_eq!((&pageless.reached, &pageless.login), (&Ok(()), &Login::Unknown));
        assert!(pageless.remark.unwrap().contains("`http://h/v1/models` says 404: check `base_url`"));
        let down = TurnError::Overloaded { detail: "status 503".to_owned(), retry_after: None };
        assert_eq!(of(503, true, down.clone()).reached, Err(down));
    }
}
