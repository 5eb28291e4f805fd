//! What the frames of results have in common.

use crate::vocabulary::{CallId, Outcome};

/// What makes the frame of a step's results this step's: eight hexadecimal digits, derived from the first call's id
/// (FNV-1a), so that data written before cannot know them and replays are the same.
// R: X4
pub(super) fn nonce(first: &CallId) -> String {
    let hash = first.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// An outcome in one word.
pub(super) fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "success",
        Outcome::Failed { .. } => "error",
        Outcome::Denied { .. } => "denied",
        Outcome::Cancelled(_) => "cancelled",
        Outcome::TimedOut { .. } => "timed_out",
        Outcome::NotStarted(_) => "not_started",
        Outcome::Unknown => "unknown",
    }
}
