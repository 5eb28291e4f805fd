//! JSON as it comes from model servers: documents read whole, argument text read as it arrives.
//!
//! `serde_json` cannot be used for the reading: it refuses the lone surrogate escapes that tokenizers cut in two
//! (serde-rs/json#828), and rounds integers beyond 64 bits. Values that leave the crate are `serde_json::Value`s.

mod arguments;
mod document;
mod rewrite_keys;
mod string;

pub use arguments::{ARGUMENTS_DEPTH_MAX, ArgumentsError, ArgumentsReader};
pub use document::{JsonError, JsonRef};
pub(crate) use rewrite_keys::KeyRewriter;
pub(crate) use string::decode_string;
pub use string::{SurrogateCarry, replace_lone_surrogates};
