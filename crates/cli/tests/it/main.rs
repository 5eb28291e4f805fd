//! The command as its users start it.

#![allow(clippy::unwrap_used)]

#[path = "../../../store/tests/it/cluster/mod.rs"]
mod cluster;
#[path = "../../../server/tests/it/support/collector.rs"]
mod collector;
mod support;

mod archive;
mod ask;
mod backup;
mod canary;
mod chinese;
mod client_package;
mod command;
mod config_mistakes;
mod connect;
mod decode;
mod documents;
mod export_import;
mod hangup;
mod history;
mod image;
mod inspection;
mod line_prompts;
mod local_conversations;
mod on_postgres;
mod operations;
mod pipes;
mod probe;
mod remembered;
mod replay;
mod say;
mod self_hosting_path;
mod serve;
mod shipped;
mod templates;
mod terminal_path;
mod tool_definitions;
mod traces;
mod typescript;
