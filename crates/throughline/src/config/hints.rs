//! Remedies for the mistakes that people make most often in `throughline.toml`, and where a position in the file belongs.

use super::error::ConfigError;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys under which other programs expect a secret. Here a secret is never written into the file.
const SECRET_KEYS: [&str; 5] = ["api_key", "apikey", "key", "token", "secret"];
/// Names under which other programs list MCP servers.
const MCP_SECTIONS: [&str; 4] = ["mcpServers", "mcp_servers", "mcpservers", "servers"];
/// Beginnings of keys of well-known providers.
const KEY_PREFIXES: [&str; 9] = ["sk-", "gsk_", "AIza", "xai-", "hf_", "r8_", "pplx-", "ghp_", "tl_"];

/// True if a text is a key and not the name of an environment variable.
pub fn looks_like_key(text: &str) -> bool {
    let is_name = !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    KEY_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) || !is_name
}

/// A key or value of the file.
struct FileEntry<'t> {
    /// Keys from the top to this one.
    path: Vec<String>,
    /// The table that it is in.
    table: &'t DeTable<'t>,
    value: &'t Spanned<DeValue<'t>>,
}

impl FileEntry<'_> {
    /// True for `outer.ANY.key`.
    fn is_in(&self, outer: &str, key: &str) -> bool {
        matches!(self.path.as_slice(), [first, _, last] if first == outer && last == key)
    }
}

/// The innermost entry at a position.
fn entry_at<'t>(table: &'t DeTable<'t>, path: &[String], at: usize) -> Option<FileEntry<'t>> {
    let mut found: Option<FileEntry<'t>> = None;
    for (key, value) in table {
        let path: Vec<String> = path.iter().cloned().chain([key.get_ref().to_string()]).collect();
        if let DeValue::Table(inner) = value.get_ref()
            && let Some(entry) = entry_at(inner, &path, at)
        {
            return Some(entry);
        }
        let is_here = |span: Range<usize>| span.contains(&at);
        if is_here(key.span()) || is_here(value.span()) {
            found = Some(FileEntry { path, table, value });
        }
    }
    found
}

/// Position of the value at this path.
pub(crate) fn value_span(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let (last, tables) = path.split_last()?;
    let table =
        tables.iter().try_fold(document.get_ref(), |table, name| match find(table, name)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        })?;
    find(table, last).map(Spanned::span)
}

/// Name of the agent in the file whose model is at this position.
pub(crate) fn agent_with_model_at(text: &str, model: Range<usize>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let DeValue::Table(agents) = find(document.get_ref(), "agents")?.get_ref() else { return None };
    let agent = agents.iter().find(|(_, agent)| match agent.get_ref() {
        DeValue::Table(agent) => find(agent, "model").is_some_and(|value| value.span() == model),
        _ => false,
    });
    agent.map(|(name, _)| name.get_ref().to_string())
}

fn find<'t>(table: &'t DeTable<'t>, name: &str) -> Option<&'t Spanned<DeValue<'t>>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

/// Adds to an error of the TOML reader what most likely was meant.
pub(super) fn with_hint(error: ConfigError, text: &str, span: Range<usize>) -> ConfigError {
    let mut error = error;
    error.message = in_plain_words(&error.message);
    if error.message == "missing field `model`" {
        return error.help("model = \"openai/gpt-5-mini\"; `demo` is built in");
    }
    let Ok(document) = DeTable::parse(text) else { return error };
    let Some(entry) = entry_at(document.get_ref(), &[], span.start) else { return error };
    let Some(key) = entry.path.last().map(String::as_str) else { return error };
    let is_unknown = error.message.starts_with("unknown field");
    if is_unknown && entry.path.first().is_some_and(|first| MCP_SECTIONS.contains(&first.as_str())) {
        return error
            .help("use [mcp.NAME]; `throughline mcp import FILE` converts the JSON of other clients");
    }
    if is_unknown
        && entry.path.first().is_some_and(|first| first == "upstreams")
        && SECRET_KEYS.contains(&key)
    {
        let help = "do not put keys into this file: use key_env = \"NAME_OF_A_VARIABLE\", or run `throughline connect`";
        return error.without_values().help(help);
    }
    if entry.is_in("mcp", "args") || entry.is_in("mcp", "command") {
        return match mcp_command(entry.table) {
            Some(command) if is_unknown || !entry.value.get_ref().is_array() => {
                error.help(format!("write program and arguments as one list: {command}"))
            }
            _ => error,
        };
    }
    let written = text.get(entry.value.span()).unwrap_or_default();
    match wanted_value(&error.message, key, written) {
        Some(help) => error.help(help),
        None => error,
    }
}

/// The message with plain words for the names of types.
fn in_plain_words(message: &str) -> String {
    let Some((what, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let words = match expected {
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => "a whole number",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        _ => return message.to_owned(),
    };
    format!("{what}, expected {words}")
}

/// The value in the form that is expected.
fn wanted_value(message: &str, key: &str, written: &str) -> Option<String> {
    let (what, expected) = message.rsplit_once(", expected ")?;
    if !what.starts_with("invalid type") {
        return None;
    }
    match expected {
        "a table" if key == "tool_call" && matches!(written, "true" | "false") => {
            Some(format!("tool_call = {{ enabled = {written} }}"))
        }
        "a list" if written.starts_with('"') && key == "argv" => {
            Some(format!("argv = {}", word_list(written)))
        }
        "a list" if written.starts_with('"') => Some(format!("{key} = [{written}]")),
        "a number" | "a whole number" => {
            let text = written.trim_matches(['"', '\'']);
            let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let unit = match key {
                _ if key.ends_with("_ms") || key.ends_with("_ms_max") => "in milliseconds, ",
                _ if key.ends_with("_days") => "in days, ",
                _ if key.ends_with("bytes_max") => "in bytes, ",
                _ => "",
            };
            number.parse::<f64>().ok()?;
            let is_exact = number == text || (unit == "in days, " && text == format!("{number}d"));
            Some(match (unit, is_exact) {
                (_, true) => format!("{unit}without quotes: {key} = {number}"),
                ("", false) => format!("without quotes and unit: {key} = {number}"),
                _ => format!("{unit}a number without quotes and unit"),
            })
        }
        _ => None,
    }
}

/// `command = [...]` of an MCP server that is written with a text, or with `args`.
fn mcp_command(table: &DeTable<'_>) -> Option<String> {
    let text = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    };
    let mut words: Vec<String> = match find(table, "command")?.get_ref() {
        DeValue::String(line) => line.split_whitespace().map(str::to_owned).collect(),
        DeValue::Array(items) => items.iter().filter_map(|item| text(item.get_ref())).collect(),
        _ => return None,
    };
    if let Some(DeValue::Array(arguments)) = find(table, "args").map(Spanned::get_ref) {
        words.extend(arguments.iter().filter_map(|item| text(item.get_ref())));
    }
    Some(format!("command = {words:?}"))
}

/// `["df", "-h"]`; with a shell if the line needs one.
fn word_list(quoted: &str) -> String {
    let line = quoted.trim_matches('"');
    if line.contains(['|', '>', '<', '&', ';', '$', '*']) {
        return format!("{:?}, because no shell is used", ["sh", "-c", line]);
    }
    format!("{:?}", line.split_whitespace().collect::<Vec<_>>())
}
