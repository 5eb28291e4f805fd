//! Gemma: a fenced block marked `tool_code` with calls as Python, one a line, as a list, or inside `print(…)`.
//! The only fence whose content is meant to run. A block with anything else in it is code, not a call.

use super::cursor::Cursor;
use super::found::Found;
use super::markdown::{Fence, fence_content};
use super::pythonic;

pub(super) fn read<'t>(text: &'t str, fence: &Fence<'t>) -> Vec<Found<'t>> {
    let (content, end) = fence_content(text, fence);
    if content.end == end {
        // The fence was not closed: cut, so it must not run.
        return Vec::new();
    }
    let mut cursor = Cursor::new(text[content].trim(), 0);
    let mut found = Vec::new();
    while !cursor.is_at_end() {
        match statement(&mut cursor) {
            Some(calls) => found.extend(calls),
            None => return Vec::new(),
        }
        cursor.space();
        let _ = cursor.eat(";");
        cursor.space();
    }
    found
}

fn statement<'t>(cursor: &mut Cursor<'t>) -> Option<Vec<Found<'t>>> {
    if cursor.rest().starts_with('[') {
        return pythonic::read_list(cursor);
    }
    if cursor.eat("print(") {
        cursor.space();
        let call = pythonic::read_call(cursor)?;
        cursor.space();
        return cursor.eat(")").then(|| vec![call]);
    }
    pythonic::read_call(cursor).map(|call| vec![call])
}
