//! DeepSeek V3.2 and later: `<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a"
//! string="true">x</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`.
//!
//! `string="true"` means text; anything else is JSON. The bars come as `｜`, `|`, `‖` and doubled, and newer models
//! write `tool_calls` for the block. Src: vllm-project/vllm#40800, lsdefine/GenericAgent#804.

use super::call_match::CallMatch;
use super::cursor::TextCursor;
use super::invoke::{self, InvokeTags};

const TAGS: InvokeTags = InvokeTags {
    blocks: &[
        ("<|DSML|function_calls>", "</|DSML|function_calls>"),
        ("<|DSML|tool_calls>", "</|DSML|tool_calls>"),
    ],
    invoke: ("<|DSML|invoke", "</|DSML|invoke>"),
    parameter: ("<|DSML|parameter", "</|DSML|parameter>"),
};

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    invoke::read(cursor, &TAGS)
}
