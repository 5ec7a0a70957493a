//! The configuration `cyberine init` writes: what was found, with what it costs beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cyberine_app::{Found, FoundKey, ModelServer, OLLAMA};

/// How many models of one server are switched on; the others are written down and left off.
pub(crate) const MODELS_ON: usize = 2;

/// Which file it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Home,
    Project,
}

/// The text of a configuration made of `found`, which names the schema its editor may check it by.
pub(crate) fn draft(found: &Found, scope: Scope, schema: Option<&str>) -> String {
    let mut draft = Draft { text: head(scope, schema), names: BTreeSet::new() };
    found.servers.iter().for_each(|server| draft.server(server));
    for program in &found.programs {
        draft.program(&program.name);
    }
    found.keys.iter().for_each(|key| draft.key(key));
    draft.tail();
    draft.text
}

/// Whether `program` pays with a subscription's quota, and is switched on.
pub(crate) fn is_on_quota(program: &str) -> bool {
    matches!(program, "claude" | "codex")
}

fn head(scope: Scope, schema: Option<&str>) -> String {
    let schema = schema.map(|path| format!("#:schema {path}\n")).unwrap_or_default();
    let first = match scope {
        Scope::Home => "# Cyberine, for every project of yours. Written by `cyberine init --home`.",
        Scope::Project => {
            "# Cyberine, for this project. Written by `cyberine init`.\n\
             # Only its [budget] counts until `cyberine trust` has shown it and you have said yes; every change\n\
             # of it is asked about again."
        }
    };
    format!(
        "{schema}{first}\n# Every provider below is asked by every `orchestrate`; `#` switches a line off.\n"
    )
}

struct Draft {
    text: String,
    names: BTreeSet<String>,
}

impl Draft {
    fn server(&mut self, server: &ModelServer) {
        let _ = write!(
            self.text,
            "\n# {} answers at {}. It runs on this machine and costs nothing.\n",
            one_line(&server.label),
            server.base_url
        );
        if server.models.is_empty() {
            self.text
                .push_str("# It lists no model that can chat yet: pull or load one, then run init again.\n");
        }
        let (kind, address) = match server.label.as_str() {
            OLLAMA => ("ollama", server.base_url.trim_end_matches("/v1")),
            _ => ("openai", server.base_url.as_str()),
        };
        for (at, model) in server.models.iter().enumerate() {
            let name = self.name(model);
            let off = if at < MODELS_ON { "" } else { "# " };
            let _ = write!(
                self.text,
                "{off}[providers.{name}]\n{off}kind = \"{kind}\"\n{off}base_url = {}\n{off}model = {}\n",
                quoted(address),
                quoted(model)
            );
        }
    }

    fn program(&mut self, program: &str) {
        let name = self.name(program);
        let lines = match program {
            "claude" => vec!["kind = \"claude-cli\"".to_owned()],
            "codex" => vec!["kind = \"codex-cli\"".to_owned()],
            "aider" => vec!["kind = \"aider\"".to_owned()],
            agent => {
                // Gemini CLI's one shot trusts the directory it works in; opencode's tells more.
                let command = if agent == "gemini" { "[\"gemini\", \"--acp\"]" } else { "[\"opencode\"]" };
                vec!["kind = \"acp\"".to_owned(), format!("command = {command}")]
            }
        };
        let (pays, off) = if is_on_quota(program) {
            ("It pays with its own login: a subscription's quota, not money\n# per token.", "")
        } else {
            (
                "Its own login or key pays, perhaps by the token: say\n# `billing = \"metered\"` where it does.",
                "# ",
            )
        };
        let _ = write!(
            self.text,
            "\n# `{program}` is on the PATH. {pays} `cyberine doctor providers` says whether it lets you in.\n\
             {off}[providers.{name}]\n"
        );
        for line in lines {
            let _ = writeln!(self.text, "{off}{line}");
        }
    }

    /// Keys cost money, and which model is worth it is the user's to say: nothing is switched on.
    fn key(&mut self, key: &FoundKey) {
        let _ = write!(
            self.text,
            "\n# {} is set: {} can be asked, and BILLS EVERY TOKEN. Name a model to switch it on.\n",
            key.variable, key.vendor
        );
        let name = self.name(&key.vendor.to_lowercase());
        let (kind, base_url) = match key.variable.as_str() {
            "ANTHROPIC_API_KEY" => ("anthropic", None),
            "GEMINI_API_KEY" => ("gemini", None),
            "OPENAI_API_KEY" => ("openai-responses", None),
            _ => ("openai", Some("https://openrouter.ai/api/v1")),
        };
        let _ = write!(self.text, "# [providers.{name}]\n# kind = \"{kind}\"\n");
        if let Some(base_url) = base_url {
            let _ = writeln!(self.text, "# base_url = \"{base_url}\"");
        }
        let _ = write!(self.text, "# model = \"\"\n# api_key_env = \"{}\"\n", key.variable);
    }

    fn tail(&mut self) {
        if self.names.is_empty() {
            self.text.push_str(
                "\n# Nothing was found. Any program that reads a prompt and prints an answer will do:\n\
                 # [providers.mine]\n# kind = \"command\"\n# command = [\"my-model\", \"--quiet\"]\n",
            );
        }
        self.text.push_str(
            "\n# [orchestrate]\n# judges = [\"consensus\", \"llm-judge\"]\n\
             # approval = \"required\"   # wait for `cyberine approve` before answers are judged\n\
             \n# [budget]\n# daily_usd = 5.00   # the most that is held and spent in one UTC day\n\
             # run_usd = 1.00     # the most that one run may hold and spend\n\
             \n# [run]\n# on_host_exit = \"continue\"   # or \"cancel\"\n",
        );
    }

    /// A provider's name made of a model's: letters, digits, `_` and `-`, and no other's.
    fn name(&mut self, from: &str) -> String {
        let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let base: String = from.chars().map(fits).take(56).collect();
        let base = match base.trim_matches('-') {
            "" => "model",
            trimmed => trimmed,
        };
        let tries = (1..).map(|n| if n == 1 { base.to_owned() } else { format!("{base}-{n}") });
        let name =
            tries.into_iter().find(|name| !self.names.contains(name)).unwrap_or_else(|| base.to_owned());
        self.names.insert(name.clone());
        name
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_app::{ConfigSource, FoundProgram, offer_of};

    fn found(models: &[&str]) -> Found {
        Found {
            servers: vec![ModelServer {
                label: "Ollama\nx = 1".to_owned(),
                base_url: "http://127.0.0.1:11434/v1".to_owned(),
                models: models.iter().map(|model| (*model).to_owned()).collect(),
            }],
            programs: ["claude", "codex", "gemini", "opencode", "aider"]
                .map(|name| FoundProgram { name: name.to_owned(), path: format!("/bin/{name}").into() })
                .into(),
            keys: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"]
                .map(|variable| FoundKey { variable: variable.to_owned(), vendor: variable[..6].to_owned() })
                .into(),
        }
    }

    fn names(text: &str) -> Vec<String> {
        offer_of(&ConfigSource::of("draft", text)).unwrap().providers.into_keys().collect()
    }

    /// The keys of a provider that is switched off.
    const KEYS: [&str; 5] = ["kind =", "command =", "base_url =", "model =", "api_key_env ="];

    #[test]
    fn what_costs_nothing_or_a_subscription_is_on_and_keys_are_off() {
        let text = draft(&found(&["qwen3:8b", "llama3.2", "third"]), Scope::Project, None);
        assert_eq!(names(&text), ["claude", "codex", "llama3-2", "qwen3-8b"]);
        let on = |line: &str| match line.strip_prefix("# ") {
            Some(off) if off.starts_with("[providers") || KEYS.iter().any(|key| off.starts_with(key)) => {
                format!("{}\n", off.replace("\"\"", "\"m\""))
            }
            _ => format!("{line}\n"),
        };
        let all = names(&text.lines().map(on).collect::<String>());
        for name in ["gemini", "opencode", "aider", "openai", "anthro"] {
            assert!(all.iter().any(|one| one.starts_with(name)), "{name}: {all:?}");
        }
        assert!(text.contains("BILLS EVERY TOKEN") && text.contains("cyberine trust"), "{text}");
    }

    #[test]
    fn a_model_cannot_write_configuration_through_its_name() {
        let text = draft(
            &found(&[
                "a\"\n[providers.evil]\nkind = \"command\"\ncommand = [\"sh\"]\n#",
                "a b",
                "a-b",
                "---",
            ]),
            Scope::Home,
            None,
        );
        let on = names(&text);
        assert!(!on.contains(&"evil".to_owned()) && on.len() == 4, "{on:?}\n{text}");
    }

    #[test]
    fn every_line_that_is_off_is_valid_once_it_is_on() {
        let text = draft(&Found::default(), Scope::Home, None);
        assert_eq!(names(&text), Vec::<String>::new());
        let section = text.find("\n# [providers.mine]").unwrap();
        let on: String =
            text[section..].lines().map(|line| format!("{}\n", line.trim_start_matches("# "))).collect();
        assert_eq!(names(&on), ["mine"]);
    }
}
