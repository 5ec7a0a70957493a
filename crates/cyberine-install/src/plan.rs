//! The change of a host's file, as a function of its text.

use crate::{Entry, Format, Host, PlanError, json, toml};

const BOM: char = '\u{feff}';

/// Whether an entry that is there already and differs may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It is shown, and stays.
    Refuse,
    /// It is replaced.
    Allow,
}

/// What is to be done to register the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It is registered so already.
    Nothing,
    /// The file gets this text.
    Write(String),
}

/// What is to be done to take the server out again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// It is not registered.
    Nothing,
    /// The file gets this text, which it never had: it was changed since the entry came.
    Write(String),
    /// The file gets this text back, byte for byte.
    GiveBack(String),
    /// The file was born with the entry and holds nothing else: it goes.
    Remove,
}

/// Works out how to register `entry` in the file of `host`. `text` is the file as it is; `None`
/// where there is none. An entry that starts the same program with the same arguments and
/// variables is left alone, whatever else its user added to it.
///
/// # Errors
///
/// [`PlanError`]; the text is then to be left alone.
pub fn plan(host: Host, text: Option<&str>, entry: &Entry, overwrite: Overwrite) -> Result<Plan, PlanError> {
    let whole = text.unwrap_or_default();
    let (mark, text) = split(whole);
    let found = find(host, text)?;
    let after = match found {
        None => add(host, text, entry)?,
        Some(Found { entry: Some(existing), .. }) if existing == *entry => return Ok(Plan::Nothing),
        Some(Found { written, .. }) if overwrite == Overwrite::Refuse => {
            return Err(PlanError::Taken { existing: written });
        }
        Some(_) => match host.format() {
            Format::Json | Format::Jsonc => json::replace(host, text, entry)?,
            Format::Toml => add(host, &toml::remove(host, text)?, entry)?,
        },
    };
    // What was meant is read back before anything is written.
    match find(host, &after)? {
        Some(Found { entry: Some(read), .. }) if read == *entry => Ok(Plan::Write(format!("{mark}{after}"))),
        _ => Err(PlanError::Unusual { what: "the file would not say what it should" }),
    }
}

/// Works out how to take the entry out of `text`, the file of `host` as it is. `earlier` are
/// texts the file had before, newest first, as its backups have them: they tell what [`plan`]
/// added to, so that the very same bytes come back. What was changed beside the entry since then
/// stays. An entry that does not start our server goes only where [`Overwrite::Allow`] says so.
///
/// # Errors
///
/// [`PlanError::Foreign`] for an entry that does not start our server; otherwise as [`plan`].
pub fn withdraw(
    host: Host,
    text: &str,
    earlier: &[String],
    overwrite: Overwrite,
) -> Result<Withdrawal, PlanError> {
    let Some(Found { entry, written }) = find(host, split(text).1)? else {
        return Ok(Withdrawal::Nothing);
    };
    if overwrite == Overwrite::Refuse && !entry.as_ref().is_some_and(Entry::is_ours) {
        return Err(PlanError::Foreign { existing: written });
    }
    let clean: Vec<&String> = earlier.iter().filter(|earlier| !holds_ours(host, earlier)).collect();
    let gives = |before: Option<&str>| {
        let plan = entry.as_ref().map(|entry| plan(host, before, entry, Overwrite::Allow));
        matches!(plan, Some(Ok(Plan::Write(after))) if after == text)
    };
    if let Some(before) = clean.iter().find(|before| gives(Some(before))) {
        return Ok(Withdrawal::GiveBack((*before).clone()));
    }
    if clean.is_empty() && gives(None) {
        return Ok(Withdrawal::Remove);
    }
    let (mark, bare) = split(text);
    let before = clean.first().map(|before| split(before).1);
    let after = match host.format() {
        Format::Json | Format::Jsonc => json::remove(host, bare, before)?,
        Format::Toml => toml::remove(host, bare)?,
    };
    match find(host, &after)? {
        None => Ok(Withdrawal::Write(format!("{mark}{after}"))),
        Some(_) => Err(PlanError::Unusual { what: "the entry could not be taken out" }),
    }
}

/// What is pasted into the file of `host` by hand.
///
/// # Errors
///
/// An entry that cannot be written.
pub fn snippet(host: Host, entry: &Entry) -> Result<String, PlanError> {
    match host.format() {
        Format::Json | Format::Jsonc => json::snippet(host, entry),
        Format::Toml => Ok(toml::snippet(host, entry)),
    }
}

/// What stands under our name in the file of `host`, as it is written.
///
/// # Errors
///
/// As [`plan`].
pub fn registered(host: Host, text: &str) -> Result<Option<String>, PlanError> {
    Ok(find(host, split(text).1)?.map(|found| found.written))
}

struct Found {
    entry: Option<Entry>,
    written: String,
}

fn find(host: Host, text: &str) -> Result<Option<Found>, PlanError> {
    Ok(match host.format() {
        Format::Json | Format::Jsonc => {
            json::find(host, text)?.map(|found| Found { entry: found.entry, written: found.written })
        }
        Format::Toml => {
            toml::find(host, text)?.map(|found| Found { entry: found.entry, written: found.written })
        }
    })
}

fn add(host: Host, text: &str, entry: &Entry) -> Result<String, PlanError> {
    match host.format() {
        Format::Json | Format::Jsonc => json::add(host, text, entry),
        Format::Toml => toml::add(host, text, entry),
    }
}

fn holds_ours(host: Host, text: &str) -> bool {
    let found = find(host, split(text).1).ok().flatten();
    found.and_then(|found| found.entry).is_some_and(|entry| entry.is_ours())
}

/// A byte order mark, and the text behind it.
fn split(text: &str) -> (&str, &str) {
    let length = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    text.split_at(length)
}
