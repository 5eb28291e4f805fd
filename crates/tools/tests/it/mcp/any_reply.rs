//! Messages of every shape, one for each seed: sound ones by the protocol's schema, with anything done to them.

use serde_json::{Map, Value, json};

/// Placeholder of the request's id.
const ID: &str = "@ID@";
/// Placeholders of texts that no JSON library writes.
const TOKENS: [(&str, &str); 7] = [
    ("\"@NAN@\"", "NaN"),
    ("\"@INFINITY@\"", "-Infinity"),
    ("\"@HUGE@\"", "1e999"),
    ("@SURROGATE@", "\\udce9"),
    ("@CONTROL@", "\u{1}\t"),
    ("@ESCAPE@", "\\x41"),
    ("\"@BARE@\"", "oops"),
];
/// Placeholder of a byte that is not UTF-8.
const BYTE: &str = "@BYTE@";

/// A reply and what must come of it.
pub struct AnyReply {
    pub seed: u64,
    /// Reply with placeholders.
    pub line: String,
    /// True if the reply names its call, so that the call must end by it.
    pub names_its_call: bool,
}

/// Request of ours that a reply is for.
#[derive(Clone, Copy)]
pub enum ReplyKind {
    Call,
    List,
    Initialize,
    Discover,
}

/// A message that a server sends without a request.
pub struct AnyMessage {
    pub seed: u64,
    /// Message with placeholders.
    pub line: String,
    /// Number or text under which it has to be answered, [`CALL_ID`] for that of the call.
    pub answered_under: Option<Value>,
}

/// Placeholder of the call's id where a value is needed.
pub const CALL_ID: &str = "the call's";

/// The bytes that a server sends for a line with placeholders.
pub fn bytes_of(line: &str, id: &Value) -> Vec<u8> {
    let mut text = line.replace(ID, &id.to_string());
    for (token, becomes) in TOKENS {
        text = text.replace(token, becomes);
    }
    text = text.replace("\"@DEEP@\"", &format!("{}{}", "[".repeat(3_000), "]".repeat(3_000)));
    let mut bytes = Vec::new();
    for (index, part) in text.split(BYTE).enumerate() {
        if index > 0 {
            bytes.push(0xE9);
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// The reply of a seed.
pub fn any_reply(seed: u64, kind: ReplyKind) -> AnyReply {
    let mut random = Random(seed);
    let mut result = match kind {
        ReplyKind::Call => sound_result(),
        ReplyKind::List => sound_list(),
        ReplyKind::Initialize => sound_initialize(),
        ReplyKind::Discover => sound_discover(),
    };
    for _ in 0..random.below(5) {
        mutate(&mut result, &mut random);
    }
    let mut text = result.to_string();
    let torn = random.one_in(6);
    if torn {
        cut(&mut text, &mut random);
    }
    let end = if torn && random.one_in(2) { "" } else { "}" };
    let (line, names_its_call) = match random.below(12) {
        0..=6 => (format!(r#"{{"jsonrpc":"2.0","id":{ID},"result":{text}{end}"#), true),
        7 => (format!(r#"{{"id":{ID},"error":{text}{end}"#), true),
        8 => (format!(r#"{{"result":{text},"jsonrpc":"2.0","id":{ID}}}"#), !torn),
        9 => {
            (format!(r#"[{{"jsonrpc":"2.0","id":{ID},"result":{text}}}]"#), !torn && !text.contains("@BARE@"))
        }
        10 => (format!(r#"{{"jsonrpc":"2.0","id":{},"result":{text}{end}"#, odd_id(&mut random)), false),
        _ => (text, false),
    };
    // A deep batch is not read as a batch, and invalid JSON in one cannot be assigned to a call.
    let names_its_call = names_its_call && !(line.starts_with('[') && line.contains("@DEEP@"));
    // In an envelope whose number comes last, a torn or bare inside may hold anything that looks like its end.
    let names_its_call = names_its_call && !(line.starts_with("{\"result\"") && line.contains("@BARE@"));
    AnyReply { seed, line, names_its_call }
}

/// The notification or request of a seed.
pub fn any_message(seed: u64) -> AnyMessage {
    let mut random = Random(seed);
    let (method, mut params) = sound_message(&mut random);
    for _ in 0..random.below(5) {
        mutate(&mut params, &mut random);
    }
    let mut text = params.to_string();
    let torn = random.one_in(8);
    if torn {
        cut(&mut text, &mut random);
    }
    let end = if torn && random.one_in(2) { "" } else { "}" };
    // Some servers send the one as the other.
    let is_request = method.starts_with("notifications/") == random.one_in(12);
    let (id, value) = request_id(&mut random);
    let id = if is_request { format!("\"id\":{id},") } else { String::new() };
    let mut line = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{text}{end}"#);
    let mut answered_under = value.filter(|_| is_request && !torn && !text.contains("@BARE@"));
    if random.one_in(8)
        && let Ok(mut message) = serde_json::from_str(&line)
    {
        mutate(&mut message, &mut random);
        line = message.to_string();
        answered_under = None;
    }
    AnyMessage { seed, line, answered_under }
}

/// An id in JSON, and as a value if requests can have it.
fn request_id(random: &mut Random) -> (&'static str, Option<Value>) {
    match random.below(10) {
        0 => ("0", Some(json!(0))),
        1 => ("-1", Some(json!(-1))),
        2 => ("9007199254740993", Some(json!(9_007_199_254_740_993_u64))),
        3 => (ID, Some(json!(CALL_ID))),
        4 => ("\"\"", Some(json!(""))),
        5 => ("\"one\"", Some(json!("one"))),
        6 => ("\"\\u5929\"", Some(json!("天"))),
        7 => ("null", None),
        8 => ("7.5", None),
        _ => ("[1]", None),
    }
}

fn odd_id(random: &mut Random) -> &'static str {
    ["null", "\"@ID@\"", "[]", "7.5", "-1", "1e999", "{\"id\":@ID@}"][random.below(7)]
}

fn sound_result() -> Value {
    json!({
        "resultType": "complete", "isError": false, "structuredContent": {"rows": [{"id": 1, "name": "one"}]}, "_meta": {"a": 1},
        "content": [
            {"type": "text", "text": "hello", "annotations": {"audience": ["user", "assistant"], "priority": 0.5}},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRgAAAABXQVZF", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "demo://1", "name": "one", "size": 3, "icons": [{"src": "demo://i"}]},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "image/png", "blob": "iVBORw0KGgo="}},
        ],
    })
}

fn sound_list() -> Value {
    let schema =
        json!({"type": "object", "properties": {"q": {"type": "string", "minLength": 1}}, "required": ["q"]});
    let tool = |name: &str| {
        json!({
            "name": name, "title": "Title", "description": "Text", "inputSchema": schema, "outputSchema": schema,
            "annotations": {"title": "Hint", "readOnlyHint": true}, "icons": [{"src": "demo://i", "sizes": ["48x48"]}],
            "execution": {"taskSupport": "optional"}, "_meta": {"a": 1},
        })
    };
    json!({"tools": [tool("one"), tool("two"), tool("three")], "ttlMs": 60_000, "cacheScope": "private", "_meta": {}})
}

fn sound_initialize() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "instructions": "Text", "_meta": {"a": 1},
        "capabilities": {
            "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {},
            "logging": {}, "completions": {}, "tasks": {"list": {}}, "experimental": {"a": {"b": 1}},
        },
        "serverInfo": {"name": "odd", "title": "Odd", "version": "1", "websiteUrl": "https://example.com", "icons": []},
    })
}

fn sound_discover() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}},
        "ttlMs": 60_000, "cacheScope": "private", "serverInfo": {"name": "odd", "version": "1"}, "instructions": "Text",
    })
}

/// Method and parameters of a message.
fn sound_message(random: &mut Random) -> (&'static str, Value) {
    let text = json!({"type": "text", "text": "hello"});
    let form = json!({
        "type": "object", "required": ["color"], "properties": {
            "color": {"type": "string", "enum": ["red", "green"], "enumNames": ["Red", "Green"]},
            "count": {"type": "integer", "minimum": 1, "default": 2},
            "many": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        },
    });
    match random.below(16) {
        0 => (
            "notifications/progress",
            json!({"progressToken": 1, "progress": 1, "total": 2, "message": "half"}),
        ),
        1 => ("notifications/message", json!({"level": "info", "logger": "a", "data": {"text": "hello"}})),
        2 => ("notifications/tools/list_changed", json!({})),
        3 => ("notifications/resources/list_changed", json!({})),
        4 => ("notifications/resources/updated", json!({"uri": "demo://1"})),
        5 => ("notifications/prompts/list_changed", json!({})),
        6 => ("notifications/cancelled", json!({"requestId": "one", "reason": "enough"})),
        7 => ("notifications/elicitation/complete", json!({"elicitationId": "1"})),
        8 => ("notifications/unheard/of", json!({"a": [1]})),
        9 => ("ping", json!({})),
        10 => ("roots/list", json!({"_meta": {"progressToken": 1}})),
        11 => (
            "sampling/createMessage",
            json!({"messages": [{"role": "user", "content": text}], "maxTokens": 10, "modelPreferences": {"hints": []}}),
        ),
        12 => ("elicitation/create", json!({"mode": "form", "message": "Which?", "requestedSchema": form})),
        13 => ("elicitation/create", json!({"message": "Which?", "requestedSchema": form})),
        14 => (
            "elicitation/create",
            json!({"mode": "url", "message": "Go", "url": "https://example.com/in", "elicitationId": "1"}),
        ),
        _ => ("unheard/of", json!({"a": [1]})),
    }
}

/// Makes one random change.
fn mutate(value: &mut Value, random: &mut Random) {
    let descends = !random.one_in(3);
    match value {
        Value::Object(fields) if descends && !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            match random.below(8) {
                0 => drop(fields.remove(&name)),
                1 => {
                    let moved = fields.remove(&name).unwrap_or_default();
                    fields.insert(
                        ["type", "id", "nextCursor", "resultType", "odd @SURROGATE@"][random.below(5)].into(),
                        moved,
                    );
                }
                _ => mutate(&mut fields[&name], random),
            }
        }
        Value::Array(items) if descends && !items.is_empty() => {
            let index = random.below(items.len());
            match random.below(6) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => mutate(&mut items[index], random),
            }
        }
        value => *value = anything(random),
    }
}

fn anything(random: &mut Random) -> Value {
    let token = |token: &str| Value::from(token.trim_matches('"'));
    match random.below(25) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1e300),
        6 => json!(""),
        7 => json!("input_required"),
        8 => json!("task"),
        9 => json!("data:image/png;base64,iVBORw0KGgo"),
        10 => json!([]),
        11 => json!({}),
        12 => json!([null, 1, "two", {"three": [4]}]),
        13 => json!({"type": "text"}),
        14 => json!("x".repeat(100_000)),
        15 => Value::Object(
            (0..300).map(|index| (format!("field{index}"), json!(index))).collect::<Map<_, _>>(),
        ),
        16 => json!("@DEEP@"),
        17 => json!(BYTE),
        index => token(TOKENS[(index - 18) % TOKENS.len()].0),
    }
}

/// Ends a text anywhere, but not inside of a placeholder.
fn cut(text: &mut String, random: &mut Random) {
    let mut end = random.below(text.len().max(1));
    while !text.is_char_boundary(end) || text[..end].matches('@').count() % 2 == 1 {
        end -= 1;
    }
    text.truncate(end);
}

/// SplitMix64: a seed always gives the same reply.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
