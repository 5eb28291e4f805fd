//! Sentences out of a text that streams.

#![allow(clippy::unwrap_used)]

mod sentences;
mod splits;
