use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn check(schema: Value, expected: Value) {
    assert_eq!(Value::Object(standard(&schema)), expected, "{schema}");
}

#[test]
fn portable_schema_is_sent_unchanged() {
    for schema in [
        json!({"type": "object", "properties": {}}),
        json!({
            "type": "object",
            "description": "Where",
            "properties": {
                "city": {"type": ["string", "null"], "minLength": 1, "pattern": "^.", "default": "Oslo", "examples": ["Oslo"]},
                "unit": {"anyOf": [{"const": "C"}, {"$ref": "#/$defs/unit"}]},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": true},
                // Arguments that are called like keywords.
                "type": {"type": "string"}, "items": {"type": "string"}, "enum": {"type": "string"},
                "required": {"type": "boolean"}, "definitions": {"type": "string"}, "id": {"type": "string"},
            },
            "required": ["city"],
            "additionalProperties": false,
            "x-order": ["city"],
            "$defs": {"unit": {"enum": ["K", 1, null]}},
        }),
    ] {
        check(schema.clone(), schema);
    }
}

#[test]
fn schema_without_arguments_gets_empty_properties() {
    let none = json!({"type": "object", "properties": {}});
    for schema in [
        json!({"type": "object"}),
        json!({}),
        json!(true),
        json!(null),
        json!({"type": "object", "properties": null}),
        json!({"type": "OBJECT", "properties": {}, "required": null}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/none", "type": "object"}),
    ] {
        check(schema, none.clone());
    }
    check(
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "additionalProperties": false, "properties": {}}),
    );
}

#[test]
fn older_drafts_are_converted_to_the_newest() {
    check(
        json!({
            "type": "object",
            "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}, {"$ref": "#/definitions/n"}], "additionalItems": false},
                "over": {"type": "number", "minimum": 3, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
                "any": true,
                "never": false,
                "list": {"type": "array"},
                "any_of_them": {"type": ["array", "string"], "items": true},
            },
            "definitions": {"n": {"id": "#n", "type": "integer"}},
            "dependencies": {"pair": ["over"]},
        }),
        json!({
            "type": "object",
            "properties": {
                "pair": {
                    "type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/$defs/n"}], "items": {},
                },
                "over": {"type": "number", "exclusiveMinimum": 3, "maximum": 9},
                "any": {},
                "list": {"type": "array", "items": {}},
                "any_of_them": {"type": ["array", "string"], "items": {}},
            },
            "$defs": {"n": {"type": "integer"}},
        }),
    );
}

#[test]
fn members_of_a_wrong_type_are_left_out() {
    check(
        json!({
            "type": "object",
            "description": ["no text"],
            "properties": {"a": {"type": "any", "minLength": -1, "enum": [], "anyOf": [], "title": null, "format": 1}},
            "required": ["a", 1, "a"],
            "patternProperties": [],
        }),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
    );
}

#[test]
fn patterns_that_need_backtracking_are_left_out() {
    check(
        json!({"properties": {"a": {"pattern": "^(?!x)y"}, "b": {"pattern": "(x)\\1"}, "c": {"pattern": "^(?:x)$"}}}),
        json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {"pattern": "^(?:x)$"}}}),
    );
}

#[test]
fn references_are_rewritten_to_local_definitions() {
    let properties = json!({
        "first": {"type": "object", "properties": {"x": {"type": "string"}}},
        "second": {"$ref": "#/$defs/shared1"},
        "third": {"$ref": "#/$defs/shared2"},
        "self": {"$ref": "#/$defs/shared3"},
        "far": {"description": "elsewhere"},
        "nowhere": {},
        "odd": {"$ref": "#/$defs/shared4"},
    });
    check(
        json!({
            "type": "object",
            "properties": {
                "first": {"type": "object", "properties": {"x": {"type": "string"}}},
                "second": {"$ref": "#/properties/first"},
                "third": {"$ref": "#/properties/first/properties/x"},
                "self": {"$ref": "#"},
                "far": {"$ref": "https://example.com/schema.json", "description": "elsewhere"},
                "nowhere": {"$ref": "#/$defs/none"},
                "odd": {"$ref": "#/$defs/a~1b%20c"},
            },
            "$defs": {"a/b c": {"type": "null"}, "unused": {}},
        }),
        json!({
            "type": "object",
            "properties": properties,
            "$defs": {
                "shared4": {"type": "null"},
                "shared1": {"type": "object", "properties": {"x": {"type": "string"}}},
                "shared2": {"type": "string"},
                "shared3": {"type": "object", "properties": properties},
            },
        }),
    );
}

#[test]
fn top_level_union_becomes_one_described_object() {
    check(
        json!({
            "type": "object",
            "properties": {"page": {"type": "string"}, "to_page": {"type": "string"}, "to_database": {"type": "string"}},
            "required": ["page"],
            "anyOf": [{"required": ["to_page"]}, {"required": ["to_database"]}],
        }),
        json!({
            "type": "object",
            "properties": {"page": {"type": "string"}, "to_page": {"type": "string"}, "to_database": {"type": "string"}},
            "required": ["page"],
            "description": "Needs one of these sets of arguments: (to_page) or (to_database).",
        }),
    );
    // The path is enough.
    check(
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "anyOf": [{"required": ["path"]}, {"required": ["path", "line"]}],
        }),
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path"],
        }),
    );
    check(
        json!({
            "description": "A view",
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "table"}, "columns": {"type": "array", "items": {}}},
                 "required": ["kind", "columns"]},
                {"$ref": "#/$defs/board"},
                {"type": "string"},
            ],
            "$defs": {
                "board": {"type": "object", "properties": {"kind": {"const": "board"}, "columns": {"$ref": "#/$defs/number"}},
                          "required": ["kind"]},
                "number": {"type": "number"},
            },
        }),
        json!({
            "description": "A view\nNeeds one of these sets of arguments: (kind = \"table\", columns) or (kind = \"board\").",
            "properties": {
                "kind": {"enum": ["table", "board"]},
                "columns": {"anyOf": [{"type": "array", "items": {}}, {"$ref": "#/$defs/number"}]},
            },
            "required": ["kind"],
            "type": "object",
            "$defs": {"number": {"type": "number"}},
        }),
    );
    check(
        json!({"allOf": [
            {"properties": {"id": {"type": "string"}}, "required": ["id"]},
            {"allOf": [{"properties": {"id": {"minLength": 1}, "title": {}}, "required": ["title"]}]},
        ]}),
        json!({
            "properties": {"id": {"allOf": [{"type": "string"}, {"minLength": 1}]}, "title": {}},
            "required": ["id", "title"],
            "type": "object",
        }),
    );
    check(
        json!({"type": "object", "enum": [{"a": 1}], "not": {"required": ["a"]}}),
        json!({"type": "object", "properties": {}}),
    );
}

#[test]
fn exponential_union_is_flattened_in_bounded_time() {
    let level = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
        (
            format!("l{n}"),
            json!({"anyOf": [next, next, next, next, next, next, next, next], "properties": {format!("p{n}"): {}}}),
        )
    };
    let definitions: Map<String, Value> = (0..40).map(level).chain([("l40".to_owned(), json!({}))]).collect();
    let schema = json!({"$ref": "#/$defs/l0", "$defs": definitions});
    let flat = standard(&schema);
    assert!(flat["properties"].get("p0").is_some() && flat.get("$ref").is_none());
    let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"x": {}}}}});
    check(endless, json!({"properties": {"x": {}}, "type": "object"}));
}

#[test]
fn copied_definitions_add_bounded_bytes() {
    let long = "x".repeat(40_000);
    let references =
        |to: &str| (0..900).map(|n| (n.to_string(), json!({ "$ref": to }))).collect::<Map<_, _>>();
    let definition = json!({ "type": "string", "description": long });
    let merged = |n: usize| json!({ "properties": { "x": { "description": "y".repeat(20_000 + n % 2) } } });
    let schemas = [
        json!({ "properties": references("#/$defs/a"), "$defs": { "a": definition } }),
        json!({ "properties": { "a": definition, "b": { "properties": references("#/properties/a") } } }),
        json!({ "properties": references("#"), "description": long }),
        json!({ "properties": { "a": { "anyOf": (0..900).map(|n| json!({ "const": n })).collect::<Vec<_>>(),
            "enum": [long], "properties": { "b": definition } } } }),
        json!({ "allOf": (0..400).map(|n| json!({ "$ref": format!("#/$defs/{}", n % 2) })).collect::<Vec<_>>(),
            "$defs": { "0": merged(0), "1": merged(1) } }),
        json!({ "properties": { "x": { "type": ["string", "number", "boolean", "array", "object", "null"], "default": long } } }),
        json!({ "properties": { "x": { "allOf": (0..400).map(|_| json!({ "$ref": "#/$defs/a" })).collect::<Vec<_>>() } },
            "$defs": { "a": { "properties": { "b": definition } } } }),
    ];
    for (number, schema) in schemas.iter().enumerate() {
        // An unconstrained value takes some bytes, too.
        let most = schema.to_string().len() + 2 * copies::COPIED_BYTES_MAX + 400_000;
        let standard = standard(schema);
        for form in [&standard, &plain::plain(&standard)] {
            let bytes = Value::Object(form.clone()).to_string().len();
            assert!(bytes < most, "schema {number}: {bytes} bytes of at most {most}");
        }
    }
}

#[test]
fn all_of_parts_of_one_argument_are_merged() {
    let parts: Vec<Value> =
        (0..500).map(|n| json!({ "properties": { "x": { "minLength": n % 3 } } })).collect();
    check(
        json!({ "allOf": parts }),
        json!({
            "properties": { "x": { "allOf": [{ "minLength": 0 }, { "minLength": 1 }, { "minLength": 2 }] } },
            "type": "object",
        }),
    );
}

fn check_plain(schema: Value, expected: Value) {
    assert_eq!(Value::Object(plain::plain(&standard(&schema))), expected, "{schema}");
}

#[test]
fn plain_form_types_every_value_and_inlines_references() {
    let text = json!({"type": "string"});
    check_plain(
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "pattern": "\\S", "maxLength": 65536, "format": "uri", "description": "d"},
                "maybe": {"type": ["string", "null"], "description": "d"},
                "union": {"type": "string", "anyOf": [{"const": "a"}, {"type": "null"}]},
                "unit": {"$ref": "#/$defs/unit", "description": "here"},
                "tree": {"$ref": "#/$defs/tree"},
                "untyped": {"enum": ["a", 1]},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]},
                "both": {"allOf": [{"type": "string"}, {"minLength": 1}]},
                "merged": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]},
            },
            "if": {"required": ["unit"]}, "then": {"required": ["tree"]},
            "required": ["unit"],
            "additionalProperties": false,
            "$defs": {
                "unit": {"type": "string", "description": "there", "enum": ["C", "F"]},
                "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}},
            },
        }),
        json!({
            "type": "object",
            "required": ["unit"],
            "properties": {
                "pattern": {"type": "string", "description": "d"},
                "maybe": {"anyOf": [text, {"type": "null"}], "description": "d"},
                "union": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
                "unit": {"type": "string", "description": "here", "enum": ["C", "F"]},
                "tree": {"type": "object", "properties": {"left": {"type": "object", "properties": {}}}},
                "untyped": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "number", "enum": [1]}]},
                "pair": {"type": "array", "items": text},
                "both": text,
                "merged": {"type": "object", "properties": {"a": text, "b": text}},
            },
            "additionalProperties": false,
        }),
    );
    let any = &plain::plain(&standard(&json!({"properties": {"x": {"description": "anything"}}})))["properties"]
        ["x"];
    assert_eq!(any["description"], "anything");
    let types: Vec<&Value> = any["anyOf"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["string", "number", "boolean", "object", "array"]);
}

fn tool(schema: Value) -> ToolDefinition {
    ToolDefinition::new("list", "", schema)
}

fn odd_names() -> ToolDefinition {
    tool(json!({
        "type": "object",
        "properties": {
            "filter[app]": {"type": "string", "description": "P1"},
            "$top": {"type": "integer"},
            "城市": {"type": "string"},
            "filter(app)": {"type": "object", "properties": {"城市": {"type": "string"}}},
            "limit": {"type": "integer"},
            "x".repeat(70): {"type": "string"},
        },
        "required": ["城市", "limit"],
        "dependentRequired": {"$top": ["城市"]},
        "if": {"properties": {"$top": {"const": 1}}}, "then": {"required": ["filter[app]"]},
    }))
}

fn offered(dialect: Dialect, tools: Vec<ToolDefinition>) -> AdaptedTools {
    let request = ModelRequest { tools, ..ModelRequest::default() };
    adapt(dialect, &request, &ToolChoice::Auto, &UpstreamProfile::default())
}

#[test]
fn invalid_argument_names_are_replaced_for_the_provider() {
    let long = "x".repeat(64);
    let schema = &offered(Dialect::Anthropic, vec![odd_names()]).tools[0].parameters;
    assert_eq!(
        **schema,
        json!({
            "type": "object",
            "properties": {
                "filter_app_": {"type": "string", "description": "P1 (filter[app])"},
                "_top": {"type": "integer", "description": "$top"},
                "argument_3": {"type": "string", "description": "城市"},
                "filter_app__2": {
                    "type": "object", "properties": {"城市": {"type": "string"}}, "description": "filter(app)",
                },
                "limit": {"type": "integer"},
                long: {"type": "string", "description": "x".repeat(70)},
            },
            "required": ["argument_3", "limit"],
            "dependentRequired": {"_top": ["argument_3"]},
            "if": {"properties": {"_top": {"const": 1, "description": "$top"}}}, "then": {"required": ["filter_app_"]},
        })
    );
    let unchanged = &offered(Dialect::OpenaiChat, vec![odd_names()]).tools[0].parameters;
    assert_eq!(**unchanged, *odd_names().parameters);
}

/// A forced tool is always among the sent ones, at any position: without it the request would be another.
#[test]
fn tools_over_the_limit_and_refused_tools_are_left_out() {
    let tools: Vec<ToolDefinition> =
        (0..5).map(|n| ToolDefinition::new(format!("t{n}"), "", json!({}))).collect();
    let refused = |n: usize| BTreeSet::from([tools[n].definition_hash()]);
    let forced = |name: &str| ToolChoice::Tool(name.into());
    for (tool_choice, tools_max, refused_tools, left_out) in [
        (ToolChoice::Auto, None, BTreeSet::new(), vec![]),
        (ToolChoice::Auto, Some(3), BTreeSet::new(), vec!["t3", "t4"]),
        (ToolChoice::Auto, Some(3), refused(1), vec!["t1", "t4"]),
        (ToolChoice::Auto, None, refused(1), vec!["t1"]),
        (forced("t4"), Some(3), BTreeSet::new(), vec!["t2", "t3"]),
        (forced("t4"), Some(3), refused(4), vec!["t2", "t3"]),
        (forced("t0"), Some(3), refused(1), vec!["t1", "t4"]),
        (ToolChoice::Required, None, refused(1), vec!["t1"]),
        (
            ToolChoice::Auto,
            None,
            tools.iter().map(ToolDefinition::definition_hash).collect(),
            vec!["t0", "t1", "t2", "t3", "t4"],
        ),
        (ToolChoice::Required, None, tools.iter().map(ToolDefinition::definition_hash).collect(), vec![]),
    ] {
        let request = ModelRequest { tools: tools.clone(), tool_choice, ..ModelRequest::default() };
        let profile = UpstreamProfile { tools_max, refused_tools, ..UpstreamProfile::default() };
        let adapted = adapt(Dialect::OpenaiChat, &request, &request.tool_choice, &profile);
        let names: Vec<&str> = adapted.left_out.iter().map(WireName::as_str).collect();
        assert_eq!((names, adapted.tools.len()), (left_out.clone(), 5 - left_out.len()), "{profile:?}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!("object")),
        "[a-z$#/]{0,6}".prop_map(Value::from)
    ];
    let keyword = prop_oneof![
        Just("properties"),
        Just("items"),
        Just("anyOf"),
        Just("allOf"),
        Just("$ref"),
        Just("$defs"),
        Just("type"),
        Just("required"),
        Just("enum"),
        Just("definitions"),
        Just("additionalProperties"),
        Just("城市"),
        Just("a"),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((keyword.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #[test]
    fn standard_form_is_an_object_schema_and_idempotent(document in any_value()) {
        let once = standard(&document);
        prop_assert_eq!(&once["type"], "object");
        prop_assert!(once["properties"].is_object());
        for keyword in ["anyOf", "oneOf", "allOf", "enum", "not", "$ref"] {
            prop_assert!(!once.contains_key(keyword));
        }
        prop_assert_eq!(standard(&Value::Object(once.clone())), once.clone());
        let plain = plain::plain(&once);
        prop_assert!(!Value::Object(plain).to_string().contains("\"$ref\":\"#/"));
    }
}
