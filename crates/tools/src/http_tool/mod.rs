//! HTTP endpoints as tools: one request of the configuration, with a model's values in it.
//!
//! A value can fill its place and nothing else: it never changes the host, the structure of the path or another
//! parameter. Every address is checked as `http.fetch` checks it, and secrets are taken out of whatever comes back.
//!
//! ```toml
//! [http_tools."weather.now"]
//! description = "Today's weather in a city"
//! url = "https://api.example.com/v1/{city}?units={units}"
//! headers = { authorization = "$WEATHER_KEY" }
//! answer = "/current"
//! effect = "read"
//! ```
// R: L2, L7, R4

mod body;
mod settings;
mod url_template;

pub use settings::{HttpMethod, HttpTool};

use crate::builtin::http::{
    Network, PinnedRequest, Ports, PrivateHost, Reply, Resolve, SystemResolver, Transport, body_of,
    checked_addresses_or, header_text, is_text, redirect_target,
};
use crate::context::ToolContext;
use crate::process::Surroundings;
use crate::schema::shortened;
use crate::secrets::Secrets;
use crate::settings::{Wrong, is_secret_name, time_limit, tool_name};
use crate::template;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{Source, SourceNews};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use body::Body;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{Arguments, Media, Output, ToolName};
use url_template::UrlTemplate;

/// The name of this source.
pub const HTTP_TOOLS: &str = "http_tools";
/// Most bytes of an answer that are read. 10 MB.
pub const ANSWER_BYTES_MAX: usize = 10_000_000;
/// Most redirects that are followed, each checked like the first address.
pub const REDIRECTS_MAX: usize = 3;
/// Most characters of an answer that is an error which the model is told.
const ERROR_CHARS_MAX: usize = 1_000;

/// `[http_tools.*]` of a configuration as a [`Source`]. What is wrong with one is its own fault.
pub struct HttpToolSource {
    settings: BTreeMap<String, HttpTool>,
    surroundings: Surroundings,
    resolver: Arc<dyn Resolve>,
    transport: Arc<dyn Transport>,
}

impl HttpToolSource {
    /// Tools by the name of their section, over the network.
    pub fn new(settings: BTreeMap<String, HttpTool>, surroundings: Surroundings) -> Self {
        Self { settings, surroundings, resolver: Arc::new(SystemResolver), transport: Arc::new(Network) }
    }

    /// Over something else.
    #[must_use]
    pub fn over(mut self, resolver: Arc<dyn Resolve>, transport: Arc<dyn Transport>) -> Self {
        (self.resolver, self.transport) = (resolver, transport);
        self
    }
}

#[async_trait]
impl Source for HttpToolSource {
    fn name(&self) -> &str {
        HTTP_TOOLS
    }

    async fn start(&self, news: SourceNews) {
        let (mut tools, mut faults) = (Vec::new(), Vec::new());
        for (key, settings) in &self.settings {
            let name = tool_name(key, settings.name.as_deref(), HTTP_TOOLS);
            match self.endpoint(name.clone(), settings) {
                Ok(endpoint) => tools.push(Arc::new(endpoint) as Arc<dyn Tool>),
                Err(wrong) => faults.push(wrong.of(HTTP_TOOLS, Some(name))),
            }
        }
        news.state(tools, faults);
    }

    async fn stop(&self) {}
}

/// One endpoint, ready to be asked.
struct Endpoint {
    spec: ToolSpec,
    method: Method,
    url: UrlTemplate,
    /// Pairs of the settings, behind those of the template.
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Body>,
    answer: Option<String>,
    ports: Ports,
    private: Vec<PrivateHost>,
    secrets: Secrets,
    resolver: Arc<dyn Resolve>,
    transport: Arc<dyn Transport>,
}

/// What no argument changes.
struct Fixed {
    headers: HeaderMap,
    query: Vec<(String, String)>,
    secrets: Secrets,
}

impl HttpToolSource {
    fn endpoint(&self, name: ToolName, settings: &HttpTool) -> Result<Endpoint, Wrong> {
        let url = UrlTemplate::parse(&settings.url).map_err(|message| {
            Wrong::new(format!("url: {message}"), "For example https://api.example.com/v1/{city}?q={query}")
        })?;
        let body = settings.body.as_ref().map(Body::parse).transpose().map_err(|message| {
            Wrong::new(
                format!("body: {message}"),
                "A table with {name} in its texts, or \"arguments\" for all of them.",
            )
        })?;
        if body.is_some() && matches!(settings.method, HttpMethod::Get | HttpMethod::Head) {
            return Err(Wrong::new("a GET or HEAD request has no body", "method = \"POST\", or no `body`."));
        }
        let parameters = parameters(settings, &url, body.as_ref())?;
        let Fixed { headers, query, secrets } = self.fixed(settings)?;
        let private = settings.private_hosts.iter().map(|text| PrivateHost::parse(text));
        let private = private.collect::<Result<Vec<_>, _>>().map_err(|message| {
            Wrong::new(format!("private_hosts: {message}"), "For example [\"10.0.0.5:8080\"]")
        })?;
        if let Some(pointer) =
            settings.answer.as_deref().filter(|text| !text.is_empty() && !text.starts_with('/'))
        {
            let message = format!("answer: `{pointer}` is no JSON pointer");
            return Err(Wrong::new(message, "It begins with a slash: /current/temperature (RFC 6901)."));
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
        Ok(Endpoint {
            spec,
            method: settings.method.into(),
            // The port that the settings name is meant.
            ports: Ports { also: url.port().into_iter().collect() },
            url,
            query,
            headers,
            body,
            answer: settings.answer.clone(),
            private,
            secrets,
            resolver: self.resolver.clone(),
            transport: self.transport.clone(),
        })
    }

    /// Headers and query of the settings, and what of them is secret.
    fn fixed(&self, settings: &HttpTool) -> Result<Fixed, Wrong> {
        let value_of = |place: &str, name: &str, text: &str| {
            let filled = filled(text, &self.surroundings, &mut Vec::new());
            filled.map_err(|message| {
                Wrong::new(format!("{place}.{name}: {message}"), "Set it, or take it out.")
            })
        };
        let mut headers = HeaderMap::new();
        for (name, text) in &settings.headers {
            let value = value_of("headers", name, text)?;
            let wrong = |why: &str| Wrong::new(format!("headers.{name}: {why}"), "");
            let parsed = HeaderName::try_from(name).map_err(|_| wrong("this is no name of a header"))?;
            // The reason is not told: it may quote the value.
            let mut value =
                HeaderValue::try_from(value).map_err(|_| wrong("its value cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        let mut query = Vec::new();
        for (name, text) in &settings.query {
            query.push((name.clone(), value_of("query", name, text)?));
        }
        Ok(Fixed { headers, query, secrets: Secrets::new(settings.secret_values(&self.surroundings)) })
    }
}

impl HttpTool {
    /// Values that nobody may see: those taken from variables, the texts that they are part of, and what is named like a secret.
    /// R: R4
    pub fn secret_values(&self, from: &Surroundings) -> Vec<String> {
        let mut secrets = Vec::new();
        for (name, text) in self.headers.iter().chain(&self.query) {
            if let Ok(value) = filled(text, from, &mut secrets)
                && (text.contains('$') || is_secret_name(name))
            {
                secrets.push(value);
            }
        }
        secrets
    }
}

/// `$NAME` anywhere in a text is a variable: `Bearer $TOKEN`. Their values are added to `taken`.
fn filled(text: &str, from: &Surroundings, taken: &mut Vec<String>) -> Result<String, String> {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        if name.is_empty() {
            filled.push('$');
        } else {
            let value = from.value(&format!("${name}"))?;
            filled.push_str(&value);
            taken.push(value);
        }
        filled.push_str(rest);
    }
    Ok(filled)
}

/// The schema: given, or made of the names.
fn parameters(settings: &HttpTool, url: &UrlTemplate, body: Option<&Body>) -> Result<Value, Wrong> {
    let in_texts: Vec<&str> = url.names().chain(body.into_iter().flat_map(Body::names_in_texts)).collect();
    let whole: Vec<&str> = body.into_iter().flat_map(Body::names_of_values).collect();
    let wrong = |message: String| {
        Wrong::new(message, "Declare it under `parameters`; `{{` and `}}` are braces themselves.")
    };
    match &settings.parameters {
        None => {
            let all: Vec<&str> = in_texts.iter().chain(&whole).copied().collect();
            let mut schema = template::schema(None, &all).map_err(wrong)?;
            // A query parameter without a value is left out, so nothing but the path and the body needs all of theirs.
            let optional: Vec<&str> = url.optional().filter(|name| !whole.contains(name)).collect();
            if let Some(required) = schema["required"].as_array_mut() {
                required.retain(|name| !name.as_str().is_some_and(|name| optional.contains(&name)));
            }
            Ok(schema)
        }
        given => {
            let schema = template::schema(given.as_ref(), &in_texts).map_err(wrong)?;
            let unknown = whole.iter().find(|name| schema["properties"].get(**name).is_none());
            match unknown {
                Some(name) => Err(wrong(format!("{{{name}}} is no parameter of the schema"))),
                None => Ok(schema),
            }
        }
    }
}

#[async_trait]
impl Tool for Endpoint {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &Arguments, context: ToolContext) -> Result<Output, ToolError> {
        let mut url = self.url.fill(&arguments.value).map_err(ToolError::invalid_arguments)?;
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        let body = match &self.body {
            Some(body) => Some(body.fill(&arguments.value).map_err(ToolError::invalid_arguments)?),
            None => None,
        };
        let said = tokio::select! {
            said = self.ask(url, body) => said,
            () = context.cancellation().cancelled() => Err(ToolError::new("stopped before the answer was there")),
        };
        // R: R4
        match said {
            Ok(output) => Ok(self.secrets.redact_output(output)),
            Err(ToolError::Failed { message, partial }) => Err(ToolError::Failed {
                message: self.secrets.redact(&message).into_owned(),
                partial: partial.map(|output| Box::new(self.secrets.redact_output(*output))),
            }),
            Err(other) => Err(ToolError::new(self.secrets.redact(&other.to_string()).into_owned())),
        }
    }
}

impl Endpoint {
    async fn ask(&self, first: Url, body: Option<Bytes>) -> Result<Output, ToolError> {
        let mut url = first;
        let mut method = self.method.clone();
        let mut headers = self.headers.clone();
        if body.is_some() {
            headers.entry("content-type").or_insert(HeaderValue::from_static("application/json"));
        }
        let mut body = body;
        for _hop in 0..=REDIRECTS_MAX {
            let addresses = checked_addresses_or(&url, &self.ports, &self.private, self.resolver.as_ref())
                .await
                .map_err(|why| ToolError::new(format!("{} is not asked: {why}", place(&url))))?;
            let request = PinnedRequest {
                method: method.clone(),
                url: url.clone(),
                addresses,
                headers: headers.clone(),
                body: body.clone(),
            };
            let reply = self.transport.send(request).await.map_err(ToolError::new)?;
            let Some(target) = redirect_target(&url, &reply) else { return self.answer(&url, reply).await };
            let target =
                target.map_err(|why| ToolError::new(format!("{} redirects wrongly: {why}", place(&url))))?;
            match (reply.status, &method) {
                (_, &Method::GET | &Method::HEAD) => {}
                // RFC 9110 §15.4.4: see the result over there.
                (303, _) => (method, body) = (Method::GET, None),
                // What changes something is done where the settings say, and once.
                _ => {
                    let why = format!("{} redirects a {method} request to {}", place(&url), place(&target));
                    return Err(ToolError::new(why));
                }
            }
            if target.origin() != url.origin() {
                headers = HeaderMap::new();
            }
            url = target;
        }
        Err(ToolError::new(format!("more than {REDIRECTS_MAX} redirects")))
    }

    async fn answer(&self, url: &Url, reply: Reply) -> Result<Output, ToolError> {
        let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let (body, cut) = body_of(reply, ANSWER_BYTES_MAX).await?;
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            let said = shortened(self.secrets.redact(said.trim()).as_ref(), ERROR_CHARS_MAX);
            let what = format!("{} answered HTTP {status}", place(url));
            return Err(ToolError::new(if said.is_empty() { what } else { format!("{what}: {said}") }));
        }
        if cut {
            let why = format!("{} answered with more than {ANSWER_BYTES_MAX} bytes", place(url));
            return Err(ToolError::new(why).with_partial(Output::text(String::from_utf8_lossy(&body))));
        }
        let json = serde_json::from_slice::<Value>(&body);
        match (&self.answer, json) {
            (Some(pointer), Ok(value)) => match value.pointer(pointer) {
                Some(found) => Ok(self.json_output(found.clone())),
                None => {
                    let why = format!("there is nothing at {pointer} of the answer of {}", place(url));
                    Err(ToolError::new(why).with_partial(self.json_output(value)))
                }
            },
            (Some(_), Err(error)) => {
                let why = format!("the answer of {} is not JSON: {error}", place(url));
                Err(ToolError::new(why).with_partial(Output::text(String::from_utf8_lossy(&body))))
            }
            (None, Ok(value)) if kind.contains("json") => Ok(self.json_output(value)),
            _ if ["image/", "audio/"].iter().any(|start| kind.starts_with(start)) => {
                let media = Media::new(kind, STANDARD.encode(&body));
                Ok(Output { media: vec![media.clone()], ..Output::text(media.note()) })
            }
            _ if is_text(&content_type, &body) => Ok(Output::text(String::from_utf8_lossy(&body))),
            _ => Err(ToolError::new(format!(
                "{} answered with {kind}, which is neither text nor a picture",
                place(url)
            ))),
        }
    }

    /// Without secrets before it becomes a text, in which they are harder to find.
    fn json_output(&self, value: Value) -> Output {
        let value = self.secrets.redact_value(value);
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Output { value: Some(value), ..Output::text(text) }
    }
}

/// Where a request went, without what it asked for: the query may hold a key.
fn place(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
