//! The stored state of a reply for the next call.

use serde_json::{Value, json};
use throughline_wire::{DecodeOptions, Dialect, ModelReply};

fn decode(dialect: Dialect, body: &[u8]) -> ModelReply {
    ModelReply::decode(body, dialect, DecodeOptions::default())
}

#[track_caller]
fn check(dialect: Dialect, body: &[u8], content: Value) {
    let state = decode(dialect, body).provider_state.expect("something to send back");
    assert_eq!(state.dialect, dialect);
    assert_eq!(state.value, json!({ "role": "assistant", "content": content }));
}

/// One of this folder's fixtures.
macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../fixtures/", $name))
    };
}

#[test]
fn anthropic_blocks_are_sent_back_unchanged() {
    check(
        Dialect::Anthropic,
        fixture!("anthropic/r5-thinking.sse"),
        json!([
            { "type": "thinking", "thinking": "Hmm ok", "signature": "c2ln" },
            { "type": "redacted_thinking", "data": "AAAA" },
            { "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "city": "Paris" } },
        ]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/n2-input-in-start.sse"),
        json!([
            { "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "city": "Paris" } },
            { "type": "tool_use", "id": "toolu_b", "name": "get_weather", "input": { "city": "Rome" } },
        ]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/n8-other-message.sse"),
        json!([{ "type": "tool_use", "id": "toolu_b", "name": "get_weather", "input": { "city": "Paris" } }]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/n3-eager-invalid-json.sse"),
        json!([{ "type": "tool_use", "id": "toolu_a", "name": "write", "input": {} }]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/n4-pause-turn.sse"),
        json!([{ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } }]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/s7-surrogates-cut.sse"),
        json!([
            { "type": "text", "text": "😀!" },
            { "type": "tool_use", "id": "toolu_a", "name": "say", "input": { "t": "😀" } },
        ]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/n5-unknown.sse"),
        json!([{ "type": "text", "text": "Hi" }, { "type": "brand_new_block", "x": 1 }]),
    );
    check(
        Dialect::Anthropic,
        fixture!("anthropic/body-plain.sse"),
        json!([
            { "type": "thinking", "thinking": "Hmm", "signature": "c2ln" },
            { "type": "text", "text": "Let me see." },
            { "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "city": "Paris" } },
            { "type": "tool_use", "id": "toolu_b", "name": "ping", "input": {} },
        ]),
    );
}

#[test]
fn bedrock_blocks_are_sent_back_unchanged() {
    check(
        Dialect::BedrockConverse,
        fixture!("bedrock/b2-reasoning.bin"),
        json!([
            { "reasoningContent": { "reasoningText": { "text": "Hmm ok", "signature": "c2ln" } } },
            { "reasoningContent": { "redactedContent": "AAAA" } },
            { "citationsContent": { "content": [{ "text": "Hi" }], "citations": [{ "title": "X" }] } },
        ]),
    );
    check(
        Dialect::BedrockConverse,
        fixture!("bedrock/b2-server-tool.bin"),
        json!([
            { "toolUse": { "toolUseId": "tooluse_s", "name": "nova_code_interpreter", "type": "server_tool_use",
                           "input": { "snippet": "1+1" } } },
            { "toolResult": { "toolUseId": "tooluse_s", "status": "success", "type": "nova_code_interpreter_result",
                              "content": [{ "json": { "stdOut": "2" } }] } },
            { "toolUse": { "toolUseId": "tooluse_a", "name": "get_weather", "type": "tool_use",
                           "input": { "city": "Paris" } } },
        ]),
    );
    check(
        Dialect::BedrockConverse,
        fixture!("bedrock/body-plain.bin"),
        json!([
            { "reasoningContent": { "reasoningText": { "text": "Hmm", "signature": "c2ln" } } },
            { "text": "Let me " },
            { "citationsContent": { "content": [{ "text": "see." }], "citations": [{ "title": "X" }] } },
            { "toolUse": { "toolUseId": "tooluse_a", "name": "get_weather", "input": { "city": "Paris" } } },
            { "toolUse": { "toolUseId": "tooluse_b", "name": "ping", "input": {} } },
        ]),
    );
    check(
        Dialect::BedrockAnthropic,
        fixture!("bedrock/b1-invoke-plain.bin"),
        json!([{ "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "city": "Paris" } }]),
    );
}

#[test]
fn error_and_cohere_replies_have_no_provider_state() {
    assert_eq!(decode(Dialect::Anthropic, fixture!("anthropic/n6-error-body.sse")).provider_state, None);
    assert_eq!(decode(Dialect::BedrockConverse, fixture!("bedrock/body-error.bin")).provider_state, None);
    assert_eq!(decode(Dialect::Cohere, fixture!("cohere/h1-tool-plan.sse")).provider_state, None);
}

/// A hosted tool is reported with its input and again with its result, under one id and name.
#[test]
fn hosted_tools_are_reported_at_start_and_end() {
    for (dialect, body, id, name, input, output) in [
        (
            Dialect::Anthropic,
            &fixture!("anthropic/n4-server-tools.sse")[..],
            "mcptoolu_1",
            "ask",
            json!({ "q": 1 }),
            json!([{ "type": "text", "text": "no text of ours" }]),
        ),
        (
            Dialect::BedrockConverse,
            &fixture!("bedrock/b2-server-tool.bin")[..],
            "tooluse_s",
            "nova_code_interpreter",
            json!({ "snippet": "1+1" }),
            json!([{ "json": { "stdOut": "2" } }]),
        ),
    ] {
        let hosted = decode(dialect, body).hosted;
        let reports: Vec<_> = hosted.iter().filter(|hosted| hosted.id.as_deref() == Some(id)).collect();
        assert_eq!(reports.len(), 2, "{hosted:?}");
        assert!(reports.iter().all(|report| report.name == name));
        assert_eq!((&reports[0].input, &reports[0].output), (&Some(input), &None));
        assert_eq!((&reports[1].input, &reports[1].output), (&None, &Some(output)));
    }
}

/// Half a reply: nothing in it that the upstream would refuse to take back.
#[test]
fn truncated_reply_drops_incomplete_provider_state() {
    let body: &[u8] = fixture!("anthropic/r5-thinking.sse");
    let signature = body.windows(15).position(|bytes| bytes == b"signature_delta").expect("a signature");
    assert_eq!(
        decode(Dialect::Anthropic, &body[..signature]).provider_state,
        None,
        "thinking that is not signed"
    );

    let body: &[u8] = fixture!("anthropic/n4-server-tools.sse");
    let result = body.windows(22).position(|bytes| bytes == b"web_search_tool_result").expect("a result");
    assert_eq!(
        decode(Dialect::Anthropic, &body[..result]).provider_state,
        None,
        "a search without its result"
    );
}
