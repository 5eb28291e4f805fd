//! Settings of `[mcp.NAME]`, and their errors before anything is started.
//!
//! Never reads the environment directly, never starts or connects anything.

use crate::process::{ProcessLimits, SandboxSettings, SpawnContext};
#[cfg(feature = "mcp")]
use crate::secrets::SecretSet;
use crate::settings::is_secret_name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
#[cfg(feature = "mcp")]
use std::time::Duration;

/// Longest name of a server, in bytes: it is the group in the names of its tools.
pub const SERVER_NAME_BYTES_MAX: usize = 64;

/// `[mcp.NAME]`: a server of the Model Context Protocol, started as a program (`command`) or reached at a `url`.
///
/// ```
/// use throughline_tools::mcp::McpServer;
///
/// let server = McpServer { command: vec!["mcp-server-time".into()], ..McpServer::default() };
/// assert!(server.check("time").is_ok());
///
/// let neither = McpServer::default();
/// let error = neither.check("time").unwrap_err();
/// assert_eq!(error.message, "the MCP server `time` has neither `command` nor `url`");
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// Program and arguments. No shell reads them.
    pub command: Vec<String>,
    /// Environment variables that the program gets. `"$NAME"` takes the value of ours.
    pub env: BTreeMap<String, String>,
    /// Names of further variables of ours that the program may see. Without them, it sees what a program
    /// needs to run (`PATH`, `HOME`, `LANG`, …) and no secrets.
    pub env_allow: Vec<String>,
    /// Working directory of the program. Default: ours.
    pub cwd: Option<PathBuf>,
    /// Files and network that the program may reach. Default: not confined, since servers put their files anywhere.
    pub sandbox: Option<SandboxSettings>,
    /// Resources that the program may use.
    pub limits: Option<ProcessLimits>,
    /// Address of a server that is not started by us, `https://example.com/mcp`.
    pub url: Option<String>,
    /// Headers of every request. `"$NAME"` takes the value of an environment variable.
    pub headers: BTreeMap<String, String>,
    /// Trust in the server's own hints about its tools' effects. Default false: each counts as one that reaches beyond
    /// this machine, and asks.
    pub trusted: bool,
    /// Revision of the protocol: `auto`, `2026-07-28` or `2025-11-25`. Default auto.
    pub era: ProtocolEra,
    /// Longest silence of a call without a result or progress, in milliseconds. Default 30,000.
    pub timeout_ms: u64,
    /// Longest run of a call with all its progress, in milliseconds. Default 600,000.
    pub total_timeout_ms: u64,
    /// Time for the server to start and to list its tools, in milliseconds. Default 30,000: `npx` may have to
    /// download it first.
    pub start_timeout_ms: u64,
    /// The tools to take, as the server calls them. Default: all.
    pub tools: Option<Vec<String>>,
    /// True if the server is used. Default true.
    pub enabled: bool,
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            env_allow: Vec::new(),
            cwd: None,
            sandbox: None,
            limits: None,
            url: None,
            headers: BTreeMap::new(),
            trusted: false,
            era: ProtocolEra::default(),
            timeout_ms: 30_000,
            total_timeout_ms: 600_000,
            start_timeout_ms: 30_000,
            tools: None,
            enabled: true,
        }
    }
}

/// Revision of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum ProtocolEra {
    /// `server/discover` first, and the handshake of 2025-11-25 where that is not known.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Revision without a handshake: each request identifies its client.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
    /// Revision with `initialize` and sessions.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

/// An error in `[mcp.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct McpSettingError {
    /// The key that is wrong; `None` = the section as a whole.
    pub key: Option<&'static str>,
    /// The error, in a sentence.
    pub message: String,
    /// The correction.
    pub help: String,
}

/// Endpoint of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpEndpoint<'s> {
    Program { program: &'s str, arguments: &'s [String] },
    Url(&'s str),
}

impl McpServer {
    /// Checks everything that can be checked without starting it.
    ///
    /// # Errors
    ///
    /// The first problem, with its key.
    pub fn check(&self, name: &str) -> Result<(), McpSettingError> {
        check_name(name)?;
        self.endpoint(name)?;
        let invalid = |key, message: String, help: &str| McpSettingError {
            key: Some(key),
            message: format!("the MCP server `{name}`: {message}"),
            help: help.to_owned(),
        };
        for (key, limit) in [
            ("timeout_ms", self.timeout_ms),
            ("total_timeout_ms", self.total_timeout_ms),
            ("start_timeout_ms", self.start_timeout_ms),
        ] {
            if limit == 0 {
                return Err(invalid(key, format!("`{key}` must not be 0"), "in milliseconds"));
            }
        }
        if self.total_timeout_ms < self.timeout_ms {
            let help =
                "`timeout_ms` is from one sign of life to the next, `total_timeout_ms` from start to end";
            return Err(invalid(
                "total_timeout_ms",
                "`total_timeout_ms` is shorter than `timeout_ms`".to_owned(),
                help,
            ));
        }
        if self.url.is_some() {
            let misplaced = [
                ("env", !self.env.is_empty()),
                ("env_allow", !self.env_allow.is_empty()),
                ("cwd", self.cwd.is_some()),
                ("sandbox", self.sandbox.is_some()),
                ("limits", self.limits.is_some()),
            ];
            if let Some((key, _)) = misplaced.into_iter().find(|(_, is_set)| *is_set) {
                return Err(invalid(
                    key,
                    format!("`{key}` is for a program, and this is a `url`"),
                    "remove it",
                ));
            }
        } else if !self.headers.is_empty() {
            let help = "pass secrets to a program with `env = { NAME = \"$NAME\" }`";
            return Err(invalid(
                "headers",
                "`headers` are for a `url`, and this is a program".to_owned(),
                help,
            ));
        }
        for header in self.headers.keys() {
            if reqwest::header::HeaderName::from_bytes(header.as_bytes()).is_err() {
                let help = "letters, digits and dashes";
                return Err(invalid("headers", format!("`{header}` cannot be the name of a header"), help));
            }
        }
        let names = self.env.keys().map(|name| ("env", name));
        for (key, variable) in names.chain(self.env_allow.iter().map(|name| ("env_allow", name))) {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                let help = "letters, digits and underscores";
                return Err(invalid(key, format!("`{variable}` cannot be the name of a variable"), help));
            }
        }
        if self.tools.as_ref().is_some_and(Vec::is_empty) {
            let help = "leave it out to use all tools; `enabled = false` disables the server";
            return Err(invalid("tools", "`tools = []` selects none".to_owned(), help));
        }
        Ok(())
    }

    pub(crate) fn endpoint(&self, name: &str) -> Result<McpEndpoint<'_>, McpSettingError> {
        let invalid =
            |key, message: String, help: &str| McpSettingError { key, message, help: help.to_owned() };
        match (self.command.as_slice(), self.url.as_deref()) {
            ([], None) => Err(invalid(
                None,
                format!("the MCP server `{name}` has neither `command` nor `url`"),
                "command = [\"program\", \"argument\"] starts one, url = \"https://…/mcp\" reaches one",
            )),
            ([_, ..], Some(_)) => Err(invalid(
                Some("url"),
                format!("the MCP server `{name}` has both `command` and `url`"),
                "keep one of them",
            )),
            ([program, ..], None) if program.trim().is_empty() => Err(invalid(
                Some("command"),
                format!("the MCP server `{name}`: the program, the first item of `command`, is empty"),
                "command = [\"program\", \"argument\"]",
            )),
            ([program, arguments @ ..], None) => Ok(McpEndpoint::Program { program, arguments }),
            ([], Some(url)) => match url::Url::parse(url) {
                Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => {
                    if !parsed.username().is_empty() || parsed.password().is_some() {
                        return Err(invalid(
                            Some("url"),
                            format!(
                                "the MCP server `{name}`: a name and a password do not belong into `url`"
                            ),
                            "headers = { Authorization = \"$NAME_OF_A_VARIABLE\" }",
                        ));
                    }
                    Ok(McpEndpoint::Url(url))
                }
                _ => Err(invalid(
                    Some("url"),
                    format!("the MCP server `{name}`: `{url}` is not a supported URL"),
                    "use an address that begins with https:// or http://",
                )),
            },
        }
    }
}

impl McpServer {
    /// Values that must be redacted, as far as they are known: those taken from variables, all headers, and
    /// those with the name of a secret.
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        let is_secret = |(name, text): &(&String, &String)| text.starts_with('$') || is_secret_name(name);
        let named = self.env.iter().filter(is_secret);
        let mut values: Vec<String> =
            named.filter_map(|(_, text)| spawn_context.resolve_value(text).ok()).collect();
        for expanded in self.headers.values().filter_map(|text| spawn_context.expand_variables(text).ok()) {
            values.push(expanded.text);
            values.extend(expanded.values);
        }
        let allowed_secrets = self.env_allow.iter().filter(|name| is_secret_name(name));
        values.extend(allowed_secrets.filter_map(|name| spawn_context.environment.get(name)).cloned());
        // `Bearer …`: what follows is the secret.
        let tokens: Vec<String> = values
            .iter()
            .filter_map(|value| value.split_once(' '))
            .map(|(_, token)| token.to_owned())
            .collect();
        values.into_iter().chain(tokens).collect()
    }
}

/// Properties of a started server.
#[cfg(feature = "mcp")]
impl McpServer {
    /// Identity of the server for its fingerprint: the whole command line, or the URL. Secrets are not in it.
    pub(crate) fn identity(&self) -> Vec<String> {
        match &self.url {
            Some(url) => vec![url.clone()],
            None => self.command.clone(),
        }
    }

    /// [`secret_values`](Self::secret_values), ready to be taken out.
    pub(crate) fn secrets(&self, spawn_context: &SpawnContext) -> SecretSet {
        SecretSet::new(self.secret_values(spawn_context))
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(crate) fn total_timeout(&self) -> Duration {
        Duration::from_millis(self.total_timeout_ms)
    }

    pub(crate) fn start_timeout(&self) -> Duration {
        Duration::from_millis(self.start_timeout_ms)
    }
}

/// The name of a server is a group: it has no dot, and nothing that an upstream would refuse.
fn check_name(name: &str) -> Result<(), McpSettingError> {
    let is_valid = !name.is_empty()
        && name.len() <= SERVER_NAME_BYTES_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_valid {
        return Ok(());
    }
    Err(McpSettingError {
        key: None,
        message: format!("`{name}` cannot be the name of an MCP server"),
        help: "use letters, digits, `_` and `-`, at most 64: it is the prefix of the names of its tools"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> McpServer {
        McpServer { command: vec!["mcp-server-time".into()], ..McpServer::default() }
    }

    fn remote() -> McpServer {
        McpServer { url: Some("https://example.com/mcp".into()), ..McpServer::default() }
    }

    #[test]
    fn invalid_setting_is_named_with_its_key() {
        let of = |edit: fn(&mut McpServer), base: McpServer| {
            let mut server = base;
            edit(&mut server);
            let error = server.check("files").unwrap_err();
            (error.key, error.message)
        };
        let url = |text: &str| {
            let error =
                McpServer { url: Some(text.into()), ..McpServer::default() }.check("files").unwrap_err();
            (error.key, error.message)
        };
        let table = [
            (of(|_| {}, McpServer::default()), None, "neither `command` nor `url`"),
            (of(|server| server.url = Some("https://a/".into()), program()), Some("url"), "both"),
            (of(|server| server.command = vec![" ".into()], program()), Some("command"), "is empty"),
            (url("files.example.com"), Some("url"), "is not a supported URL"),
            (url("file:///etc/passwd"), Some("url"), "is not a supported URL"),
            (url("https://me:secret@a/"), Some("url"), "do not belong into `url`"),
            (of(|server| server.timeout_ms = 0, program()), Some("timeout_ms"), "must not be 0"),
            (of(|server| server.start_timeout_ms = 0, program()), Some("start_timeout_ms"), "must not be 0"),
            (
                of(|server| server.total_timeout_ms = 1_000, program()),
                Some("total_timeout_ms"),
                "shorter than `timeout_ms`",
            ),
            (of(|server| server.cwd = Some("/".into()), remote()), Some("cwd"), "is for a program"),
            (
                of(|server| server.limits = Some(ProcessLimits::default()), remote()),
                Some("limits"),
                "is for a program",
            ),
            (
                of(|server| server.env_allow = vec!["A".into()], remote()),
                Some("env_allow"),
                "is for a program",
            ),
            (
                of(|server| drop(server.headers.insert("A".into(), "b".into())), program()),
                Some("headers"),
                "for a `url`",
            ),
            (
                of(|server| drop(server.headers.insert("A b".into(), "".into())), remote()),
                Some("headers"),
                "`A b`",
            ),
            (of(|server| drop(server.env.insert("A=B".into(), "".into())), program()), Some("env"), "`A=B`"),
            (of(|server| server.tools = Some(Vec::new()), program()), Some("tools"), "selects none"),
        ];
        for ((key, message), expected_key, expected) in table {
            assert_eq!(key, expected_key, "{message}");
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("files"), "{message}");
        }
        assert_eq!(program().check("files"), Ok(()));
        assert_eq!(remote().check("files"), Ok(()));
    }

    #[test]
    fn server_name_must_be_a_valid_group() {
        for good in ["files", "my-server", "A_1"] {
            assert_eq!(program().check(good), Ok(()), "{good}");
        }
        for bad in ["", "a.b", "a b", "天气", "a/b", &"x".repeat(65)] {
            let message = program().check(bad).unwrap_err().message;
            assert!(message.contains("cannot be the name"), "{message}");
        }
    }
}
