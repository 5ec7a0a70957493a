//! The command line of messages, teams and decisions.

use clap::{Args, ValueEnum};

/// How a mailbox is spelled, for the help texts.
const ADDRESSES: &str = "\
How a mailbox is spelled:
  run:ID           a run, by its id or the beginning of it
  chat:ID          a chat: an id of your own or of a host's choice
  team:NAME        everybody of a team
  mcp:INSTANCE     one MCP server
  worker:RUN/NAME  one candidate of a run
  broadcast:ID     everybody who reads it";

#[derive(Debug, Args)]
#[command(after_help = ADDRESSES)]
pub(crate) struct Send {
    /// Where it goes: a mailbox such as `run:5b1e` or `team:core`, or `role:ROLE` for everybody live who has it.
    pub(crate) to: String,
    /// The text, at most 1 MiB; `-` reads it from stdin.
    pub(crate) text: String,
    /// Guide a running run: its judges see the text.
    #[arg(long)]
    pub(crate) steer: bool,
    /// Of those with the role, only members of this team.
    #[arg(long, value_name = "TEAM")]
    pub(crate) team: Option<String>,
    /// Of those with the role, only who calls itself so.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The conversation it belongs to, for whoever reads it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) thread: Option<String>,
    /// The id of the message it answers.
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) reply_to: Option<String>,
    /// How much it matters.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) importance: Importance,
    /// Ask for it to be acknowledged.
    #[arg(long)]
    pub(crate) ack: bool,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Importance {
    Low,
    #[default]
    Normal,
    High,
}

#[derive(Debug, Args)]
#[command(after_help = ADDRESSES)]
pub(crate) struct Inbox {
    /// The mailbox; without one, all of them with what is unread.
    pub(crate) address: Option<String>,
    /// The mailbox of this chat: short for `chat:ID`.
    #[arg(long, value_name = "ID", conflicts_with = "address")]
    pub(crate) chat: Option<String>,
    /// Only messages sent after this: an RFC 3339 time, or how long ago (`90s`, `10m`, `2h`, `7d`).
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only messages after this number; 0 begins with the oldest.
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// At most so many at once: the newest, or the first ones after --after, --since or what is read.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Go on showing messages as they come, until interrupted.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Only what the reader has not read.
    #[arg(long, conflicts_with_all = ["since", "after"])]
    pub(crate) unread: bool,
    /// With --unread: record that the reader has read what was shown.
    #[arg(long, requires = "unread", conflicts_with_all = ["since", "after"])]
    pub(crate) mark_read: bool,
    /// Whose unread messages count (else yours).
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// With --follow: be listed as live at this chat for as long as it is followed.
    #[arg(long, requires = "follow")]
    pub(crate) announce: bool,
    /// The team to be listed with (else CYBERINE_TEAM, else `[presence] team`).
    #[arg(long, value_name = "NAME", requires = "announce")]
    pub(crate) team: Option<String>,
    /// The role to be listed with.
    #[arg(long, value_name = "NAME", requires = "announce")]
    pub(crate) role: Option<String>,
    /// The name to be listed with (else yours).
    #[arg(long, value_name = "NAME", requires = "announce")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Team {
    /// Say also what the runs among them do.
    #[arg(long)]
    pub(crate) runs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The run's id, or the beginning of it; of any project, as with `cancel`.
    pub(crate) run: String,
    /// Decide on this step only.
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Only this run (its id, or the beginning of it), until it is over.
    pub(crate) run: Option<String>,
    /// The runs of every project, not only of this one.
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    /// Show also what comes for this team.
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Vec<String>,
    /// Show also what comes for this chat.
    #[arg(long, value_name = "ID")]
    pub(crate) chat: Vec<String>,
}
