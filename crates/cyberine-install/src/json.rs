//! JSON with or without comments, edited as text: what is not edited is not read into anything
//! and not written again.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use crate::text::{begins_line, cut, gap_before, indentation, insert, newline, position};
use crate::{Entry, Format, Host, NAME, PlanError};

const CANNOT_RENDER: PlanError = PlanError::Unusual { what: "the entry could not be written as JSON" };

/// The entry that is there, and how it is written.
pub(crate) struct Found {
    pub(crate) entry: Option<Entry>,
    pub(crate) written: String,
}

/// What stands under `cyberine`, if anything.
pub(crate) fn find(host: Host, text: &str) -> Result<Option<Found>, PlanError> {
    let Some(root) = parse(host, text)? else { return Ok(None) };
    let Some(container) = container(host, text, &root)? else { return Ok(None) };
    let Some(member) = member(text, container, NAME)? else { return Ok(None) };
    let written = text[span(&member.value)].to_owned();
    Ok(Some(Found { entry: Entry::of_json(&member.value.clone().into()), written }))
}

/// `text` with the entry added; it has none yet.
pub(crate) fn add(host: Host, text: &str, entry: &Entry) -> Result<String, PlanError> {
    let Some(root) = parse(host, text)? else {
        let newline = newline(text);
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
        let document = pretty(&Nested(host.key(), &Nested(NAME, &entry.for_json(host))), "  ", "", newline)?;
        return Ok(format!("{text}{gap}{document}{newline}"));
    };
    match container(host, text, &root)? {
        Some(container) => add_member(text, &root, container, NAME, &entry.for_json(host)),
        None => add_member(text, &root, &root, host.key(), &Nested(NAME, &entry.for_json(host))),
    }
}

/// `text` with another value in the entry's place.
pub(crate) fn replace(host: Host, text: &str, entry: &Entry) -> Result<String, PlanError> {
    let absent = PlanError::Unusual { what: "the entry is not where it was" };
    let Some(root) = parse(host, text)? else { return Err(absent) };
    let Some(container) = container(host, text, &root)? else { return Err(absent) };
    let Some(member) = member(text, container, NAME)? else { return Err(absent) };
    let indent = indentation(text, member.range.start);
    let value = if begins_line(text, member.range.start) {
        pretty(&entry.for_json(host), unit(text, &root), indent, newline(text))?
    } else {
        serde_json::to_string(&entry.for_json(host)).map_err(|_| CANNOT_RENDER)?
    };
    let range = span(&member.value);
    Ok(format!("{}{value}{}", &text[..range.start], &text[range.end..]))
}

/// `text` without the entry. `before` is the file as it was without it, where that is known: where
/// it had no servers at all, or an empty set of them, that is given back too.
pub(crate) fn remove(host: Host, text: &str, before: Option<&str>) -> Result<String, PlanError> {
    let without = remove_member(host, text, Level::Entry)?;
    let Some(root) = parse(host, &without)? else { return Ok(without) };
    let Some(now_empty) = container(host, &without, &root)?.filter(|object| object.properties.is_empty())
    else {
        return Ok(without);
    };
    let inside = now_empty.range.start + 1..now_empty.range.end - 1;
    let Some(before) = before else { return Ok(emptied(&without, inside, "")) };
    let old_root = parse(host, before)?;
    let old = old_root.as_ref().map(|root| container(host, before, root)).transpose()?.flatten();
    match old {
        Some(old) if old.properties.is_empty() => {
            Ok(emptied(&without, inside, &before[old.range.start + 1..old.range.end - 1]))
        }
        Some(_) => Ok(emptied(&without, inside, "")),
        None => {
            let bare = remove_member(host, &without, Level::Container)?;
            let inside = parse(host, &bare)?
                .filter(|root| root.properties.is_empty())
                .map(|root| root.range.start + 1..root.range.end - 1);
            let old_inside = old_root
                .filter(|root| root.properties.is_empty())
                .map_or("", |root| &before[root.range.start + 1..root.range.end - 1]);
            Ok(inside.map(|inside| emptied(&bare, inside, old_inside)).unwrap_or(bare))
        }
    }
}

enum Level {
    Entry,
    Container,
}

/// What nothing is left in, as it was before; comments that came since are kept.
fn emptied(text: &str, inside: Range<usize>, old: &str) -> String {
    let left = &text[inside.clone()];
    if left.trim().is_empty() || left.trim() == old.trim() {
        return format!("{}{old}{}", &text[..inside.start], &text[inside.end..]);
    }
    text.to_owned()
}

fn parse(host: Host, text: &str) -> Result<Option<Object<'_>>, PlanError> {
    let lenient = host.format() == Format::Jsonc;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let (line, column) = position(text, error.range().start);
        PlanError::Syntax { line, column, message: error.kind().to_string() }
    })?;
    match parsed.value {
        None => Ok(None),
        Some(Value::Object(root)) => Ok(Some(root)),
        Some(other) => Err(wrong_shape(text, "the whole file", &other)),
    }
}

/// The object the servers stand in.
fn container<'a, 'b>(
    host: Host,
    text: &str,
    root: &'b Object<'a>,
) -> Result<Option<&'b Object<'a>>, PlanError> {
    match member(text, root, host.key())?.map(|member| &member.value) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong_shape(text, host.key(), other)),
    }
}

/// The member `name`. Two of that name are refused: hosts disagree on which one counts.
fn member<'a, 'b>(
    text: &str,
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<&'b ObjectProp<'a>>, PlanError> {
    let mut members = object.properties.iter().filter(|member| member.name.as_str() == name);
    let first = members.next();
    match members.next() {
        None => Ok(first),
        Some(second) => {
            let (line, column) = position(text, second.range.start);
            let message = format!("`{name}` stands here a second time");
            Err(PlanError::Syntax { line, column, message })
        }
    }
}

fn wrong_shape(text: &str, key: &str, value: &Value<'_>) -> PlanError {
    let (line, column) = position(text, value.start());
    let found = match value {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::StringLit(_) => "a text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::NullKeyword(_) => "null",
    };
    PlanError::WrongShape { line, column, key: key.to_owned(), found }
}

fn span(value: &Value<'_>) -> Range<usize> {
    value.start()..value.end()
}

/// One step of the file's indentation: that of the root's first member, where it has a line of
/// its own.
fn unit<'a>(text: &'a str, root: &Object<'_>) -> &'a str {
    root.properties
        .iter()
        .map(|member| member.range.start)
        .filter(|start| begins_line(text, *start))
        .map(|start| indentation(text, start))
        .find(|indent| !indent.is_empty())
        .unwrap_or("  ")
}

/// Adds the last member of `object`.
fn add_member(
    text: &str,
    root: &Object<'_>,
    object: &Object<'_>,
    name: &str,
    value: &impl Serialize,
) -> Result<String, PlanError> {
    let (unit, newline) = (unit(text, root), newline(text));
    let end = object.range.end - 1;
    let Some(last) = object.properties.last() else {
        let outer = indentation(text, object.range.start);
        let indent = format!("{outer}{unit}");
        let at = Gap::read(text, object.range.start + 1, end).line_end;
        let closing = if text[at..end].contains('\n') { String::new() } else { format!("{newline}{outer}") };
        let value = pretty(value, unit, &indent, newline)?;
        return Ok(insert(text, &[(at, &format!("{newline}{indent}\"{name}\": {value}{closing}"))]));
    };
    let gap = Gap::read(text, last.range.end, end);
    let whole_line = begins_line(text, last.range.start) || gap.line_comment;
    let (part, value) = if whole_line {
        let indent = if begins_line(text, last.range.start) {
            indentation(text, last.range.start).to_owned()
        } else {
            format!("{}{unit}", indentation(text, object.range.start))
        };
        let value = pretty(value, unit, &indent, newline)?;
        (format!("{newline}{indent}"), value)
    } else {
        (" ".to_owned(), serde_json::to_string(value).map_err(|_| CANNOT_RENDER)?)
    };
    if gap.comma.is_some() {
        return Ok(insert(text, &[(gap.line_end, &format!("{part}\"{name}\": {value},"))]));
    }
    Ok(insert(text, &[(last.range.end, ","), (gap.line_end, &format!("{part}\"{name}\": {value}"))]))
}

/// Takes a member out, with the comma that came with it.
fn remove_member(host: Host, text: &str, level: Level) -> Result<String, PlanError> {
    let Some(root) = parse(host, text)? else { return Ok(text.to_owned()) };
    let (object, name) = match level {
        Level::Container => (&root, host.key()),
        Level::Entry => match container(host, text, &root)? {
            Some(container) => (container, NAME),
            None => return Ok(text.to_owned()),
        },
    };
    let Some(index) = object.properties.iter().position(|member| member.name.as_str() == name) else {
        return Ok(text.to_owned());
    };
    let range = object.properties[index].range;
    let next = object.properties.get(index + 1).map_or(object.range.end - 1, |next| next.range.start);
    let previous = index.checked_sub(1).map(|previous| object.properties[previous].range.end);
    let start = gap_before(text, range.start);
    let after = Gap::read(text, range.end, next).comma;
    let mut ranges = Vec::new();
    match (after, previous) {
        (Some(comma), _) => {
            ranges.push(start..range.end);
            // On one line the space behind the comma goes where none went before the member.
            let alone = start == range.start && text[comma + 1..].starts_with(' ');
            ranges.push(comma..comma + 1 + usize::from(alone));
        }
        (None, Some(previous)) => {
            let comma = Gap::read(text, previous, range.start).comma;
            ranges.extend(comma.map(|comma| comma..comma + 1));
            ranges.push(start.max(ranges.last().map_or(0, |range| range.end))..range.end);
        }
        (None, None) => ranges.push(start..range.end),
    }
    Ok(cut(text, &ranges))
}

/// What stands between two members, or between a member and the end of its object: white space,
/// comments, at most one comma.
struct Gap {
    comma: Option<usize>,
    /// Where something can be added without parting a member from the comments behind it.
    line_end: usize,
    /// Whether the last of those comments goes on to the end of its line.
    line_comment: bool,
}

impl Gap {
    fn read(text: &str, from: usize, to: usize) -> Self {
        let mut gap = Self { comma: None, line_end: from, line_comment: false };
        let mut at = from;
        let mut same_line = true;
        while at < to {
            let rest = &text[at..to];
            let length = if let Some(comment) = rest.strip_prefix("//") {
                let length = comment.find(['\r', '\n']).unwrap_or(comment.len()) + 2;
                if same_line {
                    gap.line_end = at + length;
                    gap.line_comment = true;
                }
                length
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let length = comment.find("*/").map_or(rest.len(), |end| end + 4);
                same_line &= !rest[..length].contains('\n');
                if same_line {
                    gap.line_end = at + length;
                }
                length
            } else if rest.starts_with(',') {
                gap.comma = Some(at);
                // Nothing may be added before the comma; behind it a line may go on.
                gap.line_end = at + 1;
                same_line = true;
                1
            } else {
                same_line &= !rest.starts_with('\n');
                rest.chars().next().map_or(1, char::len_utf8)
            };
            at += length;
        }
        gap
    }
}

/// One key that holds one value.
struct Nested<'a, T>(&'static str, &'a T);

impl<T: Serialize> Serialize for Nested<'_, T> {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map([(self.0, self.1)])
    }
}

/// JSON over several lines, for a place that is indented by `indent` already.
fn pretty(value: &impl Serialize, unit: &str, indent: &str, newline: &str) -> Result<String, PlanError> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    value
        .serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
        .map_err(|_| CANNOT_RENDER)?;
    let text = String::from_utf8(bytes).map_err(|_| CANNOT_RENDER)?;
    Ok(text.replace('\n', &format!("{newline}{indent}")))
}

/// What is pasted by hand: the whole document.
pub(crate) fn snippet(host: Host, entry: &Entry) -> Result<String, PlanError> {
    add(host, "", entry)
}
