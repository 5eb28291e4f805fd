//! Fragments to calls: the only place that knows the upstream's `index`.

use crate::json::Json;
use crate::limits::Limits;
use crate::profile::Profile;
use crate::step::Sink;
use crate::vocabulary::{CallKind, Slot};

/// What opens a call of a dialect with blocks or whole calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallHead<'a> {
    /// Their id; empty = none.
    pub id: &'a str,
    /// The tool's name; empty = not known yet.
    pub name: &'a str,
    /// JSON or free text.
    pub kind: CallKind,
}

/// One entry of a Chat Completions `tool_calls` array (or the legacy `function_call`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallDelta<'a> {
    /// `index`, as a number if it is one or reads as one.
    pub index: Option<i64>,
    /// `id`; empty = none.
    pub id: &'a str,
    /// `function.name`; empty = none.
    pub name: &'a str,
    /// `function.arguments` (any JSON type) or `custom.input`.
    pub arguments: Option<&'a Json<'a>>,
    /// JSON or free text.
    pub kind: CallKind,
}

/// The calls of one choice.
pub(crate) struct Assembly {}

impl Assembly {
    pub(crate) fn new(_limits: &Limits, _profile: &Profile, _offered: &[String]) -> Self {
        Self {}
    }
    pub(crate) fn delta(&mut self, _delta: CallDelta<'_>, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn open_block(&mut self, _key: u64, _head: CallHead<'_>, _out: Sink<'_>, _at: u64) -> Slot {
        Slot(0)
    }
    pub(crate) fn open(&mut self, _head: CallHead<'_>, _out: Sink<'_>, _at: u64) -> Slot {
        Slot(0)
    }
    pub(crate) fn block(&self, _key: u64) -> Option<Slot> {
        None
    }
    pub(crate) fn is_empty(&self, _slot: Slot) -> bool {
        true
    }
    pub(crate) fn append_body(&mut self, _slot: Slot, _body: &str, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn append(&mut self, _slot: Slot, _text: &str, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn restate(&mut self, _slot: Slot, _text: &str, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn seal_explicit(&mut self, _slot: Slot, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn void_all(&mut self, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn close(&mut self, _cut: bool, _out: Sink<'_>, _at: u64) {}
    pub(crate) fn has_calls(&self) -> bool {
        false
    }
}
