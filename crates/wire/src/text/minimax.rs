//! MiniMax M2: `<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n</invoke>\n</minimax:tool_call>`.
//! Src: raullenchai/Rapid-MLX#444.

use super::cursor::Cursor;
use super::found::Found;
use super::invoke::{self, Tags};

const TAGS: Tags = Tags {
    blocks: &[("<minimax:tool_call>", "</minimax:tool_call>")],
    invoke: ("<invoke", "</invoke>"),
    parameter: ("<parameter", "</parameter>"),
};

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    // `<invoke>` on its own is read by `anthropic_xml`.
    if cursor.rest().starts_with("<minimax:") { invoke::read(cursor, &TAGS) } else { Vec::new() }
}
