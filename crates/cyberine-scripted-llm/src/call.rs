//! What a request asks, whatever wire it came on.

use serde_json::Value;

/// The wire a request came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI chat completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama's own chat.
    Ollama,
    /// The prompt on standard input of a program.
    Program,
}

impl Wire {
    /// Its name, as the configuration of a provider spells its kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Program => "program",
        }
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) wire: Wire,
    /// Always `scripted/<name>`.
    pub(crate) model: String,
    /// All system messages, joined by empty lines.
    pub(crate) system: String,
    /// The last message of the user.
    pub(crate) user: String,
    /// All messages of the user, joined by empty lines: where a judge finds its candidates, also
    /// when the last message only asks for a repair.
    pub(crate) shown: String,
    pub(crate) stream: bool,
    /// Whether a stream is asked to report usage (OpenAI only).
    pub(crate) include_usage: bool,
    /// The one tool the answer has to call.
    pub(crate) forced_tool: Option<String>,
    /// Whether the request ends with what a tool returned.
    pub(crate) after_tool: bool,
    /// The how-manieth request of this model, from one.
    pub(crate) nth: u32,
}

impl Call {
    /// A program's prompt.
    pub(crate) fn program(model: String, prompt: String) -> Self {
        Self {
            wire: Wire::Program,
            model,
            system: String::new(),
            shown: prompt.clone(),
            user: prompt,
            stream: false,
            include_usage: false,
            forced_tool: None,
            after_tool: false,
            nth: 1,
        }
    }
}

/// The text of a message's content: a string, or the text parts of a list.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The texts of the messages whose role is among `roles`.
pub(crate) fn said_by<'a>(
    messages: &'a [Value],
    roles: &'a [&str],
) -> impl DoubleEndedIterator<Item = String> + 'a {
    messages
        .iter()
        .filter(move |message| message["role"].as_str().is_some_and(|role| roles.contains(&role)))
        .map(|message| text_of(&message["content"]))
}

/// The last message of the user, and all of them.
pub(crate) fn user_texts(messages: &[Value]) -> (String, String) {
    let texts: Vec<String> = said_by(messages, &["user"]).collect();
    (texts.last().cloned().unwrap_or_default(), texts.join("\n\n"))
}
