//! What doctor says of the mailboxes and of who is there.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_bus::MailboxReport;
use serde::Serialize;

use crate::mail;
use crate::out::Out;
use crate::plain::escaped;
use crate::target::spelled;

/// The mailboxes and the roster, read whole.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MailReport {
    mailboxes: usize,
    messages: u64,
    bytes: u64,
    /// The mailboxes with something that is no message.
    broken: Vec<Broken>,
    /// How many records of who is there are live.
    live: usize,
    /// How many are left over from processes that are gone, or were withdrawn. Readers pass them
    /// over, and they are removed in time.
    left_over: usize,
    /// Files among them that are no record.
    damaged_presence: Vec<String>,
}

/// A mailbox with something that is no message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Broken {
    /// Its name; unset where nothing tells whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailbox: Option<String>,
    path: String,
    bad_lines: u64,
    torn_lines: u64,
    /// Why it, or the rest of it, could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Broken {
    fn of(report: &MailboxReport) -> Option<Self> {
        let has_damage = report.bad_lines > 0 || report.torn_lines > 0 || report.problem.is_some();
        let is_whole = !has_damage && report.mailbox.is_some();
        (!is_whole).then(|| Self {
            mailbox: report.mailbox.as_ref().map(spelled),
            path: report.path.display().to_string(),
            bad_lines: report.bad_lines,
            torn_lines: report.torn_lines,
            problem: report.problem.clone(),
        })
    }

    /// Whether a message may be lost. What was torn when its writer died was never acknowledged.
    const fn is_damage(&self) -> bool {
        self.bad_lines > 0 || self.mailbox.is_none()
    }
}

impl MailReport {
    pub(super) async fn look(workplace: &Workplace) -> Result<Self, Problem> {
        let reports = workplace.mailbox_files().check().await.map_err(mail::problem)?;
        let presence = workplace.presence_files().check().await.map_err(mail::presence_problem)?;
        Ok(Self {
            mailboxes: reports.iter().filter(|report| report.problem.is_none()).count(),
            messages: reports.iter().map(|report| report.messages).sum(),
            bytes: reports.iter().map(|report| report.bytes).sum(),
            broken: reports.iter().filter_map(Broken::of).collect(),
            live: presence.live,
            left_over: presence.stale.len() + presence.dead + presence.departed,
            damaged_presence: presence.damaged,
        })
    }

    /// Fails where a message or a record may be lost.
    pub(super) fn verdict(&self) -> Result<(), Problem> {
        if self.broken.iter().any(|broken| broken.problem.is_some()) {
            return Err(Problem::new(
                Exit::Internal,
                "what lies in the place of a mailbox cannot be used: make `bus/` in the home yours alone (directories \
                 0700, files 0600), without links; every other mailbox can be used",
            ));
        }
        if self.broken.iter().any(Broken::is_damage) {
            return Err(Problem::new(
                Exit::Internal,
                "mailboxes have damage: readers pass over what is broken and report it, and every other message can be \
                 read; look at the disk, then move a damaged file away or leave it as it is",
            ));
        }
        Ok(())
    }

    /// Whether something is told of as a finding.
    pub(super) const fn has_findings(&self) -> bool {
        !self.broken.is_empty() || !self.damaged_presence.is_empty()
    }

    pub(super) fn print(&self, out: &Out) {
        let Self { mailboxes, messages, bytes, .. } = self;
        if *mailboxes > 0 {
            out.line(format_args!("mail      {messages} messages in {mailboxes} mailboxes, {bytes} bytes"));
        }
        for broken in &self.broken {
            let name = broken.mailbox.as_deref().unwrap_or("a mailbox that nothing names");
            let (bad, torn) = (broken.bad_lines, broken.torn_lines);
            if let Some(problem) = &broken.problem {
                out.line(format_args!("finding   {} (left as it is)", escaped(problem)));
                continue;
            }
            out.line(format_args!(
                "finding   {} in {}: {bad} damaged records, {torn} torn ones that were never acknowledged (left as it is)",
                escaped(name),
                escaped(&broken.path)
            ));
        }
        if self.live + self.left_over > 0 {
            let left = match self.left_over {
                0 => String::new(),
                count => format!(", {count} records left over from processes that are gone"),
            };
            out.line(format_args!("live      {}{left}", self.live));
        }
        for file in &self.damaged_presence {
            out.line(format_args!(
                "finding   {} in bus/presence is no record of anybody's (left as it is; it may be deleted)",
                escaped(file)
            ));
        }
    }
}
