//! Arguments of the tools that carry messages.

use cyberine_bus::{Address, AddressKind, Importance, Topic};
use cyberine_types::{MessageId, Timestamp};

use super::{Arguments, Fields, MAX_WAIT_MS, bad};
use crate::address::{MAX_LABEL, is_longer, mailbox, team_mailbox, too_long};

/// The longest name of a conversation, in characters.
const MAX_THREAD: usize = 200;

const SENT_TO: [AddressKind; 4] =
    [AddressKind::Run, AddressKind::Chat, AddressKind::Mcp, AddressKind::Worker];

pub(crate) struct SendMessage {
    pub(crate) to: Address,
    pub(crate) letter: Letter,
}

/// What is said, whomever it is said to.
pub(crate) struct Letter {
    pub(crate) text: String,
    pub(crate) topic: Topic,
    pub(crate) thread: Option<String>,
    pub(crate) reply_to: Option<MessageId>,
    pub(crate) importance: Importance,
    pub(crate) ack_required: bool,
}

pub(crate) struct SendToTeam {
    pub(crate) team: String,
    pub(crate) to: Address,
    pub(crate) letter: Letter,
}

pub(crate) struct SendToRole {
    pub(crate) team: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) letter: Letter,
}

pub(crate) struct Poll {
    pub(crate) mailbox: Address,
    pub(crate) since: Option<Timestamp>,
    pub(crate) cursor: u64,
    pub(crate) wait_ms: u64,
    /// Where to go on in the text of the message after `cursor`, in bytes.
    pub(crate) text_offset: Option<u64>,
    /// How far the caller says that it has read.
    pub(crate) ack_seq: Option<u64>,
}

pub(crate) struct ListTeam {
    pub(crate) join_runs: bool,
}

impl Arguments for SendMessage {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let to = fields.address("to_kind", "to_id", &SENT_TO)?;
        let mut letter = Letter::take(fields)?;
        letter.thread = fields.short("thread", MAX_THREAD)?;
        let reply_to = fields.text("replyTo")?.map(|id| id.parse());
        letter.reply_to = reply_to.transpose().map_err(|error| bad("replyTo", &format!("{error}")))?;
        let importances =
            [("low", Importance::Low), ("normal", Importance::Normal), ("high", Importance::High)];
        letter.importance = fields.choice("importance", &importances)?.unwrap_or_default();
        letter.ack_required = fields.flag("ackRequired")?.unwrap_or_default();
        Ok(Self { to, letter })
    }
}

impl Letter {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let text = fields.required("text", Fields::text)?;
        if text.is_empty() {
            return Err(bad("text", "it is empty"));
        }
        let topics = [("note", Topic::Note), ("steer", Topic::Steer)];
        let topic = fields.choice("topic", &topics)?.unwrap_or_default();
        let importance = Importance::Normal;
        Ok(Self { text, topic, thread: None, reply_to: None, importance, ack_required: false })
    }
}

impl Arguments for SendToTeam {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let team = fields.required("team", Fields::text)?;
        let to = team_mailbox(&team).map_err(|error| bad("team", &error))?;
        Ok(Self { team, to, letter: Letter::take(fields)? })
    }
}

impl Arguments for SendToRole {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let [team, role, name] = ["team", "role", "name"].map(|name| fields.short(name, MAX_LABEL));
        Ok(Self { team: team?, role: role?, name: name?, letter: Letter::take(fields)? })
    }
}

impl Arguments for Poll {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        let mailbox = fields.address("kind", "id", &AddressKind::ALL)?;
        // A count is at most 2^53.
        let since =
            fields.count("sinceMs")?.and_then(|ms| i64::try_from(ms).ok()).map(Timestamp::from_unix_ms);
        Ok(Self {
            mailbox,
            since,
            cursor: fields.count("cursor")?.unwrap_or_default(),
            wait_ms: fields.count("waitMs")?.unwrap_or_default().min(MAX_WAIT_MS),
            // No text goes on at its beginning: a caller that fills in everything means nothing by it.
            text_offset: fields.count("textOffset")?.filter(|offset| *offset > 0),
            ack_seq: match fields.count("ackSeq")? {
                Some(0) => return Err(bad("ackSeq", "it must be at least 1: the first message's number")),
                seq => seq,
            },
        })
    }
}

impl Arguments for ListTeam {
    fn take(fields: &mut Fields) -> Result<Self, String> {
        Ok(Self { join_runs: fields.flag("joinRuns")?.unwrap_or_default() })
    }
}

impl Fields {
    /// The address two fields make.
    fn address(&mut self, kind: &str, id: &str, kinds: &[AddressKind]) -> Result<Address, String> {
        let kinds: Vec<_> = kinds.iter().map(|kind| (kind.name(), *kind)).collect();
        let kind = self.required(kind, |fields, name| fields.choice(name, &kinds))?;
        let text = self.required(id, Self::text)?;
        mailbox(kind, &text).map_err(|error| bad(id, &error))
    }

    fn short(&mut self, name: &str, limit: usize) -> Result<Option<String>, String> {
        match self.text(name)? {
            Some(text) if is_longer(&text, limit) => Err(bad(name, &too_long(limit))),
            text => Ok(text),
        }
    }

    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        let known = || choices.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| bad(name, &format!("it must be one of {}", known())))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let flag = value.as_bool().map(Some);
        flag.ok_or_else(|| bad(name, &format!("it must be true or false, not {}", super::kind(&value))))
    }
}
