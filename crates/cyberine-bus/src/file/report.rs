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
    /// What lies where a mailbox could and cannot be used, in the order of the paths.
    pub unusable: Vec<Unusable>,
}

/// A directory, or what lies in its place, that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
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
    /// Why it, or the rest of it, could not be read.
    pub problem: Option<String>,
}

/// Up to `limit` mailboxes.
pub(crate) fn list(home: &Path, limit: usize) -> Result<Mailboxes, FsError> {
    let mut mailboxes = Mailboxes::default();
    each(home, |kind, path, found| {
        if mailboxes.addresses.len() == limit {
            mailboxes.truncated = true;
            return false;
        }
        match found.and_then(|dir| address(kind, &dir)) {
            Ok(address) => mailboxes.addresses.extend(address),
            Err(error) => mailboxes.unusable.push(Unusable { path, problem: words(&error) }),
        }
        true
    })?;
    mailboxes.addresses.sort();
    mailboxes.unusable.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(mailboxes)
}

/// Looks at every mailbox.
pub(crate) fn check(home: &Path) -> Result<Vec<MailboxReport>, FsError> {
    let mut reports = Vec::new();
    each(home, |kind, path, found| {
        let mut report = MailboxReport::new(path);
        if let Err(error) = found.and_then(|dir| look(kind, &dir, &mut report)) {
            report.problem = Some(words(&error));
        }
        reports.push(report);
        true
    })?;
    reports.sort_by(|one, other| (&one.mailbox, &one.path).cmp(&(&other.mailbox, &other.path)));
    Ok(reports)
}

/// Visits the mailboxes' directories, and what lies in their places and is none, until the visitor
/// has had enough.
fn each(
    home: &Path,
    mut visit: impl FnMut(AddressKind, PathBuf, Result<PrivateDir, FsError>) -> bool,
) -> Result<(), FsError> {
    let Some(bus) = bus_dir(home)? else { return Ok(()) };
    for kind in AddressKind::ALL {
        let listed = bus.existing_subdir(kind.name()).and_then(|dir| {
            let Some(dir) = dir else { return Ok(None) };
            let names = dir.list(usize::MAX)?.names;
            Ok(Some((dir, names)))
        });
        let (dir, names) = match listed {
            Ok(Some(listed)) => listed,
            Ok(None) => continue,
            Err(error) => {
                if visit(kind, bus.path().join(kind.name()), Err(error)) {
                    continue;
                }
                return Ok(());
            }
        };
        for name in names {
            let found = match dir.existing_subdir(&name) {
                Ok(Some(mailbox)) => Ok(mailbox),
                Ok(None) | Err(FsError::WrongType { .. }) => continue,
                Err(error) => Err(error),
            };
            if !visit(kind, dir.path().join(&name), found) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// An error and its causes.
fn words(error: &FsError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Whose mailbox it is: by its name, or where that is a digest, by its first message.
fn address(kind: AddressKind, dir: &PrivateDir) -> Result<Option<Address>, FsError> {
    let Some(name) = dir.path().file_name().and_then(|name| name.to_str()) else { return Ok(None) };
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

impl MailboxReport {
    fn new(path: PathBuf) -> Self {
        Self { mailbox: None, path, messages: 0, bad_lines: 0, torn_lines: 0, bytes: 0, problem: None }
    }
}

fn look(kind: AddressKind, dir: &PrivateDir, report: &mut MailboxReport) -> Result<(), FsError> {
    report.mailbox = address(kind, dir)?;
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
    Ok(())
}
