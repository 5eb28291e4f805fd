//! Tools of providers in requests: switched on where the dialect has them, refused where it has none.

use serde_json::{Value, json};
use throughline_wire::{
    Dialect, EncodeError, EncodedRequest, HostedToolKind, Message, ModelRequest, ModelSettings, ToolChoice,
    ToolDefinition, TransferMode, UpstreamProfile, UserPart, encode,
};

fn request(tools: &[&str], hosted: &[HostedToolKind], tool_choice: ToolChoice) -> ModelRequest {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    ModelRequest {
        model: "gemini-3-pro".to_owned(),
        messages: vec![Message::User(vec![UserPart::Text { text: "Hi".to_owned() }])],
        tools: tools.iter().map(|name| ToolDefinition::new(*name, "Looks.", schema.clone())).collect(),
        tool_choice,
        settings: ModelSettings { hosted: hosted.to_vec(), ..ModelSettings::default() },
        ..ModelRequest::default()
    }
}

fn encoded(dialect: Dialect, request: &ModelRequest) -> EncodedRequest {
    encode(dialect, request, &UpstreamProfile::default(), TransferMode::Stream)
        .unwrap_or_else(|error| panic!("{dialect}: {error}"))
}

fn kinds(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().cloned().unwrap_or_default();
    let kind = |tool: &Value| match (tool["type"].as_str(), tool["name"].as_str()) {
        (Some("function"), Some(name)) | (None, Some(name)) => name.to_owned(),
        (Some(kind), _) => kind.to_owned(),
        (None, None) => tool.as_object().and_then(|tool| tool.keys().next().cloned()).unwrap_or_default(),
    };
    tools.iter().map(kind).collect()
}

#[test]
fn hosted_tools_are_enabled_in_the_form_of_each_dialect() {
    let both = HostedToolKind::ALL;
    let asked = request(&["look"], &both, ToolChoice::Auto);

    let responses = encoded(Dialect::OpenaiResponses, &asked).body;
    assert_eq!(responses["tools"][1], json!({"type": "web_search"}));
    assert_eq!(responses["tools"][2], json!({"type": "code_interpreter", "container": {"type": "auto"}}));
    assert_eq!(
        responses["include"],
        json!([
            "reasoning.encrypted_content",
            "web_search_call.action.sources",
            "code_interpreter_call.outputs"
        ])
    );

    let anthropic = encoded(Dialect::Anthropic, &asked);
    assert_eq!(anthropic.body["tools"][0], json!({"type": "web_search_20250305", "name": "web_search"}));
    assert_eq!(
        anthropic.body["tools"][1],
        json!({"type": "code_execution_20250825", "name": "code_execution"})
    );
    assert_eq!(anthropic.body["tools"][2]["name"], "look");
    assert!(anthropic.headers.contains(&("anthropic-beta", "code-execution-2025-08-25".to_owned())));

    let gemini = encoded(Dialect::Gemini, &asked).body;
    assert_eq!(kinds(&gemini["tools"]), ["functionDeclarations", "googleSearch", "codeExecution"]);
    assert_eq!(gemini["toolConfig"], json!({"includeServerSideToolInvocations": true}));
}

#[test]
fn hosted_tools_need_no_functions_and_are_sent_only_if_asked() {
    let search = [HostedToolKind::WebSearch];
    let alone = request(&[], &search, ToolChoice::Auto);
    assert_eq!(kinds(&encoded(Dialect::OpenaiResponses, &alone).body["tools"]), ["web_search"]);
    let anthropic = encoded(Dialect::Anthropic, &alone);
    assert_eq!(kinds(&anthropic.body["tools"]), ["web_search_20250305"]);
    assert_eq!(anthropic.headers.len(), 1, "only code needs the header");
    let gemini = encoded(Dialect::Gemini, &alone).body;
    assert_eq!(gemini["tools"], json!([{"googleSearch": {}}]));
    assert_eq!(gemini.get("toolConfig"), None);

    for dialect in [Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini] {
        let plain = encoded(dialect, &request(&[], &[], ToolChoice::Auto));
        assert_eq!(plain.body.get("tools"), None, "{dialect}");
    }
}

#[test]
fn tool_choice_none_forbids_hosted_tools() {
    let last = request(&["look"], &[HostedToolKind::WebSearch], ToolChoice::None);
    assert_eq!(encoded(Dialect::OpenaiResponses, &last).body["tool_choice"], "none");
    assert_eq!(encoded(Dialect::Anthropic, &last).body["tool_choice"], json!({"type": "none"}));
    let gemini = encoded(Dialect::Gemini, &last).body;
    assert_eq!(kinds(&gemini["tools"]), ["functionDeclarations"]);
    assert_eq!(gemini["toolConfig"], json!({"functionCallingConfig": {"mode": "NONE"}}));
}

#[test]
fn anthropic_function_named_like_a_hosted_tool_is_dropped() {
    let same = request(&["look", "web_search"], &[HostedToolKind::WebSearch], ToolChoice::Auto);
    assert_eq!(kinds(&encoded(Dialect::Anthropic, &same).body["tools"]), ["web_search_20250305", "look"]);
}

#[test]
fn unsupported_hosted_tool_error_names_supporting_dialects() {
    let asked = request(&[], &[HostedToolKind::CodeExecution], ToolChoice::Auto);
    for dialect in [Dialect::OpenaiChat, Dialect::Ollama] {
        let refused = encode(dialect, &asked, &UpstreamProfile::default(), TransferMode::Stream);
        assert_eq!(refused, Err(EncodeError::NoHostedTool(dialect, HostedToolKind::CodeExecution)));
    }
    assert_eq!(
        EncodeError::NoHostedTool(Dialect::Ollama, HostedToolKind::CodeExecution).to_string(),
        "ollama has no hosted tool `code_execution`; supported by openai-responses, anthropic, gemini"
    );
}

#[test]
fn request_hosted_tools_are_merged_with_the_defaults() {
    let of =
        |hosted: &[HostedToolKind]| ModelSettings { hosted: hosted.to_vec(), ..ModelSettings::default() };
    let both = of(&[HostedToolKind::CodeExecution]).with_defaults(&of(&HostedToolKind::ALL));
    assert_eq!(both.hosted, HostedToolKind::ALL);
}
