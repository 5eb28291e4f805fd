//! The tools that come with it.

pub mod http;
