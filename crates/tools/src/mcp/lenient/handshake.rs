//! The answers of a handshake. If a server describes itself in an odd way, only the necessary fields are
//! read.

use rmcp::model::{CustomResult, ServerResult};
use serde_json::{Map, Value, json};

/// Reads the answer to `initialize`; an invalid one is left to the code of the handshake.
pub(super) fn read_initialize(result: Value) -> ServerResult {
    if let Ok(result) = serde_json::from_value(result.clone()) {
        return ServerResult::InitializeResult(result);
    }
    let repaired = json!({
        "protocolVersion": result.get("protocolVersion"),
        "capabilities": tool_capabilities(&result),
        "serverInfo": server_info(&result),
    });
    serde_json::from_value(repaired)
        .map_or(ServerResult::CustomResult(CustomResult::new(result)), ServerResult::InitializeResult)
}

/// The answer to `server/discover`.
pub(super) fn read_discover(result: Value) -> ServerResult {
    if let Ok(result) = serde_json::from_value(result.clone()) {
        return ServerResult::DiscoverResult(result);
    }
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    let versions: Option<Vec<&Value>> =
        versions.map(|versions| versions.iter().filter(|version| version.is_string()).collect());
    let repaired = json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": tool_capabilities(&result),
        "ttlMs": 0,
        "cacheScope": "private",
    });
    serde_json::from_value(repaired)
        .map_or(ServerResult::CustomResult(CustomResult::new(result)), ServerResult::DiscoverResult)
}

/// Tool capabilities of a server; no other ones are used.
fn tool_capabilities(result: &Value) -> Value {
    let changes = result.pointer("/capabilities/tools/listChanged").and_then(Value::as_bool);
    let tools: Map<String, Value> =
        changes.map(|changes| ("listChanged".to_owned(), Value::Bool(changes))).into_iter().collect();
    json!({ "tools": tools })
}

fn server_info(result: &Value) -> Value {
    let text = |field: &str| {
        let value = result.get("serverInfo").and_then(|info| info.get(field));
        value.and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    json!({"name": text("name"), "version": text("version")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_initialize_fields_do_not_fail_the_handshake() {
        let sound = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "odd", "version": "1"},
        });
        let with = |field: &str, value: Value| {
            let mut result = sound.clone();
            result[field] = value;
            result
        };
        let without = |field: &str| {
            let mut result = sound.clone();
            result.as_object_mut().unwrap().remove(field);
            result
        };
        for odd in [
            sound.clone(),
            without("capabilities"),
            without("serverInfo"),
            with("capabilities", Value::Null),
            with("capabilities", json!({"tools": true, "logging": 7})),
            with("serverInfo", Value::Null),
            with("serverInfo", json!({"name": 7})),
            with("instructions", json!(["read", "this"])),
            with("_meta", json!("odd")),
        ] {
            let ServerResult::InitializeResult(read) = read_initialize(odd.clone()) else { panic!("{odd}") };
            assert_eq!(read.protocol_version.as_str(), "2025-11-25", "{odd}");
        }
        for none in
            [without("protocolVersion"), with("protocolVersion", Value::Null), json!("hello"), json!({})]
        {
            assert!(matches!(read_initialize(none.clone()), ServerResult::CustomResult(_)), "{none}");
        }
    }

    #[test]
    fn supported_version_is_found_among_malformed_ones() {
        let odd = json!({"supportedVersions": [7, "2026-07-28", null], "capabilities": [], "ttlMs": "soon"});
        let ServerResult::DiscoverResult(read) = read_discover(odd) else { panic!("not read") };
        assert_eq!(read.supported_versions.len(), 1);
        assert!(matches!(read_discover(json!({"supportedVersions": 7})), ServerResult::CustomResult(_)));
    }
}
