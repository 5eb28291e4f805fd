//! Texts for people and hashes of values. Knows nothing of turns.

pub(crate) mod canonical;
pub(crate) mod diff;
pub(crate) mod early_summary;
pub(crate) mod suggest;
pub(crate) mod summary;
