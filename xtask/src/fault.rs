//! Errors for people: the problem and its remedy.

use anyhow::Error;

/// An error with its remedy, which is not optional.
pub(crate) fn fault(what: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
    anyhow::anyhow!("{what}\n  remedy: {remedy}")
}
