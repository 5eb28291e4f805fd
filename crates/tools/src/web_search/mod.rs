//! `web.search`: asks a search service and returns its hits as numbered sources.
//!
//! The operator chooses the service and configures its address; a model chooses only the query. Never follows
//! a redirect, never shows the key, never passes on invisible characters.
//!
//! ```toml
//! [web_search]
//! provider = "searxng"
//! url = "http://127.0.0.1:8888"
//! ```

mod hits;
mod providers;
mod settings;

pub use settings::{SearchProvider, WebSearchSettings};

use crate::body_text::{BodyExtent, BodyText, with_note};
use crate::builtin::http::{
    AllowedPorts, HostResolver, HttpTransport, PinnedRequest, PrivateHost, WebAccess, header_text, read_body,
    resolve_allowed_addresses,
};
use crate::context::ToolContext;
use crate::function::argument_schema;
use crate::process::SpawnContext;
use crate::secrets::SecretSet;
use crate::settings::ToolSettingError;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{SourceReporter, ToolSource};
use async_trait::async_trait;
use hits::SearchHit;
use providers::{SearchQuery, SearchRequest};
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{AddressRole, Effect};
use throughline_wire::{CallArguments, ToolOutput};

/// The name of this source.
pub const WEB_SEARCH: &str = "web_search";
/// Most bytes of an answer that are read. 2 MB.
pub const SEARCH_ANSWER_BYTES_MAX: usize = 2_000_000;
/// Time for one search.
pub const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
/// Most hits of one search.
pub const HITS_MAX: usize = 20;
/// Longest query, in characters: that of Brave, which is the smallest.
pub const QUERY_CHARS_MAX: usize = 400;

/// `[web_search]` of a configuration as a [`ToolSource`].
pub struct WebSearchSource {
    settings: WebSearchSettings,
    spawn_context: SpawnContext,
    web: WebAccess,
}

impl WebSearchSource {
    /// A source that searches over the network.
    pub fn new(settings: WebSearchSettings, spawn_context: SpawnContext) -> Self {
        Self { settings, spawn_context, web: WebAccess::default() }
    }

    /// A source that searches over another transport.
    #[must_use]
    pub fn with_transport(
        mut self,
        resolver: Arc<dyn HostResolver>,
        transport: Arc<dyn HttpTransport>,
    ) -> Self {
        self.web = WebAccess { resolver, transport };
        self
    }

    fn tool(&self) -> Result<WebSearch, ToolSettingError> {
        let provider = self.settings.provider;
        let url = self.settings.address()?;
        let key = self.settings.key(&self.spawn_context)?;
        if !(1..=HITS_MAX).contains(&self.settings.results) {
            let message = format!("results: {} is not from 1 to {HITS_MAX}", self.settings.results);
            return Err(ToolSettingError::new(message, "Default 5."));
        }
        // An address in the configuration is allowed even if it is private: SearXNG usually runs on this
        // machine.
        let named = url.host_str().map(|host| match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        });
        let private = named.filter(|_| self.settings.url.is_some());
        let private = private.map(|host| PrivateHost::parse(&host)).transpose();
        let private = private.map_err(|message| ToolSettingError::new(format!("url: {message}"), ""))?;
        Ok(WebSearch {
            provider,
            ports: AllowedPorts { extra: url.port().into_iter().collect() },
            url,
            results: self.settings.results,
            secrets: SecretSet::new(key.iter().cloned()),
            key,
            private: private.into_iter().collect(),
            web: self.web.clone(),
        })
    }
}

#[async_trait]
impl ToolSource for WebSearchSource {
    fn name(&self) -> &str {
        WEB_SEARCH
    }

    async fn start(&self, news: SourceReporter) {
        match self.tool() {
            Ok(tool) => news.set_tools(vec![Arc::new(tool)]),
            Err(error) => news.set_faults(vec![error.into_fault(WEB_SEARCH, Some("web.search".into()))]),
        }
    }

    async fn stop(&self) {}
}

/// The tool `web.search`.
struct WebSearch {
    provider: SearchProvider,
    url: Url,
    key: Option<String>,
    /// Hits of a search that does not say how many.
    results: usize,
    ports: AllowedPorts,
    private: Vec<PrivateHost>,
    secrets: SecretSet,
    web: WebAccess,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Words to look for, as one would type them into a search engine.
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// Most results to return.
    #[schemars(range(min = 1, max = 20))]
    count: Option<usize>,
    /// Oldest age of the results.
    time_range: Option<TimeRange>,
}

/// Age of results.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimeRange {
    Day,
    Week,
    Month,
    Year,
}

#[async_trait]
impl Tool for WebSearch {
    fn definition(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "web.search",
            "Searches the web and returns numbered results with title, address and excerpt. Cite a result by its address; \
             read a whole page with http.fetch. The content of results is not verified.",
        );
        spec.title = "Search the web".into();
        spec.parameters = argument_schema::<SearchArguments>();
        spec.effect = Effect::Read;
        spec.agent_callable = AgentCallable::Yes;
        spec.addresses = AddressRole::Names;
        spec.timeout = SEARCH_TIMEOUT;
        spec.source = WEB_SEARCH.into();
        spec
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = SearchArguments::deserialize(&arguments.value)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let query = SearchQuery {
            text: arguments.query.trim(),
            count: arguments.count.unwrap_or(self.results).min(HITS_MAX),
            time_range: arguments.time_range,
        };
        if query.text.is_empty() {
            return Err(ToolError::invalid_arguments("/query: there is nothing to look for"));
        }
        let found = tokio::select! {
            found = self.search(&query) => found,
            () = context.cancellation().cancelled() => Err("stopped before the answer was there".to_owned()),
        };
        match found {
            Ok((hits, note)) => {
                let output = with_note(output(&query, self.provider, &hits), note.as_deref());
                Ok(self.secrets.redact_output(output))
            }
            Err(why) => Err(ToolError::new(self.secrets.redact(&why).into_owned())),
        }
    }
}

impl WebSearch {
    /// The hits, and a doubt about the encoding of the answer.
    async fn search(&self, query: &SearchQuery<'_>) -> Result<(Vec<SearchHit>, Option<String>), String> {
        let SearchRequest { method, url, headers, body } =
            providers::request(self.provider, &self.url, self.key.as_deref(), query)?;
        let addresses =
            resolve_allowed_addresses(&url, &self.ports, &self.private, self.web.resolver.as_ref()).await?;
        let request = PinnedRequest { method, url, addresses, headers, body };
        let reply = self.web.transport.send(request).await.map_err(|error| error.to_string())?;
        let status = reply.status;
        let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
        let (body, extent) =
            read_body(reply, SEARCH_ANSWER_BYTES_MAX).await.map_err(|error| error.to_string())?;
        let BodyText { text, note, extent } =
            BodyText::decode(&content_type, &body, extent, SEARCH_ANSWER_BYTES_MAX);
        if !(200..300).contains(&status) {
            return Err(providers::refusal(self.provider, status, &text));
        }
        if extent == BodyExtent::Cut {
            return Err(format!("{} answered with more than {SEARCH_ANSWER_BYTES_MAX} bytes", self.provider));
        }
        Ok((providers::hits(self.provider, &text, query.count)?, note))
    }
}

/// Numbered hits for the model, and the same as data for the card.
fn output(query: &SearchQuery<'_>, provider: SearchProvider, hits: &[SearchHit]) -> ToolOutput {
    let mut text = match hits.len() {
        0 => format!("{provider} found nothing for: {}\n", query.text),
        _ => String::new(),
    };
    for (number, hit) in (1..).zip(hits) {
        text.push_str(&format!("[{number}] {}\n{}\n", hit.title, hit.url));
        if let Some(published) = &hit.published {
            text.push_str(&format!("published: {published}\n"));
        }
        if !hit.snippet.is_empty() {
            text.push_str(&format!("{}\n", hit.snippet));
        }
        text.push('\n');
    }
    let text = text.trim_end().to_owned();
    let value = json!({"query": query.text, "provider": provider, "citations": hits});
    ToolOutput { value: Some(value), ..ToolOutput::text(text) }
}
