//! The texts of an announcement: what may be announced, and how a foreign record's are shown.

use std::borrow::Cow;

use cyberine_types::{is_blank, is_invisible};

use crate::error::PresenceError;
use crate::port::Announcing;
use crate::record::Record;

/// The longest team, role, name or capability, in characters.
pub const MAX_NAME_CHARS: usize = 128;
/// The most capabilities of one record.
pub const MAX_CAPABILITIES: usize = 64;
/// The longest id of an address, in bytes: the bus has the same limit.
const MAX_ID_BYTES: usize = 1024;
/// The longest directory, in bytes.
const MAX_DIRECTORY_BYTES: usize = 4096;
/// How much of a refused text its error shows.
const SHOWN_CHARS: usize = 80;

/// Refuses an announcement with a text that nobody can read, or that reads as another one.
pub(crate) fn check(announcing: &Announcing) -> Result<(), PresenceError> {
    let Announcing { addr, repo_cwd, capabilities, team, role, name } = announcing;
    if addr.kind.is_empty() || addr.kind.len() > 16 || !addr.kind.bytes().all(|b| b.is_ascii_lowercase()) {
        return Err(refused(
            "address",
            &addr.kind,
            "its kind is a lower-case word such as `chat`".to_owned(),
        ));
    }
    check_visible("address", &addr.id)?;
    check_bytes("address", &addr.id, MAX_ID_BYTES)?;
    check_bytes("directory", repo_cwd, MAX_DIRECTORY_BYTES)?;
    if capabilities.len() > MAX_CAPABILITIES {
        let reason = format!("there are {} of them; there may be {MAX_CAPABILITIES}", capabilities.len());
        return Err(refused("capability", "list", reason));
    }
    let capabilities = capabilities.iter().map(|text| ("capability", text));
    let names = [("team", team), ("role", role), ("name", name)];
    let names = names.into_iter().filter_map(|(what, text)| text.as_ref().map(|text| (what, text)));
    for (what, text) in capabilities.chain(names) {
        check_visible(what, text)?;
        let length = text.chars().count();
        if length > MAX_NAME_CHARS {
            let reason = format!("it has {length} characters; it may have {MAX_NAME_CHARS}");
            return Err(refused(what, text, reason));
        }
    }
    Ok(())
}

fn check_visible(what: &'static str, text: &str) -> Result<(), PresenceError> {
    if is_blank(text) {
        return Err(refused(what, text, "there is nothing to be seen of it".to_owned()));
    }
    match text.chars().find(|c| hides(*c)) {
        Some(c) => {
            let reason = format!("it holds the character U+{:04X}, which is not seen", u32::from(c));
            Err(refused(what, text, reason))
        }
        None => Ok(()),
    }
}

fn check_bytes(what: &'static str, text: &str, limit: usize) -> Result<(), PresenceError> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(refused(what, text, format!("it has {} bytes; it may have {limit}", text.len())))
}

fn refused(what: &'static str, text: &str, reason: String) -> PresenceError {
    let shown = shown(text, SHOWN_CHARS).unwrap_or(Cow::Borrowed(text));
    PresenceError::Refused { what, text: format!("`{shown}`"), reason }
}

/// Makes every text of a record, which may be of anybody's making, fit to be shown.
pub(crate) fn make_fit(record: &mut Record) {
    fit(&mut record.addr.kind, MAX_NAME_CHARS);
    fit(&mut record.addr.id, MAX_ID_BYTES);
    fit(&mut record.repo_cwd, MAX_DIRECTORY_BYTES);
    fit(&mut record.host.boot_id, MAX_NAME_CHARS);
    record.capabilities.truncate(MAX_CAPABILITIES);
    let names = [&mut record.team, &mut record.role, &mut record.name];
    for text in record.capabilities.iter_mut().chain(names.into_iter().flatten()) {
        fit(text, MAX_NAME_CHARS);
    }
}

fn fit(text: &mut String, limit: usize) {
    if let Some(shown) = shown(text, limit) {
        *text = shown.into_owned();
    }
}

/// `text` with what cannot be seen escaped, and cut to `limit` characters and an ellipsis where
/// it is longer; `None` where it can stay as it is.
fn shown(text: &str, limit: usize) -> Option<Cow<'_, str>> {
    let is_plain = text.len() <= limit && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain || (text.chars().count() <= limit && !text.chars().any(hides)) {
        return None;
    }
    let mut out = String::new();
    for c in text.chars().take(limit) {
        if hides(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    Some(Cow::Owned(out))
}

fn hides(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordAddr;

    fn announcing() -> Announcing {
        Announcing {
            addr: RecordAddr { kind: "chat".to_owned(), id: "a".to_owned() },
            repo_cwd: "/work".to_owned(),
            capabilities: vec!["orchestrate".to_owned()],
            team: Some("owls 🦉".to_owned()),
            role: None,
            name: Some("Zoë".to_owned()),
        }
    }

    fn error(change: impl FnOnce(&mut Announcing)) -> String {
        let mut announcing = announcing();
        change(&mut announcing);
        let error = check(&announcing).unwrap_err();
        assert_eq!(error.code(), "presence_refused");
        error.to_string()
    }

    #[test]
    fn what_cannot_be_seen_is_refused_by_name() {
        assert!(check(&announcing()).is_ok());
        for bad in ["a\nb", "a\u{1b}[1mb", "\u{202e}gnp", "z\u{200b}w", "t\u{e0041}", "a\0b", "\u{85}x"] {
            let refusals = [
                error(|it| it.team = Some(bad.to_owned())),
                error(|it| it.role = Some(bad.to_owned())),
                error(|it| it.name = Some(bad.to_owned())),
                error(|it| it.capabilities.push(bad.to_owned())),
                error(|it| it.addr.id = bad.to_owned()),
            ];
            for (text, what) in refusals.iter().zip(["team", "role", "name", "capability", "address"]) {
                assert!(text.starts_with(&format!("the {what} `")) && text.contains("U+"), "{text:?}");
                assert!(!text.chars().any(hides), "{text:?}");
            }
        }
        assert!(error(|it| it.name = Some(" ".to_owned())).contains("nothing to be seen"));
        assert!(error(|it| it.addr.kind = "Chat".to_owned()).contains("lower-case"));
    }

    #[test]
    fn limits_are_named() {
        let name = |count: usize| "é".repeat(count);
        let mut longest = announcing();
        longest.name = Some(name(MAX_NAME_CHARS));
        assert!(check(&longest).is_ok());
        assert!(error(|it| it.name = Some(name(129))).contains("129 characters; it may have 128"));
        assert!(error(|it| it.addr.id = "x".repeat(1025)).contains("1025 bytes; it may have 1024"));
        assert!(error(|it| it.repo_cwd = "x".repeat(4097)).contains("4097 bytes"));
        assert!(error(|it| it.capabilities = vec!["x".to_owned(); 65]).contains("65 of them"));
    }

    #[test]
    fn foreign_texts_are_shown_escaped_and_cut() {
        for (text, is) in [
            ("plain", None),
            ("Zoë 🦉", None),
            ("a\nb", Some(r"a\u{a}b")),
            ("\u{202e}gnp", Some(r"\u{202e}gnp")),
            ("0123456789abcdef", Some("0123456789…")),
        ] {
            assert_eq!(shown(text, 10).as_deref(), is, "{text:?}");
        }
    }
}
