//! Names of arguments that a provider does not take are others on the wire, and nobody else sees those.

use crate::history::{call, closed, done, request, user};
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline_wire::{
    ArgumentNames, DecodeOptions, Dialect, Message, ModelReply, ModelRequest, StepDecoder, StepEvent,
    ToolDefinition, TransferMode, UpstreamProfile, encode,
};

const NAMES: [&str; 6] = ["filter[app]", "$top", "城市", "limit", "", "filter_app_"];

fn tool() -> ToolDefinition {
    let properties: serde_json::Map<String, Value> =
        NAMES.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    ToolDefinition::new("list", "", json!({"type": "object", "properties": properties}))
}

/// A request with one call of the tool in its history.
fn asking(arguments: &Value) -> ModelRequest {
    let step = closed("", vec![(call("t.1", Some("u"), "list", arguments.clone()), done("ok"))]);
    ModelRequest { tools: vec![tool()], ..request("m", vec![user("go"), Message::Step(step)]) }
}

/// The arguments of that call as they are sent.
fn sent(dialect: Dialect, arguments: &Value) -> Value {
    let encoded =
        encode(dialect, &asking(arguments), &UpstreamProfile::default(), TransferMode::Stream).unwrap();
    let content = &encoded.body["messages"][1]["content"][0];
    match dialect {
        Dialect::BedrockConverse => content["toolUse"]["input"].clone(),
        _ => content["input"].clone(),
    }
}

/// A stream of Anthropic's with these arguments in pieces of so many characters.
fn stream(arguments: &Value, piece: usize) -> String {
    let text: Vec<char> = arguments.to_string().chars().collect();
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "u", "name": "list", "input": {}}}),
    ];
    for piece in text.chunks(piece) {
        let piece: String = piece.iter().collect();
        events.push(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": piece}}));
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

/// The sealed arguments, and the text that their pieces add up to.
fn received(arguments: &Value, piece: usize) -> (Value, String) {
    let options = DecodeOptions {
        argument_names: ArgumentNames::of(Dialect::Anthropic, &[tool()]),
        ..DecodeOptions::default()
    };
    let mut decoder = StepDecoder::new(Dialect::Anthropic, options);
    let (mut reply, mut text) = (ModelReply::default(), String::new());
    let mut apply = |event: StepEvent<'_>| {
        if let StepEvent::CallArguments { delta, .. } = &event {
            text.push_str(delta);
        }
        reply.apply(event);
    };
    decoder.push(stream(arguments, piece).as_bytes(), &mut apply);
    decoder.finish(&mut apply);
    let sealed = reply.calls[0].ending.clone().unwrap().unwrap();
    assert_eq!(sealed.text, text, "the pieces are the arguments");
    (sealed.value, text)
}

fn check(arguments: Value) {
    for dialect in [Dialect::Anthropic, Dialect::BedrockAnthropic, Dialect::BedrockConverse] {
        let wire = sent(dialect, &arguments);
        let is_taken = |name: &String| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        assert!(wire.as_object().unwrap().keys().all(is_taken), "{dialect}: {wire}");
        for piece in [1, 7, 1_000] {
            let (back, text) = received(&wire, piece);
            assert_eq!(back, arguments, "{dialect}, pieces of {piece}");
            assert_eq!(text, arguments.to_string(), "{dialect}, pieces of {piece}");
        }
    }
}

#[test]
fn arguments_go_out_and_come_back_under_their_own_names() {
    check(
        json!({"filter[app]": "x", "$top": {"$top": 1}, "城市": ["城市"], "limit": 3, "": null, "filter_app_": "y"}),
    );
    check(json!({}));
    check(json!({"limit": "\"filter_app__2\":1,{[", "城市": "\\"}));
}

#[test]
fn other_dialects_send_every_name_as_it_is() {
    for dialect in Dialect::ALL {
        let renames =
            matches!(dialect, Dialect::Anthropic | Dialect::BedrockAnthropic | Dialect::BedrockConverse);
        assert_eq!(ArgumentNames::of(dialect, &[tool()]).is_empty(), !renames, "{dialect}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        r#"[a-z\\"{}\[\]:,城$]{0,8}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(r#"[a-z$城\\"]{0,4}|filter_app__2|_top"#, inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn there_and_back_is_the_same(values in proptest::collection::vec((0..NAMES.len(), any_json()), 0..6)) {
        let arguments: serde_json::Map<String, Value> =
            values.into_iter().map(|(name, value)| (NAMES[name].to_owned(), value)).collect();
        check(arguments.into());
    }
}
