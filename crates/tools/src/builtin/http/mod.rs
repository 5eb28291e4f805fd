//! `http.fetch`: reads a public web address.
//!
//! Never reaches this machine, its network or a cloud's metadata; never sends credentials to another origin than the
//! one that they were given for; never asks a proxy.

mod address;
mod guard;
mod transport;

pub use address::non_public_reason;
pub use guard::{
    AllowedPorts, HostResolver, PrivateHost, SystemResolver, private_by_address, resolve_allowed_addresses,
    resolve_public_addresses,
};
#[cfg(feature = "mcp")]
pub(crate) use transport::was_not_sent;
pub use transport::{ExchangeError, HttpResponse, HttpTransport, PinnedRequest, ReqwestTransport};
pub(crate) use transport::{WebAccess, is_broken_gateway};

use crate::body_text::{BodyExtent, BodyText, media_type};
use crate::context::ToolContext;
use crate::function::argument_schema;
use crate::output::format_bytes as bytes_text;
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
use throughline_engine::{AddressRole, AddressRule, Effect};
use throughline_wire::{CallArguments, ToolOutput};

/// Limits of one fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Most bytes of a body that are read. Default 10 MB; the rest stays unread and the output notes it.
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

/// The tool `http.fetch`.
pub struct HttpFetch {
    limits: FetchLimits,
    ports: AllowedPorts,
    hosts: AddressRule,
    web: WebAccess,
}

impl Default for HttpFetch {
    fn default() -> Self {
        Self::new(FetchLimits::default(), AllowedPorts::default())
    }
}

impl HttpFetch {
    /// The tool over the network, with the system's resolver.
    pub fn new(limits: FetchLimits, ports: AllowedPorts) -> Self {
        let setting = "`hosts` of `[tools.http]`".to_owned();
        let hosts = AddressRule { argument: "url".to_owned(), hosts: Vec::new(), setting };
        Self { limits, ports, hosts, web: WebAccess::default() }
    }

    /// Sets hosts that need no approval, also as targets of a redirect: `docs.rs`, `*.example.org` (all below
    /// it), `*` (all hosts).
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts.hosts.extend(hosts);
        self
    }

    /// The tool over another transport.
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
        spec.addresses = AddressRole::Visits(self.hosts.clone());
        spec.timeout = self.limits.timeout;
        spec.source = "builtin".into();
        spec
    }

    async fn call(&self, arguments: &CallArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = FetchArguments::deserialize(&arguments.value)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let url = Url::parse(&arguments.url)
            .map_err(|error| ToolError::invalid_arguments(format!("/url: not an address: {error}")))?;
        let headers = request_headers(&arguments.headers).map_err(ToolError::invalid_arguments)?;
        let method = match arguments.method {
            FetchMethod::Get => Method::GET,
            FetchMethod::Head => Method::HEAD,
        };
        let (url, reply) = self.follow_redirects(url, method, headers).await?;
        self.output(url, reply).await
    }
}

impl HttpFetch {
    /// Sends the request and follows its redirects, each time with checked addresses.
    async fn follow_redirects(
        &self,
        first: Url,
        method: Method,
        headers: HeaderMap,
    ) -> Result<(Url, HttpResponse), ToolError> {
        let mut url = first;
        let mut headers = headers;
        for hop in 0..=self.limits.redirects_max {
            let addresses =
                match resolve_public_addresses(&url, &self.ports, self.web.resolver.as_ref()).await {
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
            let reply = self.web.transport.send(request).await.map_err(|error| match error {
                ExchangeError::NotSent(why) => ToolError::new(why),
                ExchangeError::Broken(why) => ToolError::lost(why),
            })?;
            let Some(target) = redirect_target(&url, &reply) else { return Ok((url, reply)) };
            let target = target.map_err(|why| ToolError::new(format!("{url} redirects wrongly: {why}")))?;
            if !self.may_follow(&url, &target) {
                // The responding server chooses the target, like a text would: it needs an approval like any
                // address that the model chooses.
                return Err(ToolError::new(format!(
                    "redirected to {target}, which is another host and was not fetched; fetch that address \
                     directly if needed"
                )));
            }
            if target.origin() != url.origin() {
                // Headers are meant for the origin that the model named; which of them are secret is unknown
                // here.
                headers = cross_origin_headers(&headers);
            }
            url = target;
        }
        Err(ToolError::new(format!("more than {} redirects", self.limits.redirects_max)))
    }

    /// The host of both is the same but for `www.`, or the settings name that of the target.
    fn may_follow(&self, from: &Url, target: &Url) -> bool {
        let host = |url: &Url| {
            let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_owned();
            host.strip_prefix("www.").map_or(host.clone(), str::to_owned)
        };
        host(from) == host(target) || self.hosts.names_host(target.host_str().unwrap_or_default())
    }

    async fn output(&self, url: Url, reply: HttpResponse) -> Result<ToolOutput, ToolError> {
        let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
        let encoding =
            header_text(&reply.headers, "content-encoding").filter(|encoding| encoding != "identity");
        let status = reply.status;
        let bytes_max = self.limits.body_bytes_max;
        let (body, extent) = read_body(reply, bytes_max).await?;
        // The answer to HEAD has no body that could be packed.
        if let Some(encoding) = encoding.filter(|_| !body.is_empty()) {
            return Err(ToolError::new(format!(
                "the response is compressed ({encoding}), which was not requested"
            )));
        }
        let text =
            is_text(&content_type, &body).then(|| BodyText::decode(&content_type, &body, extent, bytes_max));
        let truncated = text.as_ref().map_or(extent, |text| text.extent) == BodyExtent::Cut;
        let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let mut report = format!("HTTP {status} {}\nURL: {url}\n", reason.unwrap_or_default());
        if !content_type.is_empty() {
            report.push_str(&format!("Content-Type: {content_type}\n"));
        }
        if truncated {
            report.push_str(&format!("Only the first {} were read.\n", bytes_text(body.len() as u64)));
        }
        match text {
            Some(BodyText { text, note, .. }) => {
                if let Some(note) = note {
                    report.push_str(&format!("Note: {note}\n"));
                }
                report.push('\n');
                report.push_str(&text);
            }
            None => report.push_str(&format!("The body is not text ({}).\n", bytes_text(body.len() as u64))),
        }
        let value = json!({
            "status": status, "url": url.as_str(), "content_type": content_type, "bytes": body.len(), "cut": truncated,
        });
        Ok(ToolOutput {
            size: report.len() as u64,
            text: report,
            value: Some(value),
            ..ToolOutput::default()
        })
    }
}

/// The body up to the limit, and whether there was more.
pub(crate) async fn read_body(
    mut reply: HttpResponse,
    bytes_max: usize,
) -> Result<(Vec<u8>, BodyExtent), ToolError> {
    let mut body = Vec::new();
    while let Some(chunk) = reply.body.next().await {
        let chunk = chunk.map_err(|why| {
            let content_type = header_text(&reply.headers, "content-type").unwrap_or_default();
            let partial =
                ToolOutput::text(BodyText::decode(&content_type, &body, BodyExtent::Cut, bytes_max).text);
            let lost = ToolError::lost(why);
            if partial.text.is_empty() { lost } else { lost.with_partial(partial) }
        })?;
        let remaining = bytes_max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
        if chunk.len() > remaining {
            return Ok((body, BodyExtent::Cut));
        }
    }
    Ok((body, BodyExtent::Complete))
}

/// Target of a redirect; `None` = no redirect.
pub(crate) fn redirect_target(url: &Url, reply: &HttpResponse) -> Option<Result<Url, String>> {
    if !matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = reply.headers.get("location")?;
    // Some servers send raw UTF-8 here.
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(url.join(&location).map_err(|error| format!("`{location}`: {error}")))
}

/// Headers that a model may set, one `Name: value` a line: none that describe the connection or the body, which are ours.
/// Text, since every text protocol can write it.
///
/// # Errors
/// The line that is wrong. Its content may be a secret and is not repeated.
fn request_headers(text: &str) -> Result<HeaderMap, String> {
    const RESERVED: [&str; 12] = [
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
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let invalid = |why: &str| format!("/headers: line {number}: {why}");
        let Some((name, value)) = line.split_once(':') else {
            return Err(invalid("this is not `Name: value`"));
        };
        let name = HeaderName::try_from(name)
            .map_err(|_| invalid("the part before the colon is not a valid header name"))?;
        let lower = name.as_str();
        if RESERVED.contains(&lower) || lower.starts_with("proxy-") || lower.starts_with("x-forwarded-") {
            return Err(invalid(&format!("{name}: this header cannot be set")));
        }
        let value = HeaderValue::from_bytes(value.trim().as_bytes())
            .map_err(|_| invalid(&format!("{name}: the value has control characters")))?;
        if headers.insert(&name, value).is_some() {
            return Err(invalid(&format!("{name} is given twice")));
        }
    }
    Ok(headers)
}

/// The headers that say nothing about who asks.
fn cross_origin_headers(headers: &HeaderMap) -> HeaderMap {
    const FORWARDED: [&str; 4] = ["accept", "accept-language", "if-modified-since", "range"];
    headers
        .iter()
        .filter(|(name, _)| FORWARDED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(crate) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(String::from_utf8_lossy(headers.get(name)?.as_bytes()).trim().to_owned())
}

/// True for text by its `Content-Type`; without one, by its content.
pub(crate) fn is_text(content_type: &str, body: &[u8]) -> bool {
    let kind = media_type(content_type);
    let says_text = kind.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "toml"]
            .iter()
            .any(|part| kind.contains(part));
    let says_other = ["image/", "audio/", "video/", "font/"].iter().any(|start| kind.starts_with(start));
    let looks_like_text = !body[..body.len().min(8_192)].contains(&0);
    says_text || (!says_other && looks_like_text)
}
