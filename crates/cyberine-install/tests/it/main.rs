//! The crate from outside.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod files;
mod fixtures;
mod looks;
mod properties;
mod refusals;

use cyberine_install::{Entry, Host, Overwrite, Plan, plan};

/// The entry most tests register.
fn entry() -> Entry {
    Entry::new("/opt/cyberine/bin/cyberine-mcp").unwrap()
}

/// An entry with everything an entry can have, and text that has to be escaped.
fn full_entry() -> Entry {
    Entry::new("/opt/my \"tools\"/é/cyberine-mcp")
        .unwrap()
        .with_args(["--team".to_owned(), "re'd\\x".to_owned()])
        .unwrap()
        .with_variable("CYBERINE_HOME", "/home/me/.cyberine")
        .unwrap()
        .with_variable("CYBERINE_PROJECT", "/home/me/work")
        .unwrap()
}

/// The text with the entry added.
fn added(host: Host, text: Option<&str>, entry: &Entry) -> String {
    match plan(host, text, entry, Overwrite::Refuse) {
        Ok(Plan::Write(after)) => after,
        other => panic!("{host:?}: {other:?}"),
    }
}
