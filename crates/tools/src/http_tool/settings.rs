//! Settings of `[http_tools.NAME]`.

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use throughline_engine::Effect;

/// `[http_tools.NAME]`. A name with a dot is the tool's, another becomes `http_tools.NAME`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpTool {
    /// Another name for the tool than that of the section.
    #[serde(default)]
    pub name: Option<String>,
    /// For people, on the card. Default: the name.
    #[serde(default)]
    pub title: Option<String>,
    /// Purpose of the tool and when to use it, for the model.
    pub description: String,
    /// Method of the request.
    #[serde(default)]
    pub method: HttpMethod,
    /// Address, with `{name}` in path and query. A query parameter whose argument is absent is left out.
    pub url: String,
    /// Further query parameters; `$NAME` takes a variable, which is a secret.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// Headers; `$NAME` takes a variable, which is a secret: `"Bearer $TOKEN"`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON body: `"arguments"` = all arguments unchanged; a table = that, with `{name}` in its texts. A text
    /// that consists of `{name}` alone becomes the argument itself, of any type.
    #[serde(default)]
    pub body: Option<Value>,
    /// JSON Schema of the arguments, as a table or as JSON text. Default: the names, as texts.
    #[serde(default)]
    pub parameters: Option<Value>,
    /// JSON pointer (RFC 6901) to that part of the answer which is the output. Default: all of it.
    #[serde(default)]
    pub answer: Option<String>,
    /// Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external` (default).
    #[serde(default, deserialize_with = "crate::settings::effect")]
    pub effect: Effect,
    /// Time limit of a call, in milliseconds. Default 30,000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Hosts that need not be public, `HOST` or `HOST:PORT`. Default: none.
    #[serde(default)]
    pub private_hosts: Vec<String>,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "methods of HTTP")]
pub enum HttpMethod {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl From<HttpMethod> for Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Head => Method::HEAD,
            HttpMethod::Post => Method::POST,
            HttpMethod::Put => Method::PUT,
            HttpMethod::Patch => Method::PATCH,
            HttpMethod::Delete => Method::DELETE,
        }
    }
}
