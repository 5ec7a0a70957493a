//! TOML, edited as text: a table is put at the end, and taken out where it stands.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TableLike, Value};

use crate::text::{cut, newline, position};
use crate::{Entry, Host, NAME, PlanError};

/// What stands under `cyberine`, and how it is written.
pub(crate) struct Found {
    pub(crate) entry: Option<Entry>,
    pub(crate) written: String,
}

/// What stands under `cyberine`, if anything.
pub(crate) fn find(host: Host, text: &str) -> Result<Option<Found>, PlanError> {
    let document = parse(text)?;
    let Some(item) = entry_of(host, text, &document)? else { return Ok(None) };
    let written = match item {
        Item::Table(table) => lines_of(text, table).iter().map(|lines| &text[lines.clone()]).collect(),
        other => other.span().map(|span| text[span].to_owned()).unwrap_or_default(),
    };
    Ok(Some(Found { entry: item.as_table_like().and_then(read), written }))
}

/// `text` with the entry added; it has none yet.
pub(crate) fn add(host: Host, text: &str, entry: &Entry) -> Result<String, PlanError> {
    let newline = newline(text);
    let gap = match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => String::new(),
        (false, true) => newline.to_owned(),
        (false, false) => newline.repeat(2),
    };
    let block = block(host, entry).replace('\n', newline);
    Ok(format!("{text}{gap}{block}"))
}

/// `text` without the entry.
pub(crate) fn remove(host: Host, text: &str) -> Result<String, PlanError> {
    let document = parse(text)?;
    let Some(item) = entry_of(host, text, &document)? else { return Ok(text.to_owned()) };
    let Item::Table(table) = item else {
        return Err(PlanError::Unusual { what: "the entry has no table of its own" });
    };
    if table.is_dotted() || table.is_implicit() {
        return Err(PlanError::Unusual { what: "the entry has no table of its own" });
    }
    let mut lines = lines_of(text, table);
    // The blank line that parted it from what stood before goes with it.
    if let Some(first) = lines.first_mut() {
        let before = &text[..first.start];
        let bare = before.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        if let Some(bare) = bare.filter(|bare| bare.is_empty() || bare.ends_with('\n')) {
            first.start = bare.len();
        }
    }
    Ok(cut(text, &lines))
}

/// What is pasted by hand.
pub(crate) fn snippet(host: Host, entry: &Entry) -> String {
    block(host, entry)
}

fn block(host: Host, entry: &Entry) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut lines = format!("[{}.{NAME}]\ncommand = {}\n", host.key(), quoted(entry.command()));
    if !entry.args().is_empty() {
        let args: Vec<String> = entry.args().iter().map(|arg| quoted(arg)).collect();
        lines.push_str(&format!("args = [{}]\n", args.join(", ")));
    }
    let variables: Vec<String> =
        entry.variables().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
    if !variables.is_empty() {
        lines.push_str(&format!("env = {{ {} }}\n", variables.join(", ")));
    }
    lines
}

fn parse(text: &str) -> Result<Document<&str>, PlanError> {
    Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        PlanError::Syntax { line, column, message: error.message().to_owned() }
    })
}

/// What stands under the servers' table and our name. Servers in an inline table are refused: a
/// table cannot be added to one.
fn entry_of<'a>(host: Host, text: &str, document: &'a Document<&str>) -> Result<Option<&'a Item>, PlanError> {
    let servers = match document.as_table().get(host.key()) {
        None | Some(Item::None) => return Ok(None),
        Some(Item::Table(servers)) => servers,
        Some(Item::Value(Value::InlineTable(_))) => {
            return Err(PlanError::Unusual { what: "the servers stand in an inline table" });
        }
        Some(other) => {
            let (line, column) = position(text, other.span().map_or(0, |span| span.start));
            let found = if other.is_array_of_tables() { "a list of tables" } else { "a value" };
            return Err(PlanError::WrongShape { line, column, key: host.key().to_owned(), found });
        }
    };
    Ok(servers.get(NAME))
}

fn read(table: &dyn TableLike) -> Option<Entry> {
    let text = |item: &Item| item.as_str().map(str::to_owned);
    let mut entry = serde_json::Map::new();
    entry.insert("command".to_owned(), text(table.get("command")?)?.into());
    if let Some(args) = table.get("args") {
        let args = args.as_array()?.iter().map(|arg| arg.as_str().map(str::to_owned));
        entry.insert("args".to_owned(), args.collect::<Option<Vec<_>>>()?.into());
    }
    if let Some(env) = table.get("env") {
        let named = |(name, item): (&str, &Item)| Some((name.to_owned(), text(item)?.into()));
        let env = env.as_table_like()?.iter().map(named).collect::<Option<serde_json::Map<_, _>>>()?;
        entry.insert("env".to_owned(), env.into());
    }
    Entry::of_json(&entry.into())
}

/// The whole lines a table and the tables in it stand on, in ascending order.
fn lines_of(text: &str, table: &Table) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    collect(text, table, &mut lines);
    lines.sort_by_key(|range| range.start);
    lines
}

fn collect(text: &str, table: &Table, lines: &mut Vec<Range<usize>>) {
    let Some(header) = table.span().filter(|_| !table.is_implicit() && !table.is_dotted()) else { return };
    let mut end = header.end;
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) if !inner.is_dotted() => collect(text, inner, lines),
            other => end = end.max(last_byte(other)),
        }
    }
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    lines.push(header.start..end);
}

fn last_byte(item: &Item) -> usize {
    let own = item.span().map_or(0, |span| span.end);
    let inner =
        item.as_table().map_or(0, |table| table.iter().map(|(_, item)| last_byte(item)).max().unwrap_or(0));
    own.max(inner)
}
