//! `throughline decode` on the real binary: the object it prints, for bodies written here.

use assert_cmd::Command;
use serde_json::{Value, json};

fn decode(arguments: &[&str], body: impl AsRef<[u8]>) -> String {
    let output = Command::cargo_bin("throughline")
        .unwrap()
        .arg("decode")
        .args(arguments)
        .write_stdin(body.as_ref())
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    String::from_utf8(output).unwrap()
}

/// The object for a body, and the same for every way to cut it.
#[track_caller]
fn check(api: &str, extra: &[&str], body: &str, expect: &Value) {
    let arguments: Vec<&str> = ["--api", api].into_iter().chain(extra.iter().copied()).collect();
    let whole = decode(&arguments, body);
    let printed: Value = serde_json::from_str(&whole).unwrap();
    for (key, value) in expect.as_object().unwrap() {
        assert_eq!(printed.get(key).unwrap_or(&Value::Null), value, "{key} in {whole}");
    }
    for seed in ["1", "2", "3"] {
        let cut: Vec<&str> = arguments.iter().copied().chain(["--chunk-seed", seed]).collect();
        assert_eq!(decode(&cut, body), whole, "seed {seed}");
    }
}

const CHAT: &str = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm"}}]}

data: {"choices":[{"index":0,"delta":{"content":"Let me "}}]}

data: {"choices":[{"index":0,"delta":{"content":"look.","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Par"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"is\", \"id\": 12345678901234567890123}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}

data: [DONE]

"#;

#[test]
fn stream_decodes_to_one_json_object() {
    check(
        "openai-chat",
        &[],
        CHAT,
        &json!({
            "text": "Let me look.", "reasoning": "hm", "finish_reason": "tool_calls", "finish_reason_raw": "tool_calls",
            "end": "complete", "error": null, "usage": {"input_tokens": 7, "output_tokens": 5},
        }),
    );
}

#[test]
fn integers_keep_every_digit() {
    let printed = decode(&["--api", "openai-chat"], CHAT);
    assert!(printed.contains(r#""arguments":{"city":"Paris","id":12345678901234567890123}"#), "{printed}");
}

#[test]
fn truncated_call_is_printed_with_its_raw_arguments() {
    let body = &CHAT[..CHAT
        .find("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function")
        .unwrap()];
    check(
        "openai-chat",
        &[],
        body,
        &json!({
            "tool_calls": [{"id": "call_1", "name": "get_weather", "arguments": null, "raw": "{\"city\": \"Par"}],
            "finish_reason": null, "end": "truncated",
        }),
    );
}

#[test]
fn error_body_decodes_to_an_error() {
    check(
        "anthropic",
        &[],
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        &json!({"text": "", "end": "error", "error": {"message": "Overloaded", "type": "overloaded_error"}}),
    );
}

#[test]
fn leaked_calls_are_recovered_on_demand() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"content":"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"},"finish_reason":"stop"}]}

data: [DONE]

"#;
    let leaked = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    check("openai-chat", &[], body, &json!({"text": leaked, "tool_calls": []}));
    let printed: Value = serde_json::from_str(&decode(&["--api", "openai-chat", "--recover"], body)).unwrap();
    assert_eq!(printed["tool_calls"][0]["name"], "f");
    assert_eq!(printed["tool_calls"][0]["arguments"], json!({"a": 1}));
}

#[test]
fn think_tags_are_split_on_demand() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>hm</think>yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    check("openai-chat", &[], body, &json!({"text": "<think>hm</think>yes", "reasoning": ""}));
    check("openai-chat", &["--think"], body, &json!({"text": "yes", "reasoning": "hm"}));
}

#[test]
fn further_choices_are_listed_with_the_first() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"length"}]}

data: [DONE]

"#;
    let choices = json!([
        {"index": 0, "text": "a", "reasoning": "", "tool_calls": [], "finish_reason": "stop"},
        {"index": 1, "text": "b", "reasoning": "", "tool_calls": [], "finish_reason": "length"},
    ]);
    check("openai-chat", &[], body, &json!({"text": "a", "choices": choices}));
}

#[test]
fn events_flag_prints_one_event_per_line() {
    let lines: Vec<Value> = decode(&["--api", "openai-chat", "--events"], CHAT)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types.first(), Some(&"thinking"));
    assert_eq!(types.last(), Some(&"end"));
    let sealed = lines.iter().find(|line| line["type"] == "call_sealed").unwrap();
    assert_eq!(sealed["arguments"]["city"], "Paris");
    let text: String = lines
        .iter()
        .filter(|line| line["type"] == "text")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Let me look.");
}

/// Exit code, standard output and standard error for a body that may not be decodable.
fn outcome(arguments: &[&str], body: &[u8]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("throughline").unwrap();
    let output =
        command.env("LC_ALL", "C.UTF-8").arg("decode").args(arguments).write_stdin(body).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn dialect_is_detected_from_the_body() {
    let anthropic = "event: content_block_start\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: content_block_delta\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let ollama =
        "{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    for (body, text) in [(anthropic, "Hi"), (ollama, "Hi"), (CHAT, "Let me look.")] {
        for arguments in [&[][..], &["--api", "auto"], &["--chunk-seed", "7"]] {
            let printed: Value = serde_json::from_str(&decode(arguments, body)).unwrap();
            assert_eq!(printed["text"], text, "{arguments:?} {body}");
        }
        assert!(decode(&["--events"], body).lines().count() > 1);
    }
    // Longer than the sample of the detection: the rest is decoded nevertheless.
    let line = "data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n";
    let body = line.repeat((9 << 20) / line.len());
    let printed: Value = serde_json::from_str(&decode(&["--api", "auto"], &body)).unwrap();
    assert_eq!(printed["text"].as_str().unwrap().len(), 10 * ((9 << 20) / line.len()));
}

#[test]
fn undecodable_body_is_described_with_a_remedy() {
    let ollama =
        "{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    for (arguments, body, what, remedy) in [
        (&[][..], &b""[..], "The recording is empty.", "Record the response body"),
        (&["--api", "anthropic", "--strict"], b"", "The recording is empty.", "Record the response body"),
        (&[], b"\x1f\x8b\x08\x00\x00", "The recording is compressed.", "gzip -d"),
        (&["--api", "openai-chat", "--events"], b"curl: (6) no host", "", "try: "),
        (&["--api", "anthropic"], ollama.as_bytes(), "it looks like ollama", "--api ollama"),
        (
            &["--api", "anthropic", "--chunk-seed", "1"],
            ollama.as_bytes(),
            "it looks like ollama",
            "--api ollama",
        ),
    ] {
        let (code, _, said) = outcome(arguments, body);
        assert_eq!(code, Some(2), "{arguments:?} {said}");
        assert!(
            said.contains("nothing was decoded") && said.contains(what) && said.contains(remedy),
            "{said}"
        );
    }
    // A reply that is an answer nevertheless has a warning.
    let (code, _, said) = outcome(&["--api", "anthropic"], b"");
    assert!(code == Some(0) && said.contains("The recording is empty."), "{said}");
    let (code, printed, said) = outcome(&[], b"<html><title>502 Bad Gateway</title></html>");
    assert!(
        code == Some(0)
            && printed.contains("502 Bad Gateway")
            && said.contains("The recording is an HTML page"),
        "{said}"
    );
}

#[test]
fn strict_exits_with_code_2_for_a_broken_stream() {
    let cut = CHAT.split("data: {\"choices\":[{\"index\":0,\"delta\":{},").next().unwrap().as_bytes();
    let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for (api, body, strict) in [
        ("openai-chat", CHAT.as_bytes(), Some(0)),
        ("openai-chat", cut, Some(2)),
        ("anthropic", &error[..], Some(2)),
    ] {
        assert_eq!(outcome(&["--api", api, "--strict"], body).0, strict);
        assert_eq!(outcome(&["--api", api], body).0, Some(0));
    }
}

#[test]
fn unknown_api_is_a_usage_error_with_valid_names() {
    let assert =
        Command::cargo_bin("throughline").unwrap().args(["decode", "--api", "nope"]).assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("openai-chat, openai-responses, anthropic"), "{said}");
}
