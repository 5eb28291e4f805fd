//! The content array of one reply as it grows.

use crate::dialect::text_fragments::TextFragments;
use crate::json::JsonRef;
use crate::vocabulary::{CallSlot, HostedTool};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One content block.
#[derive(Debug)]
pub(super) struct ContentBlock {
    /// The block as its start event had it: the fields that no delta changes (`caller`, `server_name`, ids).
    pub(super) head: Map<String, Value>,
    /// Content, which deltas extend.
    pub(super) kind: ContentBlockKind,
    /// True once `content_block_stop` was seen.
    pub(super) closed: bool,
}

/// Kind of a block, with the content that its deltas have added.
#[derive(Debug)]
pub(super) enum ContentBlockKind {
    /// Visible text with its sources.
    Text { text: TextFragments, citations: Vec<Value> },
    /// Reasoning with the signature that proves it.
    Thinking { text: TextFragments, signature: TextFragments },
    /// A call for us. `start_input` is the non-empty input of the start event, used if no delta follows.
    Call { slot: CallSlot, start_input: Option<String>, input: TextFragments },
    /// A tool that the provider runs; its input shares the delta type of calls and must not reach them.
    Hosted { input: TextFragments, reported: bool },
    /// A summary of earlier context, for the provider only.
    Compaction { content: TextFragments },
    /// Complete as it started: results of hosted tools, redacted thinking.
    Complete,
    /// An unknown kind, with its own deltas.
    Unknown,
}

impl ContentBlockKind {
    pub(super) fn text() -> Self {
        ContentBlockKind::Text { text: TextFragments::default(), citations: Vec::new() }
    }
    pub(super) fn thinking() -> Self {
        ContentBlockKind::Thinking { text: TextFragments::default(), signature: TextFragments::default() }
    }
    pub(super) fn hosted() -> Self {
        ContentBlockKind::Hosted { input: TextFragments::default(), reported: false }
    }
    /// True if both blocks are of the same kind.
    fn is_same_kind(&self, other: &ContentBlockKind) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The blocks in order of appearance, and which one a number means now.
#[derive(Debug, Default)]
pub(super) struct ContentBlocks {
    list: Vec<ContentBlock>,
    by_index: BTreeMap<u64, usize>,
}

impl ContentBlocks {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of a block that came without one.
    pub(super) fn next_index(&self) -> u64 {
        self.list.len() as u64
    }

    /// Opens a block: from now on `index` means this one.
    pub(super) fn open(&mut self, index: u64, head: Map<String, Value>, kind: ContentBlockKind) -> usize {
        let at = self.list.len();
        self.list.push(ContentBlock { head, kind, closed: false });
        self.by_index.insert(index, at);
        at
    }

    /// The block that a delta or stop means; without a number, the one opened last.
    pub(super) fn find(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.list.len().checked_sub(1),
        }
    }

    /// The block of a call.
    pub(super) fn find_call(&self, call: CallSlot) -> Option<usize> {
        self.list
            .iter()
            .position(|block| matches!(block.kind, ContentBlockKind::Call { slot, .. } if slot == call))
    }

    pub(super) fn get(&mut self, at: usize) -> &mut ContentBlock {
        &mut self.list[at]
    }

    /// The block that a delta of this kind continues. If none was opened, or one of another kind, the delta opens its
    /// own, so that nothing is lost and nothing is mixed.
    pub(super) fn block_for_delta(
        &mut self,
        index: Option<u64>,
        kind: ContentBlockKind,
    ) -> &mut ContentBlock {
        let fits = |at: &usize| self.list[*at].kind.is_same_kind(&kind);
        let found = self.find(index).filter(fits).or_else(|| self.list.len().checked_sub(1).filter(fits));
        let at = found.unwrap_or_else(|| {
            let head = if matches!(kind, ContentBlockKind::Thinking { .. }) {
                // Its start was lost: it goes back only if a signature proves it whole.
                Map::from_iter([("type".to_owned(), "thinking".into()), ("signature".to_owned(), "".into())])
            } else {
                Map::from_iter([("type".to_owned(), "text".into())])
            };
            self.list.push(ContentBlock { head, kind, closed: false });
            let at = self.list.len() - 1;
            if let Some(index) = index {
                self.by_index.entry(index).or_insert(at);
            }
            at
        });
        &mut self.list[at]
    }

    /// Numbers of all blocks that no stop event has closed.
    pub(super) fn open_blocks(&self) -> Vec<usize> {
        (0..self.list.len()).filter(|at| !self.list[*at].closed).collect()
    }

    /// Content array to send back. `cut`: the reply did not end normally, so calls that will never be
    /// answered are left out.
    pub(super) fn into_content(self, cut: bool) -> Vec<Value> {
        let answered_ids: BTreeSet<String> = self
            .list
            .iter()
            .filter_map(|block| block.head.get("tool_use_id").and_then(Value::as_str).map(str::to_owned))
            .collect();
        self.list.into_iter().filter_map(|block| block.into_value(cut, &answered_ids)).collect()
    }
}

impl ContentBlock {
    /// The request to a hosted tool, the first time this is called.
    pub(super) fn report_hosted(&mut self) -> Option<HostedTool> {
        let ContentBlockKind::Hosted { input, reported } = &mut self.kind else { return None };
        if std::mem::replace(reported, true) {
            return None;
        }
        let text = |key: &str| self.head.get(key).and_then(Value::as_str).map(str::to_owned);
        let (id, name) = (text("id"), text("name").unwrap_or_default());
        if let Some(value) = object_of(&std::mem::take(input).into_string()) {
            self.head.insert("input".to_owned(), value);
        }
        Some(HostedTool { id, name, input: self.head.get("input").cloned(), output: None })
    }

    /// The block as it goes back; `None` for one that the upstream would refuse.
    fn into_value(self, cut: bool, answered_ids: &BTreeSet<String>) -> Option<Value> {
        let ContentBlock { mut head, kind, closed } = self;
        match kind {
            ContentBlockKind::Text { text, citations } => {
                let text = text.into_string();
                // "text content blocks must contain non-whitespace text" (HTTP 400), yet such blocks are sent.
                if text.trim().is_empty() {
                    return None;
                }
                head.insert("text".to_owned(), text.into());
                if !citations.is_empty() {
                    head.insert("citations".to_owned(), citations.into());
                } else if head.get("citations").is_some_and(Value::is_null) {
                    head.remove("citations");
                }
            }
            ContentBlockKind::Thinking { text, signature } => {
                let signature = signature.into_string();
                // Compatible servers do not sign; a block that was to be signed and was cut is refused.
                if signature.is_empty() && (!closed || head.contains_key("signature")) {
                    return None;
                }
                head.insert("thinking".to_owned(), text.into_string().into());
                if !signature.is_empty() {
                    head.insert("signature".to_owned(), signature.into());
                }
            }
            ContentBlockKind::Call { input, .. } => {
                let input = object_of(&input.into_string()).unwrap_or_else(|| Value::Object(Map::new()));
                head.insert("input".to_owned(), input);
            }
            ContentBlockKind::Hosted { .. } => {
                let id = head.get("id").and_then(Value::as_str).unwrap_or_default();
                if cut && !answered_ids.contains(id) {
                    return None;
                }
            }
            ContentBlockKind::Compaction { content } => {
                let content = content.into_string();
                if !content.is_empty() {
                    head.insert("content".to_owned(), content.into());
                }
            }
            ContentBlockKind::Complete | ContentBlockKind::Unknown => {}
        }
        Some(Value::Object(head))
    }
}

/// The text as a JSON object; the API takes no other input.
fn object_of(text: &str) -> Option<Value> {
    JsonRef::parse(text).ok().filter(JsonRef::is_object).map(|json| json.to_value())
}
