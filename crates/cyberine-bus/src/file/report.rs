//! Which mailboxes there are, and how they are.

use std::path::{Path, PathBuf};

use cyberine_fs::{FsError, PrivateDir};

use super::mailbox::bus_dir;
use super::read;
use super::segment::Lines;
use crate::address::{Address, AddressKind};
use crate::names;
use crate::record::{CANCEL, checked};

/// The mailboxes there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mailboxes {
    /// Their addresses, in order.
    pub addresses: Vec<Address>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
}

/// What a look at every byte of a mailbox found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxReport {
    /// The mailbox; `None` where nothing in the directory tells whose it is.
    pub mailbox: Option<Address>,
    /// Its directory.
    pub path: PathBuf,
    /// How many messages can be read.
    pub messages: u64,
    /// How many records are damaged. Each may have been a message.
    pub bad_lines: u64,
    /// How many records were torn when their writer died. None of them was acknowledged.
    pub torn_lines: u64,
    /// How long its files are.
    pub bytes: u64,
}

/// Up to `limit` mailboxes.
pub(crate) fn list(home: &Path, limit: usize) -> Result<Mailboxes, FsError> {
    let mut mailboxes = Mailboxes::default();
    each(home, |kind, name, dir| {
        if mailboxes.addresses.len() == limit {
            mailboxes.truncated = true;
            return Ok(false);
        }
        mailboxes.addresses.extend(address(kind, name, dir)?);
        Ok(true)
    })?;
    mailboxes.addresses.sort();
    Ok(mailboxes)
}

/// Looks at every mailbox.
pub(crate) fn check(home: &Path) -> Result<Vec<MailboxReport>, FsError> {
    let mut reports = Vec::new();
    each(home, |kind, name, dir| {
        reports.push(look(kind, name, dir)?);
        Ok(true)
    })?;
    reports.sort_by(|one, other| (&one.mailbox, &one.path).cmp(&(&other.mailbox, &other.path)));
    Ok(reports)
}

/// Visits the mailboxes' directories until the visitor has had enough.
fn each(
    home: &Path,
    mut visit: impl FnMut(AddressKind, &str, &PrivateDir) -> Result<bool, FsError>,
) -> Result<(), FsError> {
    let Some(bus) = bus_dir(home)? else { return Ok(()) };
    for kind in AddressKind::ALL {
        let Some(dir) = bus.existing_subdir(kind.name())? else { continue };
        for name in dir.list(usize::MAX)?.names {
            let mailbox = match dir.existing_subdir(&name) {
                Ok(Some(mailbox)) => mailbox,
                Ok(None) | Err(FsError::WrongType { .. }) => continue,
                Err(error) => return Err(error),
            };
            if !visit(kind, &name, &mailbox)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whose mailbox it is: by its name, or where that is a digest, by its first message.
fn address(kind: AddressKind, name: &str, dir: &PrivateDir) -> Result<Option<Address>, FsError> {
    if let Some(id) = names::decode(name) {
        return Ok(Address::new(kind, id).ok());
    }
    for first in read::segments(dir)? {
        let Some((file, length)) = read::open(dir, first)? else { continue };
        let mut lines = Lines::between(&file, 0, length);
        while let Some(line) = lines.next()? {
            let to = checked(line.bytes).and_then(|record| record.envelope()).map(|envelope| envelope.to);
            if let Some(to) = to.filter(|to| to.kind() == kind && names::encode(to.id()) == name) {
                return Ok(Some(to));
            }
        }
    }
    Ok(None)
}

fn look(kind: AddressKind, name: &str, dir: &PrivateDir) -> Result<MailboxReport, FsError> {
    let mailbox = address(kind, name, dir)?;
    let path = dir.path().to_owned();
    let mut report = MailboxReport { mailbox, path, messages: 0, bad_lines: 0, torn_lines: 0, bytes: 0 };
    for first in read::segments(dir)? {
        let Some((file, length)) = read::open(dir, first)? else { continue };
        report.bytes += length;
        let mut lines = Lines::between(&file, 0, length);
        while let Some(line) = lines.next()? {
            let record = checked(line.bytes);
            let message = record.and_then(|record| record.envelope());
            let is_ours = message.is_some_and(|message| report.mailbox.as_ref() == Some(&message.to));
            report.bad_lines += u64::from(record.is_some_and(|record| record.follows_broken));
            match line.bytes {
                _ if is_ours => report.messages += 1,
                [] => {}
                [.., CANCEL] => report.torn_lines += 1,
                _ => report.bad_lines += 1,
            }
        }
        report.torn_lines += u64::from(lines.has_rest());
    }
    Ok(report)
}
