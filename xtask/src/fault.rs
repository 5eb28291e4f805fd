//! Errors for people: what went wrong, and what to do about it.

use anyhow::Error;

/// An error with its remedy, which is not optional.
pub(crate) fn fault(what: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
    anyhow::anyhow!("{what}\n  remedy: {remedy}")
}
