//! Gemma: a fenced block marked `tool_code` with calls as Python, one a line, as a list, or inside `print(…)`.
//! The only fence whose content is meant to run. A block with anything else in it is code, not a call.

use super::call_match::CallMatch;
use super::cursor::TextCursor;
use super::markdown::{FenceOpening, fence_content};
use super::pythonic;

pub(super) fn read<'t>(text: &'t str, fence: &FenceOpening<'t>) -> Vec<CallMatch<'t>> {
    let (content, end) = fence_content(text, fence);
    if content.end == end {
        // The fence was not closed: cut, so it must not run.
        return Vec::new();
    }
    let mut cursor = TextCursor::new(text[content].trim(), 0);
    let mut matches = Vec::new();
    while !cursor.is_at_end() {
        match statement(&mut cursor) {
            Some(calls) => matches.extend(calls),
            None => return Vec::new(),
        }
        cursor.skip_whitespace();
        let _ = cursor.eat(";");
        cursor.skip_whitespace();
    }
    matches
}

fn statement<'t>(cursor: &mut TextCursor<'t>) -> Option<Vec<CallMatch<'t>>> {
    if cursor.rest().starts_with('[') {
        return pythonic::read_list(cursor);
    }
    if cursor.eat("print(") {
        cursor.skip_whitespace();
        let call = pythonic::read_call(cursor)?;
        cursor.skip_whitespace();
        return cursor.eat(")").then(|| vec![call]);
    }
    pythonic::read_call(cursor).map(|call| vec![call])
}
