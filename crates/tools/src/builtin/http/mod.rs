//! `http.fetch`: reads a public web address.
//!
//! Never reaches this machine, its network or a cloud's metadata; never sends credentials to another origin than the
//! one that they were given for; never asks a proxy.

mod address;
mod guard;
mod transport;

pub use address::refused as refused_address;
pub use guard::{Ports, PrivateHost, Resolve, SystemResolver, checked_addresses, checked_addresses_or};
pub use transport::{Network, PinnedRequest, Reply, Transport};

use crate::context::ToolContext;
use crate::function::argument_schema;
use crate::output::bytes as bytes_text;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use futures_util::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{Arguments, Output};

/// Limits of one fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Most bytes of a body that are read. Default 10 MB; the rest stays unread and the output says so.
    pub body_bytes_max: usize,
    /// Time for all of it, redirects included. Default 30 s.
    pub timeout: Duration,
    /// Most redirects that are followed, each checked like the first address. Default 3.
    pub redirects_max: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { body_bytes_max: 10_000_000, timeout: Duration::from_secs(30), redirects_max: 3 }
    }
}

/// The tool `http.fetch`. R: L7
pub struct HttpFetch {
    limits: FetchLimits,
    ports: Ports,
    resolver: Arc<dyn Resolve>,
    transport: Arc<dyn Transport>,
}

impl Default for HttpFetch {
    fn default() -> Self {
        Self::new(FetchLimits::default(), Ports::default())
    }
}

impl HttpFetch {
    /// Over the network, with the system's resolver.
    pub fn new(limits: FetchLimits, ports: Ports) -> Self {
        Self { limits, ports, resolver: Arc::new(SystemResolver), transport: Arc::new(Network) }
    }

    /// Over something else.
    #[must_use]
    pub fn over(mut self, resolver: Arc<dyn Resolve>, transport: Arc<dyn Transport>) -> Self {
        self.resolver = resolver;
        self.transport = transport;
        self
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FetchArguments {
    /// Full address, beginning with http:// or https://.
    url: String,
    /// GET reads the page, HEAD only status and headers.
    #[serde(default)]
    method: FetchMethod,
    /// Request headers, one `Name: value` a line, for example `Accept: text/html`. Seldom needed.
    #[serde(default)]
    headers: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum FetchMethod {
    #[default]
    Get,
    Head,
}

#[async_trait]
impl Tool for HttpFetch {
    fn definition(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "http.fetch",
            "Fetches a public web address and returns status, content type and text. Private and local addresses are refused.",
        );
        spec.title = "Fetch a web address".into();
        spec.parameters = argument_schema::<FetchArguments>();
        spec.effect = Effect::Read;
        spec.agent_callable = AgentCallable::Yes;
        spec.timeout = self.limits.timeout;
        spec.source = "builtin".into();
        spec
    }

    async fn call(&self, arguments: &Arguments, _context: ToolContext) -> Result<Output, ToolError> {
        let arguments = FetchArguments::deserialize(&arguments.value)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let url = Url::parse(&arguments.url)
            .map_err(|error| ToolError::invalid_arguments(format!("/url: not an address: {error}")))?;
        let headers = request_headers(&arguments.headers).map_err(ToolError::invalid_arguments)?;
        let method = match arguments.method {
            FetchMethod::Get => Method::GET,
            FetchMethod::Head => Method::HEAD,
        };
        let (url, reply) = self.follow(url, method, headers).await?;
        self.output(url, reply).await
    }
}

impl HttpFetch {
    /// Sends the request, and again wherever it is redirected to, each time with checked addresses.
    async fn follow(
        &self,
        first: Url,
        method: Method,
        headers: HeaderMap,
    ) -> Result<(Url, Reply), ToolError> {
        let mut url = first;
        let mut headers = headers;
        for hop in 0..=self.limits.redirects_max {
            let addresses = match checked_addresses(&url, &self.ports, self.resolver.as_ref()).await {
                Ok(addresses) => addresses,
                // The first address is an argument that nothing has been done with.
                Err(why) if hop == 0 => return Err(ToolError::invalid_arguments(format!("/url: {why}"))),
                Err(why) => return Err(ToolError::new(format!("redirected to {url}: {why}"))),
            };
            let request = PinnedRequest {
                method: method.clone(),
                url: url.clone(),
                addresses,
                headers: headers.clone(),
                body: None,
            };
            let reply = self.transport.send(request).await.map_err(ToolError::new)?;
            let Some(target) = redirect_target(&url, &reply) else { return Ok((url, reply)) };
            let target = target.map_err(|why| ToolError::new(format!("{url} redirects wrongly: {why}")))?;
            if target.origin() != url.origin() {
                // Meant for the origin that the model named; which headers are secret is known to nobody here.
                headers = public_headers(&headers);
            }
            url = target;
        }
        Err(ToolError::new(format!("more than {} redirects", self.limits.redirects_max)))
    }

    async fn output(&self, url: Url, reply: Reply) -> Result<Output, ToolError> {
        let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
        let encoding =
            header_text(&reply.headers, "content-encoding").filter(|encoding| encoding != "identity");
        let status = reply.status;
        let (body, cut) = body_of(reply, self.limits.body_bytes_max).await?;
        // The answer to HEAD has no body that could be packed.
        if let Some(encoding) = encoding.filter(|_| !body.is_empty()) {
            return Err(ToolError::new(format!(
                "the answer is compressed ({encoding}) though that was not asked for"
            )));
        }
        let is_text = is_text(&content_type, &body);
        let text = if is_text { String::from_utf8_lossy(&body).into_owned() } else { String::new() };
        let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let mut told = format!("HTTP {status} {}\nURL: {url}\n", reason.unwrap_or_default());
        if !content_type.is_empty() {
            told.push_str(&format!("Content-Type: {content_type}\n"));
        }
        if cut {
            told.push_str(&format!("Only the first {} were read.\n", bytes_text(body.len() as u64)));
        }
        if is_text {
            told.push('\n');
            told.push_str(&text);
        } else {
            told.push_str(&format!("The body is not text ({}).\n", bytes_text(body.len() as u64)));
        }
        let value = json!({
            "status": status, "url": url.as_str(), "content_type": content_type, "bytes": body.len(), "cut": cut,
        });
        Ok(Output { size: told.len() as u64, text: told, value: Some(value), ..Output::default() })
    }
}

/// The body up to the limit, and whether there was more.
pub(crate) async fn body_of(mut reply: Reply, bytes_max: usize) -> Result<(Vec<u8>, bool), ToolError> {
    let mut body = Vec::new();
    while let Some(piece) = reply.body.next().await {
        let piece = piece.map_err(|why| {
            ToolError::new(why).with_partial(Output::text(String::from_utf8_lossy(&body).into_owned()))
        })?;
        let room = bytes_max - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// Where a reply sends us; `None` = nowhere.
pub(crate) fn redirect_target(url: &Url, reply: &Reply) -> Option<Result<Url, String>> {
    if !matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = reply.headers.get("location")?;
    // Some servers send raw UTF-8 here.
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(url.join(&location).map_err(|error| format!("`{location}`: {error}")))
}

/// Headers that a model may set, one `Name: value` a line: none that describe the connection or the body, which are ours.
/// Text, since every text protocol can write it. R: T3
///
/// # Errors
/// Which line is wrong. What stands in it may be a secret and is not repeated.
fn request_headers(wanted: &str) -> Result<HeaderMap, String> {
    const OURS: [&str; 12] = [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    ];
    let mut headers = HeaderMap::new();
    let lines = (1..).zip(wanted.lines()).map(|(number, line)| (number, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let refused = |why: &str| format!("/headers: line {number}: {why}");
        let Some((name, value)) = line.split_once(':') else {
            return Err(refused("this is not `Name: value`"));
        };
        let name = HeaderName::try_from(name)
            .map_err(|_| refused("what stands before the colon is not the name of a header"))?;
        let lower = name.as_str();
        if OURS.contains(&lower) || lower.starts_with("proxy-") || lower.starts_with("x-forwarded-") {
            return Err(refused(&format!("{name}: this header cannot be set")));
        }
        let value = HeaderValue::from_bytes(value.trim().as_bytes())
            .map_err(|_| refused(&format!("{name}: the value has control characters")))?;
        if headers.insert(&name, value).is_some() {
            return Err(refused(&format!("{name} is given twice")));
        }
    }
    Ok(headers)
}

/// The headers that say nothing about who asks.
fn public_headers(headers: &HeaderMap) -> HeaderMap {
    const PUBLIC: [&str; 4] = ["accept", "accept-language", "if-modified-since", "range"];
    headers
        .iter()
        .filter(|(name, _)| PUBLIC.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(crate) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(String::from_utf8_lossy(headers.get(name)?.as_bytes()).trim().to_owned())
}

/// By what the server says, unless it says nothing; then by the look of it.
pub(crate) fn is_text(content_type: &str, body: &[u8]) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_text = kind.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "toml"]
            .iter()
            .any(|part| kind.contains(part));
    let says_other = ["image/", "audio/", "video/", "font/"].iter().any(|start| kind.starts_with(start));
    let looks_like_text = !body[..body.len().min(8_192)].contains(&0);
    says_text || (!says_other && looks_like_text)
}
