//! Which versions of the agents' programs the recordings were taken from.

use std::fmt;
use std::path::Path;

/// A version of a program, in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64, pub u64, pub u64);

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The version in what a program says of itself: `2.1.332 (Claude Code)`, `codex-cli 0.171.0`.
#[must_use]
pub fn version(text: &str) -> Option<Version> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).find_map(|word| {
        let mut numbers = word.strip_prefix('v').unwrap_or(word).split('.').map(str::parse::<u64>);
        let parts = (numbers.next()?, numbers.next()?, numbers.next()?);
        match (parts, numbers.next()) {
            ((Ok(major), Ok(minor), Ok(patch)), None) => Some(Version(major, minor, patch)),
            _ => None,
        }
    })
}

/// What the recordings say about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// They were taken from it.
    Recorded,
    /// They were taken from an older one of the same line, and nothing is known to have changed.
    Believed,
    /// Nobody has tried it.
    Untried,
}

/// A program and the version that its recordings were taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// The kind that drives it.
    pub kind: &'static str,
    /// Its usual name.
    pub program: &'static str,
    /// The version that was recorded: also the lowest that is believed to work, since ours are
    /// arguments that older ones may not know.
    pub recorded: Version,
}

/// Every program that is driven by name. One line of versions is its first two numbers.
pub const COVERED: &[Covered] = &[
    Covered { kind: "claude-cli", program: "claude", recorded: Version(2, 1, 332) },
    Covered { kind: "codex-cli", program: "codex", recorded: Version(0, 171, 0) },
    Covered { kind: "acp", program: "gemini", recorded: Version(0, 61, 0) },
    Covered { kind: "acp", program: "opencode", recorded: Version(1, 18, 33) },
    Covered { kind: "aider", program: "aider", recorded: Version(0, 86, 2) },
];

impl Covered {
    /// The entry for `program`, a name or a path, under `kind`; `None` where nothing was recorded.
    #[must_use]
    pub fn of(kind: &str, program: &Path) -> Option<&'static Self> {
        let name = program.file_stem()?.to_str()?;
        COVERED.iter().find(|covered| covered.kind == kind && covered.program == name)
    }

    /// What the recordings say about `version`.
    #[must_use]
    pub fn coverage(&self, version: Version) -> Coverage {
        let line = |version: Version| (version.0, version.1);
        match version {
            same if same == self.recorded => Coverage::Recorded,
            newer if newer > self.recorded && line(newer) == line(self.recorded) => Coverage::Believed,
            _ => Coverage::Untried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_a_program_says() {
        for (said, expected) in [
            ("2.1.332 (Claude Code)", Some(Version(2, 1, 332))),
            ("codex-cli 0.171.0\n", Some(Version(0, 171, 0))),
            ("aider v0.86.2", Some(Version(0, 86, 2))),
            ("1.18.33-beta.1", Some(Version(1, 18, 33))),
            ("since 2026.1.2.3: 1.2.3", Some(Version(1, 2, 3))),
            ("1.2", None),
            ("99999999999999999999.1.1", None),
            ("", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }

    #[test]
    fn only_what_was_recorded_is_covered() {
        let claude = Covered::of("claude-cli", Path::new("/opt/claude")).unwrap();
        assert_eq!(claude.coverage(Version(2, 1, 332)), Coverage::Recorded);
        assert_eq!(claude.coverage(Version(2, 1, 400)), Coverage::Believed);
        for other in [Version(2, 1, 331), Version(2, 2, 0), Version(3, 1, 332)] {
            assert_eq!(claude.coverage(other), Coverage::Untried, "{other}");
        }
        assert_eq!(Covered::of("claude-cli", Path::new("codex")), None);
        assert_eq!(Covered::of("acp", Path::new("gemini")).unwrap().recorded.to_string(), "0.61.0");
    }
}
