//! What an upstream really sent, kept on request, to be decoded again by a later version. R: S5

use serde::{Deserialize, Serialize};

/// Which answer of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawId {
    /// In which turn.
    pub turn_id: String,
    /// In which step, from 1.
    pub step: u32,
    /// Which attempt at it, from 1.
    pub attempt: u32,
}

/// What is kept of one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRow {
    /// Which answer.
    #[serde(flatten)]
    pub id: RawId,
    /// How much is kept.
    pub bytes: u64,
    /// Whether that is all.
    pub extent: RawExtent,
    /// When its first bytes came, in milliseconds since 1970.
    pub created_at: i64,
}

/// Whether all bytes of an answer are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawExtent {
    /// All that came so far.
    #[serde(rename = "whole")]
    Complete,
    /// The beginning: the rest was over a limit, or came faster than it could be written.
    #[serde(rename = "beginning")]
    Truncated,
}
