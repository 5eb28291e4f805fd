//! The shape that three grammars share: a block of `<invoke name="f">` with one `<parameter name="a">` for each value.

use super::cursor::Cursor;
use super::found::{Found, Value, without_layout};

/// The tags of one grammar, as markers of [`Cursor::eat_marker`]; opening tags without their attributes.
pub(super) struct Tags {
    pub(super) blocks: &'static [(&'static str, &'static str)],
    pub(super) invoke: (&'static str, &'static str),
    pub(super) parameter: (&'static str, &'static str),
}

/// Reads a block, or an `<invoke>` without a block around it. The end of the block may be missing; that of an
/// invocation may not, because a parameter list that was cut must not run.
pub(super) fn read<'t>(cursor: &mut Cursor<'t>, tags: &Tags) -> Vec<Found<'t>> {
    let block = tags.blocks.iter().find(|(open, _)| cursor.eat_marker(open));
    let mut found = Vec::new();
    let mut end = cursor.at();
    loop {
        cursor.space();
        match invoke(cursor, tags) {
            Some(call) => found.push(call),
            None if found.is_empty() => return found,
            None => break,
        }
        end = cursor.at();
    }
    cursor.go(end);
    if let Some((_, close)) = block {
        cursor.space();
        if !cursor.eat_marker(close) {
            cursor.go(end);
        }
    }
    found
}

fn invoke<'t>(cursor: &mut Cursor<'t>, tags: &Tags) -> Option<Found<'t>> {
    if !cursor.eat_marker(tags.invoke.0) {
        return None;
    }
    let name = attribute(&cursor.attributes()?, "name").filter(|name| !name.is_empty())?;
    let mut members = Vec::new();
    loop {
        cursor.space();
        if cursor.eat_marker(tags.invoke.1) {
            return Some(Found::with_members(name, members));
        }
        if !cursor.eat_marker(tags.parameter.0) {
            return None;
        }
        let attributes = cursor.attributes()?;
        let key = attribute(&attributes, "name")?;
        let text = without_layout(cursor.value(tags.parameter.0, tags.parameter.1)?);
        let value = match attribute(&attributes, "string") {
            Some("true") => Value::Text(text),
            _ => Value::Unsaid(text),
        };
        members.push((key, value));
    }
}

fn attribute<'t>(attributes: &[(&'t str, &'t str)], key: &str) -> Option<&'t str> {
    attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}
