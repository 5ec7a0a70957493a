//! The person at the command line, in what is sent and decided.

use cyberine_app::{Environment, Workplace};
use cyberine_bus::{Channel, From, FromKind, Sender};
use cyberine_types::{Principal, is_blank, is_invisible};

/// No name is longer, in characters.
const LONGEST: usize = 128;

/// The user's name as the system has it, without what is not seen.
pub(crate) fn name(environment: &Environment) -> String {
    let seen = environment.user().chars().filter(|c| !c.is_control() && !is_invisible(*c));
    let name: String = seen.take(LONGEST).collect();
    if is_blank(&name) { "unknown".to_owned() } else { name }
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
        let check = |user: &str, want: &str| assert_eq!(name(&Environment::of([("USER", user)], "/")), want);
        check("alice", "alice");
        check("al\u{1b}[2J\nice\u{202e}", "al[2Jice");
        check("\u{200b}", "unknown");
        check("", "unknown");
        check(&"x".repeat(500), &"x".repeat(128));
        assert_eq!(label(&Environment::of([("USER", "alice")], "/")), "human alice");
    }
}
