//! The signs of the VCP protocol, and its limits.

use super::super::escape::MarkerPrefix;

/// Most `<` or `>` of a marker; at least two are needed.
pub(super) const ANGLES_MAX: usize = 8;
/// Spaces inside the brackets of a marker, on each side.
pub(super) const LABEL_SPACES_MAX: usize = 2;
/// Length of the text after a start marker within which it is decided if it begins a block, in bytes.
pub(super) const LOOK_BYTES_MAX: usize = 256;
/// A field's name, in bytes.
pub(super) const KEY_BYTES_MAX: usize = 128;
/// Text between two fields, in bytes. A block that has no field or end marker for so long has no end marker, and what
/// follows its last field is text again.
pub(super) const GAP_BYTES_MAX: usize = 1024;
/// Fields of one block.
pub(super) const FIELDS_MAX: usize = 128;
/// Names without a value between 「始」 and 「末」 that are remembered of one block, to say which value is meant.
pub(super) const BARE_NAMES_MAX: usize = 256;
/// Numbered commands of one block.
pub(super) const COMMANDS_MAX: usize = 32;
/// One block, in bytes.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;

pub(super) const START: &str = "TOOL_REQUEST";
pub(super) const END: &str = "END_TOOL_REQUEST";
/// Suffix of [`START`] and [`END`] in an example.
pub(super) const ESCAPE_SUFFIX: &str = "_ESCAPE";

/// The field that names the tool; the only one whose name may be written in any case.
pub(super) const TOOL_NAME: &str = "tool_name";
/// The field that chooses one of a tool's commands.
pub(super) const COMMAND: &str = "command";

/// Fields that steer the system this protocol comes from. They are no arguments, except of a tool that has a
/// parameter of this name.
/// Src: VCPToolBox's parser; `request_id` is AIO TurnManager's.
pub(super) const DIRECTIVES: [&str; 9] =
    ["archery", "ink", "river", "vref", "timely_contact", "tool_password", "valet", "maid", "request_id"];

pub(in crate::text_calls) const MARKER_PREFIXES: &[MarkerPrefix] = &[
    MarkerPrefix { before: "<<", after: &["["] },
    MarkerPrefix { before: "「", after: &["始", "末"] },
    MarkerPrefix { before: "{", after: &["始", "末"] },
];

pub(super) fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$')
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

pub(super) fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：')
}
