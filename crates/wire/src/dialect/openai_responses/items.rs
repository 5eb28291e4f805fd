//! Matching events to output items.
//!
//! `output_index` decides; ids of items change with every event at GitHub Copilot and count only where there
//! is no index. A `call_id` is compared, because some servers use one index for everything.

use crate::json::JsonRef;
use crate::vocabulary::{CallKind, CallSlot};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Kind of an output item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    /// For the client to run.
    Call(CallKind),
    /// Run by the provider.
    Hosted,
    /// Echoed, never shown (`compaction`).
    Opaque,
    Unknown,
}

impl ItemKind {
    pub(super) fn of(item: &JsonRef<'_>) -> ItemKind {
        match item.nonempty("type").unwrap_or_default().as_ref() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call(CallKind::Function),
            "custom_tool_call" => ItemKind::Call(CallKind::Custom),
            "compaction" => ItemKind::Opaque,
            name if name.ends_with("_call") || name.ends_with("_call_output") || name.starts_with("mcp_") => {
                ItemKind::Hosted
            }
            _ => ItemKind::Unknown,
        }
    }
}

/// A text of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextChannel {
    Text,
    Refusal,
    Summary,
    Reasoning,
}

/// One output item, as far as it has arrived.
#[derive(Debug)]
pub(super) struct OutputItem {
    pub(super) kind: ItemKind,
    output_index: Option<u64>,
    item_id: String,
    /// `call_id`, or `id` where that is missing.
    pub(super) call_id: String,
    /// Slot of its call, once the name is known.
    pub(super) slot: Option<CallSlot>,
    /// Arguments that were sent in advance: with the head of a call (they count if nothing follows), or
    /// before its name.
    pub(super) pending_arguments: String,
    /// The texts (by `content_index` or `summary_index`) of which something has been emitted.
    pub(super) emitted: BTreeSet<(TextChannel, u64)>,
    /// Annotations have been emitted.
    pub(super) citations_emitted: bool,
    /// True once the item was reported complete.
    pub(super) done: bool,
    /// Item to be sent back.
    pub(super) value: Option<Value>,
}

impl OutputItem {
    fn new(kind: ItemKind, output_index: Option<u64>, item: &JsonRef<'_>) -> Self {
        let item_id = item.scalar("id").unwrap_or_default().into_owned();
        let call_id = call_id(item).into_owned();
        Self {
            kind,
            output_index,
            item_id,
            call_id,
            slot: None,
            pending_arguments: String::new(),
            emitted: BTreeSet::new(),
            citations_emitted: false,
            done: false,
            value: None,
        }
    }

    pub(super) fn has_emitted(&self, channel: TextChannel) -> bool {
        self.emitted.range((channel, 0)..=(channel, u64::MAX)).next().is_some()
    }

    /// True if `item` can be this one, sent again.
    fn is_restated_by(&self, kind: ItemKind, item: &JsonRef<'_>) -> bool {
        if self.kind != kind {
            return false;
        }
        if !matches!(kind, ItemKind::Call(_)) {
            return !self.done;
        }
        let call_id = item.nonempty("call_id").unwrap_or_default();
        if call_id.is_empty() || self.call_id.is_empty() {
            return !self.done;
        }
        call_id == self.call_id
    }
}

/// The id that a call is answered with.
pub(super) fn call_id<'a>(item: &JsonRef<'a>) -> std::borrow::Cow<'a, str> {
    item.scalar("call_id").or_else(|| item.scalar("id")).unwrap_or_default()
}

/// All items of a response, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct OutputItems {
    items: Vec<OutputItem>,
    /// The last item of an index.
    by_index: HashMap<u64, usize>,
    by_item_id: HashMap<String, usize>,
    by_slot: HashMap<CallSlot, usize>,
}

impl OutputItems {
    pub(super) fn get(&mut self, at: usize) -> &mut OutputItem {
        &mut self.items[at]
    }

    /// The item's call has opened.
    pub(super) fn set_slot(&mut self, at: usize, call: CallSlot) {
        self.items[at].slot = Some(call);
        self.by_slot.insert(call, at);
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The sort key of an item among the calls of the message.
    pub(super) fn key(&self, at: usize) -> u64 {
        self.items[at].output_index.unwrap_or(at as u64)
    }

    /// The item that a delta belongs to. If the index belongs to no item, the id is used.
    pub(super) fn find_for_event(&self, event: &JsonRef<'_>) -> Option<usize> {
        let index = event.get("output_index").and_then(JsonRef::as_u64);
        if let Some(at) = index.and_then(|index| self.by_index.get(&index)) {
            return Some(*at);
        }
        match event.nonempty("item_id") {
            Some(id) => self.by_item_id.get(id.as_ref()).copied(),
            None if index.is_some() => None,
            None => self.items.len().checked_sub(1),
        }
    }

    /// True if a delta of this kind has an item.
    pub(super) fn is_known(&self, event: &JsonRef<'_>, kind: ItemKind) -> bool {
        self.find_for_event(event).is_some_and(|at| self.items[at].kind == kind)
    }

    /// Fragments of a call have come under another number: they repeat the arguments of its head.
    pub(super) fn clear_pending(&mut self, call: CallSlot) {
        if let Some(at) = self.by_slot.get(&call) {
            self.items[*at].pending_arguments.clear();
        }
    }

    /// The item that an event of a known kind belongs to; an item that was never announced is opened, and
    /// `true` is returned with it.
    pub(super) fn find_or_open(&mut self, event: &JsonRef<'_>, kind: ItemKind) -> (usize, bool) {
        if let Some(at) = self.find_for_event(event).filter(|at| self.items[*at].kind == kind) {
            return (at, false);
        }
        let output_index = event.get("output_index").and_then(JsonRef::as_u64);
        let mut item = OutputItem::new(kind, output_index, event);
        item.item_id = event.nonempty("item_id").unwrap_or_default().into_owned();
        item.call_id.clear();
        (self.push(item), true)
    }

    /// `output_item.item_added`: opens an item unless it is sent again.
    pub(super) fn item_added(&mut self, event: &JsonRef<'_>, item: &JsonRef<'_>) -> (usize, bool) {
        let kind = ItemKind::of(item);
        let known = match event.get("output_index").and_then(JsonRef::as_u64) {
            Some(index) => self.by_index.get(&index),
            None => item.nonempty("id").and_then(|id| self.by_item_id.get(id.as_ref())),
        };
        match known {
            Some(at) if self.items[*at].is_restated_by(kind, item) => (*at, false),
            _ => self.open(event, item),
        }
    }

    /// `output_item.done`: the item of that index, unless a different one was complete there before.
    pub(super) fn item_done(&mut self, event: &JsonRef<'_>, item: &JsonRef<'_>) -> (usize, bool) {
        let kind = ItemKind::of(item);
        let has_index = event.get("output_index").is_some();
        let by_id =
            item.nonempty("id").filter(|_| !has_index).and_then(|id| self.by_item_id.get(id.as_ref()));
        let known = by_id.copied().or_else(|| self.find_for_event(event));
        match known.map(|at| (at, &self.items[at])) {
            Some((at, known)) if known.kind == kind && !known.done => (at, false),
            Some((at, known)) if known.kind == kind => match kind {
                ItemKind::Call(_) if !known.is_restated_by(kind, item) => self.open(event, item),
                _ => (at, false),
            },
            _ => self.open(event, item),
        }
    }

    /// The items of a terminal snapshot that may be the ones of the stream.
    pub(super) fn snapshot_matcher(&self) -> SnapshotMatcher {
        let mut matching = SnapshotMatcher::default();
        for (at, item) in self.items.iter().enumerate() {
            match item.kind {
                ItemKind::Call(_) => {
                    _ = matching.by_call_id.entry(item.call_id.clone()).or_default().insert(at)
                }
                ItemKind::Message => matching.messages.push_back(at),
                ItemKind::Reasoning => matching.reasonings.push_back(at),
                _ => drop(matching.others.insert(item.item_id.clone(), at)),
            }
        }
        matching
    }

    /// Finds or opens the item of a terminal snapshot at `position` of its list.
    pub(super) fn match_snapshot(
        &mut self,
        matching: &mut SnapshotMatcher,
        position: usize,
        item: &JsonRef<'_>,
    ) -> (usize, bool) {
        let kind = ItemKind::of(item);
        let known = match kind {
            // Several calls may have one id (T12): each is matched once, in order.
            ItemKind::Call(_) => {
                matching.by_call_id.get_mut(call_id(item).as_ref()).and_then(BTreeSet::pop_first).or_else(
                    || {
                        // Announced without any id, or only by its deltas.
                        let at = self.by_index.get(&(position as u64)).copied()?;
                        matching.by_call_id.get_mut("")?.take(&at)
                    },
                )
            }
            // Their ids rotate and their positions shift, but not their order.
            ItemKind::Message => matching.messages.pop_front(),
            ItemKind::Reasoning => matching.reasonings.pop_front(),
            _ => matching.others.remove(item.nonempty("id").unwrap_or_default().as_ref()).or_else(|| {
                self.by_index.get(&(position as u64)).copied().filter(|at| self.items[*at].kind == kind)
            }),
        };
        match known {
            Some(at) => (at, false),
            None => {
                let index = Some(position as u64).filter(|index| !self.by_index.contains_key(index));
                (self.push(OutputItem::new(kind, index, item)), true)
            }
        }
    }

    /// Items to be echoed: every item that arrived whole, in the order of the response.
    pub(super) fn take_values(&mut self) -> Vec<Value> {
        let in_order = self.items.iter().all(|item| item.output_index.is_some());
        let mut items: Vec<&mut OutputItem> =
            self.items.iter_mut().filter(|item| item.value.is_some()).collect();
        if in_order {
            items.sort_by_key(|item| item.output_index);
        }
        items.into_iter().filter_map(|item| item.value.take()).collect()
    }

    fn open(&mut self, event: &JsonRef<'_>, item: &JsonRef<'_>) -> (usize, bool) {
        let output_index = event.get("output_index").and_then(JsonRef::as_u64);
        (self.push(OutputItem::new(ItemKind::of(item), output_index, item)), true)
    }

    fn push(&mut self, item: OutputItem) -> usize {
        let at = self.items.len();
        if let Some(index) = item.output_index {
            self.by_index.insert(index, at);
        }
        if !item.item_id.is_empty() {
            self.by_item_id.insert(item.item_id.clone(), at);
        }
        self.items.push(item);
        at
    }
}

/// Items of the stream that have not been found in the snapshot yet.
#[derive(Debug, Default)]
pub(super) struct SnapshotMatcher {
    by_call_id: HashMap<String, BTreeSet<usize>>,
    messages: VecDeque<usize>,
    reasonings: VecDeque<usize>,
    others: HashMap<String, usize>,
}
