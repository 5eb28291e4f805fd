//! The turn machine at its boundary: inputs in, events and actions out.

#![allow(clippy::unwrap_used)]

mod script;

mod approvals;
mod client_tools;
mod event_format;
mod events;
mod forced_calls;
mod outbox;
mod permissions;
mod properties;
mod provider_independence;
mod scenarios;
mod takeover;
mod text_rules;
mod transitions;
