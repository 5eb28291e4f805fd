//! Names of arguments that a provider refuses are replaced on the wire, and appear nowhere else.

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
fn asking(tool: &ToolDefinition, arguments: &Value) -> ModelRequest {
    let step = closed("", vec![(call("t.1", Some("u"), "list", arguments.clone()), done("ok"))]);
    ModelRequest { tools: vec![tool.clone()], ..request("m", vec![user("go"), Message::Step(step)]) }
}

/// The properties of the tool and the arguments of that call as they are sent.
fn sent(dialect: Dialect, tool: &ToolDefinition, arguments: &Value) -> (Value, Value) {
    let request = asking(tool, arguments);
    let encoded = encode(dialect, &request, &UpstreamProfile::default(), TransferMode::Stream).unwrap();
    let content = &encoded.body["messages"][1]["content"][0];
    let (schema, input) = match dialect {
        Dialect::BedrockConverse => {
            ("/toolConfig/tools/0/toolSpec/inputSchema/json", &content["toolUse"]["input"])
        }
        _ => ("/tools/0/input_schema", &content["input"]),
    };
    (encoded.body.pointer(schema).unwrap()["properties"].clone(), input.clone())
}

/// A stream of Anthropic's with these arguments in pieces of `piece` characters.
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
fn received(tool: &ToolDefinition, arguments: &Value, piece: usize) -> (Value, String) {
    let options = DecodeOptions {
        argument_names: ArgumentNames::of(Dialect::Anthropic, std::slice::from_ref(tool)),
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

#[track_caller]
fn check(tool: &ToolDefinition, arguments: Value) {
    for dialect in [Dialect::Anthropic, Dialect::BedrockAnthropic, Dialect::BedrockConverse] {
        let (properties, wire) = sent(dialect, tool, &arguments);
        let is_taken = |name: &String| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        assert!(properties.as_object().unwrap().keys().all(is_taken), "{dialect}: {properties}");
        let own = tool.parameters["properties"].as_object().unwrap();
        assert_eq!(properties.as_object().unwrap().len(), own.len(), "{dialect}: no two become one");
        for name in wire.as_object().unwrap().keys() {
            assert!(properties.get(name).is_some() || name == "unknown", "{dialect}: {name} in {wire}");
        }
        for piece in [1, 2, 7, 1_000] {
            let (back, text) = received(tool, &wire, piece);
            assert_eq!(back, arguments, "{dialect}, pieces of {piece}");
            assert_eq!(text, arguments.to_string(), "{dialect}, pieces of {piece}");
        }
    }
}

#[test]
fn argument_names_round_trip_through_the_provider() {
    check(
        &tool(),
        json!({"filter[app]": "x", "$top": {"$top": 1}, "城市": ["城市"], "limit": 3, "": null, "filter_app_": "y"}),
    );
    check(&tool(), json!({}));
    check(&tool(), json!({"limit": "\"filter_app__2\":1,{[", "城市": "\\"}));
}

#[test]
fn only_anthropic_and_bedrock_rename_arguments() {
    for dialect in Dialect::ALL {
        let renames =
            matches!(dialect, Dialect::Anthropic | Dialect::BedrockAnthropic | Dialect::BedrockConverse);
        assert_eq!(ArgumentNames::of(dialect, &[tool()]).is_empty(), !renames, "{dialect}");
    }
}

/// A value as a client writes one, with the members of any object; texts have what JSON escapes.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        r#"[a-z\\"{}\[\]:,城$]{0,8}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any_name(), inner, 0..4).prop_map(object),
        ]
    })
}

fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    members.into_iter().collect::<serde_json::Map<_, _>>().into()
}

/// Names that are one another on the wire, or one of them for another.
const ALIKE: [&str; 9] =
    ["a[b]", "a(b)", "a b ", "a_b_", "a_b__2", "a_b__3", "argument_1", "argument_2", "properties"];

/// Names that are taken as they are, names that are not, and those that become each other.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        r#"[a-c$\[\]\\"_.城 /]{0,5}"#,
        proptest::sample::select(&ALIKE[..]).prop_map(str::to_owned),
        "[a$]{63,67}",
    ]
}

/// The schema of an argument, and a value that fits it.
fn any_argument() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any_json().prop_map(|value| (json!({}), value)),
        "[a-z城\"]{0,6}".prop_map(|text| (json!({"type": "string", "description": "A text."}), json!(text))),
        any::<i32>().prop_map(|number| (json!({"type": "integer"}), json!(number))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::btree_map(any_name(), inner.clone(), 0..4).prop_map(object_argument),
            (inner, 0..3_usize).prop_map(|((schema, value), count)| {
                (json!({"type": "array", "items": schema}), vec![value; count].into())
            }),
        ]
    })
}

fn object_argument(members: impl IntoIterator<Item = (String, (Value, Value))>) -> (Value, Value) {
    let members: Vec<_> = members.into_iter().collect();
    let schemas = members.iter().map(|(name, (schema, _))| (name.clone(), schema.clone()));
    let required: Vec<&String> = members.iter().map(|(name, _)| name).collect();
    let schema = json!({"type": "object", "properties": object(schemas), "required": required});
    (schema, object(members.into_iter().map(|(name, (_, value))| (name, value))))
}

/// A tool, and arguments of a call of it. Some are left out, and one may be there that the schema does not know.
fn any_tool_and_arguments() -> impl Strategy<Value = (ToolDefinition, Value)> {
    let arguments = proptest::collection::btree_map(any_name(), (any_argument(), any::<bool>()), 0..6);
    let unknown = proptest::option::of(any_json());
    (arguments, unknown).prop_map(|(arguments, unknown)| {
        let given = arguments.iter().filter(|(_, (_, is_given))| *is_given);
        let given = given.map(|(name, ((_, value), _))| (name.clone(), value.clone()));
        let unknown = unknown.map(|value| ("unknown".to_owned(), value));
        let given = object(given.chain(unknown).collect::<Vec<_>>());
        let (schema, _) =
            object_argument(arguments.into_iter().map(|(name, (argument, _))| (name, argument)));
        (ToolDefinition::new("list", "", schema), given)
    })
}

proptest! {
    #[test]
    fn any_argument_names_round_trip((tool, arguments) in any_tool_and_arguments()) {
        check(&tool, arguments);
    }
}
