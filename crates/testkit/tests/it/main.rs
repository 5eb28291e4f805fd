//! The fakes: they behave like the providers that they imitate.

#![allow(clippy::unwrap_used)]

mod client;

mod against_wire;
mod demo;
mod dialects;
mod fold_vectors;
mod optional_fields;
mod server;
