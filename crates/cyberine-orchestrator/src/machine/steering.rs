//! Guidance that reaches a run while it runs.

use cyberine_run_store::RunEvent;
use cyberine_types::MessageId;

use super::{Effects, Machine, Phase};
use crate::judge::Guidance;
use crate::text::{capped, preview};

/// How many words of guidance a run takes in.
pub(crate) const MAX_STEERS: usize = 64;
/// The longest text of one, in characters.
const TEXT_CHARS: usize = 4_000;
/// The longest name of who sent it, in characters.
const FROM_CHARS: usize = 200;

/// One message that guides the run, cut to what a run takes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steering {
    pub(crate) message: MessageId,
    from: String,
    text: String,
}

impl Steering {
    pub(crate) fn new(message: MessageId, from: &str, text: &str) -> Self {
        Self { message, from: preview(from, FROM_CHARS), text: capped(text, TEXT_CHARS) }
    }

    pub(super) fn guidance(&self) -> Guidance {
        Guidance { from: self.from.clone(), text: self.text.clone() }
    }
}

impl Machine {
    /// Takes in what was not taken in before, as long as there is room and nobody judges: all
    /// showings of a judging have the same guidance, and what a judge starts cannot guide it. That
    /// something was not taken in is recorded once for each reason.
    pub(super) fn steered(&mut self, word: Steering, effects: &mut Effects) {
        if self.steered.contains(&word.message) {
            return;
        }
        if matches!(self.phase, Phase::Judging { .. }) {
            if !std::mem::replace(&mut self.came_late, true) {
                let detail = "what came to steer this run while it was judged is not taken in".to_owned();
                effects.append.push(RunEvent::ControlIgnored { detail });
            }
            return;
        }
        if self.steered.len() < MAX_STEERS {
            self.steered.insert(word.message);
            self.guidance.push(word.guidance());
            let Steering { message, from, text } = word;
            effects.append.push(RunEvent::Steered { message, from, text });
        } else if !std::mem::replace(&mut self.overflowed, true) {
            let detail =
                format!("more than {MAX_STEERS} messages steer this run; those after them are not taken in");
            effects.append.push(RunEvent::ControlIgnored { detail });
        }
    }
}
