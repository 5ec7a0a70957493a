//! `cyberine inbox` without a mailbox: all of them.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_bus::{Address, AddressKind, Envelope, ReadRequest};
use cyberine_types::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::inbox::reader_of;
use crate::args::Inbox;
use crate::mail;
use crate::message::{moment, who};
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::table::aligned;
use crate::target::spelled;

/// How many mailboxes are looked at.
const MOST: usize = 10_000;
/// How much of a mailbox's name is shown.
const NAME: usize = 60;

/// One mailbox as the reader finds it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    mailbox: Address,
    /// The number of its last message.
    last: u64,
    /// How many messages the reader has not read.
    unread: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<Timestamp>,
    #[serde(skip)]
    newest: Option<Envelope>,
}

/// Lists the mailboxes, the one that was last written to first.
pub(super) async fn run(args: &Inbox, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    if args.follow || args.mark_read || args.since.is_some() || args.after.is_some() {
        return Err(Problem::new(
            Exit::Usage,
            "name a mailbox for that, such as --chat ID or team:NAME; `cyberine watch` follows several",
        ));
    }
    let reader = reader_of(args, workplace);
    let any =
        Address::new(AddressKind::Broadcast, "all").map_err(|error| Problem::of(Exit::Internal, &error))?;
    // Where messages are switched off, this says so; the files of before may still be there.
    workplace.bus.readers(any).await.map_err(mail::problem)?;
    let found = workplace.mailbox_files().mailboxes(MOST).await.map_err(mail::problem)?;
    let mut rows = Vec::new();
    let mut unusable: Vec<String> = found.unusable.into_iter().map(|one| one.problem).collect();
    for mailbox in found.addresses {
        match look(mailbox, &reader, workplace).await {
            Ok(row) => rows.push(row),
            Err(problem) => unusable.push(problem.message),
        }
    }
    rows.retain(|row| row.last > 0 && (!args.unread || row.unread > 0));
    rows.sort_by_key(|row| std::cmp::Reverse(row.last_at));
    let all = rows.len();
    rows.truncate(args.limit as usize);
    if out.is_json() {
        let truncated = found.truncated || rows.len() < all;
        let mut document = json!({ "ok": true, "reader": reader, "mailboxes": rows, "truncated": truncated });
        if !unusable.is_empty() {
            document["unusable"] = json!(unusable);
        }
        out.json(&document);
        return Ok(Exit::Done);
    }
    print(&rows, out);
    for problem in unusable {
        out.note(format_args!("left out: {problem}"));
    }
    if rows.len() < all {
        out.note(format_args!("{} more: --limit shows up to 1000", all - rows.len()));
    }
    if found.truncated {
        out.note(format_args!("there are more than {MOST} mailboxes; the others are not listed"));
    }
    Ok(Exit::Done)
}

async fn look(mailbox: Address, reader: &str, workplace: &Workplace) -> Result<Row, Problem> {
    let request = ReadRequest { newest: true, limit: 1, ..ReadRequest::default() };
    let page = workplace.bus.read(mailbox.clone(), request).await.map_err(mail::problem)?;
    let readers = workplace.bus.readers(mailbox.clone()).await.map_err(mail::problem)?;
    let unread = readers.iter().find(|known| known.reader == reader).map_or(page.last, |known| known.unread);
    let newest = page.messages.into_iter().next_back();
    Ok(Row {
        mailbox,
        last: page.last,
        unread,
        last_at: newest.as_ref().map(|message| message.sent_at),
        newest,
    })
}

fn print(rows: &[Row], out: &Out) {
    if rows.is_empty() {
        out.line("No messages.");
        out.line("`cyberine send TO TEXT` sends one; `cyberine inbox --chat NAME --follow --announce` waits for some.");
        return;
    }
    let mut cells = vec![["mailbox", "messages", "unread", "last", "from"].map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![
            cut(&escaped(&spelled(&row.mailbox)), NAME),
            row.last.to_string(),
            row.unread.to_string(),
            row.last_at.map(moment).unwrap_or_default(),
            row.newest.as_ref().map(|message| who(out, message)).unwrap_or_default(),
        ]
    }));
    for (at, line) in aligned(&cells).iter().enumerate() {
        if at == 0 {
            out.line(out.paint(Style::Faint, line));
        } else {
            out.line(line);
        }
    }
}
