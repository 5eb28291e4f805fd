//! The server over real sockets.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "postgres")]
#[path = "../../../store/tests/it/cluster/mod.rs"]
mod cluster;
mod guarded_server;
mod multi_user_server;
mod provider;
mod support;

mod approvals_per_user;
mod canary;
mod cancelling;
mod chat;
mod chat_approvals;
mod chat_errors;
mod chat_pictures;
mod chat_reasoning;
mod chat_tools;
mod clients;
mod hostile_text;
mod invisible;
mod limits_by_key;
mod maintenance;
mod media;
mod metrics;
mod net;
mod on_postgres;
mod otlp;
mod parked_turns;
mod passthrough;
mod provider_sign_in;
mod proxy_header;
mod remembered_approvals;
mod request_guard;
mod resources;
mod restart;
mod speech;
mod ssrf;
mod store_unavailable;
mod streaming_thresholds;
mod streams;
mod telemetry;
mod turn_commands;
mod turn_faults;
mod two_servers;
mod unnamed_hosts;
mod upstream_connect;
mod upstream_probe;
mod users;
mod vcp;
mod viewers;
mod websocket;
mod ws_frames;
