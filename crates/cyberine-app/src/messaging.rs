//! What keeps the mail and the roster of a home, and as whom a process is found in it.

use std::sync::Arc;

use cyberine_bus::{Bus, FileBus, NoBus};
use cyberine_presence::{FilePresence, NoPresence, Presence};
use cyberine_types::{InstanceId, SystemClock};

use crate::config::{BusBackend, BusConfig, Label, PresenceConfig};
use crate::environment::{BACKEND_VARIABLE, Environment, NAME_VARIABLE, ROLE_VARIABLE, TEAM_VARIABLE};
use crate::exit::Exit;
use crate::home::Home;
use crate::problem::Problem;

/// The mailboxes and the roster of a home.
pub(crate) struct Messaging {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) presence: Arc<dyn Presence>,
}

impl Messaging {
    /// What `config` asks for, kept in `home`. No file is opened before the first use.
    pub(crate) fn of(home: &Home, config: BusConfig, instance: InstanceId) -> Self {
        match config.backend.unwrap_or_default() {
            BusBackend::None => Self { bus: Arc::new(NoBus), presence: Arc::new(NoPresence) },
            BusBackend::File => {
                let (directory, clock) = (home.directory(), Arc::new(SystemClock));
                let bus = FileBus::new(directory, clock.clone());
                let bus = match config.retention_days {
                    Some(days) => bus.with_retention(days.get()),
                    None => bus,
                };
                let presence = FilePresence::new(directory, clock, instance);
                Self { bus: Arc::new(bus), presence: Arc::new(presence) }
            }
        }
    }
}

/// What the environment says of the bus.
pub(crate) fn backend(environment: &Environment) -> Result<Option<BusBackend>, Problem> {
    variable(environment, BACKEND_VARIABLE)
}

/// What the environment says of who a process is.
pub(crate) fn presence(environment: &Environment) -> Result<PresenceConfig, Problem> {
    let label = |name| variable::<Label>(environment, name);
    Ok(PresenceConfig {
        team: label(TEAM_VARIABLE)?,
        role: label(ROLE_VARIABLE)?,
        name: label(NAME_VARIABLE)?,
    })
}

/// A variable that is set and not empty, read.
fn variable<T>(environment: &Environment, name: &str) -> Result<Option<T>, Problem>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let Some(value) = environment.raw(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let refused = |why: String| Problem::new(Exit::Configuration, format!("`{name}` cannot be used: {why}"));
    let text = value.to_str().ok_or_else(|| refused("it is not UTF-8".to_owned()))?;
    text.parse().map(Some).map_err(|why: T::Err| refused(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_is_not_there_is_refused_with_what_to_do() {
        let backend = |value: &str| super::backend(&Environment::of([(BACKEND_VARIABLE, value)], "/"));
        assert_eq!(backend("none").unwrap(), Some(BusBackend::None));
        assert_eq!(backend("").unwrap(), None);
        for other in ["nats", "redis"] {
            let refused = backend(other).unwrap_err();
            assert_eq!(refused.exit, Exit::Configuration);
            for part in [BACKEND_VARIABLE, other, "`file`", "`none`"] {
                assert!(refused.message.contains(part), "{refused}");
            }
        }
    }

    #[test]
    fn a_name_that_cannot_be_one_is_refused_by_its_variable() {
        let environment = Environment::of([(TEAM_VARIABLE, "red"), (ROLE_VARIABLE, "")], "/");
        let said = presence(&environment).unwrap();
        assert_eq!((said.team.unwrap().as_str(), said.role, said.name), ("red", None, None));
        let refused = presence(&environment.with(NAME_VARIABLE, "a\u{1b}b")).unwrap_err();
        assert!(refused.message.contains(NAME_VARIABLE) && refused.message.contains("U+001B"), "{refused}");
    }
}
