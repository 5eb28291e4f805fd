//! The common parts of result frames.

use crate::vocabulary::{CallId, CallOutcome};

/// Tag that ties the frame of results to its step: eight hexadecimal digits, derived from the first call's id
/// (FNV-1a), so that data written before cannot know them and replays are the same.
pub(super) fn nonce(first: &CallId) -> String {
    let hash = first.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// An outcome in one word.
pub(super) fn outcome_status(outcome: &CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Done(_) => "success",
        CallOutcome::Failed { .. } => "error",
        CallOutcome::Denied { .. } => "denied",
        CallOutcome::Cancelled(_) => "cancelled",
        CallOutcome::TimedOut { .. } => "timed_out",
        CallOutcome::NotStarted(_) => "not_started",
        CallOutcome::Unknown { .. } => "unknown",
    }
}
