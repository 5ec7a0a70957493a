//! What a message is: its text, and who is said and known to have sent it.

use cyberine_types::{InstanceId, MessageId, Principal, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::Address;

/// The longest text of a message, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// The longest thread, name or principal beside it, in bytes.
pub const MAX_LABEL_BYTES: usize = 4096;

/// One message as its mailbox keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Its place in the mailbox, from 1, without holes.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// The mailbox.
    pub to: Address,
    /// Who wrote it, as claimed: attribution, never authority.
    pub from: From,
    /// Who wrote it, as the process that published it knows.
    pub sender: Sender,
    /// What kind of message it is.
    pub topic: Topic,
    /// The text.
    pub text: String,
    /// When it was published: later than the message before it in its mailbox, also where the
    /// clock went back, by up to an hour.
    pub sent_at: Timestamp,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// The message it answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reply_to: Option<MessageId>,
    /// How much it matters to its sender.
    #[serde(skip_serializing_if = "Importance::is_normal", default)]
    pub importance: Importance,
    /// Whether the sender waits for a reader to say that it was read.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ack_required: bool,
}

/// A message on its way to a mailbox. The bus gives it its sequence number and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its id, drawn by the caller. See [`Bus::publish`](crate::Bus::publish) on repeating one.
    pub id: MessageId,
    /// Set where a message of this id may have been published before, by an attempt whose outcome
    /// is not known: the last sequence number that the mailbox had before the first attempt, as
    /// far as it is known, since no more than what came later is looked through. 0: everything.
    pub again: Option<u64>,
    /// The mailbox.
    pub to: Address,
    /// Who writes it, as claimed.
    pub from: From,
    /// Who writes it, as known.
    pub sender: Sender,
    /// What kind of message it is.
    pub topic: Topic,
    /// The text; at most [`MAX_TEXT_BYTES`].
    pub text: String,
    /// The conversation it belongs to.
    pub thread: Option<String>,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
    /// How much it matters.
    pub importance: Importance,
    /// Whether the sender waits for it to be acknowledged.
    pub ack_required: bool,
}

impl Outgoing {
    /// A note of `text` under a fresh id.
    #[must_use]
    pub fn note(to: Address, from: From, sender: Sender, text: impl Into<String>) -> Self {
        Self {
            id: MessageId::random(),
            again: None,
            to,
            from,
            sender,
            topic: Topic::Note,
            text: text.into(),
            thread: None,
            reply_to: None,
            importance: Importance::Normal,
            ack_required: false,
        }
    }
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// To be read.
    #[default]
    Note,
    /// To guide a running run.
    Steer,
    /// News of a run's state, published by the run.
    Progress,
}

impl Topic {
    /// The topic's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Steer => "steer",
            Self::Progress => "progress",
        }
    }
}

/// How much a message matters to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Importance {
    /// Can wait.
    Low,
    /// As most do.
    #[default]
    Normal,
    /// To be read first.
    High,
}

impl Importance {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

/// Who wrote a message, as claimed: for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct From {
    /// What wrote it. [`FromKind::Human`] is set by the surfaces of people only.
    pub kind: FromKind,
    /// Its name: `name@version` of an MCP client, a user's name, a run's id.
    pub id: String,
}

/// What wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FromKind {
    /// A person, at a terminal or a page of ours.
    Human,
    /// A client of the MCP server.
    Mcp,
    /// A run.
    Run,
    /// One candidate of a run.
    Worker,
}

/// Who published a message: set by the process that did, from what it knows itself. No argument
/// of a tool reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// On whose authority: `tenant/name`. A record of it, which never becomes a [`Principal`] again.
    pub principal: String,
    /// Through which surface.
    pub channel: Channel,
    /// The process.
    pub pid: u32,
    /// The process, apart from others that had its number.
    pub instance_id: InstanceId,
}

impl Sender {
    /// This process as the sender of what `principal` publishes through `channel`.
    #[must_use]
    pub fn new(principal: &Principal, channel: Channel, instance_id: InstanceId) -> Self {
        let principal = format!("{}/{}", principal.tenant, principal.name);
        Self { principal, channel, pid: std::process::id(), instance_id }
    }

    /// The same process, as the sender of what `principal` publishes: a server of many has many.
    #[must_use]
    pub fn for_principal(&self, principal: &Principal) -> Self {
        Self::new(principal, self.channel, self.instance_id)
    }
}

/// The surface a message came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A tool call.
    Mcp,
    /// A command of the human's.
    Cli,
    /// A runner.
    Run,
}
