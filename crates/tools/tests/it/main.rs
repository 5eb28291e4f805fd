//! Tools of all sources, run by the executor.

#![allow(clippy::unwrap_used)]

mod broken_lines;
mod commands;
mod elicitation;
mod execute;
mod files;
mod http_fetch;
mod http_tools;
mod mcp;
mod mcp_servers;
mod process;
mod toolbox;
mod vcp_kinds;
mod vcp_plugins;
mod web_search;
