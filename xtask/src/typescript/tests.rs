//! Generated types of small descriptions.
// R: E5

use super::module;
use serde_json::{Value, json};

/// The text that stands behind the head of the file, of these schemas.
#[track_caller]
fn check(schemas: Value, expected: &str) {
    let text = module(&json!({"components": {"schemas": schemas}})).unwrap();
    let (_, rest) = text.split_once("[name: string]: Json };\n\n").unwrap();
    let (types, _) = rest.split_once("\n/** What can be asked").unwrap();
    assert_eq!(types, expected);
}

#[track_caller]
fn operations(paths: Value, expected: &str) {
    let document = json!({"paths": paths, "components": {"schemas": {"Made": {"type": "string"}}}});
    let text = module(&document).unwrap();
    let (_, rest) = text.split_once("export interface Operations ").unwrap();
    assert_eq!(rest, expected);
}

#[track_caller]
fn refused(schemas: Value, part: &str) {
    let error = module(&json!({"components": {"schemas": schemas}})).unwrap_err().to_string();
    assert!(error.contains(part) && error.contains("remedy:"), "{error}");
}

// R: E5
#[test]
fn an_object_has_its_fields_with_what_they_are() {
    check(
        json!({"City": {
            "type": "object", "description": "Where.", "required": ["name", "zone"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "description": "Its name."},
                "people": {"type": ["integer", "null"]},
                "x-y": {"type": "number"},
                "2nd": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "any": {},
            },
        }}),
        "/** Where. */\nexport interface City {\n  /** Its name. */\n  name: string;\n  people?: number | null;\n  \
         \"x-y\"?: number;\n  \"2nd\"?: boolean;\n  tags?: string[];\n  any?: unknown;\n  zone: unknown;\n}\n",
    );
}

// R: E5
#[test]
fn a_choice_of_objects_is_told_apart_by_a_constant() {
    check(
        json!({
            "A": {"type": "object", "required": ["type"], "properties": {"type": {"const": "a"}}},
            "B": {"oneOf": [
                {"$ref": "#/components/schemas/A", "description": "The first."},
                {"type": "object", "description": "Lost.", "required": ["type"], "properties": {"type": {"enum": ["b", 2, null]}}},
            ]},
            "C": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}, {"$ref": "#/components/schemas/A"}]},
        }),
        "export interface A {\n  type: \"a\";\n}\n\
         \nexport type B =\n  | A\n  | {\n      type: \"b\" | 2 | null;\n    };\n\
         \nexport type C = A | null;\n",
    );
}

// R: E5
#[test]
fn all_of_several_is_both_and_more_names_make_a_record() {
    check(
        json!({
            "A": {"type": "object"},
            "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]},
            "C": {"type": "object", "additionalProperties": {"type": ["boolean", "null"]}},
            "D": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"description": "More."}},
            "E": {"type": "object", "additionalProperties": false},
            "F": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}},
            "G": {"type": "array", "items": {"type": ["string", "null"]}},
            "H": true,
            "I": {"type": ["array", "object"], "required": ["b"]},
        }),
        "export type A = Record<string, unknown>;\n\
         \nexport type B = A & {\n  n?: number;\n};\n\
         \nexport type C = Record<string, boolean | null>;\n\
         \nexport interface D {\n  a?: string;\n  /** More. */\n  [name: string]: unknown;\n}\n\
         \nexport type E = Record<string, never>;\n\
         \nexport type F = [string, ...number[]];\n\
         \nexport type G = (string | null)[];\n\
         \nexport type H = unknown;\n\
         \nexport type I =\n  | unknown[]\n  | {\n      b: unknown;\n    };\n",
    );
}

// R: E5
#[test]
fn names_that_are_none_get_others_and_never_the_same() {
    check(
        json!({
            "a.b-c": {"type": "string"}, "string": {"$ref": "#/components/schemas/a.b-c"},
            "3d": {"$ref": "#/components/schemas/x~1y"}, "x/y": {"const": "\"\n"},
        }),
        "export type a_b_c = string;\n\nexport type string_ = a_b_c;\n\nexport type _3d = x_y;\n\nexport type x_y = \"\\\"\\n\";\n",
    );
    refused(json!({"a.b": {}, "a-b": {}}), "would both be called `a_b`");
    refused(json!({"a": {"$ref": "#/components/schemas/b"}}), "no schema `b`");
    refused(json!({"a": {"$ref": "elsewhere.json"}}), "refers to no schema");
}

// R: E5
#[test]
fn what_is_long_stands_on_several_lines() {
    let words: Vec<String> = (1..=12).map(|at| format!("a-long-word-{at}")).collect();
    let lines = |indent: &str| words.iter().map(|word| format!("\n{indent}| \"{word}\"")).collect::<String>();
    check(
        json!({"Long": {
            "type": "object", "description": "One.\nTwo */ three.", "properties": {"word": {"enum": words, "description": "x ".repeat(80)}},
        }}),
        &format!(
            "/**\n * One.\n * Two *\\/ three.\n */\nexport interface Long {{\n  /**\n   * {}\n   * {}\n   */\n  word?:{};\n}}\n",
            vec!["x"; 53].join(" "),
            vec!["x"; 27].join(" "),
            lines("    "),
        ),
    );
    check(json!({"Long": {"enum": words}}), &format!("export type Long ={};\n", lines("  ")));
}

// R: E5
#[test]
fn an_operation_has_what_it_takes_and_what_it_answers() {
    let made = json!({"$ref": "#/components/schemas/Made"});
    operations(
        json!({
            "/a/{id}": {
                "post": {
                    "summary": "Make.", "description": "Or not.",
                    "parameters": [
                        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                        {"name": "q", "in": "query", "description": "Which.", "schema": {"type": "integer"}},
                        {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}},
                    ],
                    "requestBody": {"required": true, "content": {"application/json": {"schema": made}, "application/jsonl": {}}},
                    "responses": {
                        "200": {"content": {"text/event-stream": {}}},
                        "201": {"description": "Made.", "content": {"application/json": {"schema": made}}},
                        "404": {"content": {"application/json": {}}},
                    },
                },
                "delete": {"responses": {"204": {"description": "Gone."}}},
                "get": {"responses": {"200": {"content": {"*/*": {}}}}},
            },
            "/b": {"get": {"responses": {"200": {"content": {"text/event-stream": {}}}, "204": {}}}},
            "/ws": {"get": {"responses": {"101": {}}}},
        }),
        "{\n  \"GET /a/{id}\": {\n    response: Blob;\n  };\n  \
         /**\n   * Make.\n   *\n   * Or not.\n   */\n  \"POST /a/{id}\": {\n    path: {\n      id: string;\n    };\n    \
         query?: {\n      /** Which. */\n      q?: number;\n    };\n    body: Made | string;\n    /** Made. */\n    response: Made;\n  };\n  \
         \"DELETE /a/{id}\": {\n    /** Gone. */\n    response: undefined;\n  };\n  \
         \"GET /b\": {\n    response: ReadableStream<Uint8Array> | undefined;\n  };\n}\n\
         \n/** How answers are read that are no JSON. */\n\
         export const NOT_JSON: { readonly [operation in keyof Operations]?: \"text\" | \"bytes\" | \"events\" } = {\n  \
         \"GET /a/{id}\": \"bytes\",\n  \"GET /b\": \"events\",\n};\n",
    );
}

// R: E5
#[test]
fn the_same_description_gives_the_same_text_with_lines_that_end_alike() {
    let document =
        json!({"components": {"schemas": {"A": {"description": "One.\r\nTwo.", "type": "string"}}}});
    let text = module(&document).unwrap();
    assert_eq!(text, module(&document).unwrap());
    assert!(!text.contains('\r') && text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
}
