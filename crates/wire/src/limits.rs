//! Every limit of the decoder: name, unit, default.

use serde::{Deserialize, Serialize};

/// Bounds on one decoded step. Reaching one is reported as a problem that carries the field's name, and ends the
/// event, the call or the step concerned, never the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeLimits {
    /// One line of SSE or NDJSON. Default 16 MiB.
    pub line_bytes_max: usize,
    /// One event (all its `data:` lines), one binary frame, one JSON body. Default 16 MiB.
    pub event_bytes_max: usize,
    /// The argument text of one call. Default 4 MiB.
    pub arguments_bytes_max: usize,
    /// Most bytes received in one step. Default 64 MiB.
    pub step_bytes_max: u64,
    /// Tool calls in one step. Default 64.
    pub calls_per_step_max: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            line_bytes_max: 16 << 20,
            event_bytes_max: 16 << 20,
            arguments_bytes_max: 4 << 20,
            step_bytes_max: 64 << 20,
            calls_per_step_max: 64,
        }
    }
}
