//! Arguments that a person changed: the call is sent back as the model made it, and its outcome reports the
//! change, in every supported dialect.

use crate::history::{call, closed, denied, done, request, tool, user};
use serde_json::json;
use throughline_wire::{CallArguments, CallOutcome, Dialect, Message, TransferMode, UpstreamProfile, encode};

/// Dialects with an encoder.
const DIALECTS: [Dialect; 5] =
    [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama];

fn check(outcome: CallOutcome, expected: &str) {
    for dialect in DIALECTS {
        let mut changed = call("t.1", Some("u"), "weather", json!({"city": "Paris"}));
        changed.ran_with = Some(CallArguments::from_value(json!({"city": "Lyon"})));
        let step = closed("", vec![(changed, outcome.clone())]);
        let mut asked = request("m", vec![user("go"), Message::Step(step)]);
        asked.tools = vec![tool("weather")];
        let body = encode(dialect, &asked, &UpstreamProfile::default(), TransferMode::Stream)
            .unwrap()
            .body
            .to_string();
        let quoted = serde_json::Value::from(expected).to_string();
        assert!(body.contains(quoted.trim_matches('"')), "{dialect:?}: {expected}\n{body}");
        assert!(body.contains("Paris"), "{dialect:?}: the call itself stays\n{body}");
    }
}

#[test]
fn changed_arguments_are_reported_to_the_model() {
    check(done("sunny"), "The user changed the arguments before it ran: {\"city\":\"Lyon\"}\nsunny");
    let not_run = format!("The user changed the arguments: {{\"city\":\"Lyon\"}}\n{}", denied().model_text());
    check(denied(), &not_run);
}
