//! `cyberine init`.

use std::path::Path;

use cyberine_app::{Exit, Found, Overwrite, Problem, Workplace, Written, chain, discover, write_config};
use serde_json::json;

use crate::args::Init;
use crate::commands::schema;
use crate::draft::{MODELS_ON, Scope, draft, is_on_quota};
use crate::out::Out;
use crate::plain::escaped;

/// Writes a configuration from what is found on this machine.
pub(crate) async fn run(args: &Init, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let (scope, path) = if args.home {
        (Scope::Home, workplace.home.config_file())
    } else {
        (Scope::Project, workplace.project.config_file())
    };
    let found = discover(&workplace.environment).await?;
    if args.home {
        workplace.home.open()?;
    }
    let overwrite = if args.force { Overwrite::Allow } else { Overwrite::Refuse };
    let schema = match schema::put(scope, workplace) {
        Ok(path) => Some(path),
        Err(error) => {
            out.note(format_args!("editors get no schema of the configuration: {}", chain(&error)));
            None
        }
    };
    let written = write_config(&path, &draft(&found, scope, schema.as_deref()), overwrite)
        .map_err(|error| Problem::of(Exit::Unavailable, &error))?;
    match written {
        Written::Whole => {}
        Written::RefusedToOverwrite => {
            let path = path.display();
            return Err(Problem::new(
                Exit::Configuration,
                format!("`{path}` is there already: edit it, or overwrite it by --force"),
            ));
        }
    }
    if out.is_json() {
        out.json(&json!({ "file": path, "found": found }));
    } else {
        tell(out, &path, &found, scope);
    }
    Ok(Exit::Done)
}

fn tell(out: &Out, path: &Path, found: &Found, scope: Scope) {
    out.line(format_args!("Wrote {}", escaped(&path.display().to_string())));
    for server in &found.servers {
        let (on, off) = server.models.split_at(server.models.len().min(MODELS_ON));
        for (word, models) in [("on ", on), ("off", off)].into_iter().filter(|(_, models)| !models.is_empty())
        {
            let (label, models) = (escaped(&server.label), escaped(&models.join(", ")));
            out.line(format_args!("  {word}   {label} at {}: {models} (costs nothing)", server.base_url));
        }
    }
    for program in &found.programs {
        let (word, pays) = match is_on_quota(&program.name) {
            true => ("on ", "its own login pays"),
            false => ("off", "its own login or key pays, perhaps by the token; take the `#` away to ask it"),
        };
        let path = escaped(&program.path.display().to_string());
        out.line(format_args!("  {word}   {} ({path}): {pays}", program.name));
    }
    for key in &found.keys {
        out.line(format_args!(
            "  off   {}: {} bills every token; name a model to switch it on",
            key.variable, key.vendor
        ));
    }
    if found.servers.is_empty() && found.programs.is_empty() && found.keys.is_empty() {
        out.line("  Nothing was found: start a model server (Ollama, LM Studio, llama.cpp, vLLM, Jan), or");
        out.line("  name any program that reads a prompt and prints an answer; the file shows how.");
    }
    out.line("Next: read the file, then");
    if scope == Scope::Project {
        out.line("  cyberine trust     see what it would do, and allow it");
    }
    out.line("  cyberine doctor    check that everything is there");
}
