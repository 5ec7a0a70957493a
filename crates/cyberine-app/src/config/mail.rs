//! `[presence]` and `[bus]`: how a process presents itself, and what keeps the mail.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::Deserialize;

/// The longest label, in characters.
const LONGEST: usize = 128;

/// `[presence]`: as whom a process is found by others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresenceConfig {
    /// Its team.
    pub team: Option<Label>,
    /// Its role in the team.
    pub role: Option<Label>,
    /// Its own name.
    pub name: Option<Label>,
}

impl PresenceConfig {
    /// This, where it says something, else what `below` says.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            team: self.team.or(below.team),
            role: self.role.or(below.role),
            name: self.name.or(below.name),
        }
    }
}

/// `[bus]`: what keeps the mail, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusConfig {
    /// What keeps it.
    pub backend: Option<BusBackend>,
    /// How many days mail is kept that every reader of its mailbox has read; none: it stays.
    pub retention_days: Option<NonZeroU32>,
}

impl BusConfig {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            backend: self.backend.or(below.backend),
            retention_days: self.retention_days.or(below.retention_days),
        }
    }
}

/// What keeps the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum BusBackend {
    /// Files in the home.
    #[default]
    File,
    /// Nothing: no mail is sent or kept, and nobody is announced.
    None,
}

/// A backend there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no bus backend `{0}` in this version: use `file`, or `none` to switch messages off")]
pub struct NoSuchBackend(String);

impl FromStr for BusBackend {
    type Err = NoSuchBackend;

    fn from_str(text: &str) -> Result<Self, NoSuchBackend> {
        match text {
            "file" => Ok(Self::File),
            "none" => Ok(Self::None),
            other => Err(NoSuchBackend(other.chars().take(64).collect())),
        }
    }
}

impl TryFrom<String> for BusBackend {
    type Error = NoSuchBackend;

    fn try_from(text: String) -> Result<Self, NoSuchBackend> {
        text.parse()
    }
}

/// A team's, a role's or a process's own name: a line that can be seen, of at most 128 characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Label(String);

/// A text that cannot be a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Nothing that can be read.
    #[error("a name must not be empty")]
    Blank,
    /// Too much of it.
    #[error("a name may have {LONGEST} characters")]
    TooLong,
    /// A control, or a character that leaves no mark.
    #[error("a name must not hold the character U+{0:04X}, which is not seen")]
    Invisible(u32),
}

impl Label {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        if cyberine_types::is_blank(text) {
            return Err(LabelError::Blank);
        }
        if text.chars().nth(LONGEST).is_some() {
            return Err(LabelError::TooLong);
        }
        match text.chars().find(|c| c.is_control() || cyberine_types::is_invisible(*c)) {
            Some(c) => Err(LabelError::Invisible(c.into())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Label {
    type Error = LabelError;

    fn try_from(text: String) -> Result<Self, LabelError> {
        text.parse()
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_can_be_seen() {
        for fine in ["backend", "Ü-team", "a b", &"x".repeat(LONGEST)] {
            assert_eq!(fine.parse::<Label>().unwrap().as_str(), fine);
        }
        assert_eq!("x".repeat(LONGEST + 1).parse::<Label>(), Err(LabelError::TooLong));
        for (text, code) in [("a\nb", 0xa), ("a\u{1b}[31m", 0x1b), ("a\u{202e}b", 0x202e)] {
            assert_eq!(text.parse::<Label>(), Err(LabelError::Invisible(code)), "{text:?}");
        }
        for blank in ["", " ", "\u{200b}"] {
            assert_eq!(blank.parse::<Label>(), Err(LabelError::Blank), "{blank:?}");
        }
    }

    #[test]
    fn a_backend_that_is_not_there_is_refused_by_name() {
        assert_eq!("file".parse(), Ok(BusBackend::File));
        assert_eq!("none".parse(), Ok(BusBackend::None));
        for other in ["nats", "FILE", "", "memory"] {
            let refused = other.parse::<BusBackend>().unwrap_err().to_string();
            assert!(refused.contains(&format!("`{other}`")) && refused.contains("`none`"), "{refused}");
        }
    }
}
