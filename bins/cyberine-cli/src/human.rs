//! The person at the command line, in what is sent and decided.

use cyberine_app::{Environment, Workplace};
use cyberine_bus::{Channel, From, FromKind, Sender};
use cyberine_types::Principal;

/// No name is longer, in characters.
const LONGEST: usize = 128;

/// The user's name as the system has it, which is one visible line; at most so much of it.
pub(crate) fn name(environment: &Environment) -> String {
    environment.user().chars().take(LONGEST).collect()
}

/// How records name the person who decides.
pub(crate) fn label(environment: &Environment) -> String {
    format!("human {}", name(environment))
}

/// The two ends of a message a person writes here: what it claims, and what this process knows.
pub(crate) fn identity(workplace: &Workplace) -> (From, Sender) {
    let name = name(&workplace.environment);
    let sender = Sender::new(&Principal::local(name.clone()), Channel::Cli, workplace.instance);
    (From { kind: FromKind::Human, id: name }, sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_break_a_line_nor_fill_a_record() {
        let name = |user: &str| name(&Environment::of([("USER", user)], "/"));
        assert_eq!(name("alice"), "alice");
        for nobody in ["al\u{1b}[2J\nice\u{202e}", "\u{200b}", ""] {
            assert!(name(nobody).starts_with("uid-"), "{nobody:?}: {}", name(nobody));
        }
        assert!(name(&"x".repeat(500)).chars().count() <= LONGEST);
        assert_eq!(label(&Environment::of([("USER", "alice")], "/")), "human alice");
    }
}
