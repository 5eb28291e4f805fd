//! DeepSeek V3.2 and later: `<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a"
//! string="true">x</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`.
//!
//! `string="true"` means text; anything else is JSON. The bars come as `｜`, `|`, `‖` and doubled, and newer models
//! write `tool_calls` for the block. Src: vllm-project/vllm#40800, lsdefine/GenericAgent#804.

use super::cursor::Cursor;
use super::found::Found;
use super::invoke::{self, Tags};

const TAGS: Tags = Tags {
    blocks: &[
        ("<|DSML|function_calls>", "</|DSML|function_calls>"),
        ("<|DSML|tool_calls>", "</|DSML|tool_calls>"),
    ],
    invoke: ("<|DSML|invoke", "</|DSML|invoke>"),
    parameter: ("<|DSML|parameter", "</|DSML|parameter>"),
};

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    invoke::read(cursor, &TAGS)
}
