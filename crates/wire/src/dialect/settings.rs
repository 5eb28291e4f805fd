//! Settings of a request that exclude one another, and those that an upstream does not support.
//!
//! A request with one setting too many is refused whole. Removed settings are reported, so that the answer is
//! not taken for that of the original request.

use super::Dialect;
use super::gemini::is_before_three;
use crate::profile::UpstreamProfile;
use crate::vocabulary::ModelRequest;
use serde_json::{Map, Value, json};

/// Objects of a body that contain settings, besides the body itself.
const INSIDE: [&str; 4] = ["generationConfig", "options", "inferenceConfig", "text"];

/// Removes settings from a body; returns their names.
pub(super) fn take_out(
    dialect: Dialect,
    profile: &UpstreamProfile,
    model: &str,
    body: &mut Map<String, Value>,
) -> Vec<String> {
    // They exclude no others.
    let refused: Vec<_> = profile.leave_out.iter().filter(|name| remove(body, name)).cloned().collect();
    let mut left_out = Vec::new();
    let excluded = match dialect {
        Dialect::Anthropic | Dialect::BedrockAnthropic => excluded_by_claude(body),
        Dialect::BedrockConverse if model.contains("claude") => exclude_either(body, "temperature", "topP"),
        Dialect::Gemini => {
            left_out.extend(exclude_by_gemini(model, body).into_iter().map(str::to_owned));
            Vec::new()
        }
        _ => Vec::new(),
    };
    left_out.extend(excluded.into_iter().filter(|name| remove(body, name)).map(str::to_owned));
    left_out.extend(refused);
    left_out
}

/// The setting `thinking` of a request, as it is sent.
pub(super) fn thinking<'r>(request: &'r ModelRequest, profile: &UpstreamProfile) -> Option<&'r Value> {
    sent(request, profile, "thinking").filter(|setting| !setting.is_null())
}

/// True for a request that switches thinking on.
pub(super) fn asks_for_thoughts(request: &ModelRequest, profile: &UpstreamProfile) -> bool {
    thinking(request, profile).is_some_and(|thinking| thinking["type"] != "disabled")
        || sent(request, profile, "enable_thinking").is_some_and(|is_on| *is_on == true)
}

fn sent<'r>(request: &'r ModelRequest, profile: &UpstreamProfile, name: &str) -> Option<&'r Value> {
    request.settings.extra.get(name).filter(|_| !profile.leave_out.contains(name))
}

/// "Thinking isn't compatible with `temperature` or `top_k` modifications", and `top_p` is between 0.95 and 1
/// (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>); "`temperature` and `top_p` cannot both be
/// specified for this model. Please use only one." (HTTP 400).
fn excluded_by_claude(body: &Map<String, Value>) -> Vec<&'static str> {
    let thinks = body.get("thinking").is_some_and(|thinking| thinking["type"] != "disabled");
    if !thinks {
        return exclude_either(body, "temperature", "top_p");
    }
    let number = |name: &str| body.get(name).and_then(Value::as_f64);
    let excluded = [
        ("temperature", number("temperature").is_some_and(|value| value != 1.0)),
        ("top_k", true),
        ("top_p", number("top_p").is_none_or(|value| value < 0.95) || body.contains_key("temperature")),
    ];
    excluded.into_iter().filter_map(|(name, is_excluded)| is_excluded.then_some(name)).collect()
}

/// "You can only set only one of thinking budget and thinking level"; "Function calling with a response mime type:
/// 'application/json' is unsupported" (HTTP 400, googleapis/python-genai#867), which Gemini 3 takes.
fn exclude_by_gemini(model: &str, body: &mut Map<String, Value>) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    let has_functions = body
        .get("tools")
        .and_then(Value::as_array)
        .is_some_and(|tools| tools.iter().any(|tool| tool.get("functionDeclarations").is_some()));
    let Some(Value::Object(config)) = body.get_mut("generationConfig") else { return left_out };
    if let Some(Value::Object(thinking)) = config.get_mut("thinkingConfig")
        && thinking.contains_key("thinkingLevel")
        && thinking.shift_remove("thinkingBudget").is_some()
    {
        left_out.push("thinkingBudget");
    }
    let is_json = config.get("responseMimeType").is_some_and(|kind| kind == "application/json");
    if is_json && has_functions && is_before_three(model) {
        let mut schema = None;
        for name in ["responseMimeType", "responseJsonSchema", "responseSchema"] {
            if let Some(setting) = config.shift_remove(name) {
                left_out.push(name);
                schema = schema.or(Some(setting).filter(Value::is_object));
            }
        }
        let prompt = json!({ "text": json_prompt(schema) });
        let instruction = body.entry("systemInstruction").or_insert_with(|| json!({ "parts": [] }));
        // From an agent's own settings it may be a text, or have one part that is in no list.
        match instruction {
            Value::String(text) => *instruction = json!({ "parts": [{ "text": *text }, prompt] }),
            Value::Object(fields) => match fields.entry("parts").or_insert_with(|| json!([])) {
                Value::Array(parts) => parts.push(prompt),
                part @ Value::Object(_) => *part = json!([part.take(), prompt]),
                _ => {}
            },
            _ => {}
        }
    }
    left_out
}

/// Instruction for a model that cannot be bound to JSON.
fn json_prompt(schema: Option<Value>) -> String {
    let alone = "When you call no tool, answer with JSON alone: no other words, no code fence.";
    match schema {
        Some(schema) => format!("{alone} It fits this JSON Schema: {schema}"),
        None => alone.to_owned(),
    }
}

/// The second, where both are there.
fn exclude_either(body: &Map<String, Value>, first: &str, second: &'static str) -> Vec<&'static str> {
    if has(body, first) && has(body, second) { vec![second] } else { Vec::new() }
}

/// True if a body has this setting where [`encode`](crate::encode) would take it out
/// ([`UpstreamProfile::leave_out`](crate::UpstreamProfile::leave_out)).
///
/// ```
/// use throughline_wire::has_setting;
///
/// let body = serde_json::json!({"generationConfig": {"topP": 0.9}});
/// assert!(has_setting(&body, "topP") && !has_setting(&body, "temperature"));
/// ```
pub fn has_setting(body: &Value, name: &str) -> bool {
    body.as_object().is_some_and(|body| has(body, name))
}

fn has(body: &Map<String, Value>, name: &str) -> bool {
    body.contains_key(name)
        || INSIDE.iter().any(|inside| body.get(*inside).is_some_and(|at| at.get(name).is_some()))
}

fn remove(body: &mut Map<String, Value>, name: &str) -> bool {
    let mut is_removed = body.shift_remove(name).is_some();
    for inside in INSIDE {
        if let Some(Value::Object(at)) = body.get_mut(inside) {
            is_removed |= at.shift_remove(name).is_some();
        }
    }
    is_removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dialect: Dialect, body: Value, left_out: &[&str], rest: Value) {
        let Value::Object(mut body) = body else { panic!("an object") };
        let profile = UpstreamProfile { leave_out: ["seed".to_owned()].into(), ..UpstreamProfile::default() };
        assert_eq!(take_out(dialect, &profile, "anthropic.claude-x", &mut body), left_out);
        assert_eq!(Value::Object(body), rest);
    }

    #[test]
    fn conflicting_settings_are_removed_and_named() {
        let thinking = json!({"type": "enabled", "budget_tokens": 1024});
        check(
            Dialect::Anthropic,
            json!({"temperature": 0.5, "top_p": 0.9}),
            &["top_p"],
            json!({"temperature": 0.5}),
        );
        check(Dialect::Anthropic, json!({"top_p": 0.9}), &[], json!({"top_p": 0.9}));
        check(
            Dialect::BedrockAnthropic,
            json!({"thinking": thinking, "temperature": 0.5, "top_k": 5, "top_p": 0.9}),
            &["temperature", "top_k", "top_p"],
            json!({"thinking": thinking}),
        );
        check(
            Dialect::Anthropic,
            json!({"thinking": thinking, "top_p": 0.97}),
            &[],
            json!({"thinking": thinking, "top_p": 0.97}),
        );
        check(
            Dialect::BedrockConverse,
            json!({"inferenceConfig": {"temperature": 0.5, "topP": 0.9}}),
            &["topP"],
            json!({"inferenceConfig": {"temperature": 0.5}}),
        );
        check(
            Dialect::Gemini,
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 9}, "seed": 1}}),
            &["thinkingBudget", "seed"],
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}),
        );
        check(
            Dialect::OpenaiChat,
            json!({"temperature": 0.5, "top_p": 0.9, "seed": 1}),
            &["seed"],
            json!({"temperature": 0.5, "top_p": 0.9}),
        );
    }

    #[test]
    fn json_schema_with_tools_moves_to_prompt_before_gemini_3() {
        let functions = json!([{"functionDeclarations": [{"name": "look"}]}]);
        let search = json!([{"googleSearch": {}}]);
        for (model, tools, is_asked) in [
            ("gemini-2.5-flash", &functions, true),
            ("models/gemini-1.5-pro", &functions, true),
            ("gemini-2.5-flash", &search, false),
            ("gemini-3-pro", &functions, false),
        ] {
            for (schema, instruction) in [
                ("responseJsonSchema", json!({"parts": [{"text": "Be brief."}]})),
                ("responseSchema", json!({"parts": []})),
                // An agent's own.
                ("responseSchema", json!("Be brief.")),
            ] {
                let config = json!({"responseMimeType": "application/json", schema: {"type": "object"}});
                let body =
                    json!({"tools": tools, "generationConfig": config, "systemInstruction": instruction});
                let Value::Object(mut body) = body else { panic!("an object") };
                let left_out = take_out(Dialect::Gemini, &UpstreamProfile::default(), model, &mut body);
                assert_eq!(left_out == ["responseMimeType", schema], is_asked, "{model}: {left_out:?}");
                assert_eq!(body["generationConfig"] == json!({}), is_asked, "{model}");
                let words = body["systemInstruction"].to_string();
                let is_in_words = words.contains(r#"JSON Schema: {\"type\":\"object\"}"#);
                assert_eq!(is_in_words, is_asked, "{model}: {words}");
                let own = instruction.to_string().contains("Be brief.");
                assert_eq!(words.contains("Be brief."), own, "{model}: {words}");
            }
        }
    }
}
