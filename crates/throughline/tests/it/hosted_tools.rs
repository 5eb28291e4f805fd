//! Tools that a provider runs itself: settings, what reaches the upstream, and what a turn shows of them.

use crate::support::at;
use serde_json::json;
use std::collections::BTreeMap;
use throughline::config::{ConfigFile, ConfigFlags, resolve};
use throughline::wire::{Dialect, HostedToolKind};
use throughline::{MessageBlock, Throughline, TurnRequest};
use throughline_testkit::script::ScriptMove;
use throughline_testkit::{FakeDialect, FakeUpstream, ModelScript, ScriptQueue};

fn sse(event: &str, data: serde_json::Value) -> String {
    let event = if event.is_empty() { String::new() } else { format!("event: {event}\n") };
    format!("{event}data: {data}\n\n")
}

/// A search in the provider's own form, between the texts of a reply.
fn search(dialect: Dialect) -> String {
    match dialect {
        Dialect::OpenaiResponses => {
            let item = json!({"id": "ws_1", "type": "web_search_call", "status": "completed",
                "action": {"type": "search", "query": "weather Oslo",
                    "sources": [{"type": "url", "url": "https://yr.no/"}]}});
            let done = json!({"type": "response.output_item.done", "output_index": 90, "item": item});
            sse("response.output_item.done", done)
        }
        Dialect::Anthropic => {
            let block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                "input": {"query": "weather Oslo"}});
            let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
                "content": [{"type": "web_search_result", "url": "https://yr.no/", "title": "Yr"}]});
            [(90, block), (91, result)]
                .into_iter()
                .map(|(index, block)| {
                    sse(
                        "content_block_start",
                        json!({"type": "content_block_start", "index": index, "content_block": block}),
                    ) + &sse("content_block_stop", json!({"type": "content_block_stop", "index": index}))
                })
                .collect()
        }
        _ => {
            let parts = json!([
                {"executableCode": {"language": "PYTHON", "code": "print(6*7)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
            ]);
            sse("", json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]}))
        }
    }
}

#[tokio::test]
async fn hosted_tool_calls_are_shown_in_the_message() {
    for (dialect, fake) in [
        (Dialect::OpenaiResponses, FakeDialect::OpenaiResponses),
        (Dialect::Anthropic, FakeDialect::Anthropic),
        (Dialect::Gemini, FakeDialect::Gemini),
    ] {
        let script = ModelScript::new().then(ScriptMove::Raw(search(dialect))).say("It snows.");
        let server = FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
        let upstream = at(&server, (dialect, fake)).hosted(HostedToolKind::ALL).unwrap();
        let app = Throughline::builder().upstream(upstream).model("m").build().unwrap();
        let message = app.ask("Weather in Oslo?").await.unwrap().finish().await;
        assert_eq!(message.text(), "It snows.", "{dialect}");
        let calls: Vec<_> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                MessageBlock::ToolCall(call) => {
                    let name = call.tool_name.as_ref().map(ToString::to_string);
                    Some((name.unwrap_or_default(), call.source.clone()))
                }
                _ => None,
            })
            .collect();
        let name = if dialect == Dialect::Gemini { "code_execution" } else { "web_search" };
        assert_eq!(calls, [(name.to_owned(), "upstream".to_owned())], "{dialect}");
        let body = server.requests()[0].body.to_string();
        for sent in match dialect {
            Dialect::OpenaiResponses => ["{\"type\":\"web_search\"}", "code_interpreter"],
            Dialect::Anthropic => ["web_search_20250305", "code_execution_20250825"],
            _ => ["googleSearch", "codeExecution"],
        } {
            assert!(body.contains(sent), "{dialect}: {body}");
        }
        assert_eq!(server.violations(), [], "{dialect}");
    }
}

fn resolved(text: &str) -> Result<throughline::config::AppSettings, String> {
    let file = ConfigFile::parse("throughline.toml", text).map_err(|error| error.to_string())?;
    resolve(Some(file), &BTreeMap::new(), &ConfigFlags::default()).map_err(|error| error.to_string())
}

#[test]
fn hosted_tools_are_enabled_only_where_supported() {
    let upstream = |dialect: &str, more: &str| {
        format!("[upstreams.u]\ndialect = \"{dialect}\"\nbase_url = \"https://api.example.com\"\n{more}")
    };
    let plain = "\n[agents.default]\nmodel = \"u/m\"\n";
    let agent = format!("{plain}hosted = [\"web_search\"]\n");
    let settings = resolved(&format!("{}{agent}", upstream("gemini", ""))).unwrap();
    assert_eq!(settings.agents["default"].settings.hosted, [HostedToolKind::WebSearch]);
    let both = upstream("anthropic", "hosted = [\"web_search\", \"code_execution\"]\n");
    resolved(&format!("{both}{plain}")).unwrap();

    let refused = resolved(&format!("{}{agent}", upstream("openai-chat", ""))).unwrap_err();
    assert!(
        refused.contains("upstream `u` uses openai-chat, which has no provider tool `web_search`")
            && refused.contains("hosted = [\"web_search\"]")
            && refused.contains("web.search"),
        "{refused}"
    );
    let refused =
        resolved(&format!("{}{plain}", upstream("ollama", "hosted = [\"code_execution\"]\n"))).unwrap_err();
    assert!(refused.contains("uses ollama, which has no provider tool `code_execution`"), "{refused}");
    let unknown =
        resolved(&format!("{}{plain}", upstream("gemini", "hosted = [\"telepathy\"]\n"))).unwrap_err();
    assert!(unknown.contains("telepathy") && unknown.contains("web_search"), "{unknown}");
}

/// An agent with the provider's tools, and a turn with a model that has none: the turn fails with the reason.
#[tokio::test]
async fn unsupported_hosted_tool_in_a_request_is_an_error() {
    let server = FakeUpstream::start(ScriptQueue::new([ModelScript::new().say("Hi.")])).await.unwrap();
    let upstream = at(&server, (Dialect::OpenaiChat, FakeDialect::OpenaiChat));
    let app = Throughline::builder().upstream(upstream).model("m").build().unwrap();
    let settings = throughline::wire::ModelSettings {
        hosted: vec![HostedToolKind::WebSearch],
        ..throughline::wire::ModelSettings::default()
    };
    let request = TurnRequest { input: "Hi".into(), settings, ..TurnRequest::default() };
    let message = app.start_turn(request).await.unwrap().finish().await;
    let said = format!("{:?}", message.blocks);
    assert!(said.contains("openai-chat has no hosted tool `web_search`"), "{said}");
    assert!(server.requests().is_empty());
}
