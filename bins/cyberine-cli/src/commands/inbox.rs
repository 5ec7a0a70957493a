//! `cyberine inbox`.

use std::sync::Arc;
use std::time::Duration;

use cyberine_app::{Exit, Interrupts, Label, LabelError, PresenceConfig, Problem, Workplace};
use cyberine_bus::{Address, AddressKind, Page, ReadRequest};
use cyberine_presence::{Announcement, Announcing, RecordAddr};
use cyberine_types::{Clock as _, SystemClock};
use serde_json::json;

use crate::args::Inbox;
use crate::commands::overview;
use crate::out::Out;
use crate::target::{Target, spelled};
use crate::{human, mail, message};

/// How long to wait for news before looking anyway.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows the messages of one mailbox, or all mailboxes.
pub(crate) async fn run(args: Inbox, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let mut interrupts = if args.announce { Interrupts::or_terminations() } else { Interrupts::new() };
    let target = match (&args.address, &args.chat) {
        (Some(address), _) => Target::parse(address)?,
        (None, Some(chat)) => Target::parse(&format!("chat:{chat}"))?,
        (None, None) => return overview::run(&args, workplace, out).await,
    };
    if args.reader.is_some() && !args.unread {
        return Err(Problem::new(Exit::Usage, "--reader says whose unread messages are meant: add --unread"));
    }
    let (mailbox, _) = mail::mailbox(workplace, target).await?;
    let announcement = if args.announce { Some(announce(&args, &mailbox, workplace).await?) } else { None };
    let mut reading = Reading::begin(&args, mailbox, workplace, out).await?;
    let shown = tokio::select! {
        shown = reading.show() => shown,
        () = out.reader_gone(), if args.follow => Ok(Exit::Done),
        () = interrupts.next() => Ok(Exit::Interrupted),
    };
    if let Some(announcement) = announcement {
        announcement.end().await;
    }
    shown
}

/// Makes this process the live one of the chat.
async fn announce(
    args: &Inbox,
    mailbox: &Address,
    workplace: &Workplace,
) -> Result<Arc<dyn Announcement>, Problem> {
    if mailbox.kind() != AddressKind::Chat {
        return Err(Problem::new(
            Exit::Usage,
            "only a chat is announced here: --chat ID --follow --announce",
        ));
    }
    let shown = workplace.presented(PresenceConfig {
        team: label("--team", args.team.as_deref())?,
        role: label("--role", args.role.as_deref())?,
        name: label("--name", args.name.as_deref())?,
    })?;
    let name = shown.name.map_or_else(|| human::name(&workplace.environment), String::from);
    let announcing = Announcing {
        addr: RecordAddr { kind: mailbox.kind().name().to_owned(), id: mailbox.id().to_owned() },
        repo_cwd: workplace.cwd()?,
        capabilities: vec!["inbox".to_owned()],
        team: shown.team.map(String::from),
        role: shown.role.map(String::from),
        name: Some(name),
    };
    workplace.presence.announce(announcing).await.map_err(mail::presence_problem)
}

fn label(flag: &str, text: Option<&str>) -> Result<Option<Label>, Problem> {
    let label = text.map(str::parse).transpose();
    label.map_err(|error: LabelError| Problem::new(Exit::Usage, format!("`{flag}` cannot be used: {error}")))
}

/// One mailbox, as far as it has been shown.
struct Reading<'a> {
    workplace: &'a Workplace,
    out: &'a Out,
    mailbox: Address,
    request: ReadRequest,
    /// Who reads, where what they have read matters.
    reader: Option<String>,
    mark_read: bool,
    follow: bool,
}

impl<'a> Reading<'a> {
    async fn begin(
        args: &Inbox,
        mailbox: Address,
        workplace: &'a Workplace,
        out: &'a Out,
    ) -> Result<Self, Problem> {
        let since = args.since.as_deref().map(|text| mail::when(text, SystemClock.now())).transpose()?;
        let reader = args.unread.then(|| reader_of(args, workplace));
        let after = match &reader {
            Some(reader) => Some(read_through(workplace, &mailbox, reader).await?),
            None => args.after,
        };
        let request = ReadRequest {
            after: after.unwrap_or(0),
            since,
            newest: after.is_none() && since.is_none(),
            limit: args.limit as usize,
            ..ReadRequest::default()
        };
        Ok(Self { workplace, out, mailbox, request, reader, mark_read: args.mark_read, follow: args.follow })
    }

    async fn show(&mut self) -> Result<Exit, Problem> {
        let mut page = self.read().await?;
        if self.follow {
            return self.go_on(page).await;
        }
        // Where nothing of a piece of the mailbox is to be shown, the next one may have something.
        while page.messages.is_empty() && page.more && page.next > self.request.after {
            self.tell_of_skipped(&page);
            self.request.after = page.next;
            page = self.read().await?;
        }
        self.print(&page);
        self.mark(&page).await?;
        Ok(Exit::Done)
    }

    /// Shows page after page, and waits where there is none.
    async fn go_on(&mut self, mut page: Page) -> Result<Exit, Problem> {
        loop {
            for message in &page.messages {
                if self.out.is_json() {
                    self.out.json_line(message);
                } else {
                    message::print(self.out, message);
                }
            }
            self.tell_of_skipped(&page);
            if self.out.is_lost() {
                return Ok(Exit::Done);
            }
            self.mark(&page).await?;
            self.request.after = self.tell_of_end(&page).unwrap_or(page.next);
            self.request.newest = false;
            if !page.more {
                self.workplace.bus.changed(self.mailbox.clone(), self.request.after, PATIENCE).await;
            }
            page = self.read().await?;
        }
    }

    async fn read(&self) -> Result<Page, Problem> {
        self.workplace.bus.read(self.mailbox.clone(), self.request).await.map_err(mail::problem)
    }

    /// Records what was shown as read, and what cannot be shown with it. What has reached nobody is
    /// not read.
    async fn mark(&self, shown: &Page) -> Result<(), Problem> {
        let (Some(reader), false) = (&self.reader, self.out.is_lost()) else { return Ok(()) };
        if self.mark_read && shown.next > self.request.after {
            let acknowledged =
                self.workplace.bus.acknowledge(self.mailbox.clone(), reader.clone(), shown.next).await;
            acknowledged.map_err(mail::problem)?;
        }
        Ok(())
    }

    fn print(&self, page: &Page) {
        let out = self.out;
        if out.is_json() {
            return out.json(&json!({
                "ok": true, "mailbox": self.mailbox, "messages": page.messages, "nextCursor": page.next,
                "more": page.more, "last": page.last, "skipped": page.skipped, "reader": self.reader,
            }));
        }
        let name = spelled(&self.mailbox);
        match (page.messages.first(), page.last) {
            (None, 0) => out.line(format_args!("{}: no messages.", crate::plain::escaped(&name))),
            (None, last) if last < self.request.after => {}
            (None, last) => out.line(format_args!("Nothing new; the mailbox ends with #{last}.")),
            (Some(first), _) if self.request.newest && first.seq > 1 => {
                out.note(format_args!("older messages: --after 0 begins with the oldest"));
            }
            (Some(_), _) => {}
        }
        page.messages.iter().for_each(|message| message::print(out, message));
        if page.more {
            let next = page.next;
            out.note(match (&self.reader, self.mark_read) {
                (_, true) => "there is more: the same command goes on".to_owned(),
                (Some(_), false) => format!(
                    "there is more: --mark-read goes on each time, or --after {next} in place of --unread"
                ),
                (None, _) => format!("there is more: --after {next} goes on"),
            });
        }
        self.tell_of_end(page);
        self.tell_of_skipped(page);
    }

    /// Says that the mailbox ends before what is known of it; where to begin again, which is with
    /// everything.
    fn tell_of_end(&self, page: &Page) -> Option<u64> {
        let after = self.request.after;
        if page.last >= after {
            return None;
        }
        self.out.note(format_args!(
            "#{after} is beyond the last message, #{}: the mailbox was removed or put back since, or the number is \
             another mailbox's; --after 0 begins with the oldest",
            page.last
        ));
        Some(0)
    }

    fn tell_of_skipped(&self, page: &Page) {
        if page.skipped > 0 {
            let count = page.skipped;
            self.out.note(format_args!(
                "{count} broken records were skipped; `cyberine doctor` names their files"
            ));
        }
    }
}

/// Who reads.
pub(super) fn reader_of(args: &Inbox, workplace: &Workplace) -> String {
    args.reader.clone().unwrap_or_else(|| human::name(&workplace.environment))
}

/// How far `reader` has read `mailbox`.
async fn read_through(workplace: &Workplace, mailbox: &Address, reader: &str) -> Result<u64, Problem> {
    let readers = workplace.bus.readers(mailbox.clone()).await.map_err(mail::problem)?;
    Ok(readers.iter().find(|known| known.reader == reader).map_or(0, |known| known.through))
}
