//! The mailboxes that are watched.

use std::collections::BTreeMap;

use cyberine_app::{Problem, Workplace};
use cyberine_bus::{Address, AddressKind, BusError, Channel, Envelope, ReadRequest, Topic};
use cyberine_types::{RunId, is_blank};
use serde_json::json;

use super::lines::clock;
use crate::args::Watch;
use crate::decision::short;
use crate::mail;
use crate::message::who;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::target::{Target, spelled};

/// The mailboxes, each with the last message that was shown.
pub(super) struct Boxes {
    named: BTreeMap<Address, u64>,
    /// Those of live runs.
    runs: BTreeMap<Address, u64>,
    /// Whether there are mailboxes at all.
    is_on: bool,
    /// Whether the runs that are live are found for the first time: what came for them before is
    /// no news then.
    is_first: bool,
}

impl Boxes {
    /// Begins at the end of every mailbox that is named.
    pub(super) async fn begin(args: &Watch, workplace: &Workplace, out: &Out) -> Result<Self, Problem> {
        let teams = args.team.iter().map(|team| format!("team:{team}"));
        let chats = args.chat.iter().map(|chat| format!("chat:{chat}"));
        let mut boxes = Self { named: BTreeMap::new(), runs: BTreeMap::new(), is_on: true, is_first: true };
        for spelled in teams.chain(chats) {
            let (mailbox, _) = mail::mailbox(workplace, Target::parse(&spelled)?).await?;
            match end_of(&mailbox, workplace).await {
                Ok(end) => drop(boxes.named.insert(mailbox, end)),
                Err(BusError::Off) => boxes.is_on = false,
                Err(error) => return Err(mail::problem(error)),
            }
        }
        if !boxes.is_on {
            out.note("the message bus is switched off: only runs are watched");
        }
        Ok(boxes)
    }

    /// Where each mailbox that is watched ended when it was last looked at.
    pub(super) fn ends(&self) -> Vec<(Address, u64)> {
        self.named.iter().chain(&self.runs).map(|(mailbox, after)| (mailbox.clone(), *after)).collect()
    }

    /// Shows what has come since, in the named ones and in those of the runs that are live, or
    /// were when this was last called.
    pub(super) async fn look(
        &mut self,
        live: &[(RunId, u64)],
        workplace: &Workplace,
        out: &Out,
    ) -> Result<(), Problem> {
        let mailboxes =
            live.iter().filter_map(|(run, _)| Address::new(AddressKind::Run, run.to_string()).ok());
        let live: Vec<Address> = mailboxes.collect();
        for mailbox in &live {
            if !self.is_on || self.runs.contains_key(mailbox) {
                continue;
            }
            match if self.is_first { end_of(mailbox, workplace).await } else { Ok(0) } {
                Ok(end) => drop(self.runs.insert(mailbox.clone(), end)),
                Err(BusError::Off) => self.is_on = false,
                Err(error) => return Err(mail::problem(error)),
            }
        }
        self.is_first = false;
        if !self.is_on {
            return Ok(());
        }
        for (mailbox, after) in self.named.iter_mut().chain(&mut self.runs) {
            show_new(mailbox, after, workplace, out).await?;
        }
        self.runs.retain(|mailbox, _| live.contains(mailbox));
        Ok(())
    }
}

async fn end_of(mailbox: &Address, workplace: &Workplace) -> Result<u64, BusError> {
    let request = ReadRequest { newest: true, limit: 1, ..ReadRequest::default() };
    Ok(workplace.bus.read(mailbox.clone(), request).await?.last)
}

async fn show_new(
    mailbox: &Address,
    after: &mut u64,
    workplace: &Workplace,
    out: &Out,
) -> Result<(), Problem> {
    loop {
        let request = ReadRequest { after: *after, ..ReadRequest::default() };
        let page = workplace.bus.read(mailbox.clone(), request).await.map_err(mail::problem)?;
        for message in page.messages.iter().filter(|message| !is_echo(message)) {
            show(mailbox, message, out);
        }
        *after = page.next;
        if !page.more || out.is_lost() {
            return Ok(());
        }
    }
}

/// What a run says of its own state is shown as a change of the run already.
fn is_echo(message: &Envelope) -> bool {
    message.topic == Topic::Progress && message.sender.channel == Channel::Run
}

/// A mailbox as it is spelled, a run by the beginning of its id.
fn name(mailbox: &Address) -> String {
    match mailbox.id().parse::<RunId>() {
        Ok(run) if mailbox.kind() == AddressKind::Run => format!("run:{}", short(run)),
        _ => spelled(mailbox),
    }
}

fn show(mailbox: &Address, message: &Envelope, out: &Out) {
    if out.is_json() {
        return out.json_line(&json!({ "type": "message", "mailbox": mailbox, "message": message }));
    }
    let first = message.text.lines().find(|line| !is_blank(line)).unwrap_or_default();
    let more = if message.text.lines().count() > 1 { " …" } else { "" };
    let steer = if message.topic == Topic::Steer { " steers" } else { "" };
    out.line(format_args!(
        "{}  {}  #{} {}{steer}: {}{more}",
        clock(message.sent_at),
        out.paint(Style::Busy, cut(&escaped(&name(mailbox)), 48)),
        message.seq,
        who(out, message),
        cut(&escaped(first), out.width())
    ));
}
