//! MiniMax M2: `<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n</invoke>\n</minimax:tool_call>`.
//! Src: raullenchai/Rapid-MLX#444.

use super::call_match::CallMatch;
use super::cursor::TextCursor;
use super::invoke::{self, InvokeTags};

const TAGS: InvokeTags = InvokeTags {
    blocks: &[("<minimax:tool_call>", "</minimax:tool_call>")],
    invoke: ("<invoke", "</invoke>"),
    parameter: ("<parameter", "</parameter>"),
};

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    // `<invoke>` on its own is read by `anthropic_xml`.
    if cursor.rest().starts_with("<minimax:") { invoke::read(cursor, &TAGS) } else { Vec::new() }
}
