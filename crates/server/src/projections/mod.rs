//! Projections: pure functions from the events of a turn to what one kind of client reads. No types of HTTP here.

pub(crate) mod chat_completions;
pub(crate) mod native;
