//! `cyberine demo`.

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_app::{
    DISCOVERY_VARIABLE, Environment, Exit, HOME_VARIABLE, Home, Interrupts, ModelServer, Overwrite, Problem,
    Project, Workplace, discover, write_config,
};
use serde_json::json;

use crate::args::Demo;
use crate::commands::{SELF, verdict_on};
use crate::follow::{self, OnInterrupt};
use crate::out::{Out, Style};
use crate::report;
use crate::scripted::{self, Scripted};

/// Whom the demo asks.
struct Cast {
    /// The first line: who answers.
    label: String,
    /// The configuration.
    config: String,
    /// What must live as long as the run.
    scripted: Option<Scripted>,
}

/// Runs one orchestration in a home and a project of its own, which are removed afterwards.
pub(crate) async fn run(args: Demo, environment: &Arc<Environment>, out: &Out) -> Result<Exit, Problem> {
    let scratch = tempfile::tempdir().map_err(|error| Problem::of(Exit::Unavailable, &error))?;
    let prompt = args.prompt.clone();
    let mut interrupts = Interrupts::new();
    let cast = tokio::select! {
        cast = cast(args, environment, scratch.path().to_owned()) => cast?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    if !out.is_json() {
        out.line(format_args!("provider: {}", cast.label));
        out.line(format_args!("asking:   {prompt}"));
    }
    let workplace = stage(&cast, environment, scratch.path().to_owned())?;
    let dispatched = workplace.dispatch(prompt, SELF.to_owned()).await?;
    let run = follow::to_the_end(&workplace, dispatched.run, OnInterrupt::Stop, &mut interrupts, out).await?;
    if out.is_json() {
        out.json(&json!({ "provider": cast.label, "run": cyberine_operator::run_view(&run) }));
    } else {
        out.line("");
        report::print(out, &run);
        next_steps(out, cast.scripted.is_some());
    }
    Ok(verdict_on(&run))
}

/// A home and a project that hold nothing but the demo.
fn stage(cast: &Cast, environment: &Environment, scratch: PathBuf) -> Result<Workplace, Problem> {
    let home = Home::at(scratch.join("home"));
    home.open()?;
    write_config(&home.config_file(), &cast.config, Overwrite::Refuse)
        .map_err(|error| Problem::of(Exit::Internal, &error))?;
    let directory = scratch.join("project");
    std::fs::create_dir(&directory).map_err(|error| Problem::of(Exit::Unavailable, &error))?;
    let environment = environment.clone().with(HOME_VARIABLE, home.directory());
    let project = Project::at(&directory, &environment)?;
    Ok(Workplace::of(Arc::new(environment), home, project))
}

async fn cast(args: Demo, environment: &Environment, cwd: PathBuf) -> Result<Cast, Problem> {
    if let Some(base_url) = args.base_url {
        let label = args.label.unwrap_or_else(|| "model server".to_owned());
        let model = model_of(&base_url, environment).await;
        return Ok(of_server(&base_url, &label, &model));
    }
    if args.scripted.is_none() {
        let found = discover(environment).await?.servers;
        if let Some(cast) = of_found(&found) {
            return Ok(cast);
        }
    }
    let program = scripted::find(args.scripted, environment)?.ok_or_else(nothing)?;
    let scripted = scripted::start(&program, environment, &cwd).await?;
    Ok(of_script(scripted))
}

/// Where a server begins, and its address.
fn root_of(base_url: &str) -> (&str, &str) {
    let root = base_url.trim_end_matches('/').trim_end_matches("/v1");
    (root, root.trim_start_matches("http://"))
}

/// The first model a server on loopback lists. One that lists none, or is elsewhere, is asked for
/// its default.
async fn model_of(base_url: &str, environment: &Environment) -> String {
    let (_, address) = root_of(base_url);
    let found = discover(&environment.clone().with(DISCOVERY_VARIABLE, address)).await;
    let first = found.ok().and_then(|found| found.servers.into_iter().next()?.models.into_iter().next());
    first.unwrap_or_else(|| "default".to_owned())
}

/// Three candidates over both wires of one server.
fn of_server(base_url: &str, label: &str, model: &str) -> Cast {
    let (root, address) = root_of(base_url);
    let openai = |name: &str| entry(name, "openai", &format!("{root}/v1"), model);
    let config =
        [openai("first-openai"), entry("second-anthropic", "anthropic", root, model), openai("third-openai")];
    Cast { label: format!("{label} on {address}"), config: config.concat(), scripted: None }
}

fn entry(name: &str, kind: &str, base_url: &str, model: &str) -> String {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    format!(
        "[providers.{name}]\nkind = \"{kind}\"\nbase_url = {}\nmodel = {}\nmax_tokens = 128\nbilling = \"free\"\n",
        text(base_url),
        text(model)
    )
}

/// Up to three models of the servers on this machine; a lone one is asked twice.
fn of_found(servers: &[ModelServer]) -> Option<Cast> {
    let all: Vec<(&ModelServer, &String)> =
        servers.iter().flat_map(|server| server.models.iter().map(move |model| (server, model))).collect();
    let (first, model) = all.first()?;
    let mut chosen: Vec<_> = all.iter().take(3).collect();
    if chosen.len() == 1 {
        chosen.push(chosen[0]);
    }
    let entries = chosen
        .iter()
        .enumerate()
        .map(|(at, (server, model))| entry(&format!("model-{}", at + 1), "openai", &server.base_url, model));
    Some(Cast { label: format!("{} {model}", first.label), config: entries.collect(), scripted: None })
}

/// Three scripted candidates over three wires, and a scripted judge.
fn of_script(scripted: Scripted) -> Cast {
    let root = &scripted.base_url;
    let program = serde_json::Value::from(scripted.program.display().to_string());
    let config = [
        entry("north", "openai", &format!("{root}/v1"), "scripted/north"),
        entry("south", "anthropic", root, "scripted/south"),
        format!(
            "[providers.east]\nkind = \"command\"\ncommand = [{program}, \"answer\", \"--role\", \"east\"]\nmodel = \"scripted/east\"\n"
        ),
        entry("judge", "openai", &format!("{root}/v1"), "scripted/judge"),
        "[orchestrate]\ncandidates = [\"north\", \"south\", \"east\"]\njudge_providers = [\"judge\"]\n"
            .to_owned(),
    ];
    Cast {
        label: "scripted (no model was called)".to_owned(),
        config: config.concat(),
        scripted: Some(scripted),
    }
}

fn nothing() -> Problem {
    Problem::new(
        Exit::Unavailable,
        "no model server answers on this machine, and the scripted provider `cyberine-scripted-llm` is not installed \
         beside this program. Do one of these: start Ollama, LM Studio, llama.cpp, vLLM or Jan and run the demo again; \
         in a clone of the repository run `cargo xtask demo`; or name the program with `--scripted PATH`",
    )
}

fn next_steps(out: &Out, scripted: bool) {
    out.line("");
    out.line(out.paint(Style::Strong, "Next"));
    if scripted {
        out.line("  These answers came from a script. To ask real models:");
    }
    out.line("  cyberine init          writes cyberine.toml from what is on this machine");
    out.line("  cyberine trust         shows this project's cyberine.toml and asks whether to allow it");
    out.line("  cyberine orchestrate \"your question\"");
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_app::{ConfigSource, offer_of};

    fn kinds(config: &str) -> Vec<String> {
        let providers = offer_of(&ConfigSource::of("demo", config)).unwrap().providers;
        providers.values().map(|provider| provider.kind().to_owned()).collect()
    }

    fn server(models: &[&str]) -> ModelServer {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        ModelServer { label: "Ollama".to_owned(), base_url: "http://127.0.0.1:1/v1".to_owned(), models }
    }

    #[test]
    fn every_cast_is_a_valid_configuration() {
        let given = of_server("http://127.0.0.1:18101/v1/", "SmolLM2-135M via llama.cpp", "m");
        assert_eq!(given.label, "SmolLM2-135M via llama.cpp on 127.0.0.1:18101");
        assert_eq!(kinds(&given.config), ["openai", "anthropic", "openai"]);
        assert_eq!(kinds(&of_found(&[server(&["a\"b"])]).unwrap().config), ["openai", "openai"]);
        assert_eq!(kinds(&of_found(&[server(&[]), server(&["a", "b", "c", "d"])]).unwrap().config).len(), 3);
        assert!(of_found(&[server(&[])]).is_none());
    }
}
