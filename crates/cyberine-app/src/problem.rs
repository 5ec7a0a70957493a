//! What went wrong, as a program ends with it: words, and a code of the table.

use std::error::Error;

use cyberine_run_store::{StoreError, StoreErrorKind};

use crate::config::ConfigError;
use crate::discovery::DiscoveryError;
use crate::exit::Exit;
use crate::home::HomeError;
use crate::project::ProjectError;
use crate::trust::TrustError;

/// The end of a command that could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The code the program ends with.
    pub exit: Exit,
    /// What happened, its causes, and what to do.
    pub message: String,
    /// A stable code for programs, where what failed has one: that of a store, a bus, a roster.
    pub code: Option<&'static str>,
}

impl Problem {
    /// A problem in words.
    #[must_use]
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), code: None }
    }

    /// A problem with an error and its causes.
    #[must_use]
    pub fn of(exit: Exit, error: &dyn Error) -> Self {
        Self::new(exit, chain(error))
    }

    /// The same problem with a code for programs.
    #[must_use]
    pub const fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl Error for Problem {}

/// An error and its causes in one line, outermost first.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self::of(Exit::Configuration, &error)
    }
}

impl From<HomeError> for Problem {
    fn from(error: HomeError) -> Self {
        Self::of(Exit::Configuration, &error)
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        Self::of(Exit::Configuration, &error)
    }
}

impl From<DiscoveryError> for Problem {
    fn from(error: DiscoveryError) -> Self {
        Self::of(Exit::Configuration, &error)
    }
}

impl From<TrustError> for Problem {
    fn from(error: TrustError) -> Self {
        let exit = match error {
            TrustError::Busy => Exit::TryAgain,
            TrustError::Home(_) | TrustError::Damaged { .. } => Exit::Configuration,
            TrustError::File(_) => Exit::Internal,
        };
        Self::of(exit, &error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let exit = match error.kind() {
            _ if matches!(error, StoreError::CapReached { .. }) => Exit::TryAgain,
            _ if matches!(error, StoreError::TooLarge { .. }) => Exit::Usage,
            StoreErrorKind::NotFound => Exit::Unavailable,
            StoreErrorKind::Busy => Exit::TryAgain,
            StoreErrorKind::Setup => Exit::Configuration,
            StoreErrorKind::Refused | StoreErrorKind::Damaged | StoreErrorKind::Storage => Exit::Internal,
        };
        Self::new(exit, format!("{}. {}", chain(&error), error.advice())).with_code(error.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::Usd;

    #[test]
    fn a_cap_is_worth_another_try_and_a_wrong_home_is_configuration() {
        let cap = Usd::from_micros(1);
        let reached = StoreError::CapReached {
            of: cyberine_run_store::Cap::Day,
            cap,
            held: cap,
            spent: cap,
            wanted: cap,
        };
        assert_eq!(Problem::from(reached).exit, Exit::TryAgain);
        assert_eq!(Problem::from(StoreError::Busy { attempt: "list runs" }).exit, Exit::TryAgain);
        let home = StoreError::HomeUnusable { path: "/h".into(), detail: "no".to_owned() };
        assert_eq!(Problem::from(home).exit, Exit::Configuration);
        let long = StoreError::TooLarge { what: "comment", found: 2, limit: 1, unit: "characters" };
        assert_eq!(Problem::from(long).exit, Exit::Usage);
    }

    #[test]
    fn a_damaged_database_is_no_configuration_and_says_what_a_rebuild_loses() {
        let damaged = StoreError::DatabaseDamaged { path: "/h/state.db".into(), detail: "no".to_owned() };
        let problem = Problem::from(damaged);
        assert_eq!((problem.exit, problem.code), (Exit::Internal, Some("database_damaged")));
        for part in ["/h/state.db", "aside", "cyberine doctor --rebuild", "without events"] {
            assert!(problem.message.contains(part), "{problem}");
        }
        assert!(!problem.message.contains("0700"), "{problem}");
    }

    #[test]
    fn causes_follow_their_effects() {
        let source = std::io::Error::other("no such device");
        let error = ConfigError::Unreadable { path: "/c".into(), source };
        assert_eq!(chain(&error), "cannot read the configuration `/c`: no such device");
    }
}
