//! What a request line is about: a pure function.

use std::time::Duration;

use hyper::{Method, Uri};

use crate::call::Wire;
use crate::control::State;

/// How long a wait lasts where the request names no limit.
const WAIT: Duration = Duration::from_secs(10);

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    /// All models in the words of the wire that the headers speak.
    Models,
    /// One of them.
    Model(String),
    /// All models in the words of a wire of its own path.
    ModelsOf(Wire),
    /// One of them.
    ModelOf(Wire, String),
    Version,
    Complete(Target),
    /// How many tokens a request would take.
    Count(Wire),
    State,
    Wait {
        least: Least,
        limit: Duration,
    },
    Release(String),
    /// A program waits for a release; the second part is its role.
    Hold(String, String),
    /// The path exists with another method.
    WrongMethod,
    /// A stream of the Gemini wire that is not asked for as server-sent events.
    NotEvents,
    Unknown,
}

/// What a path says about a request for a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) wire: Wire,
    /// The model; empty where the body names it.
    pub(crate) model: String,
    /// Whether a stream is asked for; where the body names the model, it says that too.
    pub(crate) stream: bool,
}

impl From<Wire> for Target {
    fn from(wire: Wire) -> Self {
        Self { wire, model: String::new(), stream: false }
    }
}

/// Counts that a state must have reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Least {
    pub(crate) seen: u64,
    pub(crate) held: usize,
    pub(crate) released: u64,
    pub(crate) done: u64,
    pub(crate) broken: u64,
    pub(crate) disconnected: u64,
}

impl Least {
    pub(crate) fn reached(&self, state: &State) -> bool {
        state.seen >= self.seen
            && state.held.len() >= self.held
            && state.released >= self.released
            && state.done >= self.done
            && state.broken >= self.broken
            && state.disconnected >= self.disconnected
    }
}

/// Finds the route of a request.
pub(crate) fn route(method: &Method, uri: &Uri) -> Route {
    let path = uri.path();
    let get = |route: Route| if method == Method::GET { route } else { Route::WrongMethod };
    let post = |route: Route| if method == Method::POST { route } else { Route::WrongMethod };
    match path {
        "/health" => get(Route::Health),
        "/v1/models" => get(Route::Models),
        "/v1/chat/completions" => post(Route::Complete(Wire::OpenAi.into())),
        "/v1/responses" => post(Route::Complete(Wire::Responses.into())),
        "/v1/messages" => post(Route::Complete(Wire::Anthropic.into())),
        "/v1/messages/count_tokens" => post(Route::Count(Wire::Anthropic)),
        "/v1beta/models" => get(Route::ModelsOf(Wire::Gemini)),
        "/api/chat" => post(Route::Complete(Wire::Ollama.into())),
        "/api/tags" => get(Route::ModelsOf(Wire::Ollama)),
        "/api/version" => get(Route::Version),
        "/control/state" => get(Route::State),
        "/control/wait" => wait(uri.query()).map_or(Route::Unknown, get),
        _ => {
            if let Some(name) = named(path, "/control/release/") {
                return post(Route::Release(name));
            }
            if let Some(name) = named(path, "/control/hold/") {
                let role = query(uri.query(), "role").unwrap_or("program").to_owned();
                return get(Route::Hold(name, role));
            }
            let model = ["/v1beta/models/", "/v1/models/"].iter().find_map(|start| path.strip_prefix(start));
            match model.map(|model| model.replace("%2F", "/")) {
                Some(model) if method == Method::POST => generate(&model, uri.query()),
                Some(model) if path.starts_with("/v1beta") => get(Route::ModelOf(Wire::Gemini, model)),
                Some(model) => get(Route::Model(model)),
                None => Route::Unknown,
            }
        }
    }
}

/// The route of `{model}:{method}`, as the Gemini wire has it in its path.
fn generate(path: &str, parameters: Option<&str>) -> Route {
    let Some((model, method)) = path.rsplit_once(':') else { return Route::WrongMethod };
    let target = |stream: bool| Target { wire: Wire::Gemini, model: model.to_owned(), stream };
    match method {
        "generateContent" => Route::Complete(target(false)),
        "streamGenerateContent" if query(parameters, "alt") == Some("sse") => Route::Complete(target(true)),
        "streamGenerateContent" => Route::NotEvents,
        "countTokens" => Route::Count(Wire::Gemini),
        _ => Route::Unknown,
    }
}

/// The name at the end of a path: letters, digits, `-`, `_` and `.`, so that it needs no escapes.
fn named(path: &str, prefix: &str) -> Option<String> {
    path.strip_prefix(prefix).filter(|name| crate::script::is_hold_name(name)).map(str::to_owned)
}

/// A parameter of a query, as it is written there.
pub(crate) fn query<'a>(query: Option<&'a str>, key: &str) -> Option<&'a str> {
    query?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// `None` where a key is unknown or a value is no number: a typing error must not wait for nothing.
fn wait(query: Option<&str>) -> Option<Route> {
    let (mut least, mut limit) = (Least::default(), WAIT);
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=')?;
        let value: u64 = value.parse().ok()?;
        match key {
            "seen" => least.seen = value,
            "held" => least.held = usize::try_from(value).ok()?,
            "released" => least.released = value,
            "done" => least.done = value,
            "broken" => least.broken = value,
            "disconnected" => least.disconnected = value,
            "timeoutMs" => limit = Duration::from_millis(value),
            _ => return None,
        }
    }
    Some(Route::Wait { least, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, uri: &str) -> Route {
        route(&method.parse().unwrap(), &uri.parse().unwrap())
    }

    #[test]
    fn every_path_has_its_method() {
        assert_eq!(found("POST", "/v1/chat/completions"), Route::Complete(Wire::OpenAi.into()));
        assert_eq!(found("POST", "/v1/messages?beta=true"), Route::Complete(Wire::Anthropic.into()));
        assert_eq!(found("POST", "/v1/responses"), Route::Complete(Wire::Responses.into()));
        assert_eq!(found("POST", "/api/chat"), Route::Complete(Wire::Ollama.into()));
        assert_eq!(found("GET", "/v1/messages"), Route::WrongMethod);
        assert_eq!(found("GET", "/v1/models"), Route::Models);
        assert_eq!(found("GET", "/health"), Route::Health);
        assert_eq!(found("GET", "/v2/models"), Route::Unknown);
    }

    #[test]
    fn the_gemini_wire_names_model_and_method_in_its_path() {
        let target = |stream: bool| Target { wire: Wire::Gemini, model: "scripted/m".into(), stream };
        let path = "/v1beta/models/scripted%2Fm";
        assert_eq!(found("POST", &format!("{path}:generateContent")), Route::Complete(target(false)));
        let stream = format!("{path}:streamGenerateContent");
        assert_eq!(found("POST", &format!("{stream}?alt=sse")), Route::Complete(target(true)));
        assert_eq!(found("POST", &stream), Route::NotEvents);
        assert_eq!(found("POST", "/v1/models/m:countTokens"), Route::Count(Wire::Gemini));
        assert_eq!(found("POST", "/v1/models/m"), Route::WrongMethod);
        assert_eq!(found("POST", "/v1/models/m:embedContent"), Route::Unknown);
        assert_eq!(found("GET", "/v1/models/scripted/m"), Route::Model("scripted/m".into()));
        assert_eq!(found("GET", path), Route::ModelOf(Wire::Gemini, "scripted/m".into()));
    }

    #[test]
    fn controls_carry_their_names() {
        assert_eq!(found("POST", "/control/release/a-1"), Route::Release("a-1".into()));
        assert_eq!(found("POST", "/control/release/"), Route::Unknown);
        assert_eq!(found("POST", "/control/release/a%20b"), Route::Unknown);
        assert_eq!(found("GET", "/control/hold/a?role=east"), Route::Hold("a".into(), "east".into()));
    }

    #[test]
    fn a_wait_names_counts_and_nothing_else() {
        let least = Least { held: 3, ..Least::default() };
        let limit = Duration::from_millis(250);
        assert_eq!(found("GET", "/control/wait?held=3&timeoutMs=250"), Route::Wait { least, limit });
        assert_eq!(found("GET", "/control/wait?hold=3"), Route::Unknown);
        assert_eq!(found("GET", "/control/wait?held=x"), Route::Unknown);
    }
}
