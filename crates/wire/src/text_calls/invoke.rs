//! The shape that three grammars share: a block of `<invoke name="f">` with one `<parameter name="a">` for each value.

use super::call_match::{CallMatch, ElementValue, trim_layout};
use super::cursor::TextCursor;

/// The tags of one grammar, as markers of [`TextCursor::eat_marker`]; opening tags without their attributes.
pub(super) struct InvokeTags {
    pub(super) blocks: &'static [(&'static str, &'static str)],
    pub(super) invoke: (&'static str, &'static str),
    pub(super) parameter: (&'static str, &'static str),
}

/// Reads a block, or an `<invoke>` without a block around it. The end of the block may be missing; that of an
/// invocation may not, because a parameter list that was cut must not run.
pub(super) fn read<'t>(cursor: &mut TextCursor<'t>, tags: &InvokeTags) -> Vec<CallMatch<'t>> {
    let block = tags.blocks.iter().find(|(open, _)| cursor.eat_marker(open));
    let mut matches = Vec::new();
    let mut end = cursor.position();
    loop {
        cursor.skip_whitespace();
        match invoke(cursor, tags) {
            Some(call) => matches.push(call),
            None if matches.is_empty() => return matches,
            None => break,
        }
        end = cursor.position();
    }
    cursor.seek(end);
    if let Some((_, close)) = block {
        cursor.skip_whitespace();
        if !cursor.eat_marker(close) {
            cursor.seek(end);
        }
    }
    matches
}

fn invoke<'t>(cursor: &mut TextCursor<'t>, tags: &InvokeTags) -> Option<CallMatch<'t>> {
    if !cursor.eat_marker(tags.invoke.0) {
        return None;
    }
    let name = attribute(&cursor.attributes()?, "name").filter(|name| !name.is_empty())?;
    let mut members = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.eat_marker(tags.invoke.1) {
            return Some(CallMatch::with_members(name, members));
        }
        if !cursor.eat_marker(tags.parameter.0) {
            return None;
        }
        let attributes = cursor.attributes()?;
        let key = attribute(&attributes, "name")?;
        let text = trim_layout(cursor.value_until(tags.parameter.0, tags.parameter.1)?);
        let value = match attribute(&attributes, "string") {
            Some("true") => ElementValue::Text(text),
            _ => ElementValue::Untyped(text),
        };
        members.push((key, value));
    }
}

fn attribute<'t>(attributes: &[(&'t str, &'t str)], key: &str) -> Option<&'t str> {
    attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}
