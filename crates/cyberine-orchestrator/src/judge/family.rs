//! The family of a model, told by its name.

/// Names of one family that do not begin alike.
const KIN: &[(&str, &str)] = &[
    ("chatgpt", "gpt"),
    ("codex", "gpt"),
    ("o", "gpt"),
    ("davinci", "gpt"),
    ("opus", "claude"),
    ("sonnet", "claude"),
    ("haiku", "claude"),
    ("mixtral", "mistral"),
    ("codestral", "mistral"),
    ("ministral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("gemma", "gemini"),
    ("codellama", "llama"),
    ("qwq", "qwen"),
];

/// What may stand before a model's own name: its maker, or where it runs.
const BEFORE: &[&str] = &[
    "us",
    "eu",
    "apac",
    "global",
    "ai",
    "anthropic",
    "openai",
    "google",
    "amazon",
    "meta",
    "microsoft",
    "mistralai",
    "cohere",
];

/// The first letters of the model's name after its last `/` and the name of its maker, in lower
/// case: `claude` of `anthropic/claude-sonnet-4` and of `us.anthropic.claude-sonnet-4`, `llama` of
/// `llama3.1:8b` and of `Meta-Llama-3.1`; a few names of one house count as one (`o3` as `gpt`,
/// `sonnet` as `claude`). Where no model is named, a program that drives one
/// vendor's models tells it. A script has no family.
pub(crate) fn family(kind: &str, model: Option<&str>) -> Option<String> {
    let Some(model) = model else { return of_kind(kind).map(str::to_owned) };
    if model.starts_with("scripted/") {
        return None;
    }
    let name = model.rsplit('/').next().unwrap_or(model);
    let lower = name.to_lowercase();
    let mut parts = lower.split(|c: char| !c.is_alphanumeric());
    let part = parts.find(|part| !BEFORE.contains(part)).unwrap_or(&lower);
    let letters: String = part.chars().take_while(|c| c.is_alphabetic()).collect();
    if letters.is_empty() {
        return None;
    }
    let kin = KIN.iter().find(|(alias, _)| *alias == letters);
    Some(kin.map_or(letters, |(_, family)| (*family).to_owned()))
}

fn of_kind(kind: &str) -> Option<&'static str> {
    match kind {
        "claude-cli" | "anthropic" => Some("claude"),
        "codex-cli" => Some("gpt"),
        "gemini" => Some("gemini"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_told_by_the_first_letters_of_the_models_name() {
        for (kind, model, expected) in [
            ("openai", Some("anthropic/claude-sonnet-4"), Some("claude")),
            ("claude-cli", Some("sonnet"), Some("claude")),
            ("claude-cli", None, Some("claude")),
            ("openai", Some("gpt-4o-mini"), Some("gpt")),
            ("openai-responses", Some("o3"), Some("gpt")),
            ("ollama", Some("llama3.1:8b"), Some("llama")),
            ("ollama", Some("Qwen2.5-Coder"), Some("qwen")),
            ("openai", Some("mistralai/Mixtral-8x7B"), Some("mistral")),
            ("openai", Some("anthropic.claude-3-5-sonnet-20241022-v2:0"), Some("claude")),
            ("openai", Some("us.anthropic.claude-sonnet-4"), Some("claude")),
            ("openai", Some("meta-llama/Meta-Llama-3.1-70B"), Some("llama")),
            ("openai", Some("meta.llama3-1-8b"), Some("llama")),
            ("openai", Some("scripted/north"), None),
            ("openai", Some("7b"), None),
            ("command", None, None),
        ] {
            assert_eq!(family(kind, model).as_deref(), expected, "{kind} {model:?}");
        }
    }
}
