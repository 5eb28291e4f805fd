//! MCP servers as other clients list them: `mcpServers` of Claude and Cursor, `servers` of VS Code.
//!
//! Values of variables and headers are taken over only where they are plainly no secrets. All others become the name of a
//! variable, and arguments that look like secrets are left out: neither is ever printed.

use crate::messages;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use throughline::config::looks_like_key;
use throughline_tools::mcp::{McpServer, SERVER_NAME_BYTES_MAX};
use toml_edit::{Array, InlineTable, Table, value};

/// Placeholder for an argument that is not imported.
const WITHHELD_ARGUMENT: &str = "REPLACE_ME";

/// One server, ready to be written.
#[derive(Debug)]
pub(crate) struct ImportedServer {
    /// Name of its section.
    pub(crate) name: String,
    endpoint: Endpoint,
    cwd: Option<String>,
    is_enabled: bool,
    /// Variables that must be set for it.
    pub(crate) variables: Vec<String>,
    /// Parts that were not taken over, with the reasons.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug)]
enum Endpoint {
    Program { command: Vec<String>, env: BTreeMap<String, String> },
    Url { url: String, headers: BTreeMap<String, String> },
}

/// The servers of a file, by name.
///
/// # Errors
/// It is not JSON, or lists no servers, as a message.
pub(crate) fn read_servers(text: &str) -> Result<Vec<ImportedServer>, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| messages::not_json(&error))?;
    let lists = ["/mcpServers", "/servers", "/mcp/servers", "/mcp/mcpServers", "/context_servers"];
    let listed = lists.iter().find_map(|path| document.pointer(path)?.as_object());
    let listed = listed.ok_or_else(messages::lists_no_servers)?;
    if listed.is_empty() {
        return Err(messages::server_list_empty());
    }
    listed.iter().map(|(name, entry)| read_server(name, entry)).collect()
}

fn read_server(name: &str, entry: &Value) -> Result<ImportedServer, String> {
    let entry = entry.as_object().ok_or_else(|| messages::server_is_no_object(name))?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut variables = Vec::new();
    let mut notes = Vec::new();
    let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| text(key));
    let endpoint = match (text("command"), url) {
        (Some(program), _) => Endpoint::Program {
            command: command_words(program, entry, &mut notes),
            env: named_values(name, entry.get("env"), &mut variables),
        },
        (None, Some(url)) => {
            if text("type").as_deref() == Some("sse") {
                notes.push(messages::older_transport());
            }
            Endpoint::Url { url, headers: named_values(name, entry.get("headers"), &mut variables) }
        }
        (None, None) => return Err(messages::server_without_endpoint(name)),
    };
    let is_set = |key: &str| entry.get(key).and_then(Value::as_bool);
    Ok(ImportedServer {
        name: section_name(name),
        endpoint,
        cwd: text("cwd"),
        is_enabled: is_set("disabled") != Some(true) && is_set("enabled") != Some(false),
        variables,
        notes,
    })
}

/// Program and arguments. One that looks like a secret is left out.
fn command_words(program: String, entry: &Map<String, Value>, notes: &mut Vec<String>) -> Vec<String> {
    let mut words = vec![program];
    let mut is_secret = false;
    for argument in entry.get("args").and_then(Value::as_array).into_iter().flatten() {
        let argument = argument.as_str().map_or_else(|| argument.to_string(), str::to_owned);
        let option = argument.split_once('=').filter(|(name, _)| names_secret(name));
        let word = match option {
            _ if is_secret || is_secret_text(&argument) => WITHHELD_ARGUMENT.to_owned(),
            Some((name, _)) => format!("{name}={WITHHELD_ARGUMENT}"),
            None => argument.clone(),
        };
        if word != argument {
            notes.push(messages::argument_left_out(words.len()));
        }
        is_secret = argument.starts_with('-') && !argument.contains('=') && names_secret(&argument);
        words.push(word);
    }
    words
}

/// True for a word such as `sk-…` or `Authorization: Bearer …`.
fn is_secret_text(text: &str) -> bool {
    let bare = text.to_ascii_lowercase();
    let has_key = text.split([' ', ':', '=']).any(|word| word.len() >= 16 && has_key_prefix(word));
    has_key || bare.contains("bearer ") || bare.contains("basic ")
}

fn has_key_prefix(word: &str) -> bool {
    // Names of variables have no such prefix, and anything else that is no name is judged by its letters.
    looks_like_key(word) && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) && {
        word.starts_with("sk-") || word.contains('_') || !word.contains('-')
    }
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "passwd", "credential", "auth", "header"]
        .iter()
        .any(|part| name.contains(part))
}

/// Variables or headers: plain values as they are, the rest as `$NAME`.
fn named_values(
    server: &str,
    given: Option<&Value>,
    variables: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let given = given.and_then(Value::as_object).into_iter().flatten();
    let mut values = BTreeMap::new();
    for (name, given) in given {
        let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        if !names_secret(name) && is_plain(&text) {
            values.insert(name.clone(), text);
            continue;
        }
        let variable = referenced_variable(&text).unwrap_or_else(|| variable_name(server, name));
        values.insert(name.clone(), format!("${variable}"));
        variables.push(variable);
    }
    values
}

/// True for a flag, a number, a folder or a short word, which cannot be a secret.
fn is_plain(text: &str) -> bool {
    let is_word = text.len() <= 16 && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let is_folder = text.starts_with('/') && !text.contains(['@', '?', '=']) && text.len() <= 200;
    text.parse::<f64>().is_ok_and(|_| text.len() <= 6) || is_word || is_folder
}

/// `${env:NAME}`, `${NAME}` and `${input:name}` of other clients.
fn referenced_variable(text: &str) -> Option<String> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = inner.rsplit(':').next()?;
    Some(variable_form(name))
}

/// Headers get a variable named after their server.
fn variable_name(server: &str, name: &str) -> String {
    if name.chars().any(|c| c.is_ascii_lowercase() || c == '-') {
        variable_form(&format!("{server}_{name}"))
    } else {
        variable_form(name)
    }
}

fn variable_form(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The name in the form that a section may have.
fn section_name(name: &str) -> String {
    let probe = McpServer { command: vec!["x".to_owned()], ..McpServer::default() };
    if probe.check(name).is_ok() {
        return name.to_owned();
    }
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '_' })
        .take(SERVER_NAME_BYTES_MAX)
        .collect();
    if probe.check(&plain).is_ok() { plain } else { "server".to_owned() }
}

impl ImportedServer {
    /// `[mcp.NAME]`.
    pub(crate) fn section(&self) -> Table {
        let mut section = Table::new();
        let inline = |values: &BTreeMap<String, String>| -> InlineTable {
            values.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
        };
        match &self.endpoint {
            Endpoint::Program { command, env } => {
                section.insert("command", value(command.iter().collect::<Array>()));
                if !env.is_empty() {
                    section.insert("env", value(inline(env)));
                }
            }
            Endpoint::Url { url, headers } => {
                section.insert("url", value(url));
                if !headers.is_empty() {
                    section.insert("headers", value(inline(headers)));
                }
            }
        }
        if let Some(cwd) = &self.cwd {
            section.insert("cwd", value(cwd));
        }
        if !self.is_enabled {
            section.insert("enabled", value(false));
        }
        section
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_copied_from_client_configs() {
        let text = r#"{"mcpServers": {"my server": {"command": "npx", "args": ["-y", "pkg", "--api-key", "abcdef",
            "--token=xyz", "--header", "Authorization: Bearer qqq", "sk-proj-0123456789abcdef", "--port", "8080"],
            "env": {"API_TOKEN": "hunter2", "DATABASE_URL": "postgres://u:hunter2@h/d", "LOG_LEVEL": "debug",
            "DEBUG": "1", "OTHER": "${env:THEIRS}", "OPAQUE": "Zm9vYmFyYmF6"}}}}"#;
        let servers = read_servers(text).unwrap();
        let section = servers[0].section().to_string();
        for secret in ["abcdef", "xyz", "qqq", "sk-proj", "hunter2", "Zm9v"] {
            assert!(!section.contains(secret), "{secret} in {section}");
        }
        assert!(section.contains("LOG_LEVEL = \"debug\"") && section.contains("DEBUG = \"1\""), "{section}");
        assert!(
            section.contains("\"-y\", \"pkg\", \"--api-key\", \"REPLACE_ME\", \"--token=REPLACE_ME\""),
            "{section}"
        );
        assert!(section.contains("\"--port\", \"8080\""), "{section}");
        assert_eq!(servers[0].variables, ["API_TOKEN", "DATABASE_URL", "THEIRS", "OPAQUE"]);
        assert_eq!((servers[0].name.as_str(), servers[0].notes.len()), ("my_server", 4));
    }

    #[test]
    fn client_config_formats_are_read() {
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}}"#,
            r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#,
            r#"{"mcp": {"servers": {"a": {"url": "https://h/mcp"}}}}"#,
            r#"{"mcpServers": {"a": {"serverUrl": "https://h/mcp", "headers": {"Authorization": "Bearer x"}}}}"#,
        ] {
            assert_eq!(read_servers(text).unwrap().len(), 1, "{text}");
        }
        for text in ["", "[]", "{}", r#"{"mcpServers": {}}"#, r#"{"mcpServers": {"a": {}}}"#] {
            read_servers(text).unwrap_err();
        }
    }
}
