//! `--schema`: the schema out of a file or the argument itself, and the value in an answer.

use crate::exit::CliFailure;
use crate::messages;
use serde_json::Value;
use std::path::Path;
use throughline::engine::fold::AssistantMessage;
use throughline::{AnswerError, AnswerSchema};

/// Largest schema, in bytes: it is part of the instructions of the turn.
const SCHEMA_BYTES_MAX: u64 = 64 << 10;

/// The schema: JSON if it begins like an object, else the name of a file.
pub(super) fn read(text: &str) -> Result<AnswerSchema, CliFailure> {
    let document = if text.trim_start().starts_with('{') {
        text.to_owned()
    } else {
        let path = Path::new(text);
        let length = std::fs::metadata(path).map_err(|error| messages::file_failed(path, &error))?.len();
        if length > SCHEMA_BYTES_MAX {
            return Err(messages::too_much_text(&path.display().to_string(), SCHEMA_BYTES_MAX));
        }
        std::fs::read_to_string(path).map_err(|error| messages::file_failed(path, &error))?
    };
    let value: Value = serde_json::from_str(&document).map_err(|error| messages::bad_schema(&error))?;
    AnswerSchema::compile(&value).map_err(|error| messages::bad_schema(&error))
}

/// The value, or what is wrong with the answer.
pub(super) fn value_in(schema: &AnswerSchema, message: &AssistantMessage) -> Result<Value, String> {
    schema.read(message).map_err(|error| match error {
        AnswerError::Unreadable { why, .. } => why,
        error => error.to_string(),
    })
}
