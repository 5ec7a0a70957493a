//! Whom a message to a role is for.

use crate::record::Member;

/// The members of that team, role and name, in their order. A filter that is left out matches
/// everybody; those given must all match, letter for letter.
#[must_use]
pub fn matching<'a>(
    members: &'a [Member],
    team: Option<&str>,
    role: Option<&str>,
    name: Option<&str>,
) -> Vec<&'a Member> {
    let fits = |filter: Option<&str>, has: &Option<String>| filter.is_none() || filter == has.as_deref();
    let is_meant = |member: &&Member| {
        let record = &member.record;
        fits(team, &record.team) && fits(role, &record.role) && fits(name, &record.name)
    };
    members.iter().filter(is_meant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::record;

    #[test]
    fn filters_are_exact_and_all_must_hold() {
        let member = |team: Option<&str>, role: Option<&str>, name: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            Member::live(crate::Record { team: own(team), role: own(role), name: own(name), ..record("a") })
        };
        let members = [
            member(Some("owls"), Some("reviewer"), Some("Ada")),
            member(Some("owls"), Some("writer"), None),
            member(Some("Owls"), Some("reviewer"), None),
            member(None, None, None),
        ];
        let found = |team, role, name| -> Vec<usize> {
            let found = matching(&members, team, role, name);
            (0..members.len()).filter(|at| found.iter().any(|it| std::ptr::eq(*it, &members[*at]))).collect()
        };
        assert_eq!(found(None, None, None), [0, 1, 2, 3]);
        assert_eq!(found(Some("owls"), None, None), [0, 1]);
        assert_eq!(found(Some("owls"), Some("reviewer"), None), [0]);
        assert_eq!(found(None, Some("reviewer"), None), [0, 2]);
        assert_eq!(found(None, None, Some("Ada")), [0]);
        assert!(found(Some("owl"), None, None).is_empty());
        assert!(found(Some(""), None, None).is_empty());
    }
}
