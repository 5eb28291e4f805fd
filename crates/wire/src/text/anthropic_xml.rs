//! The XML that older Claude models, and models trained on their transcripts, write: `<function_calls><invoke
//! name="f"><parameter name="a">x</parameter></invoke></function_calls>`, with or without the outer element, with or
//! without a namespace prefix. Src: cline/cline#12980.

use super::cursor::Cursor;
use super::found::Found;
use super::invoke::{self, Tags};

const PLAIN: Tags = Tags {
    blocks: &[("<function_calls>", "</function_calls>"), ("<tool_calls>", "</tool_calls>")],
    invoke: ("<invoke", "</invoke>"),
    parameter: ("<parameter", "</parameter>"),
};

// In two halves, so that a tool that reads this file is not tempted to take it for a call.
const PREFIXED: Tags = Tags {
    blocks: &[(concat!("<ant", "ml:function_calls>"), concat!("</ant", "ml:function_calls>"))],
    invoke: (concat!("<ant", "ml:invoke"), concat!("</ant", "ml:invoke>")),
    parameter: (concat!("<ant", "ml:parameter"), concat!("</ant", "ml:parameter>")),
};

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let start = cursor.at();
    let found = invoke::read(cursor, &PLAIN);
    if !found.is_empty() || cursor.at() > start {
        return found;
    }
    invoke::read(cursor, &PREFIXED)
}
