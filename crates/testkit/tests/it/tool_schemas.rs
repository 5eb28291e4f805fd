//! Schemas of tools as strangers write them, through every dialect: no provider refuses the request for one of them.

use crate::client;
use serde_json::{Map, Value, json};
use std::path::Path;
use throughline_testkit::{
    FakeDialect, FakeUpstream, FakeUpstreamHandle, ModelScript, ReceivedRequest, ToolSchemaRule,
    UpstreamHabits,
};
use throughline_wire::{
    Dialect, Message, ModelRequest, ToolDefinition, ToolSchemaForm, TransferMode, UpstreamProfile, UserPart,
    encode,
};

/// Every provider: its format, its rules and what we know of it.
async fn providers() -> Vec<(&'static str, FakeDialect, UpstreamProfile, FakeUpstreamHandle)> {
    let mut providers = Vec::new();
    let plain = UpstreamProfile { tool_schemas: ToolSchemaForm::Plain, ..UpstreamProfile::default() };
    let standard = UpstreamProfile::default();
    let dialects =
        FakeDialect::ALL.map(|dialect| (dialect.name(), dialect, ToolSchemaRule::Openai, standard.clone()));
    let flavors = [
        ("moonshot", FakeDialect::OpenaiChat, ToolSchemaRule::Moonshot, plain.clone()),
        ("llama.cpp", FakeDialect::OpenaiChat, ToolSchemaRule::LlamaCpp, plain),
    ];
    for (name, dialect, tool_schemas, profile) in dialects.into_iter().chain(flavors) {
        let habits = UpstreamHabits { tool_schemas, ..UpstreamHabits::default() };
        let answer = |_: &throughline_testkit::SeenRequest| ModelScript::new().say("Hi");
        let upstream = FakeUpstream::with_habits(habits).serve(answer).await.expect("starts");
        providers.push((name, dialect, profile, upstream));
    }
    providers
}

/// Sends the tools to every provider: the refusals, each with the first tool that is refused alone.
async fn refusals(list: &str, tools: &[ToolDefinition]) -> Vec<String> {
    let mut refusals = Vec::new();
    for (name, dialect, profile, upstream) in &providers().await {
        let Some(refusal) = send(*dialect, profile, upstream, tools).await else { continue };
        let mut culprit = String::new();
        for tool in tools {
            if let Some(refusal) = send(*dialect, profile, upstream, std::slice::from_ref(tool)).await {
                culprit = format!("{}: {refusal}\n{}", tool.name, tool.parameters);
                break;
            }
        }
        refusals.push(format!("{list} at {name}: {}", if culprit.is_empty() { refusal } else { culprit }));
    }
    refusals
}

async fn send(
    dialect: FakeDialect,
    profile: &UpstreamProfile,
    upstream: &FakeUpstreamHandle,
    tools: &[ToolDefinition],
) -> Option<String> {
    let request = ModelRequest {
        model: "mock".into(),
        messages: vec![Message::User(vec![UserPart::Text { text: "Hi".into() }])],
        tools: tools.to_vec(),
        ..ModelRequest::default()
    };
    let wire: Dialect = dialect.name().parse().expect("the same names");
    let encoded = encode(wire, &request, profile, TransferMode::Whole).expect("encodes");
    let is_whole = encoded.path.starts_with("/v1/") || encoded.path.starts_with("/api/");
    let path = if is_whole { encoded.path } else { format!("{}{}", dialect.base_path(), encoded.path) };
    let reply = client::post(upstream, &path, &encoded.body).await;
    (reply.status != 200).then(|| reply.text())
}

/// A tool of this schema, named by its number.
fn tool(number: usize, schema: &Value) -> ToolDefinition {
    ToolDefinition::new(format!("tool_{number}"), "A tool.", schema.clone())
}

#[tokio::test]
async fn the_tools_of_real_mcp_servers_are_taken_by_every_provider() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/fixtures/tool_lists");
    let mut lists: Vec<_> =
        std::fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("an entry").path()).collect();
    lists.sort();
    let (mut servers, mut failures) = (0, Vec::new());
    for path in lists {
        let list: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let schemas = list["tools"].as_array().expect("a list").iter().map(|tool| &tool["inputSchema"]);
        let tools: Vec<ToolDefinition> =
            schemas.enumerate().map(|(number, schema)| tool(number, schema)).collect();
        servers += usize::from(tools.len() >= 5);
        failures.extend(refusals(list["server"].as_str().unwrap_or_default(), &tools).await);
    }
    assert!(failures.is_empty(), "{} refusals\n{}", failures.len(), failures.join("\n\n"));
    assert!(servers >= 40, "{servers} servers with five tools or more");
}

/// Every schema of the JSON Schema test suite, as the arguments of a tool and as one of them.
#[tokio::test]
async fn the_shapes_of_the_json_schema_test_suite_are_taken_by_every_provider() {
    let shapes: Map<String, Value> =
        serde_json::from_str(include_str!("../json_schema_suite.json")).expect("JSON");
    for (draft, schemas) in shapes.iter().filter_map(|(draft, schemas)| Some((draft, schemas.as_array()?))) {
        let both = schemas.iter().flat_map(|schema| {
            [
                schema.clone(),
                json!({"type": "object", "properties": {"value": schema}, "required": ["value"]}),
            ]
        });
        let tools: Vec<ToolDefinition> =
            both.enumerate().map(|(number, schema)| tool(number, &schema)).collect();
        let failures = refusals(draft, &tools).await;
        assert!(failures.is_empty(), "{} refusals\n{}", failures.len(), failures.join("\n\n"));
    }
}

/// The same shapes as schemas of a structured reply, by the field that each dialect has for it.
#[test]
fn the_shapes_of_the_suite_are_taken_as_reply_schemas() {
    let shapes: Map<String, Value> =
        serde_json::from_str(include_str!("../json_schema_suite.json")).expect("JSON");
    let shapes = shapes.values().filter_map(Value::as_array).flatten();
    let plain = UpstreamProfile { tool_schemas: ToolSchemaForm::Plain, ..UpstreamProfile::default() };
    let in_chat = |schema: &Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}});
    let of = |name: &str, schema: &Value| match name {
        "anthropic" | "bedrock-anthropic" => {
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}})
        }
        "gemini" => {
            json!({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}})
        }
        "ollama" => json!({"format": schema}),
        _ => in_chat(schema),
    };
    let providers = [
        (FakeDialect::Anthropic, ToolSchemaRule::Openai, UpstreamProfile::default()),
        (FakeDialect::BedrockAnthropic, ToolSchemaRule::Openai, UpstreamProfile::default()),
        (FakeDialect::Gemini, ToolSchemaRule::Openai, UpstreamProfile::default()),
        (FakeDialect::Ollama, ToolSchemaRule::Openai, UpstreamProfile::default()),
        (FakeDialect::OpenaiChat, ToolSchemaRule::Moonshot, plain.clone()),
        (FakeDialect::OpenaiChat, ToolSchemaRule::LlamaCpp, plain),
    ];
    for shape in shapes {
        let schema = json!({"type": "object", "properties": {"value": shape}, "required": ["value"]});
        for (dialect, tool_schemas, profile) in &providers {
            let mut request = ModelRequest {
                model: "mock".into(),
                messages: vec![Message::User(vec![UserPart::Text { text: "Hi".into() }])],
                ..ModelRequest::default()
            };
            request.settings.extra = of(dialect.name(), &schema).as_object().expect("an object").clone();
            let wire: Dialect = dialect.name().parse().expect("the same names");
            let encoded = encode(wire, &request, profile, TransferMode::Whole).expect("encodes");
            let prefix = if encoded.path.starts_with(dialect.base_path()) { "" } else { dialect.base_path() };
            let headers = encoded.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let received = ReceivedRequest {
                path: format!("{prefix}{}", encoded.path),
                headers: headers.collect(),
                body: encoded.body.to_string().into_bytes(),
                ..ReceivedRequest::default()
            };
            let habits = UpstreamHabits { tool_schemas: *tool_schemas, ..UpstreamHabits::default() };
            if let Err(refusal) = dialect.read(&received, &habits) {
                panic!("{dialect}: {refusal}\n{schema}\n{}", encoded.body);
            }
        }
    }
}
