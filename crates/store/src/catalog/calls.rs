//! The history of tool calls.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tool call as history has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRow {
    pub turn_id: String,
    /// Its id; unique, since it begins with the turn's.
    pub tool_id: String,
    /// The conversation of the turn. Filled in by the store.
    pub conversation_id: Option<String>,
    /// In which step, from 1.
    pub step: u32,
    /// Name of the tool.
    pub tool_name: String,
    pub source: String,
    pub effect: String,
    /// As in `tool_result`, or what it is doing now.
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
    /// Of tools from this source.
    pub source: Option<String>,
    /// With one of these statuses; empty = with any.
    pub statuses: Vec<String>,
    pub conversation_id: Option<String>,
    pub turn_id: Option<String>,
    /// Begun then or later.
    pub from: Option<i64>,
    /// Begun before.
    pub until: Option<i64>,
    /// That ran longer than so many milliseconds.
    pub longer_than_ms: Option<i64>,
    /// With this text, whatever its case, in name, arguments, summary or error. `%` and `_` mean themselves.
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
    /// By status, the most frequent first.
    pub by_status: Vec<NamedCount>,
    /// By tool, the most frequent first.
    pub by_tool: Vec<NamedCount>,
    /// The time of a search was over before all calls were looked at: there are at least so many.
    #[serde(default)]
    pub partial: bool,
}

/// A name with the number of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCount {
    /// Of what.
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
