/// Whose argument is to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionRef {
    /// That of a prompt.
    Prompt {
        /// Its name, unchecked.
        name: String,
    },
    /// A variable of a resource template.
    Resource {
        /// The template, or a URI; unchecked.
        uri: String,
    },
}

/// What the value of an argument could be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// The best ones first. No more than [`Completion::LIMIT`] go out.
    pub values: Vec<String>,
    /// How many there are, where that is known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completion {
    /// The most values of one answer (every revision's `server/utilities/completion`).
    pub const LIMIT: usize = 100;
}
