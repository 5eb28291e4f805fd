//! Samples from which metrics are computed: the few columns of turns and calls that are figures.

use super::{RatingValue, TurnTiming};
use serde::{Deserialize, Serialize};

/// Time range of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRange {
    /// Begun then or later, in milliseconds since 1970.
    pub from: i64,
    /// Only rows begun before this time.
    pub until: i64,
    /// Most turns, and most calls, that are returned: the newest.
    pub rows_max: u32,
}

/// Samples of a range, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSamples {
    /// Turns begun in the time.
    pub turns: SampleRows<TurnSample>,
    /// Calls begun in the time.
    pub calls: SampleRows<CallSample>,
    /// Calls of running turns that wait for a person, whenever they began.
    pub waiting: u64,
}

/// Some rows, and whether they are all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRows<T> {
    /// Rows, newest first.
    pub rows: Vec<T>,
    /// True if older rows in the range were left out because of `rows_max`.
    #[serde(rename = "cut")]
    pub truncated: bool,
}

impl<T> Default for SampleRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), truncated: false }
    }
}

impl<T> SampleRows<T> {
    /// At most `rows_max` of `rows`, which are one more than that if there are others.
    pub(crate) fn from_rows(mut rows: Vec<T>, rows_max: u32) -> Self {
        let truncated = rows.len() > rows_max as usize;
        rows.truncate(rows_max as usize);
        Self { rows, truncated }
    }
}

/// A turn as a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSample {
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Status, as [`TurnRow::status`](super::TurnRow::status).
    pub status: String,
    #[serde(default)]
    pub agent: String,
    /// Model, as `upstream/model`.
    #[serde(default)]
    pub model: Option<String>,
    /// Id of the conversation; `None` = a turn without one.
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// Tokens read by models, as upstreams count them.
    #[serde(default)]
    pub input_tokens: Option<i64>,
    /// Speed of the turn, if it has ended.
    pub pace: TurnTiming,
    /// Rating by its user.
    #[serde(default)]
    pub rating: Option<RatingValue>,
}

/// A call as a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSample {
    /// Name of the tool.
    pub tool_name: String,
    /// Status, as in [`CallRow`](super::CallRow).
    pub status: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Duration of its run, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The error of a failed call, cut.
    #[serde(default)]
    pub error: Option<String>,
    /// Id of the conversation of its turn.
    #[serde(default)]
    pub conversation_id: Option<String>,
}
