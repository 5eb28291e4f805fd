//! The content array of one Converse reply as it grows, in the form in which it goes back.

use crate::dialect::text_fragments::TextFragments;
use crate::json::JsonRef;
use crate::vocabulary::CallSlot;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One content block with what its deltas have added.
#[derive(Debug)]
pub(super) enum ConverseBlock {
    /// Visible text with its sources. No event opens it.
    Text { text: TextFragments, citations: Vec<Value> },
    /// Reasoning with its signature.
    Reasoning { text: TextFragments, signature: TextFragments },
    /// Reasoning that is not shown, base64.
    Redacted(TextFragments),
    /// A call for us.
    Call { slot: CallSlot, head: Map<String, Value>, input: TextFragments },
    /// A tool that the provider runs.
    Hosted { head: Map<String, Value>, input: TextFragments, reported: bool },
    /// Result of a hosted tool.
    ToolResult { head: Map<String, Value>, content: Vec<Value>, reported: bool },
}

impl ConverseBlock {
    pub(super) fn text() -> Self {
        ConverseBlock::Text { text: TextFragments::default(), citations: Vec::new() }
    }
    pub(super) fn reasoning() -> Self {
        ConverseBlock::Reasoning { text: TextFragments::default(), signature: TextFragments::default() }
    }

    /// The block as it goes back; `None` if there is nothing in it.
    fn into_value(self) -> Option<Value> {
        Some(match self {
            ConverseBlock::Text { text, citations } => {
                let text = text.into_string();
                if text.trim().is_empty() {
                    return None;
                }
                if citations.is_empty() {
                    json!({ "text": text })
                } else {
                    json!({ "citationsContent": { "content": [{ "text": text }], "citations": citations } })
                }
            }
            ConverseBlock::Reasoning { text, signature } => {
                let (text, signature) = (text.into_string(), signature.into_string());
                let mut reasoning = json!({ "text": text });
                if !signature.is_empty() {
                    reasoning["signature"] = signature.into();
                } else if text.is_empty() {
                    return None;
                }
                json!({ "reasoningContent": { "reasoningText": reasoning } })
            }
            ConverseBlock::Redacted(data) => {
                json!({ "reasoningContent": { "redactedContent": data.into_string() } })
            }
            ConverseBlock::Call { mut head, input, .. } | ConverseBlock::Hosted { mut head, input, .. } => {
                head.insert("input".to_owned(), object_of(input));
                json!({ "toolUse": head })
            }
            ConverseBlock::ToolResult { mut head, content, .. } => {
                head.insert("content".to_owned(), content.into());
                json!({ "toolResult": head })
            }
        })
    }
}

/// The joined text as a JSON object, empty if it is not one.
pub(super) fn object_of(text: TextFragments) -> Value {
    let text = text.into_string();
    JsonRef::parse(&text).ok().filter(JsonRef::is_object).map_or_else(|| json!({}), |json| json.to_value())
}

/// The blocks in order of appearance, and which one a number means now.
#[derive(Debug, Default)]
pub(super) struct ConverseBlocks {
    list: Vec<ConverseBlock>,
    by_index: BTreeMap<u64, usize>,
}

impl ConverseBlocks {
    /// A block opens: from now on `index` means it.
    pub(super) fn open(&mut self, index: u64, block: ConverseBlock) -> &mut ConverseBlock {
        let at = self.list.len();
        self.list.push(block);
        self.by_index.insert(index, at);
        &mut self.list[at]
    }

    /// The block that `index` means.
    pub(super) fn find(&mut self, index: u64) -> Option<&mut ConverseBlock> {
        let at = *self.by_index.get(&index)?;
        self.list.get_mut(at)
    }

    /// The block of a call.
    pub(super) fn find_call(&mut self, call: CallSlot) -> Option<&mut ConverseBlock> {
        self.list.iter_mut().find(|block| matches!(block, ConverseBlock::Call { slot, .. } if *slot == call))
    }

    /// The block that a delta continues: the one that `index` means if it is of the same kind, else a new one.
    pub(super) fn block_for_delta(&mut self, index: u64, block: ConverseBlock) -> &mut ConverseBlock {
        let same = |other: &ConverseBlock| std::mem::discriminant(other) == std::mem::discriminant(&block);
        match self.by_index.get(&index).copied().filter(|at| same(&self.list[*at])) {
            Some(at) => &mut self.list[at],
            None => self.open(index, block),
        }
    }

    /// The number of a block that came without one.
    pub(super) fn next_index(&self) -> u64 {
        self.list.len() as u64
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ConverseBlock> {
        self.list.iter_mut()
    }

    /// The content array to send back.
    pub(super) fn into_content(self) -> Vec<Value> {
        self.list.into_iter().filter_map(ConverseBlock::into_value).collect()
    }
}
