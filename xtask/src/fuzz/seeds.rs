//! Seed inputs of a fuzz target: bodies that are known to be valid.

use crate::repository;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Longer bodies would be cut anyway, and cut differently each time.
const SEED_BYTES_MAX: usize = 1023;

/// Writes the seeds of a target, each once; existing files stay.
pub(crate) fn write(target: &str, folder: &Path) -> Result<()> {
    for (number, body) in bodies(target)?.into_iter().enumerate() {
        let body = &body[..body.len().min(SEED_BYTES_MAX)];
        let seed = match target {
            // This one's first byte is text like the rest.
            "leaked" => body.to_vec(),
            // The first byte picks options and cuts: each body with another one.
            _ => [&[u8::try_from(number % 256).unwrap_or(0)], body].concat(),
        };
        fs::write(folder.join(format!("{number:04}")), seed).context("a seed cannot be written")?;
    }
    Ok(())
}

fn bodies(target: &str) -> Result<Vec<Vec<u8>>> {
    let api = target.replace('_', "-");
    let mut bodies = Vec::new();
    for path in repository::files("crates/wire/tests/fixtures", "") {
        let is_body = [".sse", ".ndjson", ".bin", ".json"].iter().any(|ending| path.ends_with(ending));
        if !is_body || path.ends_with(".expect.json") {
            continue;
        }
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        let fits = match target {
            "sse" | "leaked" => path.ends_with(".sse"),
            "arguments" => false,
            "text_protocol" => false,
            // Its bytes are picks, not text: it begins with nothing.
            "assembly" => false,
            _ => api == folder || api.starts_with(&format!("{folder}-")),
        };
        if fits {
            bodies.push(fs::read(repository::root().join(&path))?);
        }
    }
    if target == "arguments" {
        let documents = [
            r#"{"city":"Paris","n":[1,-2.5e3,true,null],"q":"a\nb\u00e9\ud83d\ude00","o":{}}"#,
            r#"{"a":"\ud83d"}"#,
            "{}",
            "[[[]]]",
            " {\"a\" : 1 } ",
            r#""text""#,
        ];
        bodies.extend(documents.map(|document| document.as_bytes().to_vec()));
    }
    if target == "text_protocol" {
        bodies.extend(TEXT_PROTOCOLS.map(|text| text.as_bytes().to_vec()));
    }
    bodies.extend(shared(target, &api)?);
    Ok(bodies)
}

/// Samples of `vcp` and `xml` by turns: the parity of the first byte picks the protocol.
const TEXT_PROTOCOLS: [&str; 6] = [
    "Sure.\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」,\np:「始」a「末」\n<<<[END_TOOL_REQUEST]>>>\nDone.",
    "```\n<tool_call>\n```\n<tool_call>{\"name\": \"T\", \"arguments\": {\"p\": \"</tool_call>\"}}</tool_call>",
    "<<<[TOOL_REQUEST]>>> tool_name:「始」Files「末」 command1:「始」Read「末」 p1:{始}b{末} command2:「始」Write「末」<<<[END_TOOL_REQUEST]>>>",
    "<tool_call>\n{\"name\": \"T\", \"arguments\": {\"p\": \"a\"}}\n</tool_call> x <tool_call>{\"name\": \"T\"}",
    "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始ESCAPE」<<<[END_TOOL_REQUEST]>>>「末ESCAPE」<<<[END_TOOL_REQUEST]>>> <<<~[x",
    "> <tool_call>{}\n<think>\n<tool_call>[{\"name\":\"a\"}]</tool_call></think><tool_call>[{\"name\":\"a\"}]</tool_call>",
];

/// Streams of the shared corpus of this API, if it is there.
fn shared(target: &str, api: &str) -> Result<Vec<Vec<u8>>> {
    let Some(corpus) = repository::vectors().map(|vectors| vectors.join("corpus")) else {
        return Ok(Vec::new());
    };
    let Ok(manifest) = fs::read_to_string(corpus.join("manifest.jsonl")) else { return Ok(Vec::new()) };
    let mut bodies = Vec::new();
    for line in manifest.lines() {
        let row: Value = serde_json::from_str(line).context("a line of the corpus's manifest is no JSON")?;
        let is_leaked = row["recovered_tool_calls"].is_array();
        let fits = match target {
            "assembly" | "text_protocol" => false,
            "sse" => row["api"] == "openai-chat" && row["origin"] == "synthetic",
            "leaked" => is_leaked,
            _ => row["api"] == api,
        };
        if fits && let Some(file) = row["file"].as_str() {
            bodies.extend(fs::read(corpus.join(file)));
        }
    }
    Ok(bodies)
}
