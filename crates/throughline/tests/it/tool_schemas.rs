//! Schemas of tools as strangers write them, through every dialect and known upstream: no provider refuses the request for one of
//! them.

use crate::known_upstreams::{self, KnownUpstream};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline_wire::{Message, ModelRequest, ToolDefinition, TransferMode, UserPart};

fn request(tools: &[ToolDefinition]) -> ModelRequest {
    ModelRequest {
        messages: vec![Message::User(vec![UserPart::Text { text: "Hi".into() }])],
        tools: tools.to_vec(),
        ..ModelRequest::default()
    }
}

/// The refusal of a request with these tools, if this upstream refuses it.
fn refusal(upstream: &KnownUpstream, tools: &[ToolDefinition]) -> Option<String> {
    let refusal = upstream.encode_and_read(&request(tools), TransferMode::Whole).err()?;
    refusal.lines().next().map(str::to_owned)
}

/// Sends the tools to every upstream: the refusals, each with the first tool that is refused alone.
fn refusals(list: &str, upstreams: &[KnownUpstream], tools: &[ToolDefinition]) -> Vec<String> {
    let (mut read, mut refusals) = (HashSet::new(), Vec::new());
    for upstream in upstreams {
        let encoded = upstream.encode(&request(tools), TransferMode::Whole);
        if !read.insert(upstream.reading_key(&encoded)) {
            continue;
        }
        let Err(whole) = upstream.read(&encoded) else { continue };
        let culprit = tools.iter().find_map(|tool| {
            let refusal = refusal(upstream, std::slice::from_ref(tool))?;
            Some(format!("{}: {refusal}\n{}", tool.name, tool.parameters))
        });
        let name = &upstream.name;
        refusals.push(format!("{list} at {name}: {}", culprit.unwrap_or(whole)));
    }
    refusals
}

#[track_caller]
fn check(failures: &[String]) {
    assert!(failures.is_empty(), "{} refusals\n{:.6000}", failures.len(), failures.join("\n\n"));
}

/// The lists of `tools/list` that servers have answered, with their names.
fn tool_lists() -> Vec<(String, Vec<ToolDefinition>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/fixtures/tool_lists");
    let lists = std::fs::read_dir(folder).expect("fixtures").map(|entry| {
        let file = std::fs::read(entry.expect("an entry").path()).expect("a file");
        let list: Value = serde_json::from_slice(&file).expect("JSON");
        let tools = list["tools"].as_array().expect("a list").iter().map(|tool| {
            let name = tool["name"].as_str().expect("a name").to_owned();
            ToolDefinition::new(name, "A tool.", tool["inputSchema"].clone())
        });
        (list["server"].as_str().expect("a server").to_owned(), tools.collect())
    });
    lists.collect()
}

#[test]
fn tools_of_real_mcp_servers_are_accepted_by_every_provider() {
    let (upstreams, lists) = (known_upstreams::all(), tool_lists());
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut failures = Vec::new();
        while let Some((server, tools)) = lists.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(refusals(server, &upstreams, tools));
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    check(&failures);
    let servers = lists.iter().filter(|(_, tools)| tools.len() >= 5).count();
    assert!(servers >= 40, "{servers} servers with five tools or more");
}

/// Every schema of the JSON Schema test suite, as the arguments of a tool and as one of them.
#[test]
fn json_schema_suite_is_accepted_as_tool_schemas() {
    let upstreams = known_upstreams::all();
    for (draft, schemas) in shapes() {
        let both = schemas.iter().flat_map(|schema| [schema.clone(), as_argument(schema)]);
        let tools: Vec<ToolDefinition> = both
            .enumerate()
            .map(|(number, schema)| ToolDefinition::new(format!("tool_{number}"), "A tool.", schema))
            .collect();
        // A provider with a limit of tools is sent all of them, too.
        let failures = tools.chunks(100).flat_map(|tools| refusals(&draft, &upstreams, tools));
        check(&failures.collect::<Vec<_>>());
    }
}

/// The same shapes as schemas of a structured reply, in each dialect's field for it.
#[test]
fn json_schema_suite_is_accepted_as_reply_schemas() {
    let shapes = shapes();
    let schemas: Vec<Value> = shapes.values().flatten().map(as_argument).collect();
    for upstream in known_upstreams::all() {
        let refusals = schemas.iter().filter_map(|schema| {
            let mut request = request(&[]);
            request.settings.extra = known_upstreams::reply_schema(upstream.dialect, schema)?;
            upstream.encode_and_read(&request, TransferMode::Whole).err()
        });
        check(&refusals.collect::<Vec<_>>());
    }
}

/// The suite's schemas by draft.
fn shapes() -> BTreeMap<String, Vec<Value>> {
    let shapes: Map<String, Value> =
        serde_json::from_str(include_str!("../json_schema_suite.json")).expect("JSON");
    shapes.into_iter().filter_map(|(draft, schemas)| Some((draft, schemas.as_array()?.clone()))).collect()
}

fn as_argument(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"value": schema}, "required": ["value"]})
}
