//! HTTP endpoints as tools: one request of the configuration, with a model's values in it.
//!
//! A value fills only its placeholder: it never changes the host, the structure of the path or another
//! parameter. Every address is checked as by `http.fetch`, and secrets are removed from every response.
//!
//! ```toml
//! [http_tools."weather.now"]
//! description = "Today's weather in a city"
//! url = "https://api.example.com/v1/{city}?units={units}"
//! headers = { authorization = "$WEATHER_KEY" }
//! answer = "/current"
//! effect = "read"
//! ```

mod body;
mod settings;
mod url_template;

pub use settings::{HttpMethod, HttpTool};

use crate::body_text::{BodyExtent, BodyText, media_type, with_note};
use crate::builtin::http::{
    AllowedPorts, ExchangeError, HostResolver, HttpResponse, HttpTransport, PinnedRequest, PrivateHost,
    WebAccess, header_text, is_broken_gateway, is_text, private_by_address, read_body, redirect_target,
    resolve_allowed_addresses,
};
use crate::context::ToolContext;
use crate::process::SpawnContext;
use crate::schema::truncate_chars;
use crate::secrets::SecretSet;
use crate::settings::{ToolSettingError, is_secret_name, time_limit, tool_name};
use crate::template;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{SourceReporter, ToolSource};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use body::BodyTemplate;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{CallArguments, Media, ToolName, ToolOutput};
use url_template::UrlTemplate;

/// The name of this source.
pub const HTTP_TOOLS: &str = "http_tools";
/// Most bytes of an answer that are read. 10 MB.
pub const ANSWER_BYTES_MAX: usize = 10_000_000;
/// Most redirects that are followed, each checked like the first address.
pub const REDIRECTS_MAX: usize = 3;
/// Most characters of an error response that the model receives.
const ERROR_CHARS_MAX: usize = 1_000;

/// `[http_tools.*]` of a configuration as a [`ToolSource`]. A broken entry does not affect the others.
pub struct HttpToolSource {
    settings: BTreeMap<String, HttpTool>,
    spawn_context: SpawnContext,
    web: WebAccess,
}

impl HttpToolSource {
    /// Tools by the name of their section, over the network.
    pub fn new(settings: BTreeMap<String, HttpTool>, spawn_context: SpawnContext) -> Self {
        Self { settings, spawn_context, web: WebAccess::default() }
    }

    /// A source over another transport.
    #[must_use]
    pub fn with_transport(
        mut self,
        resolver: Arc<dyn HostResolver>,
        transport: Arc<dyn HttpTransport>,
    ) -> Self {
        self.web = WebAccess { resolver, transport };
        self
    }
}

#[async_trait]
impl ToolSource for HttpToolSource {
    fn name(&self) -> &str {
        HTTP_TOOLS
    }

    async fn start(&self, news: SourceReporter) {
        let (mut tools, mut faults) = (Vec::new(), Vec::new());
        for (key, settings) in &self.settings {
            let name = tool_name(key, settings.name.as_deref(), HTTP_TOOLS);
            match self.endpoint(name.clone(), settings) {
                Ok(endpoint) => tools.push(Arc::new(endpoint) as Arc<dyn Tool>),
                Err(error) => faults.push(error.into_fault(HTTP_TOOLS, Some(name))),
            }
        }
        news.set_state(tools, faults);
    }

    async fn stop(&self) {}
}

/// One configured endpoint.
struct HttpEndpoint {
    spec: ToolSpec,
    method: Method,
    url: UrlTemplate,
    /// Pairs of the settings, after those of the template.
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<BodyTemplate>,
    answer_pointer: Option<String>,
    ports: AllowedPorts,
    private: Vec<PrivateHost>,
    secrets: SecretSet,
    web: WebAccess,
}

/// Parts of the request that no argument changes.
struct FixedParts {
    headers: HeaderMap,
    query: Vec<(String, String)>,
    secrets: SecretSet,
}

impl HttpToolSource {
    fn endpoint(&self, name: ToolName, settings: &HttpTool) -> Result<HttpEndpoint, ToolSettingError> {
        let url = UrlTemplate::parse(&settings.url).map_err(|message| {
            ToolSettingError::new(
                format!("url: {message}"),
                "For example https://api.example.com/v1/{city}?q={query}",
            )
        })?;
        let body = settings.body.as_ref().map(BodyTemplate::parse).transpose().map_err(|message| {
            ToolSettingError::new(
                format!("body: {message}"),
                "A table with {name} in its texts, or \"arguments\" for all of them.",
            )
        })?;
        if body.is_some() && matches!(settings.method, HttpMethod::Get | HttpMethod::Head) {
            return Err(ToolSettingError::new(
                "a GET or HEAD request has no body",
                "method = \"POST\", or no `body`.",
            ));
        }
        let parameters = parameters(settings, &url, body.as_ref())?;
        let FixedParts { headers, query, secrets } = self.fixed_parts(settings)?;
        let private = settings.private_hosts.iter().map(|text| PrivateHost::parse(text));
        let private = private.collect::<Result<Vec<_>, _>>().map_err(|message| {
            ToolSettingError::new(format!("private_hosts: {message}"), "For example [\"10.0.0.5:8080\"]")
        })?;
        if let Some(message) = private_by_address(url.origin(), &private) {
            let origin = url.origin();
            let host = origin.host_str().unwrap_or_default();
            let port = origin.port().map(|port| format!(":{port}")).unwrap_or_default();
            return Err(ToolSettingError::new(
                format!("url: {message}"),
                &format!("private_hosts = [\"{host}{port}\"] permits it."),
            ));
        }
        if let Some(pointer) =
            settings.answer.as_deref().filter(|text| !text.is_empty() && !text.starts_with('/'))
        {
            let message = format!("answer: `{pointer}` is no JSON pointer");
            return Err(ToolSettingError::new(
                message,
                "A JSON pointer begins with a slash: /current/temperature (RFC 6901).",
            ));
        }
        let mut spec = ToolSpec::new(name, settings.description.clone());
        if let Some(title) = &settings.title {
            spec.title.clone_from(title);
        }
        spec.parameters = parameters;
        spec.effect = settings.effect;
        spec.agent_callable = AgentCallable::Yes;
        HTTP_TOOLS.clone_into(&mut spec.source);
        spec.timeout = time_limit(settings.timeout_ms)?;
        Ok(HttpEndpoint {
            spec,
            method: settings.method.into(),
            // The port that the settings name is meant.
            ports: AllowedPorts { extra: url.port().into_iter().collect() },
            url,
            query,
            headers,
            body,
            answer_pointer: settings.answer.clone(),
            private,
            secrets,
            web: self.web.clone(),
        })
    }

    /// Headers and query of the settings, and what of them is secret.
    fn fixed_parts(&self, settings: &HttpTool) -> Result<FixedParts, ToolSettingError> {
        let value_of = |section: &str, name: &str, text: &str| {
            let expanded = self.spawn_context.expand_variables(text);
            expanded.map(|expanded| expanded.text).map_err(|message| {
                ToolSettingError::new(format!("{section}.{name}: {message}"), "Set it, or remove it.")
            })
        };
        let mut headers = HeaderMap::new();
        for (name, text) in &settings.headers {
            let value = value_of("headers", name, text)?;
            let invalid = |why: &str| ToolSettingError::new(format!("headers.{name}: {why}"), "");
            let parsed = HeaderName::try_from(name).map_err(|_| invalid("this is no name of a header"))?;
            // The error is not quoted: it may contain the value.
            let mut value =
                HeaderValue::try_from(value).map_err(|_| invalid("its value cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        let mut query = Vec::new();
        for (name, text) in &settings.query {
            query.push((name.clone(), value_of("query", name, text)?));
        }
        Ok(FixedParts {
            headers,
            query,
            secrets: SecretSet::new(settings.secret_values(&self.spawn_context)),
        })
    }
}

impl HttpTool {
    /// Values that must be redacted: those taken from variables, the texts that contain them, and those with
    /// the name of a secret.
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        let mut secrets = Vec::new();
        for (name, text) in self.headers.iter().chain(&self.query) {
            let Ok(expanded) = spawn_context.expand_variables(text) else { continue };
            if !expanded.values.is_empty() || is_secret_name(name) {
                secrets.push(expanded.text);
            }
            secrets.extend(expanded.values);
        }
        secrets
    }
}

/// The schema: given, or made of the names.
fn parameters(
    settings: &HttpTool,
    url: &UrlTemplate,
    body: Option<&BodyTemplate>,
) -> Result<Value, ToolSettingError> {
    let text_names: Vec<&str> =
        url.names().chain(body.into_iter().flat_map(BodyTemplate::text_arguments)).collect();
    let value_names: Vec<&str> = body.into_iter().flat_map(BodyTemplate::value_arguments).collect();
    let invalid = |message: String| {
        ToolSettingError::new(message, "Declare it under `parameters`; `{{` and `}}` are braces themselves.")
    };
    match &settings.parameters {
        None => {
            let all: Vec<&str> = text_names.iter().chain(&value_names).copied().collect();
            let mut schema = template::parameters_schema(None, &all).map_err(invalid)?;
            // A query parameter without a value is left out, so nothing but the path and the body needs all of theirs.
            let optional: Vec<&str> =
                url.optional_names().filter(|name| !value_names.contains(name)).collect();
            if let Some(required) = schema["required"].as_array_mut() {
                required.retain(|name| !name.as_str().is_some_and(|name| optional.contains(&name)));
            }
            Ok(schema)
        }
        given => {
            let schema = template::parameters_schema(given.as_ref(), &text_names).map_err(invalid)?;
            let unknown = value_names.iter().find(|name| schema["properties"].get(**name).is_none());
            match unknown {
                Some(name) => Err(invalid(format!("{{{name}}} is no parameter of the schema"))),
                None => Ok(schema),
            }
        }
    }
}

#[async_trait]
impl Tool for HttpEndpoint {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut url = self.url.fill(&arguments.value).map_err(ToolError::invalid_arguments)?;
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        let body = match &self.body {
            Some(body) => Some(body.fill(&arguments.value).map_err(ToolError::invalid_arguments)?),
            None => None,
        };
        let result = tokio::select! {
            result = self.send_request(url, body) => result,
            () = context.cancellation().cancelled() => Err(ToolError::new("stopped before the answer was there")),
        };
        match result {
            Ok(output) => Ok(self.secrets.redact_output(output)),
            Err(error) => Err(error.redacted(&self.secrets)),
        }
    }
}

impl HttpEndpoint {
    async fn send_request(&self, first: Url, body: Option<Bytes>) -> Result<ToolOutput, ToolError> {
        let mut url = first;
        let mut method = self.method.clone();
        let mut headers = self.headers.clone();
        if body.is_some() {
            headers.entry("content-type").or_insert(HeaderValue::from_static("application/json"));
        }
        let mut body = body;
        // Only 307 and 308 say that nothing was done yet; after the others the request may have had its effects, and a
        // redirect that leads nowhere does not undo them.
        let mut may_have_run = false;
        let failed = |why: String, may_have_run: bool| {
            if may_have_run { ToolError::lost(why) } else { ToolError::new(why) }
        };
        for _hop in 0..=REDIRECTS_MAX {
            let addresses =
                resolve_allowed_addresses(&url, &self.ports, &self.private, self.web.resolver.as_ref())
                    .await
                    .map_err(|why| {
                        failed(format!("{} was not requested: {why}", url_without_query(&url)), may_have_run)
                    })?;
            let request = PinnedRequest {
                method: method.clone(),
                url: url.clone(),
                addresses,
                headers: headers.clone(),
                body: body.clone(),
            };
            let reply = self.web.transport.send(request).await.map_err(|error| match error {
                ExchangeError::NotSent(why) => {
                    let why = format!("nothing was sent to {}: {why}", url_without_query(&url));
                    failed(why, may_have_run)
                }
                ExchangeError::Broken(why) => {
                    let url = url_without_query(&url);
                    ToolError::lost(format!("{url} may have received the request and gave no answer: {why}"))
                }
            })?;
            let Some(target) = redirect_target(&url, &reply) else {
                let output = self.read_response(&url, reply).await;
                return output.map_err(|error| match error {
                    ToolError::Failed { message, partial } if may_have_run => {
                        ToolError::Lost { message, partial }
                    }
                    other => other,
                });
            };
            may_have_run |= !matches!(reply.status, 307 | 308);
            let target = target.map_err(|why| {
                failed(format!("{} redirects wrongly: {why}", url_without_query(&url)), may_have_run)
            })?;
            match (reply.status, &method) {
                (_, &Method::GET | &Method::HEAD) => {}
                // RFC 9110 §15.4.4: see the result over there.
                (303, _) => (method, body) = (Method::GET, None),
                // What changes something is done where the settings say, and once.
                _ => {
                    let why = format!(
                        "{} redirects a {method} request to {}",
                        url_without_query(&url),
                        url_without_query(&target)
                    );
                    return Err(failed(why, may_have_run));
                }
            }
            if target.origin() != url.origin() {
                headers = HeaderMap::new();
            }
            url = target;
        }
        Err(failed(format!("more than {REDIRECTS_MAX} redirects"), may_have_run))
    }

    async fn read_response(&self, url: &Url, reply: HttpResponse) -> Result<ToolOutput, ToolError> {
        let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let (body, extent) = read_body(reply, ANSWER_BYTES_MAX).await.map_err(|error| match error {
            ToolError::Lost { message, partial } => ToolError::Lost {
                message: format!("the response of {} ended early: {message}", url_without_query(url)),
                partial,
            },
            other => other,
        })?;
        let kind = media_type(&content_type);
        let is_media = ["image/", "audio/"].iter().any(|start| kind.starts_with(start));
        if is_media && status.is_success() && extent == BodyExtent::Complete && self.answer_pointer.is_none()
        {
            let media = Media::new(kind, STANDARD.encode(&body));
            return Ok(ToolOutput { media: vec![media.clone()], ..ToolOutput::text(media.note()) });
        }
        let BodyText { text, note, extent } =
            BodyText::decode(&content_type, &body, extent, ANSWER_BYTES_MAX);
        let noted = |output: ToolOutput| with_note(output, note.as_deref());
        if !status.is_success() {
            let error_text = truncate_chars(self.secrets.redact(text.trim()).as_ref(), ERROR_CHARS_MAX);
            let status_text = format!("{} answered HTTP {status}", url_without_query(url));
            let mut why =
                if error_text.is_empty() { status_text } else { format!("{status_text}: {error_text}") };
            if let Some(note) = &note {
                why.push_str(&format!(" (Note: {note})"));
            }
            return Err(if is_broken_gateway(status.as_u16()) {
                ToolError::lost(why)
            } else {
                ToolError::new(why)
            });
        }
        if extent == BodyExtent::Cut {
            let why = format!("{} answered with more than {ANSWER_BYTES_MAX} bytes", url_without_query(url));
            let error = ToolError::new(why);
            return Err(if is_media { error } else { error.with_partial(noted(ToolOutput::text(text))) });
        }
        match (&self.answer_pointer, serde_json::from_str::<Value>(&text)) {
            (Some(pointer), Ok(value)) => match value.pointer(pointer) {
                Some(selected) => Ok(noted(self.json_output(selected.clone()))),
                None => {
                    let why =
                        format!("there is nothing at {pointer} of the answer of {}", url_without_query(url));
                    Err(ToolError::new(why).with_partial(noted(self.json_output(value))))
                }
            },
            (Some(_), Err(error)) => {
                let why = format!("the answer of {} is not JSON: {error}", url_without_query(url));
                Err(ToolError::new(why).with_partial(noted(ToolOutput::text(text))))
            }
            (None, Ok(value)) if kind.contains("json") => Ok(noted(self.json_output(value))),
            _ if is_text(&content_type, &body) => Ok(noted(ToolOutput::text(text))),
            _ => Err(ToolError::new(format!(
                "{} returned {kind}, which is neither text nor an image",
                url_without_query(url)
            ))),
        }
    }

    /// Removes secrets before the value becomes a text, in which they are harder to find.
    fn json_output(&self, value: Value) -> ToolOutput {
        let value = self.secrets.redact_value(value);
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        ToolOutput { value: Some(value), ..ToolOutput::text(text) }
    }
}

/// Address of a request without its query, which may hold a key.
fn url_without_query(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
