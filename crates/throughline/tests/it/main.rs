//! Turns from the call of a library to its message, against scripted upstreams.

#![allow(clippy::unwrap_used)]

mod support;

mod approval_decisions;
mod approvals;
mod builder;
mod config;
mod custom_upstreams;
mod cut_upstream;
mod decoded_again;
mod durable;
mod error_texts;
mod flow;
mod histories;
mod hosted_tools;
mod known_upstreams;
mod leaked_calls;
mod library;
mod log;
mod marker_injection;
mod measure;
mod native_equals_text;
mod observer;
mod prompts;
mod readme;
mod recipes;
mod remembered_approvals;
mod request_rules;
mod requests;
mod serving_config;
mod single_model_call;
mod sources;
mod stored_conversation;
mod text_mode;
mod token_estimate;
mod tool_images;
mod tool_schemas;
mod turns;
mod voices;
mod whole_fallback;
