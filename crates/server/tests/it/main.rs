//! The server over real sockets.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "postgres")]
#[path = "../../../store/tests/it/cluster/mod.rs"]
mod cluster;
mod gated;
mod house;
mod provider;
mod support;

mod canary;
mod cancelling;
mod chat;
mod chat_errors;
mod chat_pictures;
mod chat_questions;
mod chat_reasoning;
mod chat_tools;
mod clients;
mod connecting;
mod deciding;
mod faults;
mod gate;
mod invisible;
mod limits_by_key;
mod media;
mod memories;
mod metrics;
mod naughty;
mod net;
mod on_postgres;
mod otlp;
mod parked;
mod passing_on;
mod people;
mod probing;
mod provider_sign_in;
mod proxy_header;
mod remembering;
mod resources;
mod restart;
mod speaking;
mod ssrf;
mod store_away;
mod streams;
mod telemetry;
mod thresholds;
mod two_servers;
mod unnamed_hosts;
mod upkeep;
mod vcp;
mod viewers;
mod websocket;
mod ws_frames;
