//! Settings of `[web_search]`.

use crate::process::SpawnContext;
use crate::settings::ToolSettingError;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Settings of `[web_search]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSettings {
    /// The service: `searxng`, `brave`, `tavily`.
    pub provider: SearchProvider,
    /// Address of the service. SearXNG needs one; the others have a default. A configured address may be
    /// private.
    #[serde(default)]
    pub url: Option<String>,
    /// `"$NAME"`: the environment variable that holds the key. Default: `BRAVE_API_KEY`, `TAVILY_API_KEY`.
    #[serde(default)]
    pub key: Option<String>,
    /// Results of a search that does not say how many. Default 5.
    #[serde(default = "results_default")]
    pub results: usize,
}

fn results_default() -> usize {
    5
}

/// A search service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchProvider {
    /// SearXNG, or a compatible service.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
}

impl fmt::Display for SearchProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave",
            Self::Tavily => "Tavily",
        })
    }
}

impl SearchProvider {
    fn address(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Self::Tavily => Some("https://api.tavily.com/search"),
        }
    }

    fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("$BRAVE_API_KEY"),
            Self::Tavily => Some("$TAVILY_API_KEY"),
        }
    }
}

impl WebSearchSettings {
    pub(super) fn address(&self) -> Result<Url, ToolSettingError> {
        let text = match (self.url.as_deref(), self.provider.address()) {
            (Some(url), _) | (None, Some(url)) => url,
            (None, None) => {
                return Err(ToolSettingError::new(
                    "SearXNG needs `url`, the address of your instance",
                    "url = \"http://127.0.0.1:8888\" under [web_search].",
                ));
            }
        };
        let invalid = |why: String| {
            ToolSettingError::new(format!("url: {why}"), "For example \"http://127.0.0.1:8888\".")
        };
        let url =
            Url::parse(text).map_err(|error| invalid(format!("`{text}` is not an address: {error}")))?;
        match url.scheme() {
            "http" | "https" if url.host_str().is_some() => Ok(url),
            other => Err(invalid(format!("`{other}` must be http or https"))),
        }
    }

    /// The key; `None` = none is needed.
    pub(super) fn key(&self, spawn_context: &SpawnContext) -> Result<Option<String>, ToolSettingError> {
        let Some(text) = self.key.as_deref().or(self.provider.key_variable()) else { return Ok(None) };
        spawn_context.resolve_value(text).map(Some).map_err(|why| {
            let remedy =
                format!("{} needs a key: set the variable, or name another in `key`.", self.provider);
            ToolSettingError::new(format!("key: {why}"), &remedy)
        })
    }

    /// Values that must be redacted.
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        self.key(spawn_context).ok().flatten().into_iter().collect()
    }
}
