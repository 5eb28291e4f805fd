//! The tools that come with it: time, web, files, the avatar, and labeled demo tools.

pub mod demo;
#[cfg(feature = "process")]
pub mod files;
pub mod http;
pub mod live2d;
pub mod time;

use crate::tool::Tool;
use std::sync::Arc;

/// The tools that need no settings: `time.now`, `http.fetch` and the avatar's. Files need a root
/// ([`FileRoots`](files::FileRoots)), the demo tools are added separately ([`demo::tools`]).
///
/// ```
/// use throughline_tools::{ToolRegistry, builtin};
/// let registry = ToolRegistry::builder().tools(builtin::standard()).tools(builtin::demo::tools()).build()?;
/// assert!(registry.get(&"time.now".into()).is_some());
/// # Ok::<(), throughline_tools::RegistryError>(())
/// ```
pub fn standard() -> Vec<Arc<dyn Tool>> {
    standard_with(http::AllowedPorts::default(), Vec::new())
}

/// The tools of [`standard`]; `http.fetch` may dial these ports, and opens these hosts without approval
/// ([`with_hosts`](http::HttpFetch::with_hosts)).
pub fn standard_with(ports: http::AllowedPorts, hosts: Vec<String>) -> Vec<Arc<dyn Tool>> {
    let fetch = http::HttpFetch::new(http::FetchLimits::default(), ports).with_hosts(hosts);
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(time::TimeNow::default()), Arc::new(fetch)];
    tools.extend(live2d::tools());
    tools
}
