//! Ids and names of tool calls as this API accepts them.

use crate::vocabulary::Call;
use std::borrow::Cow;
use std::collections::HashSet;

/// Longest id of another upstream that is sent on: some carry whole signatures in it.
const FOREIGN_ID_BYTES_MAX: usize = 128;

/// Longest name of a tool.
const NAME_BYTES_MAX: usize = 128;

/// A tool's name as `^[a-zA-Z0-9_-]{1,128}$`. Offered names are so already; a model may have called anything.
pub(crate) fn sanitize_name(name: &str) -> Cow<'_, str> {
    if is_valid(name, NAME_BYTES_MAX) {
        return Cow::Borrowed(name);
    }
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(NAME_BYTES_MAX);
    let plain: String = plain.collect();
    Cow::Owned(if plain.is_empty() { "unnamed".to_owned() } else { plain })
}

/// Gives each call of a request an id that matches `^[a-zA-Z0-9_-]+$` and occurs once in the request, else the answer
/// is HTTP 400 ("`tool_use` ids must be unique"). The same history always gets the same ids, since prompt caches
/// compare prefixes.
#[derive(Debug, Default)]
pub(crate) struct ToolIds {
    used: HashSet<String>,
}

impl ToolIds {
    /// Theirs if it can stand, else ours, else ours with a number.
    pub(crate) fn assign(&mut self, call: &Call) -> String {
        let theirs =
            call.upstream_id.as_ref().map(|id| id.as_str()).filter(|id| is_valid(id, FOREIGN_ID_BYTES_MAX));
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

fn is_valid(text: &str, bytes_max: usize) -> bool {
    !text.is_empty() && text.len() <= bytes_max && text.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
