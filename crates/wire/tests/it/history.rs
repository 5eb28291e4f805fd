//! Pieces of histories for tests of the encoders, and all kinds of histories in all combinations.

use serde_json::{Value, json};
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, Dialect, Media, Message, ModelRequest,
    NotStarted, ProviderState, RawArguments, StartState, ToolDefinition, ToolOutput, UserPart,
};

pub fn request(model: &str, messages: Vec<Message>) -> ModelRequest {
    ModelRequest { model: model.into(), messages, ..ModelRequest::default() }
}

/// A history as it was written, without the user's words that frame it where it begins or ends with the model.
pub fn framed(messages: &[Message], written: &Value) -> Value {
    let mut written = written.as_array().expect("a list").clone();
    if matches!(messages.first(), Some(Message::Step(_))) {
        written.remove(0);
    }
    if matches!(messages.last(), Some(Message::Step(step)) if step.calls.is_empty()) {
        written.pop();
    }
    written.into()
}

pub fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text { text: text.into() }])
}

pub fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

pub fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, format!("{name} of a city"), schema())
}

pub fn call(id: &str, upstream_id: Option<&str>, name: &str, arguments: Value) -> Call {
    Call {
        id: id.into(),
        upstream_id: upstream_id.map(Into::into),
        name: name.into(),
        kind: CallKind::Function,
        arguments: Ok(CallArguments::from_value(arguments)),
        ran_with: None,
    }
}

pub fn closed(text: &str, calls: Vec<(Call, CallOutcome)>) -> ClosedStep {
    ClosedStep { text: text.into(), calls, model: "m".into(), ..ClosedStep::default() }
}

/// The step with a provider state, as written by `model`.
pub fn echoed(dialect: Dialect, model: &str, value: Value, step: ClosedStep) -> ClosedStep {
    ClosedStep { provider_state: Some(ProviderState { dialect, value }), model: model.into(), ..step }
}

pub fn done(text: &str) -> CallOutcome {
    CallOutcome::Done(ToolOutput::text(text))
}

pub fn done_with_picture(text: &str) -> CallOutcome {
    CallOutcome::Done(ToolOutput { media: vec![picture()], ..ToolOutput::text(text) })
}

pub fn denied() -> CallOutcome {
    CallOutcome::Denied { reason: Some("not today".into()) }
}

pub fn failed(message: &str) -> CallOutcome {
    CallOutcome::Failed { message: message.into(), partial: None }
}

pub fn media(media_type: &str, data: &str) -> Media {
    Media::new(media_type.into(), data.into())
}

pub fn picture() -> Media {
    media("image/png", "iVBORw==")
}

fn outcomes() -> Vec<CallOutcome> {
    vec![
        done("ok"),
        done(""),
        done_with_picture("seen"),
        denied(),
        failed("no route"),
        CallOutcome::Cancelled(StartState::No),
        CallOutcome::Cancelled(StartState::Yes { ran_ms: 1200, partial: Some(ToolOutput::text("half")) }),
        CallOutcome::TimedOut { limit_ms: 1000, partial: None },
        CallOutcome::NotStarted(NotStarted::Interrupted),
        CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["g".into()] }),
        CallOutcome::unknown(),
    ]
}

/// State that a step may hold for the upstream: nothing, another model's, its own, or its own with other calls in it.
#[derive(Clone, Copy, Debug)]
enum State {
    None,
    Foreign,
    Own,
    OwnWithoutCalls,
}

/// Runs `check` for histories of two steps with 0 to 3 calls each: all outcomes, ids that are there, missing and
/// repeated, readable and broken arguments, every kind of provider state.
pub fn for_histories(dialect: Dialect, check: impl Fn(&[ClosedStep], Vec<Message>)) {
    let outcomes = outcomes();
    for state in [State::None, State::Foreign, State::Own, State::OwnWithoutCalls] {
        for ids in [[Some("a"), Some("b"), Some("c")], [Some("a"), Some("a"), None], [None, None, None]] {
            for (calls_0, calls_1) in (0..=3).flat_map(|first| (0..=3).map(move |second| (first, second))) {
                for offset in 0..outcomes.len() {
                    let step = |nth: usize, count: usize| {
                        let calls = (0..count).map(|at| {
                            let upstream_id = ids[at].filter(|id| !ids[..at].contains(&Some(id)));
                            let mut call = call(&format!("s{nth}-{at}"), upstream_id, "f", json!({"n": at}));
                            if (at + offset) % 4 == 3 {
                                call.arguments = Err(RawArguments("{\"n".into()));
                            }
                            (call, outcomes[(offset + at) % outcomes.len()].clone())
                        });
                        let calls: Vec<_> = calls.collect();
                        let wire: Vec<_> = ids[..count].to_vec();
                        with_state(dialect, state, &wire, closed(if nth == 0 { "" } else { "Text." }, calls))
                    };
                    let steps = [step(0, calls_0), step(1, calls_1)];
                    let messages = vec![
                        user("go"),
                        Message::Step(steps[0].clone()),
                        Message::Step(steps[1].clone()),
                        user("and now"),
                    ];
                    check(&steps, messages);
                }
            }
        }
    }
}

fn with_state(dialect: Dialect, state: State, ids: &[Option<&str>], step: ClosedStep) -> ClosedStep {
    let calls: Vec<Value> = match (state, dialect) {
        (State::None, _) => return step,
        (State::OwnWithoutCalls, _) => Vec::new(),
        (_, Dialect::Gemini) => {
            let part = |id: &Option<&str>| match id {
                Some(id) => json!({"functionCall": {"id": id, "name": "f", "args": {}}, "thoughtSignature": "c2ln"}),
                None => json!({"functionCall": {"name": "f", "args": {}}}),
            };
            ids.iter().map(part).collect()
        }
        _ => ids
            .iter()
            .map(|id| json!({"type": "function_call", "id": "fc", "call_id": id, "name": "f", "arguments": "{}"}))
            .collect(),
    };
    let model = if matches!(state, State::Foreign) { "other" } else { "m" };
    echoed(dialect, model, Value::Array(calls), step)
}
