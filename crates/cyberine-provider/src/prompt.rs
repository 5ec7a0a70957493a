//! A conversation as one text, for programs that take one.

use crate::port::{Message, Role};

/// Renders `messages` as one prompt. Standing instructions and a single question are joined as
/// they are; only a conversation with answers in it is labelled.
pub(crate) fn render(messages: &[Message]) -> String {
    let labelled = messages.iter().any(|message| message.role == Role::Assistant);
    let parts: Vec<String> = messages
        .iter()
        .map(|message| match message.role {
            _ if !labelled => message.text.clone(),
            Role::System => format!("[instructions]\n{}", message.text),
            Role::User => format!("[user]\n{}", message.text),
            Role::Assistant => format!("[assistant]\n{}", message.text),
            Role::Tool => format!("[result]\n{}", message.text),
        })
        .collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str) -> Message {
        Message::new(role, text)
    }

    #[test]
    fn a_single_question_is_sent_as_it_is() {
        assert_eq!(render(&[message(Role::User, "-x\n")]), "-x\n");
        assert_eq!(
            render(&[message(Role::System, "be brief"), message(Role::User, "why?")]),
            "be brief\n\nwhy?"
        );
    }

    #[test]
    fn a_conversation_says_who_speaks() {
        let talk = [message(Role::User, "a"), message(Role::Assistant, "b"), message(Role::User, "c")];
        assert_eq!(render(&talk), "[user]\na\n\n[assistant]\nb\n\n[user]\nc");
    }
}
