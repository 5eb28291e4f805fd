//! Answers as values: a schema in the instructions, the value in the text, and one repair.

use super::hooks::TurnHooks;
use super::request::TurnRequest;
use crate::app::Throughline;
use crate::error::Error;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_engine::fold::{AssistantMessage, MessageBlock};
use throughline_engine::{TurnFault, TurnStatus};
use throughline_tools::{CompiledSchema, SchemaError, SchemaFault, SchemaViolation, ToolToggle};

/// Reasons why a turn has no answer of the wanted type.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The turn was not started.
    #[error(transparent)]
    Start(#[from] Error),
    /// The turn failed.
    #[error(transparent)]
    Turn(#[from] TurnFault),
    /// The turn ended before the model had answered: it was stopped, or cut by a limit.
    #[error("the turn ended without an answer ({status:?}); try again, or raise its limits")]
    Incomplete {
        /// Final status; `None` = unknown, because its log was lost.
        status: Option<TurnStatus>,
    },
    /// The text is not valid JSON of the requested schema.
    #[error("cannot parse the answer: {why}; try again, or use a model that follows schemas")]
    Unreadable {
        /// The text.
        text: String,
        /// The mistake in it.
        why: String,
    },
}

impl Throughline {
    /// Asks for a value: the model gets the type's JSON Schema, may call tools, and answers with JSON. If
    /// that cannot be parsed, the model receives the error and is called once more, without tools.
    ///
    /// ```
    /// # use throughline_testkit as testkit;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # use throughline::{Throughline, Upstream, wire::Dialect};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Place { city: String, country: String }
    ///
    /// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
    /// #     testkit::ModelScript::new().say(r#"{"city": "Paris", "country": "France"}"#),
    /// # ])).await?;
    /// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
    /// # let app = Throughline::builder().upstream(upstream).model("demo").build()?;
    /// let place: Place = app.ask_as("Where is the Louvre?").await?;
    /// assert_eq!((place.city.as_str(), place.country.as_str()), ("Paris", "France"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The turn cannot be started, fails or is stopped; or the second answer cannot be parsed either.
    pub async fn ask_as<T: DeserializeOwned + JsonSchema>(
        &self,
        request: impl Into<TurnRequest>,
    ) -> Result<T, AnswerError> {
        let request = request.into().answer_as::<T>();
        let added = Arc::new(Mutex::new(Vec::new()));
        let sink = added.clone();
        let hooks = TurnHooks::default().on_end(move |result| {
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = result.added_messages;
        });
        let prepared = self.prepare(request.clone()).await?;
        let message = self.start_prepared(prepared, hooks).await?.finish().await;
        let why = match read(&message) {
            Err(AnswerError::Unreadable { why, .. }) => why,
            answer => return answer,
        };
        let mut history = request.history.clone();
        history.append(&mut added.lock().unwrap_or_else(PoisonError::into_inner));
        let input = AnswerSchema::correction(&why);
        let again = TurnRequest {
            input: input.into(),
            history,
            turn_id: None,
            tools: ToolToggle::Off,
            request_tools: Vec::new(),
            ..request
        };
        self.start_turn(again).await?.finish_as().await
    }
}

/// JSON Schema that an answer has to fit, for programs that learn it while they run. Where the type is known,
/// [`Throughline::ask_as`] does all of this.
///
/// ```
/// use serde_json::json;
/// use throughline::AnswerSchema;
///
/// let schema = AnswerSchema::compile(&json!({"type": "object", "required": ["city"]}))?;
/// assert_eq!(schema.find("Here it is: {\"city\": \"Paris\"}").unwrap(), json!({"city": "Paris"}));
/// assert_eq!(schema.find("{}").unwrap_err(), "/city: missing, but required");
/// # Ok::<(), throughline::tools::SchemaFault>(())
/// ```
#[derive(Debug)]
pub struct AnswerSchema(CompiledSchema);

impl AnswerSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The document is not a JSON Schema, or refers to another document.
    pub fn compile(document: &Value) -> Result<Self, SchemaFault> {
        CompiledSchema::compile_any(document).map(Self)
    }

    /// Instructions for the model to answer in this form.
    pub fn instructions(&self) -> String {
        instructions(self.0.document())
    }

    /// The answer in a text, which may be fenced or have sentences around it.
    ///
    /// # Errors
    /// The mistakes in the value, or in the text.
    pub fn find(&self, text: &str) -> Result<Value, String> {
        find_value(text, |value| match self.0.check(&value) {
            Ok(()) => Ok(value),
            Err(error) => Err(violations(&error)),
        })
    }

    /// The answer in a message.
    ///
    /// # Errors
    /// The turn failed or was stopped; the answer does not fit.
    pub fn read(&self, message: &AssistantMessage) -> Result<Value, AnswerError> {
        read_with(message, |text| self.find(text))
    }

    /// Message that asks the model to correct a mistake.
    pub fn correction(why: &str) -> String {
        format!("Your answer is not the requested JSON: {why}. Answer with that JSON only.")
    }
}

fn violations(error: &SchemaError) -> String {
    let line = |violation: &SchemaViolation| match violation.path.as_str() {
        "" => violation.message.clone(),
        _ => violation.to_string(),
    };
    error.violations.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Instructions for the model to answer in this form.
pub(super) fn instructions(schema: &Value) -> String {
    format!(
        "Your answer must be one JSON value that matches this JSON Schema, without any other text:\n{schema}"
    )
}

/// The answer in a message.
pub(super) fn read<T: DeserializeOwned>(message: &AssistantMessage) -> Result<T, AnswerError> {
    read_with(message, parse)
}

fn read_with<T>(
    message: &AssistantMessage,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, AnswerError> {
    match message.status {
        Some(TurnStatus::Completed) => {}
        status => {
            let incomplete = AnswerError::Incomplete { status };
            return Err(message.error().map_or(incomplete, |fault| fault.clone().into()));
        }
    }
    // What comes before calls is no part of the answer.
    let answer = message.blocks.iter().rev().find_map(|block| match block {
        MessageBlock::Text { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
        _ => None,
    });
    let text = answer.unwrap_or_default();
    parse(text).map_err(|why| AnswerError::Unreadable { text: text.to_owned(), why })
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    match serde_json::from_str::<T>(text.trim()) {
        Ok(value) => Ok(value),
        Err(whole) => {
            find_value(text, |value| T::deserialize(value).map_err(|error| error.to_string())).map_err(
                |why| {
                    // The position of the mistake, which a value has no longer.
                    if serde_json::from_str::<Value>(text.trim()).is_ok() { whole.to_string() } else { why }
                },
            )
        }
    }
}

/// The first value that is accepted. Models put fences around JSON, and sentences, however they are instructed.
fn find_value<T>(text: &str, accept: impl Fn(Value) -> Result<T, String>) -> Result<T, String> {
    let whole = serde_json::from_str::<Value>(text.trim());
    let mut nearest = match whole.map_err(|error| error.to_string()).and_then(&accept) {
        Ok(value) => return Ok(value),
        Err(why) => why,
    };
    // A value begins at a bracket; one that is cut off or is something else has the reason that counts.
    for at in text.match_indices(['{', '[']).map(|(at, _)| at).take(CANDIDATES_MAX) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { continue };
        match accept(value) {
            Ok(value) => return Ok(value),
            Err(why) => nearest = why,
        }
    }
    Err(nearest)
}

/// Maximum number of offsets in a text at which a JSON value is tried: each may cost a scan of the rest.
const CANDIDATES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        city: String,
    }

    fn check(text: &str, expected: Result<&str, &str>) {
        let place = parse::<Place>(text).map(|place| place.city);
        assert_eq!(place.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn json_answer_is_found_in_fences_and_sentences() {
        check(r#"{"city": "Paris"}"#, Ok("Paris"));
        check("```json\n{\"city\": \"Paris\"}\n```", Ok("Paris"));
        check(r#"Here {so it is}: {"city": "Paris"} - enjoy."#, Ok("Paris"));
        check(r#"{"town": "Paris"}"#, Err("missing field `city` at line 1 column 17"));
        check("Paris", Err("expected value at line 1 column 1"));
        check("", Err("EOF while parsing a value at line 1 column 0"));
    }

    #[test]
    fn megabyte_of_brackets_is_rejected() {
        let brackets = "[".repeat(1 << 20);
        assert!(parse::<Place>(&brackets).is_err());
    }
}
