//! The history of tool calls.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tool call as history has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRow {
    pub turn_id: String,
    /// Id of the call; unique, since it begins with the turn's.
    pub tool_id: String,
    /// The conversation of the turn. Filled in by the store.
    pub conversation_id: Option<String>,
    /// Number of the step, from 1.
    pub step: u32,
    /// Name of the tool.
    pub tool_name: String,
    pub source: String,
    pub effect: String,
    /// Status as in `tool_result`, or the current one of a call without a result.
    pub status: String,
    /// As JSON, or the text that is not JSON.
    pub arguments: String,
    /// Summary of the output.
    pub output_summary: Option<String>,
    pub error: Option<String>,
    /// Start of its run, or its announcement if it never ran; milliseconds since 1970.
    pub started_at: i64,
    /// Duration of its run, in milliseconds.
    pub duration_ms: Option<i64>,
}

/// Selects calls; a field that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    pub tool_name: Option<String>,
    /// Only tools from this source.
    pub source: Option<String>,
    /// With one of these statuses; empty = with any.
    pub statuses: Vec<String>,
    pub conversation_id: Option<String>,
    pub turn_id: Option<String>,
    /// Begun then or later.
    pub from: Option<i64>,
    /// Only calls begun before this time.
    pub until: Option<i64>,
    /// Only calls that ran longer than this many milliseconds.
    pub longer_than_ms: Option<i64>,
    /// Only calls with this text in name, arguments, summary or error, ignoring case. `%` and `_` are matched
    /// literally.
    pub text: Option<String>,
}

impl CallFilter {
    /// Statuses as people write them, commas between; nothing = any.
    pub fn parse_statuses(written: Option<&str>) -> Vec<String> {
        let names = written.into_iter().flat_map(|names| names.split(','));
        names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// Numbers of calls by status and by tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    pub total: u64,
    /// Counts by status, the most frequent first.
    pub by_status: Vec<NamedCount>,
    /// Counts by tool, the most frequent first.
    pub by_tool: Vec<NamedCount>,
    /// True if the time limit ended the search before all calls were read: the counts are lower bounds.
    #[serde(default)]
    pub partial: bool,
}

/// A name with the number of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCount {
    /// Name that is counted: a status, a tool or a model.
    pub name: String,
    pub count: u64,
}

impl NamedCount {
    /// The counts of each name together, the highest first.
    pub(crate) fn sums<'a>(counts: impl Iterator<Item = (&'a String, u64)>) -> Vec<Self> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (name, count) in counts {
            *sums.entry(name).or_default() += count;
        }
        let mut sums: Vec<_> =
            sums.into_iter().map(|(name, count)| Self { name: name.to_owned(), count }).collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.count));
        sums
    }
}
