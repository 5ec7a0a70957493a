//! What a session has used, by the events of its stream.

use cyberine_types::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::anthropic::MessageUsage;

/// The use so far. The `result` line knows better; but a session that is killed has none, and one
/// that is interrupted leaves the message out that it was in.
#[derive(Default)]
pub(super) struct Tally {
    /// Of the messages before.
    before: Usage,
    current: MessageUsage,
}

impl Tally {
    /// Takes what an event says of its message; whether it says anything.
    pub(super) fn take(&mut self, event: &Value) -> bool {
        let said = |usage: &Value| MessageUsage::deserialize(usage).ok();
        match event["type"].as_str() {
            Some("message_start") => {
                self.before = self.total();
                self.current = said(&event["message"]["usage"]).unwrap_or_default();
                true
            }
            Some("message_delta") => match said(&event["usage"]) {
                Some(usage) => {
                    self.current.replace(usage);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    pub(super) fn total(&self) -> Usage {
        self.before.plus(&self.current.normalised())
    }
}

/// All tokens of `usage`.
pub(super) fn tokens(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}
