//! Projections: pure functions from the events of a turn to what one kind of client reads. No types of HTTP here.

pub mod chat_completions;
pub mod native;
