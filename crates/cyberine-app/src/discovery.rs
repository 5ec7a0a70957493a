//! What the machine has to offer: model servers on loopback, programs on the path, keys in the
//! environment. Nothing is started, no key is sent, nothing but loopback is asked.

mod http;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;

use crate::environment::{DISCOVERY_VARIABLE, Environment};

/// How long one server may take to answer.
const PATIENCE: Duration = Duration::from_millis(300);

/// What a server is called that answers as Ollama does.
pub const OLLAMA: &str = "Ollama";

/// Where model servers listen unless told otherwise.
const USUAL: [(&str, u16); 5] =
    [(OLLAMA, 11434), ("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000), ("Jan", 1337)];

/// Variables that hold keys, and what they are keys to.
const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "Anthropic"),
    ("OPENAI_API_KEY", "OpenAI"),
    ("GEMINI_API_KEY", "Google"),
    ("OPENROUTER_API_KEY", "OpenRouter"),
];

/// Programs that can answer a prompt.
const PROGRAMS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "aider"];

/// A model server found on loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelServer {
    /// What it seems to be, such as `Ollama`.
    pub label: String,
    /// Where its OpenAI-compatible interface begins.
    pub base_url: String,
    /// The chat models it can run here at no cost, as it lists them.
    pub models: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Model servers on loopback.
    pub servers: Vec<ModelServer>,
    /// Programs on the path that can answer a prompt.
    pub programs: Vec<FoundProgram>,
    /// Variables that hold a key, by name. Values are never looked at.
    pub keys: Vec<FoundKey>,
}

/// A program on the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundProgram {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// A variable that holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundKey {
    /// The variable's name.
    pub variable: String,
    /// Whose key it is.
    pub vendor: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Probe {
    label: String,
    address: SocketAddr,
}

/// `CYBERINE_DISCOVERY` is neither `off` nor a list of addresses on loopback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{DISCOVERY_VARIABLE}` must be `off` or addresses on loopback such as `127.0.0.1:11434,127.0.0.1:8080`, and `{entry}` is none"
)]
pub struct DiscoveryError {
    entry: String,
}

/// Looks for everything.
///
/// # Errors
/// Where `CYBERINE_DISCOVERY` is not understood.
pub async fn find(environment: &Environment) -> Result<Found, DiscoveryError> {
    Ok(Found {
        servers: servers(environment).await?,
        programs: programs(environment),
        keys: keys(environment),
    })
}

/// Looks for model servers on loopback, all at once, 300 ms each.
///
/// # Errors
/// Where `CYBERINE_DISCOVERY` is not understood.
pub(crate) async fn servers(environment: &Environment) -> Result<Vec<ModelServer>, DiscoveryError> {
    let found = join_all(probes(environment)?.into_iter().map(ask)).await;
    Ok(found.into_iter().flatten().collect())
}

fn probes(environment: &Environment) -> Result<Vec<Probe>, DiscoveryError> {
    let Some(wanted) = environment.text(DISCOVERY_VARIABLE) else {
        let usual = |(label, port): (&str, u16)| Probe {
            label: label.to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        return Ok(USUAL.map(usual).into());
    };
    if wanted == "off" {
        return Ok(Vec::new());
    }
    wanted.split(',').map(|entry| loopback(entry.trim())).collect()
}

fn loopback(entry: &str) -> Result<Probe, DiscoveryError> {
    let bare = entry.strip_prefix("http://").unwrap_or(entry).trim_end_matches('/');
    let address = bare.replace("localhost:", "127.0.0.1:").parse::<SocketAddr>();
    match address {
        Ok(address) if address.ip().is_loopback() => Ok(Probe { label: unnamed(address), address }),
        _ => Err(DiscoveryError { entry: entry.to_owned() }),
    }
}

fn unnamed(address: SocketAddr) -> String {
    format!("model server on {address}")
}

async fn ask(probe: Probe) -> Option<ModelServer> {
    tokio::time::timeout(PATIENCE, identify(&probe)).await.ok().flatten()
}

/// Ollama lists its models in a way of its own, which tells apart those that run elsewhere for
/// money; everything else answers `/v1/models`. Both are asked at once.
async fn identify(probe: &Probe) -> Option<ModelServer> {
    let (tags, models) = futures_util::join!(
        http::get_json(probe.address, "/api/tags"),
        http::get_json(probe.address, "/v1/models")
    );
    let (label, models) = match tags.as_ref().and_then(ollama_models) {
        Some(models) => (OLLAMA.to_owned(), models),
        None if probe.label == OLLAMA => (unnamed(probe.address), openai_models(models.as_ref()?)?),
        None => (probe.label.clone(), openai_models(models.as_ref()?)?),
    };
    Some(ModelServer { label, base_url: format!("http://{}/v1", probe.address), models })
}

/// Models of Ollama's `/api/tags` that run on this machine: a cloud model has a `remote_host`.
fn ollama_models(tags: &Value) -> Option<Vec<String>> {
    let models = tags.get("models")?.as_array()?;
    let local = models.iter().filter(|model| model.get("remote_host").is_none());
    Some(
        local
            .filter_map(|model| model.get("name")?.as_str())
            .filter(|name| can_chat(name))
            .map(str::to_owned)
            .collect(),
    )
}

fn openai_models(list: &Value) -> Option<Vec<String>> {
    let models = list.get("data")?.as_array()?;
    Some(
        models
            .iter()
            .filter_map(|model| model.get("id")?.as_str())
            .filter(|id| can_chat(id))
            .map(str::to_owned)
            .collect(),
    )
}

/// Embedding and re-ranking models are listed beside the others and cannot answer.
fn can_chat(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    !name.is_empty()
        && !["embed", "rerank", "bge-", "minilm", "-cloud", ":cloud"].iter().any(|part| name.contains(part))
}

fn programs(environment: &Environment) -> Vec<FoundProgram> {
    let directories = environment.search_path();
    let find = |name: &str| {
        directories
            .iter()
            .map(|directory| directory.join(name))
            .find(|path| executable(path))
            .map(|path| FoundProgram { name: name.to_owned(), path })
    };
    PROGRAMS.iter().filter_map(|name| find(name)).collect()
}

/// Whether it is a program that this user may run.
pub(crate) fn executable(path: &std::path::Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn keys(environment: &Environment) -> Vec<FoundKey> {
    let set = KEYS.iter().filter(|(variable, _)| environment.text(variable).is_some());
    set.map(|(variable, vendor)| FoundKey { variable: (*variable).to_owned(), vendor: (*vendor).to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::http::fixture;
    use serde_json::json;

    fn environment(discovery: &str) -> Environment {
        Environment::of([(DISCOVERY_VARIABLE, discovery)], "/")
    }

    #[test]
    fn only_loopback_is_ever_asked() {
        assert_eq!(probes(&Environment::of([], "/")).unwrap().len(), USUAL.len());
        assert_eq!(probes(&environment("off")).unwrap(), []);
        let two = probes(&environment("http://localhost:9/, [::1]:8")).unwrap();
        assert_eq!(two.iter().map(|probe| probe.address.port()).collect::<Vec<_>>(), [9, 8]);
        for bad in ["on", "8.8.8.8:80", "0.0.0.0:1", "127.0.0.1", "http://example.com:80", "127.0.0.1:1,"] {
            assert!(probes(&environment(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn models_that_cost_or_cannot_chat_are_left_out() {
        let tags = json!({ "models": [
            { "name": "qwen3:8b" },
            { "name": "gpt-oss:120b-cloud", "remote_host": "https://ollama.com:443" },
            { "name": "kimi:cloud" },
            { "name": "nomic-embed-text:latest" },
        ]});
        assert_eq!(ollama_models(&tags), Some(vec!["qwen3:8b".to_owned()]));
        let list = json!({ "object": "list", "data": [{ "id": "local" }, { "id": "text-embedding-3" }, {}] });
        assert_eq!(openai_models(&list), Some(vec!["local".to_owned()]));
        assert_eq!(openai_models(&json!({ "status": "ok" })), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn servers_are_told_from_other_things_that_listen() {
        let ollama = fixture::serve(vec![("/api/tags", json!({ "models": [{ "name": "a" }] }).to_string())]);
        let other = fixture::serve(vec![("/v1/models", json!({ "data": [{ "id": "b" }] }).to_string())]);
        let shop = fixture::serve(vec![("/v1/models", "<html>".to_owned())]);
        let silent = fixture::silent();
        let all =
            [ollama, other, shop, silent.local_addr().unwrap()].map(|address| address.to_string()).join(",");
        let found = servers(&environment(&all)).await.unwrap();
        let seen: Vec<_> =
            found.iter().map(|server| (server.label.as_str(), server.models.join(","))).collect();
        assert_eq!(
            seen,
            [("Ollama", "a".to_owned()), (&*format!("model server on {other}"), "b".to_owned())]
        );
        assert_eq!(found[0].base_url, format!("http://{ollama}/v1"));
    }

    #[test]
    fn keys_are_found_by_name_and_programs_on_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let claude = directory.path().join("claude");
        std::fs::write(&claude, "").unwrap();
        let path = directory.path().to_str().unwrap();
        let environment =
            Environment::of([("PATH", path), ("OPENAI_API_KEY", "sk"), ("ANTHROPIC_API_KEY", "")], "/");
        assert_eq!(programs(&environment), [], "a file without the execute bit is no program");
        std::fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(programs(&environment), [FoundProgram { name: "claude".into(), path: claude }]);
        let names: Vec<_> = keys(&environment).into_iter().map(|key| key.variable).collect();
        assert_eq!(names, ["OPENAI_API_KEY"]);
    }
}
