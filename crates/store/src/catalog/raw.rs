//! Bytes of an upstream, stored on request, so that a later version can decode them again.

use serde::{Deserialize, Serialize};

/// A reply of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawId {
    pub turn_id: String,
    /// Number of the step, from 1.
    pub step: u32,
    /// Attempt at the step, from 1.
    pub attempt: u32,
}

/// The stored part of one reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRow {
    #[serde(flatten)]
    pub id: RawId,
    pub bytes: u64,
    pub extent: RawExtent,
    /// When its first bytes came, in milliseconds since 1970.
    pub created_at: i64,
}

/// Extent of a stored reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawExtent {
    /// All bytes so far.
    #[serde(rename = "whole")]
    Complete,
    /// The beginning: the rest was over a limit, or came faster than it could be written.
    #[serde(rename = "beginning")]
    Truncated,
}
