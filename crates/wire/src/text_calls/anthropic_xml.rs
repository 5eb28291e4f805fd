//! The XML that older Claude models, and models trained on their transcripts, write: `<function_calls><invoke
//! name="f"><parameter name="a">x</parameter></invoke></function_calls>`, with or without the outer element, with or
//! without a namespace prefix. Src: cline/cline#12980.

use super::call_match::CallMatch;
use super::cursor::TextCursor;
use super::invoke::{self, InvokeTags};

const PLAIN: InvokeTags = InvokeTags {
    blocks: &[("<function_calls>", "</function_calls>"), ("<tool_calls>", "</tool_calls>")],
    invoke: ("<invoke", "</invoke>"),
    parameter: ("<parameter", "</parameter>"),
};

// In two halves, so that a tool that reads this file is not tempted to take it for a call.
const PREFIXED: InvokeTags = InvokeTags {
    blocks: &[(concat!("<ant", "ml:function_calls>"), concat!("</ant", "ml:function_calls>"))],
    invoke: (concat!("<ant", "ml:invoke"), concat!("</ant", "ml:invoke>")),
    parameter: (concat!("<ant", "ml:parameter"), concat!("</ant", "ml:parameter>")),
};

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let start = cursor.position();
    let matches = invoke::read(cursor, &PLAIN);
    if !matches.is_empty() || cursor.position() > start {
        return matches;
    }
    invoke::read(cursor, &PREFIXED)
}
