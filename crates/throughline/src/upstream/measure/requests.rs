//! The requests of a measurement. They are short, and each answer shows one thing.

use serde_json::{Map, Value, json};
use throughline_wire::{
    Call, CallArguments, CallId, CallKind, CallOutcome, ClosedStep, Dialect, Media, Message, ModelRequest,
    ModelSettings, ToolChoice, ToolDefinition, ToolOutput, UserPart,
};

/// A word that a reply holds only if the model has read the system prompt.
pub(super) const SYSTEM_WORD: &str = "tamarind";
/// The tool that every request with tools offers.
pub(super) const TOOL: &str = "city_weather";
/// An id as another upstream would have made it.
const FOREIGN_ID: &str = "call_Vx3mT0bUq8sYzK5n";
/// 32 by 32 red pixels.
const RED_PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mN4ICBAU8QwasGoBaMWjFowasGoBaMWjFowasGoBaMWDBULALgcAD3G45K4AAAAAElFTkSuQmCC";

pub(super) fn text(text: &str) -> ModelRequest {
    let parts = vec![UserPart::Text { text: text.to_owned() }];
    ModelRequest { messages: vec![Message::User(parts)], ..ModelRequest::default() }
}

/// Text, with a system prompt or without.
pub(super) fn counting(with_instructions: bool) -> ModelRequest {
    let instructions = format!("End every reply with the word {SYSTEM_WORD}.");
    ModelRequest {
        instructions: with_instructions.then_some(instructions),
        ..text("Count from one to five, in words, on one line.")
    }
}

pub(super) fn two_calls() -> ModelRequest {
    let question = format!(
        "What is the weather in Paris and in Oslo? Use the tool {TOOL} for each city, and make both calls in one reply."
    );
    ModelRequest { tools: tools(), ..text(&question) }
}

/// A conversation in which a call was made and answered, with this reasoning before the call.
pub(super) fn answered_call(thinking: &str, model: &str) -> ModelRequest {
    let call = Call {
        id: CallId::new(FOREIGN_ID),
        upstream_id: Some(FOREIGN_ID.into()),
        name: TOOL.into(),
        kind: CallKind::Function,
        arguments: Ok(CallArguments::from_value(json!({"city": "Paris"}))),
        ran_with: None,
    };
    let outcome = CallOutcome::Done(ToolOutput::text("Sunny, 21 degrees."));
    let step = ClosedStep {
        thinking: thinking.to_owned(),
        calls: vec![(call, outcome)],
        model: model.to_owned(),
        ..ClosedStep::default()
    };
    let mut request = text("What is the weather in Paris?");
    request.messages.push(Message::Step(step));
    ModelRequest { tools: tools(), ..request }
}

pub(super) fn forced_call() -> ModelRequest {
    ModelRequest { tools: tools(), tool_choice: ToolChoice::Required, ..text("Say hello.") }
}

pub(super) fn forbidden_call() -> ModelRequest {
    let question = "What is the weather in Paris usually like in May?";
    ModelRequest { tools: tools(), tool_choice: ToolChoice::None, ..text(question) }
}

/// A question whose answer would be a sentence, with a schema for it; `None` where the API has no field for one.
pub(super) fn schema_reply(dialect: Dialect) -> Option<ModelRequest> {
    let settings = ModelSettings { extra: schema_field(dialect)?, ..ModelSettings::default() };
    Some(ModelRequest { settings, ..text("Where does the Eiffel Tower stand? Answer with one sentence.") })
}

pub(super) fn picture() -> ModelRequest {
    let parts = vec![
        UserPart::Text { text: "Which color has this picture? Answer with one word.".to_owned() },
        UserPart::Image(Media::new("image/png".to_owned(), RED_PNG.to_owned())),
    ];
    ModelRequest { messages: vec![Message::User(parts)], ..ModelRequest::default() }
}

fn tools() -> Vec<ToolDefinition> {
    let description = "The weather in a city now.";
    vec![ToolDefinition::new(TOOL, description, city_schema())]
}

fn city_schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string", "description": "The name of the city."}},
        "required": ["city"], "additionalProperties": false})
}

/// The field in which each API takes a schema for the reply.
fn schema_field(dialect: Dialect) -> Option<Map<String, Value>> {
    let schema = city_schema();
    let (name, value) = match dialect {
        Dialect::OpenaiResponses => {
            let format = json!({"type": "json_schema", "name": "city", "strict": true, "schema": schema});
            ("text", json!({"format": format}))
        }
        Dialect::Anthropic => ("output_config", json!({"format": {"type": "json_schema", "schema": schema}})),
        Dialect::Gemini => (
            "generationConfig",
            json!({"responseMimeType": "application/json", "responseJsonSchema": schema}),
        ),
        Dialect::Ollama => ("format", schema),
        Dialect::Cohere => ("response_format", json!({"type": "json_object", "json_schema": schema})),
        Dialect::BedrockConverse | Dialect::BedrockAnthropic => return None,
        _ => {
            let format = json!({"name": "city", "strict": true, "schema": schema});
            ("response_format", json!({"type": "json_schema", "json_schema": format}))
        }
    };
    Some(Map::from_iter([(name.to_owned(), value)]))
}
