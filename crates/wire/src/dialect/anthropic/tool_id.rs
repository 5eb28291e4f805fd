//! Ids of tool calls as this API accepts them.

use crate::vocabulary::Call;
use std::collections::HashSet;

/// Longest id of another upstream that is sent on: some carry whole signatures in it.
const FOREIGN_ID_BYTES_MAX: usize = 128;

/// Gives each call of a request an id that matches `^[a-zA-Z0-9_-]+$` and occurs once in the request, else the answer
/// is HTTP 400 ("`tool_use` ids must be unique"). The same history always gets the same ids, since prompt caches
/// compare prefixes.
#[derive(Debug, Default)]
pub(super) struct ToolIds {
    used: HashSet<String>,
}

impl ToolIds {
    /// Theirs if it can stand, else ours, else ours with a number.
    pub(super) fn assign(&mut self, call: &Call) -> String {
        let theirs = call.upstream_id.as_ref().map(|id| id.as_str()).filter(|id| is_valid(id));
        if let Some(id) = theirs.filter(|id| !self.used.contains(*id)) {
            return self.take(id.to_owned());
        }
        let ours: String = call.id.as_str().chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let ours = if ours.is_empty() { "call".to_owned() } else { ours };
        if !self.used.contains(&ours) {
            return self.take(ours);
        }
        let mut number = 2_usize;
        loop {
            let id = format!("{ours}-{number}");
            if !self.used.contains(&id) {
                return self.take(id);
            }
            number += 1;
        }
    }

    fn take(&mut self, id: String) -> String {
        self.used.insert(id.clone());
        id
    }
}

fn is_valid(id: &str) -> bool {
    !id.is_empty() && id.len() <= FOREIGN_ID_BYTES_MAX && id.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
