//! Where a message goes.

use std::fmt;

use serde::{Deserialize, Serialize};

use cyberine_types::is_invisible;

/// The longest id of an address, in bytes.
pub const MAX_ID_BYTES: usize = 1024;

/// What stands behind a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressKind {
    /// A run; the id is the run's.
    Run,
    /// A chat: an id of a host's or a human's own choice.
    Chat,
    /// One candidate of a run: `<run id>/<candidate>`.
    Worker,
    /// One MCP server process; the id is its instance's.
    Mcp,
    /// Everybody who reads it. A team's is `team-<name>`.
    Broadcast,
}

impl AddressKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Run, Self::Chat, Self::Worker, Self::Mcp, Self::Broadcast];

    /// The kind's name on the wire and on the disk.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Chat => "chat",
            Self::Worker => "worker",
            Self::Mcp => "mcp",
            Self::Broadcast => "broadcast",
        }
    }
}

/// One mailbox: a kind and an id. Two addresses are one only where both are equal byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Address {
    kind: AddressKind,
    id: String,
}

#[derive(Deserialize)]
struct Unchecked {
    kind: AddressKind,
    id: String,
}

/// An id that can be no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing at all, or nothing that can be seen.
    #[error("the id of a {} address is empty", .0.name())]
    Empty(AddressKind),
    /// Too long.
    #[error("the id of a {} address has {length} bytes; it may have {MAX_ID_BYTES}", .kind.name())]
    TooLong {
        /// Of which kind.
        kind: AddressKind,
        /// Its length.
        length: usize,
    },
    /// A character that is not seen: a control, a directional mark, a zero-width character.
    #[error("the id of a {} address holds the character U+{code:04X}, which is not seen; leave it out", .kind.name())]
    Invisible {
        /// Of which kind.
        kind: AddressKind,
        /// The character's code point.
        code: u32,
    },
}

impl Address {
    /// The address `id` of that kind.
    ///
    /// # Errors
    /// Where the id is empty, longer than [`MAX_ID_BYTES`], or holds what cannot be seen.
    pub fn new(kind: AddressKind, id: impl Into<String>) -> Result<Self, AddressError> {
        let id = id.into();
        if cyberine_types::is_blank(&id) {
            return Err(AddressError::Empty(kind));
        }
        if id.len() > MAX_ID_BYTES {
            return Err(AddressError::TooLong { kind, length: id.len() });
        }
        match id.chars().find(|c| c.is_control() || is_invisible(*c)) {
            Some(c) => Err(AddressError::Invisible { kind, code: c.into() }),
            None => Ok(Self { kind, id }),
        }
    }

    /// The broadcast mailbox of a team.
    ///
    /// # Errors
    /// As [`Address::new`].
    pub fn team(name: &str) -> Result<Self, AddressError> {
        if cyberine_types::is_blank(name) {
            return Err(AddressError::Empty(AddressKind::Broadcast));
        }
        Self::new(AddressKind::Broadcast, format!("team-{name}"))
    }

    /// What stands behind it.
    #[must_use]
    pub const fn kind(&self) -> AddressKind {
        self.kind
    }

    /// Its id, as given.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl TryFrom<Unchecked> for Address {
    type Error = AddressError;

    fn try_from(unchecked: Unchecked) -> Result<Self, AddressError> {
        Self::new(unchecked.kind, unchecked.id)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} `{}`", self.kind.name(), self.id)
    }
}
