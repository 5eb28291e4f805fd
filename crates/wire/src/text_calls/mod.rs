//! Tool calls written as text, and thinking written as text: the stages between a decoded reply and its reader.
//!
//! A server whose tool parser is off, confused or cut sends the model's own markup as visible text. One file per
//! grammar here reads it back, over the joined text of a step when the step has ended:
//!
//! 1. [`find_leaked`] finds the calls in a text, only those of offered tools;
//! 2. [`without_structured`] removes those that the server also sent structured;
//! 3. [`clean_name`] frees the name of a *structured* call from harmony tokens that leaked into it.
//!
//! Not counted as calls: markup that is only quoted, by the rule of the text protocols (`quotation`; a fenced
//! block marked `` ```tool_code `` excepted), incomplete markup, and markup that does not follow its grammar.
//! Nothing is repaired or guessed; a text that yields no call stays text. All of it is linear in the text.
//!
//! [`ThinkSplitter`] is the other stage, and an incremental one: it splits `<think>…</think>` off.
//!
//! This module never runs anything, never changes the text it reads, and knows no server: only grammars.

mod anthropic_xml;
mod block_scanner;
mod call_format;
mod call_match;
mod cursor;
mod deepseek;
mod dsml;
mod escape;
mod flat_arguments;
mod gemma;
mod glm;
mod granite;
mod harmony;
mod hermes;
mod invoke;
mod kimi;
mod leaked;
mod llama;
mod markdown;
mod minimax;
mod mistral;
mod protocol;
mod pythonic;
mod quotation;
mod qwen3_coder;
mod render;
mod result_frame;
mod text_parser;
mod think;
mod vcp;
mod xml;

pub use call_format::{CallFormat, ResultRole, TextCalls};
pub use leaked::{LeakedCall, clean_name, find_leaked, without_structured};
pub use protocol::{
    FINDINGS_MAX, FindingKind, MarkupFinding, PROTOCOLS, ParsedCall, ParsedText, RAW_BYTES_MAX, ScanEvent,
    TextProtocol, TextScanner, line_and_column, protocol,
};
pub use render::render;
pub use think::{ThinkPiece, ThinkSplitter};
pub use vcp::VcpProtocol;
pub use xml::XmlProtocol;
