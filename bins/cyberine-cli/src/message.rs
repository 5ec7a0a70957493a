//! A message, told to people: who is known to have written it, and its text as data.

use cyberine_bus::{Channel, Envelope, FromKind, Importance};
use cyberine_types::Timestamp;

use crate::out::{Out, Style};
use crate::plain::{cut, escaped, escaped_line};
use crate::table::broken;

/// How much of a claimed name is shown.
const NAME: usize = 80;

/// Prints the whole of `message`.
pub(crate) fn print(out: &Out, message: &Envelope) {
    let mut head = format!(
        "{}  {}  {}  {}",
        out.paint(Style::Strong, format_args!("#{}", message.seq)),
        moment(message.sent_at),
        who(out, message),
        message.topic.name()
    );
    match message.importance {
        Importance::High => head.push_str(&format!("  {}", out.paint(Style::Bad, "high"))),
        Importance::Low => head.push_str("  low"),
        Importance::Normal => {}
    }
    if let Some(thread) = &message.thread {
        head.push_str(&format!("  thread {}", cut(&escaped(thread), NAME)));
    }
    if let Some(id) = message.reply_to {
        head.push_str(&format!("  answers {id}"));
    }
    if message.ack_required {
        head.push_str("  wants an acknowledgement");
    }
    out.line(head);
    // The bar stands before every line, also where a terminal would break one, so that no text can
    // look like the head of another message.
    let width = out.breaks_at().map_or(usize::MAX, |width| width.saturating_sub(4));
    for line in message.text.lines() {
        for piece in broken(&escaped_line(line), width) {
            out.line(format_args!("  {} {piece}", out.paint(Style::Faint, "│")));
        }
    }
}

/// Who wrote it. What is said to come from a human counts as that only where the process that
/// published it was a human's own: what is claimed proves nothing.
pub(crate) fn who(out: &Out, message: &Envelope) -> String {
    let claimed = cut(&escaped(&message.from.id), NAME);
    let is_human = message.from.kind == FromKind::Human;
    let known = match message.sender.channel {
        Channel::Cli => {
            let name = format!("human {claimed}");
            let account = &message.sender.principal;
            let known = account.rsplit('/').next() == Some(message.from.id.as_str());
            let name = out.paint(Style::Good, name);
            return if known { name } else { format!("{name} (as {})", cut(&escaped(account), NAME)) };
        }
        Channel::Mcp => "mcp",
        Channel::Run if message.from.kind == FromKind::Worker => "worker",
        Channel::Run => "run",
    };
    if is_human { format!("{known} that calls itself human {claimed}") } else { format!("{known} {claimed}") }
}

/// A time to the second.
pub(crate) fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text).replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Format;
    use cyberine_app::Environment;
    use cyberine_bus::{Address, AddressKind, From, Sender, Topic};
    use cyberine_types::{InstanceId, MessageId, Principal};

    fn message(kind: FromKind, channel: Channel, id: &str) -> Envelope {
        Envelope {
            seq: 1,
            id: MessageId::random(),
            to: Address::new(AddressKind::Chat, "c").unwrap(),
            from: From { kind, id: id.to_owned() },
            sender: Sender::new(&Principal::local("alice"), channel, InstanceId::random()),
            topic: Topic::Note,
            text: "x".to_owned(),
            sent_at: Timestamp::from_unix_ms(0),
            thread: None,
            reply_to: None,
            importance: Importance::Normal,
            ack_required: false,
        }
    }

    #[test]
    fn a_human_is_who_the_publishing_process_knows_and_nobody_who_claims_it() {
        let out = Out::new(Format::Json, &Environment::of([], "/"));
        let check = |kind, channel, id: &str, want: &str| {
            assert_eq!(who(&out, &message(kind, channel, id)), want);
        };
        check(FromKind::Human, Channel::Cli, "alice", "human alice");
        check(FromKind::Human, Channel::Cli, "bob", "human bob (as local/alice)");
        check(FromKind::Human, Channel::Mcp, "alice", "mcp that calls itself human alice");
        check(FromKind::Mcp, Channel::Mcp, "host@1", "mcp host@1");
        check(FromKind::Mcp, Channel::Mcp, "a\u{1b}[2Jb", r"mcp a\u{1b}[2Jb");
        check(FromKind::Run, Channel::Run, "r", "run r");
        check(FromKind::Worker, Channel::Run, "r/a", "worker r/a");
    }

    #[test]
    fn a_moment_is_to_the_second() {
        assert_eq!(moment(Timestamp::from_unix_ms(1_700_000_000_123)), "2023-11-14 22:13:20Z");
    }
}
