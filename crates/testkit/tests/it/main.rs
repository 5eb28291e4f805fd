//! The fakes: that they speak like the providers they stand for.

#![allow(clippy::unwrap_used)]

mod client;

mod against_wire;
mod demo;
mod dialects;
mod fold_vectors;
mod optional_fields;
mod server;
