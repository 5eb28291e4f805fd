//! Reasoning that goes back through a client of Chat Completions: what each upstream is sent, and what is named.

use crate::support::check_stream::check_stream;
use crate::support::{TestServer, saying};
use serde_json::{Value, json};
use throughline::wire::Dialect;
use throughline::{ApprovalMode, ThroughlineBuilder, Upstream};
use throughline_testkit::{FakeDialect, FakeUpstream, FakeUpstreamHandle, ModelScript, ScriptQueue};

/// One upstream under the names of several, in addition to the server's own.
async fn serve(scripts: Vec<ModelScript>) -> (TestServer, FakeUpstreamHandle) {
    let upstream = FakeUpstream::start(ScriptQueue::new(scripts)).await.unwrap();
    let base = |dialect| upstream.base_url(dialect);
    let (chat, claude, gemini) =
        (base(FakeDialect::OpenaiChat), base(FakeDialect::Anthropic), base(FakeDialect::Gemini));
    let with = move |builder: ThroughlineBuilder| {
        let router = Upstream::known("openrouter").unwrap().base_url(&chat).unwrap().key("k".to_owned());
        builder
            .upstream(router)
            .upstream(Upstream::new("compatible", Dialect::OpenaiChat, &chat).unwrap())
            .upstream(Upstream::new("claude", Dialect::Anthropic, &claude).unwrap())
            .upstream(Upstream::new("google", Dialect::Gemini, &gemini).unwrap())
            .model("test/m")
            .approval(ApprovalMode::Ask)
    };
    (TestServer::start_with(ScriptQueue::new([]), with, Default::default()).await, upstream)
}

fn clock() -> Value {
    json!([{"type": "function", "function": {"name": "clock", "description": "The client's",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}}])
}

fn thinking_call() -> ModelScript {
    ModelScript::new().think("Hm.").call("clock", json!({"zone": "Oslo"}))
}

/// The body that the upstream received with its last request.
fn last_body(upstream: &FakeUpstreamHandle) -> Value {
    serde_json::from_slice(upstream.bodies().last().unwrap()).unwrap()
}

/// The provider's reply, as a client that calls it directly receives it.
async fn reply_of(upstream: &FakeUpstreamHandle, dialect: FakeDialect, path: &str, body: Value) -> Value {
    let request = reqwest::Client::new().post(format!("{}{path}", upstream.base_url(dialect)));
    let request = request.header("anthropic-version", "2023-06-01").header("x-api-key", "k");
    request.json(&body).send().await.unwrap().json().await.unwrap()
}

/// Signatures of the thought `Hm.` by Anthropic, and of the call by Gemini.
async fn signatures(upstream: &FakeUpstreamHandle) -> (Value, Value) {
    let body =
        json!({"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Time?"}]});
    let claude = reply_of(upstream, FakeDialect::Anthropic, "/messages", body).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Time?"}]}]});
    let gemini = reply_of(upstream, FakeDialect::Gemini, "/models/gemini-3-pro:generateContent", body).await;
    let parts = gemini["candidates"][0]["content"]["parts"].as_array().unwrap();
    let call = parts.iter().find(|part| part.get("functionCall").is_some()).unwrap();
    (claude["content"][0]["signature"].clone(), call["thoughtSignature"].clone())
}

/// A history in which the assistant's message has everything that any server writes.
fn history(thought: &Value, signature: &Value) -> Value {
    json!([
        {"role": "user", "content": "Time?", "createdAt": 1},
        {
            "role": "assistant", "id": "msg_1", "index": 0, "status": "completed",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": thought},
                {"type": "redacted_thinking", "data": "EqoBCkgIARABGAIiQEmwK0h5cG8="},
                {"type": "text", "text": "I look."},
            ],
            "reasoning": "Hm.",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Hm.", "signature": thought, "format": "anthropic-claude-v1", "index": 0}],
            "annotations": [{"type": "url_citation"}], "audio": {"id": "audio_1"}, "refusal": "No.", "function_call": null,
            "tool_calls": [{"id": "call_a", "index": 0, "type": "function",
                "function": {"name": "clock", "arguments": "{\"zone\":\"Oslo\"}"},
                "extra_content": {"google": {"thought_signature": signature}}}],
        },
        {"role": "tool", "tool_call_id": "call_a", "name": "clock", "content": "12:30"},
    ])
}

#[tokio::test]
async fn reasoning_in_history_is_sent_if_readable_else_named() {
    let replies = (0..5).map(|_| ModelScript::new().say("Half past twelve."));
    let (server, upstream) =
        serve([thinking_call(), thinking_call()].into_iter().chain(replies).collect()).await;
    let (thought, signature) = signatures(&upstream).await;
    let details = history(&thought, &signature)[1]["reasoning_details"].clone();
    let function = json!({"name": "clock", "arguments": "{\"zone\":\"Oslo\"}"});
    let call = json!({"id": "call_a", "type": "function", "function": function});
    let signed = json!({"id": "call_a", "type": "function", "function": function,
        "extra_content": {"google": {"thought_signature": signature}}});
    let always = ["messages.annotations", "messages.audio", "messages.createdAt", "messages.refusal"];
    let parts = ["messages.content.redacted_thinking", "messages.content.thinking"];
    let fields = ["messages.reasoning", "messages.reasoning_details"];
    let (details_field, extra) = (["messages.reasoning_details"], ["messages.tool_calls.extra_content"]);
    for (model, at, sent, named) in [
        (
            "openrouter/anthropic/claude",
            "/messages/1",
            json!({"role": "assistant", "content": "I look.", "reasoning_details": details, "tool_calls": [call]}),
            [&parts[..], &extra].concat(),
        ),
        (
            "compatible/gemini-3-pro",
            "/messages/1",
            json!({"role": "assistant", "content": "I look.", "tool_calls": [signed]}),
            [&parts[..], &fields].concat(),
        ),
        (
            "compatible/m",
            "/messages/1",
            json!({"role": "assistant", "content": "I look.", "tool_calls": [call]}),
            [&parts[..], &fields, &extra].concat(),
        ),
        (
            "google/gemini-3-pro",
            "/contents/1",
            json!({"role": "model", "parts": [{"text": "I look."},
                {"functionCall": {"name": "clock", "args": {"zone": "Oslo"}}, "thoughtSignature": signature}]}),
            [&parts[..], &fields].concat(),
        ),
        (
            "claude/claude-opus",
            "/messages/1",
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": thought},
                {"type": "redacted_thinking", "data": "EqoBCkgIARABGAIiQEmwK0h5cG8="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_a", "name": "clock", "input": {"zone": "Oslo"}},
            ]}),
            [&details_field[..], &extra].concat(),
        ),
    ] {
        let body = json!({"model": model, "stream": true, "messages": history(&thought, &signature), "tools": clock()});
        let response =
            server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{model}: {}", response.text().await.unwrap());
        let header = response.headers()["throughline-ignored"].to_str().unwrap().to_owned();
        let answer = check_stream(&response.bytes().await.unwrap());
        assert_eq!(answer.content, "Half past twelve.", "{model}");
        assert_eq!(last_body(&upstream).pointer(at), Some(&sent), "{model}");
        let mut named = [&always[..], &named].concat();
        named.sort_unstable();
        assert_eq!(header, named.join(", "), "{model}");
    }
    assert_eq!(upstream.violations(), []);
}

/// An SDK without our members returns `role`, `content` and `tool_calls`. A request that turns the server's
/// tools off is answered by another turn than the waiting one.
#[tokio::test]
async fn client_call_signature_is_sent_back_by_the_server() {
    let (google, claude) = (("/contents/1/parts", "thoughtSignature"), ("/messages/1/content", "signature"));
    for (model, (at, signature), more) in [
        ("google/gemini-3-pro", google, json!({})),
        ("google/gemini-3-pro", google, json!({"tools": false})),
        ("claude/claude-opus", claude, json!({})),
        ("claude/claude-opus", claude, json!({"tools": false})),
    ] {
        let (server, upstream) =
            serve(vec![thinking_call(), ModelScript::new().say("Half past twelve.")]).await;
        let mut messages = json!([{"role": "user", "content": "Time?"}]);
        let mut body = json!({"model": model, "messages": messages, "tools": clock()});
        let (status, first) = server.post("/v1/chat/completions", body.clone()).await;
        assert_eq!(status, 200, "{first}");
        let message = &first["choices"][0]["message"];
        let call = &message["tool_calls"][0];
        let messages = messages.as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": message["content"], "tool_calls": [
            {"id": call["id"], "type": call["type"], "function": call["function"]}]}));
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "12:30"}));
        body["messages"] = messages.clone().into();
        body["throughline"] = more;
        let (_, second) = server.post("/v1/chat/completions", body).await;
        assert_eq!(second["choices"][0]["message"]["content"], "Half past twelve.", "{second}");
        let sent = last_body(&upstream);
        let parts = sent.pointer(at).and_then(Value::as_array).unwrap();
        let signatures: Vec<_> = parts.iter().filter_map(|part| part.get(signature)?.as_str()).collect();
        assert!(signatures.iter().any(|signature| signature.starts_with("Eq")), "{model}: {sent}");
        assert_eq!(upstream.violations(), [], "{model}");
    }
}

/// The log stores the signature as provider state of the turn.
#[tokio::test]
async fn signature_survives_restart_next_turn_and_branch() {
    let signatures = |upstream: &FakeUpstreamHandle, name: &str| {
        let sent = last_body(upstream);
        let messages = sent["contents"].as_array().or(sent["messages"].as_array()).unwrap().clone();
        let parts = messages.iter().flat_map(|message| {
            message["parts"].as_array().or(message["content"].as_array()).cloned().unwrap_or_default()
        });
        parts.filter(|part| part[name].as_str().is_some_and(|name| name.starts_with("Eq"))).count()
    };
    for (model, name) in [("google/gemini-3-pro", "thoughtSignature"), ("claude/claude-opus", "signature")] {
        let note = ModelScript::new().think("Hm.").call("calendar_add", json!({"title": "tea"}));
        let replies = ["Noted.", "Yes.", "No."].map(|text| ModelScript::new().say(text));
        let (server, upstream) = serve([vec![note], replies.to_vec()].concat()).await;
        let mut body = saying("Tea at five");
        body["model"] = json!(model);
        let (status, started) = server.post("/v1/turns", body.clone()).await;
        assert_eq!(status, 201, "{started}");
        let first = started["turn_id"].as_str().unwrap();
        let asked = server.follow(first, 0).await.until("approval_request").await.pop().unwrap();

        let server = server.restart().await;
        let answer = format!("/v1/turns/{first}/approvals/{}", asked.data["approval_id"].as_str().unwrap());
        assert_eq!(server.post(&answer, json!({"decision": "approve"})).await.0, 200);
        server.follow(first, asked.id).await.until("stream_end").await;
        assert_eq!(signatures(&upstream, name), 1, "{model}, the same turn");

        let server = server.restart().await;
        body["conversation_id"] = started["conversation_id"].clone();
        for (parent, case) in [(None, "the next turn"), (Some(first), "another branch")] {
            if let Some(parent) = parent {
                body["parent_id"] = json!(parent);
            }
            let turn = server.turn(body.clone()).await;
            let end = server.follow(&turn, 0).await.until("stream_end").await.pop().unwrap();
            assert_eq!(end.data["status"], "completed", "{model}, {case}");
            assert_eq!(signatures(&upstream, name), 1, "{model}, {case}");
        }
        assert_eq!(upstream.violations(), [], "{model}");
    }
}

/// A conversation that moved from another model continues: the request is repeated without the foreign
/// signature.
#[tokio::test]
async fn rejected_signature_is_omitted_on_retry() {
    let foreign = json!("Zm9yZWlnbg==");
    for model in ["claude/claude-opus", "google/gemini-3-pro"] {
        let (server, upstream) = serve(vec![ModelScript::new().say("Half past twelve.")]).await;
        let body = json!({"model": model, "messages": history(&foreign, &foreign), "tools": clock()});
        let (status, answer) = server.post("/v1/chat/completions", body).await;
        assert_eq!((status, upstream.violations().len()), (200, 1), "{model}: {answer}");
        assert!(!last_body(&upstream).to_string().contains("Zm9yZWlnbg=="), "{model}");
    }
}
