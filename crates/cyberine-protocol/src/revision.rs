use std::fmt;

/// A revision of the Model Context Protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// `2024-11-05`: the first one.
    V2024_11_05,
    /// `2025-03-26`: adds batches, annotations of tools, audio.
    V2025_03_26,
    /// `2025-06-18`: removes batches; adds titles, structured results, links, elicitation.
    V2025_06_18,
    /// `2025-11-25`: adds icons, error responses without an id. The newest with `initialize`.
    V2025_11_25,
    /// `2026-07-28`: stateless; every request says who sends it and by which rules.
    V2026_07_28,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The one offered to a client whose `initialize` asks for a revision not known here, or for
    /// a stateless one (2025-11-25, `basic/lifecycle`, "Version Negotiation").
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// What `server/discover` and error `-32022` list. Revisions that need `initialize` are left
    /// out: a client picks from this list for its next request's `_meta`, where they are invalid.
    pub const STATELESS: [Self; 1] = [Self::V2026_07_28];

    /// The date that names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name, if there is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The answer to an `initialize` that asks for `requested`.
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).filter(|revision| !revision.is_stateless()).unwrap_or(Self::NEWEST_LEGACY)
    }

    /// Whether every request carries its own `_meta`, and no session exists.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// Whether an array of messages is a message.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_gets_its_own_revision_or_the_newest_with_a_handshake() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
            let agreed = Revision::negotiate(revision.as_str());
            assert_eq!(agreed, if revision.is_stateless() { Revision::V2025_11_25 } else { revision });
        }
        for unknown in ["", "1999-01-01", "2025-06-18 ", "draft"] {
            assert_eq!(Revision::negotiate(unknown), Revision::V2025_11_25, "{unknown}");
        }
    }
}
