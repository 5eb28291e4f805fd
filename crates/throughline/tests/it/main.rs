//! Turns from the call of a library to its message, against scripted upstreams.

#![allow(clippy::unwrap_used)]

mod support;

mod approvals;
mod builder;
mod config;
mod cut_upstream;
mod decisions;
mod decoded_again;
mod durable;
mod errors_in_words;
mod flow;
mod histories;
mod hosted_tools;
mod known_upstreams;
mod leaked;
mod library;
mod log;
mod marker_injection;
mod measure;
mod memory;
mod native_equals_text;
mod observer;
mod one_call;
mod own_upstreams;
mod pictures_of_tools;
mod prompts;
mod readme;
mod recipes;
mod request_rules;
mod requests;
mod serving_config;
mod sources;
mod stored_conversation;
mod text_mode;
mod tokens;
mod tool_schemas;
mod turns;
mod voices;
mod whole_fallback;
