//! Matching an entry of `tool_calls` to its call (Chat Completions, the dialect without blocks).
//!
//! Rules in the order of their application; each names its quirk (`docs/conformance.md`).

use super::{CallAssembler, CallDelta, CallHead, CallSource, DROPPED, SealState, report};
use crate::json::{JsonRef, SurrogateCarry, decode_string};
use crate::step::EventSink;
use crate::vocabulary::{CallKind, CallSlot, ProblemKind};
use std::borrow::Cow;

/// Relation of an entry to its candidate call.
enum DeltaKind {
    /// A new call.
    NewCall,
    /// More of the candidate.
    Continuation,
    /// The candidate once more, to the letter.
    Repetition,
}

impl CallAssembler {
    /// Takes one entry; the call that it belongs to, if any.
    pub(crate) fn apply_delta(
        &mut self,
        delta: CallDelta<'_>,
        out: EventSink<'_>,
        at: u64,
    ) -> Option<CallSlot> {
        let arguments = argument_text(delta.arguments);
        let is_phantom = delta.id.is_empty() && delta.name.is_empty() && arguments.is_none_or(str::is_empty);
        let candidate = self.candidate(&delta);
        if is_phantom {
            // T16: no information. On a known call it is an idle repetition.
            if candidate.is_none() {
                report(out, ProblemKind::PhantomCall, at, "", None);
            }
            return None;
        }
        if candidate.is_none() && delta.index.is_some() && delta.id.is_empty() && delta.name.is_empty() {
            let fragment = delta.arguments.map(shown_text).unwrap_or_default();
            if let Some(slot) = self.adopt(&fragment, out, at) {
                self.append_any(slot, delta.arguments, out, at);
                // The same number may be another call's when this one is complete: no slot to rely on.
                return None;
            }
        }
        let delta_kind = candidate.map_or(DeltaKind::NewCall, |slot| self.classify(slot, &delta, arguments));
        let slot = match (delta_kind, candidate) {
            (DeltaKind::Repetition, _) => return None,
            (DeltaKind::Continuation, Some(slot)) => {
                self.merge_head(slot, &delta, out, at);
                slot
            }
            _ => {
                let head = CallHead { id: delta.id, name: delta.name, kind: delta.kind };
                self.open_at(delta.index, self.position(delta.index), head, out, at)
            }
        };
        self.append_any(slot, delta.arguments, out, at);
        (slot != DROPPED).then_some(slot)
    }

    fn append_any(&mut self, slot: CallSlot, arguments: Option<&JsonRef<'_>>, out: EventSink<'_>, at: u64) {
        match arguments {
            Some(json) if json.is_string() => {
                if let Some(body) = json.string_body() {
                    self.append_json_body(slot, body, out, at);
                }
            }
            // A3: arguments as a value instead of text.
            Some(json) if !json.is_null() => {
                self.append(slot, json.raw(), out, at);
            }
            _ => {}
        }
    }

    /// The call that this entry would continue, if it continues one.
    fn candidate(&self, delta: &CallDelta<'_>) -> Option<CallSlot> {
        let newest = |test: &dyn Fn(&super::CallInProgress) -> bool| {
            self.calls.iter().rposition(test).map(|at| CallSlot(at as u32))
        };
        // A block of the text is whole or refused; nothing that comes in the field for calls belongs to it.
        let last = newest(&|call| call.source == CallSource::Field);
        match delta.index {
            Some(index) => newest(&|call| call.index == Some(index)).or_else(|| {
                // T5: a number that first appears on a continuation names the call just opened.
                let unnumbered =
                    last.filter(|slot| self.call(*slot).is_some_and(|call| call.index.is_none()));
                let unnumbered = unnumbered.filter(|_| delta.id.is_empty() && delta.name.is_empty());
                // T19: without a name, a known id identifies its call, under any number.
                let is_its_id = |call: &super::CallInProgress| !call.id.is_empty() && call.id == delta.id;
                unnumbered.or_else(|| newest(&is_its_id).filter(|_| delta.name.is_empty()))
            }),
            // T1: without a number, an id names its call; a bare fragment or the same name continues the last.
            None if !delta.id.is_empty() => {
                newest(&|call| call.id == delta.id).or_else(|| last.filter(|_| delta.name.is_empty()))
            }
            None if delta.name.is_empty() => last,
            None => last.filter(|slot| {
                self.call(*slot).is_some_and(|call| call.name == delta.name || call.name.is_empty())
            }),
        }
    }

    fn classify(&self, slot: CallSlot, delta: &CallDelta<'_>, arguments: Option<&str>) -> DeltaKind {
        let Some(call) = self.call(slot) else { return DeltaKind::NewCall };
        let closed = call.reader.is_closed();
        let is_new_id = !delta.id.is_empty() && !call.id.is_empty() && delta.id != call.id;
        let has_new_text = arguments.is_some_and(|text| !text.trim_ascii().is_empty());
        if delta.name.is_empty() {
            // T11: an id alone never opens a call. T4 (a second object in one slot) is judged by its arguments.
            return DeltaKind::Continuation;
        }
        if call.name.is_empty() {
            // T8: the name comes late.
            return DeltaKind::Continuation;
        }
        if delta.name == call.name {
            return match (closed, is_new_id) {
                // T2: a new id and a complete call on this number.
                (true, true) => DeltaKind::NewCall,
                // T6, T11: name repeated, perhaps with a changing id.
                (false, _) => DeltaKind::Continuation,
                (true, false) if !has_new_text => DeltaKind::Continuation,
                // T15: identical is the same call; T3: anything else is another.
                (true, false) if self.is_repetition(slot, delta.arguments) => DeltaKind::Repetition,
                (true, false) => DeltaKind::NewCall,
            };
        }
        let both_offered = self.is_offered(&call.name) && self.is_offered(delta.name);
        if is_new_id || call.has_text() || both_offered || call.ending != SealState::Open {
            // T2, T3: another name on an occupied number.
            return DeltaKind::NewCall;
        }
        // T9: a name in pieces.
        DeltaKind::Continuation
    }

    fn is_repetition(&self, slot: CallSlot, arguments: Option<&JsonRef<'_>>) -> bool {
        let Some((call, json)) = self.call(slot).zip(arguments) else { return false };
        let text = match json.string_body() {
            Some(body) => decode_string(body, &mut SurrogateCarry::default()),
            None => Cow::Borrowed(json.raw()),
        };
        call.document() == Some(text.trim_ascii())
    }

    fn is_offered(&self, name: &str) -> bool {
        self.offered.iter().any(|offered| offered == name)
    }

    /// Adds the head of a continuing entry to its call.
    fn merge_head(&mut self, slot: CallSlot, delta: &CallDelta<'_>, out: EventSink<'_>, at: u64) {
        let id_in_use = self.calls.iter().any(|call| call.id == delta.id);
        let Some(call) = self.call_mut(slot) else { return };
        if call.index.is_none() && delta.index.is_some() {
            call.index = delta.index;
            self.generation += 1;
        }
        let Some(call) = self.call_mut(slot) else { return };
        if !delta.id.is_empty() {
            if call.id.is_empty() && !call.announced {
                // T10: the id comes late. After the announcement it could not be reported any more.
                call.id = delta.id.to_owned();
                call.id_is_usable = !id_in_use;
            } else if call.id != delta.id {
                report(out, ProblemKind::IdChanged, at, delta.id, Some(slot));
            }
        }
        let Some(call) = self.call_mut(slot) else { return };
        if delta.kind == CallKind::Custom && !call.has_text() {
            call.kind = CallKind::Custom;
        }
        if delta.name.is_empty() || delta.name == call.name {
            return;
        }
        if call.announced || (call.has_text() && !call.name.is_empty()) {
            report(out, ProblemKind::NameChanged, at, delta.name, Some(slot));
        } else if delta.name.starts_with(call.name.as_str()) {
            // T9: the whole name, after its beginning (or after nothing).
            call.name = delta.name.to_owned();
        } else {
            call.name.push_str(delta.name);
        }
        if self.call(slot).is_some_and(super::CallInProgress::has_text) {
            self.announce_if_named(slot, out);
        } else {
            self.announce_if_offered(slot, out);
        }
    }

    /// Position in the message: their number where it is sane, else next to the call before.
    fn position(&self, index: Option<i64>) -> u32 {
        index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or_else(|| self.calls.last().map_or(0, |call| call.position))
    }
}

/// A fragment as a person reads it.
fn shown_text<'a>(fragment: &JsonRef<'a>) -> Cow<'a, str> {
    fragment.as_str().unwrap_or(Cow::Borrowed(fragment.raw()))
}

/// Raw argument text on the wire, with escapes; only its emptiness and white space matter here.
fn argument_text<'a>(arguments: Option<&JsonRef<'a>>) -> Option<&'a str> {
    let json = arguments.filter(|json| !json.is_null())?;
    Some(json.string_body().unwrap_or_else(|| json.raw()))
}
