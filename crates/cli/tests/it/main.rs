//! The command as its users start it.

#![allow(clippy::unwrap_used)]

#[path = "../../../store/tests/it/cluster/mod.rs"]
mod cluster;
#[path = "../../../server/tests/it/support/collector.rs"]
mod collector;
mod support;

mod answers;
mod archive;
mod ask;
mod backup;
mod canary;
mod chinese;
mod client_package;
mod command;
mod connect;
mod decode;
mod documents;
mod hangup;
mod history;
mod image;
mod inspecting;
mod kept;
mod mistakes;
mod on_postgres;
mod operations;
mod pins;
mod pipes;
mod probe;
mod remembered;
mod replay;
mod say;
mod self_hoster;
mod serve;
mod shipped;
mod templates;
mod terminal_user;
mod traces;
mod travelling;
mod typescript;
