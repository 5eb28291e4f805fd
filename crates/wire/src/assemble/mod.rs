//! Fragments to calls: the only place that knows the upstream's `index`.
//!
//! A call's identity is evidence, not one field: number, id, name and the shape of the arguments decide
//! together whether a fragment opens a call or continues one (`resolve`). Its arguments are data: appended,
//! never deduplicated, and checked once, when the call ends (`settle`).

mod finalize;
mod resolve;

use crate::json::{ArgumentsReader, JsonRef, SurrogateCarry, decode_string};
use crate::limits::DecodeLimits;
use crate::profile::{LeakedCalls, UpstreamProfile};
use crate::step::{EventSink, excerpt_of};
use crate::text_calls::clean_name;
use crate::vocabulary::{
    ArgumentRepair, BrokenCall, CallArguments, CallKind, CallSlot, ProblemKind, RawArguments, SealEvidence,
    StepEvent, StepProblem, UpstreamCallId, WireName,
};
use serde_json::Value;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// First data of a call in a dialect with blocks or whole calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallHead<'a> {
    /// Id given by the upstream; empty = none.
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
    pub arguments: Option<&'a JsonRef<'a>>,
    /// JSON or free text.
    pub kind: CallKind,
}

/// The calls of one choice.
pub(crate) struct CallAssembler {
    calls: Vec<CallInProgress>,
    arguments_bytes_max: usize,
    calls_per_step_max: usize,
    profile: UpstreamProfile,
    offered: Vec<String>,
    /// Changes whenever a fragment without a head could go to another call than before.
    generation: u64,
    /// `calls_per_step_max` has been reported.
    limit_reported: bool,
    /// A fragment that no call owns was dropped at that limit.
    orphan_dropped: bool,
}

/// Slot of a call beyond `calls_per_step_max`: reports about it have no effect.
const DROPPED: CallSlot = CallSlot(u32::MAX);

/// One call while it arrives.
struct CallInProgress {
    /// The upstream's index of the call, if it has one.
    index: Option<i64>,
    /// The dialect's block number.
    block: Option<u64>,
    position: u32,
    /// Id given by the upstream, as first seen, even if an earlier call has the same.
    id: String,
    id_is_usable: bool,
    name: String,
    kind: CallKind,
    reader: ArgumentsReader,
    /// Text of a custom tool, which is not JSON.
    free_text: String,
    carry: SurrogateCarry,
    ink: TextInk,
    /// Hash of the arguments as a JSON value, once it was needed.
    document_hash: Option<u64>,
    /// Fragments so far, where the last one begins, and whether each began with the one before.
    fragments: u32,
    last_fragment_at: usize,
    cumulative: bool,
    announced: bool,
    ending: SealState,
    /// True for a call that was sealed without arguments.
    is_sealed_empty: bool,
    too_large: bool,
    /// True for a call that the upstream reports as complete although only its head has arrived: it counts
    /// when the model continues.
    is_held: bool,
    /// True once the call was given fragments under a number of no call, and that was reported.
    is_misnumbered: bool,
    source: CallSource,
}

/// Origin of a call: it determines the evidence that counts, and what may be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallSource {
    /// The upstream's own field for calls.
    Field,
    /// A block in the text (text mode): only its END marker seals it, and no field adds to it.
    Block,
    /// A generation of the reply that the upstream has restarted: it is void.
    Void,
}

/// The bytes of a text that are not white space, as far as they tell an empty one. Counted as they come: a look at the
/// whole text for every fragment would cost the square of its length.
#[derive(Clone, Copy, Debug, Default)]
struct TextInk {
    first: Option<u8>,
    /// Offset of the first one.
    first_at: usize,
    /// No further than 3.
    count: usize,
}

impl TextInk {
    const COUNT_MAX: usize = 3;

    /// Takes the next fragment, which begins at `offset` of the text.
    fn push(&mut self, fragment: &str, offset: usize) {
        if self.count == Self::COUNT_MAX {
            return;
        }
        let ink = |byte: &u8| !byte.is_ascii_whitespace();
        if self.first.is_none()
            && let Some(at) = fragment.bytes().position(|byte| ink(&byte))
        {
            (self.first, self.first_at) = (Some(fragment.as_bytes()[at]), offset + at);
        }
        self.count += fragment.bytes().filter(ink).take(Self::COUNT_MAX - self.count).count();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealState {
    Open,
    Sealed(SealEvidence),
    Broken,
}

impl CallInProgress {
    fn text(&self) -> &str {
        match self.kind {
            CallKind::Function => self.reader.text(),
            CallKind::Custom => &self.free_text,
        }
    }

    fn has_text(&self) -> bool {
        !self.text().is_empty()
    }

    /// True if neither an id nor a name has arrived: there is no evidence of such a call.
    fn is_headless(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }

    /// True if more of the call may arrive.
    fn is_open(&self) -> bool {
        self.source == CallSource::Field && self.ending == SealState::Open && !self.is_held
    }

    /// True for arguments without a name: fragments that belong to no call, made visible as a separate one.
    fn is_orphan(&self) -> bool {
        self.source == CallSource::Field && self.name.is_empty() && self.ink.first.is_some()
    }

    /// The arguments' document without the white space around it, if it has closed.
    fn document(&self) -> Option<&str> {
        Some(&self.text()[self.ink.first_at..self.reader.closed_len()?])
    }

    /// The arguments are a whole object with nothing in it.
    fn is_empty_object(&self) -> bool {
        self.reader.is_closed() && self.ink.first == Some(b'{') && self.ink.count == 2
    }

    /// Equal as JSON values; arguments that are no whole document never are. Each call's are parsed once, however
    /// often they are compared.
    fn is_document(&mut self, hash: u64) -> bool {
        if !self.reader.is_closed() {
            return false;
        }
        if self.document_hash.is_none() {
            self.document_hash = self.document().and_then(value_hash);
        }
        self.document_hash == Some(hash)
    }

    fn clear_text(&mut self) {
        self.reader = ArgumentsReader::default();
        self.free_text.clear();
        self.ink = TextInk::default();
        self.document_hash = None;
        self.fragments = 0;
        self.last_fragment_at = 0;
        self.cumulative = true;
    }
}

impl CallAssembler {
    pub(crate) fn new(limits: &DecodeLimits, profile: &UpstreamProfile, offered: &[String]) -> Self {
        Self {
            calls: Vec::new(),
            arguments_bytes_max: limits.arguments_bytes_max,
            calls_per_step_max: limits.calls_per_step_max,
            profile: profile.clone(),
            offered: offered.to_vec(),
            generation: 0,
            limit_reported: false,
            orphan_dropped: false,
        }
    }

    /// True if any calls were announced to the caller.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.iter().any(|call| call.announced)
    }

    /// Number of calls so far, in any state.
    pub(crate) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Names and argument texts of the calls so far.
    pub(crate) fn names_and_arguments(&self) -> impl Iterator<Item = (&str, &str)> {
        self.calls.iter().map(|call| (call.name.as_str(), call.text()))
    }

    /// See [`CallAssembler::generation`] (the field).
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    // --- opening ---

    /// A call with a known head.
    pub(crate) fn open(&mut self, head: CallHead<'_>, out: EventSink<'_>, at: u64) -> CallSlot {
        let slot = self.open_at(None, 0, head, out, at);
        self.announce_if_named(slot, out);
        slot
    }

    /// A call of a numbered block; `key` names it from now on.
    pub(crate) fn open_block(
        &mut self,
        key: u64,
        head: CallHead<'_>,
        out: EventSink<'_>,
        at: u64,
    ) -> CallSlot {
        let slot = self.open_at(None, 0, head, out, at);
        if let Some(call) = self.call_mut(slot) {
            call.block = Some(key);
        }
        self.announce_if_named(slot, out);
        slot
    }

    /// A call that the model writes as a block of text. An empty name is that of a block that has none.
    pub(crate) fn open_text_block(&mut self, name: &str, out: EventSink<'_>, at: u64) -> CallSlot {
        let slot = self.open_at(None, 0, CallHead { name, ..CallHead::default() }, out, at);
        if let Some(call) = self.call_mut(slot) {
            call.source = CallSource::Block;
        }
        self.announce(slot, out);
        slot
    }

    /// The newest call of a numbered block.
    pub(crate) fn slot_of_block(&self, key: u64) -> Option<CallSlot> {
        let at = self.calls.iter().rposition(|call| call.block == Some(key))?;
        Some(CallSlot(at as u32))
    }

    fn open_at(
        &mut self,
        index: Option<i64>,
        position: u32,
        head: CallHead<'_>,
        out: EventSink<'_>,
        at: u64,
    ) -> CallSlot {
        if self.calls.len() >= self.calls_per_step_max {
            if !std::mem::replace(&mut self.limit_reported, true) {
                let limit = "calls_per_step_max".to_owned();
                report(out, ProblemKind::LimitReached { limit }, at, head.name, None);
            }
            if head.name.is_empty() && !self.has_orphans() {
                self.orphan_dropped = true;
                self.break_empty_calls(out);
            }
            return DROPPED;
        }
        self.generation += 1;
        let slot = CallSlot(self.calls.len() as u32);
        let id_is_usable = !head.id.is_empty() && self.calls.iter().all(|call| call.id != head.id);
        if !head.id.is_empty() && !id_is_usable {
            report(out, ProblemKind::IdChanged, at, head.id, Some(slot));
        }
        self.calls.push(CallInProgress {
            index,
            block: None,
            position,
            id: head.id.to_owned(),
            id_is_usable,
            name: head.name.to_owned(),
            kind: head.kind,
            reader: ArgumentsReader::default(),
            free_text: String::new(),
            carry: SurrogateCarry::default(),
            ink: TextInk::default(),
            document_hash: None,
            fragments: 0,
            last_fragment_at: 0,
            cumulative: true,
            announced: false,
            ending: SealState::Open,
            is_sealed_empty: false,
            too_large: false,
            is_held: false,
            is_misnumbered: false,
            source: CallSource::Field,
        });
        // A new call shows that the names of earlier ones are complete.
        for earlier in 0..slot.0 {
            self.announce_if_named(CallSlot(earlier), out);
            if self.profile.sequential_calls {
                self.seal_if_complete(CallSlot(earlier), SealEvidence::Successor, out, at);
            }
        }
        self.announce_if_offered(slot, out);
        slot
    }

    // --- announcing: as soon as the name is known to be whole ---

    /// The name equals an offered tool's.
    fn announce_if_offered(&mut self, slot: CallSlot, out: EventSink<'_>) {
        if self.call(slot).is_some_and(|call| self.offered.contains(&call.name)) {
            self.announce_if_named(slot, out);
        }
    }

    fn announce_if_named(&mut self, slot: CallSlot, out: EventSink<'_>) {
        if self.call(slot).is_some_and(|call| !call.name.is_empty()) {
            self.announce(slot, out);
        }
    }

    fn announce(&mut self, slot: CallSlot, out: EventSink<'_>) {
        let Some(call) = self.calls.get_mut(slot.0 as usize) else { return };
        if call.announced {
            return;
        }
        call.announced = true;
        // gpt-oss's channel marker at the end of a name (quirk L, harmony).
        let clean_len = clean_name(&call.name).len();
        if clean_len < call.name.len() {
            match self.profile.leaked_calls {
                LeakedCalls::Run => call.name.truncate(clean_len),
                LeakedCalls::Report => {
                    let format = "harmony".to_owned();
                    report(out, ProblemKind::LeakedCall { format }, 0, &call.name, Some(slot));
                }
            }
        }
        let upstream_id = call.id_is_usable.then(|| UpstreamCallId::new(call.id.as_str()));
        let name = WireName::new(call.name.as_str());
        let (position, kind) = (call.position, call.kind);
        out(StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments: None });
        if call.has_text() {
            out(StepEvent::CallArguments { slot, delta: Cow::Borrowed(call.text()) });
        }
    }

    // --- arguments ---

    /// True if only the head has arrived.
    pub(crate) fn is_empty(&self, slot: CallSlot) -> bool {
        self.call(slot).is_none_or(|call| !call.has_text())
    }

    /// Appends the body of a JSON string (escapes still in it), joining halves of surrogate pairs.
    pub(crate) fn append_json_body(&mut self, slot: CallSlot, body: &str, out: EventSink<'_>, at: u64) {
        let Some(call) = self.calls.get_mut(slot.0 as usize) else { return };
        let mut carry = std::mem::take(&mut call.carry);
        let text = decode_string(body, &mut carry);
        call.carry = carry;
        self.append(slot, &text, out, at);
    }

    /// Appends argument text to a call.
    pub(crate) fn append(&mut self, slot: CallSlot, text: &str, out: EventSink<'_>, at: u64) {
        if text.is_empty() {
            return;
        }
        let Some(call) = self.calls.get(slot.0 as usize) else { return };
        let fits = call.text().len() + text.len() <= self.arguments_bytes_max;
        let is_flowing = fits && call.announced && call.ending == SealState::Open;
        if !is_flowing && self.prepare(slot, text, fits, out, at).is_none() {
            return;
        }
        let Some(call) = self.calls.get_mut(slot.0 as usize) else { return };
        let was_orphan = call.is_orphan();
        call.ink.push(text, call.text().len());
        if call.kind == CallKind::Custom {
            call.free_text.push_str(text);
        } else {
            let known = call.reader.text();
            if call.cumulative && call.fragments > 0 {
                call.cumulative = text.starts_with(&known[call.last_fragment_at..]);
            }
            call.fragments = call.fragments.saturating_add(1);
            call.last_fragment_at = known.len();
            call.reader.push(text);
        }
        // With the first one only: nothing is sealed without arguments after it.
        if !was_orphan && call.is_orphan() && !self.has_other_orphans(slot) {
            self.break_empty_calls(out);
        }
        let Some(call) = self.call(slot) else { return };
        if call.announced {
            out(StepEvent::CallArguments { slot, delta: Cow::Borrowed(text) });
            // Closed at the top level: evidence, unless it could be a placeholder or a snapshot. `{}` never is.
            if call.reader.is_closed()
                && call.kind == CallKind::Function
                && !(self.profile.placeholder_arguments || self.profile.cumulative_arguments)
                && call.ink.first == Some(b'{')
                && !call.is_empty_object()
            {
                self.seal_if_complete(slot, SealEvidence::Balanced, out, at);
            }
        }
    }

    /// Prepares a call that is not simply flowing for more text; `None` if text cannot be appended.
    fn prepare(&mut self, slot: CallSlot, text: &str, fits: bool, out: EventSink<'_>, at: u64) -> Option<()> {
        let call = self.call_mut(slot)?;
        if !fits {
            if !std::mem::replace(&mut call.too_large, true) {
                let limit = "arguments_bytes_max".to_owned();
                report(out, ProblemKind::LimitReached { limit }, at, text, Some(slot));
            }
            return None;
        }
        if call.ending != SealState::Open {
            if call.ending == SealState::Broken || text.trim_ascii().is_empty() {
                return None;
            }
            self.reopen(slot, text, out, at);
        }
        self.announce_if_named(slot, out);
        Some(())
    }

    /// The whole argument text, once more or for the first time: a snapshot replaces, it is never appended.
    pub(crate) fn apply_snapshot(&mut self, slot: CallSlot, text: &str, out: EventSink<'_>, at: u64) {
        let Some(call) = self.call_mut(slot) else { return };
        let blank = text.trim_ascii().is_empty() || (is_empty_object(text) && call.has_text());
        if blank || call.text() == text || call.ending == SealState::Broken {
            return;
        }
        if call.has_text() || call.ending != SealState::Open {
            if value_hash(text).is_some_and(|hash| call.is_document(hash)) {
                return;
            }
            self.reset_arguments(slot, text, out, at);
        }
        self.append(slot, text, out, at);
    }

    /// Applies a call of a message that repeats the streamed reply: to the call with its id, or to the `nth`,
    /// unless both its id and its arguments differ. Its arguments are a snapshot. False if there is none.
    pub(crate) fn apply_repeated(
        &mut self,
        nth: usize,
        repeated: &CallDelta<'_>,
        out: EventSink<'_>,
        at: u64,
    ) -> bool {
        let text = match repeated.arguments {
            Some(json) => json.as_str().unwrap_or(Cow::Borrowed(json.raw())),
            None => Cow::Borrowed(""),
        };
        let by_id = self.calls.iter().position(|call| {
            call.source == CallSource::Field && call.id == repeated.id && !call.id.is_empty()
        });
        let Some(call) = self.calls.get_mut(by_id.unwrap_or(nth)) else { return false };
        let same_name = repeated.name.is_empty() || call.name == repeated.name;
        let other_id = by_id.is_none() && !repeated.id.is_empty() && !call.id.is_empty();
        if call.source != CallSource::Field
            || !same_name
            || other_id
                && call.text() != text
                && !value_hash(&text).is_some_and(|hash| call.is_document(hash))
        {
            return false;
        }
        self.apply_snapshot(CallSlot(by_id.unwrap_or(nth) as u32), &text, out, at);
        true
    }

    /// Bytes after a seal: everything known so far is emitted again, then the rest follows.
    fn reopen(&mut self, slot: CallSlot, text: &str, out: EventSink<'_>, at: u64) {
        report(out, ProblemKind::ContradictedSeal, at, text, Some(slot));
        out(StepEvent::CallReopened { slot });
        if let Some(call) = self.call_mut(slot) {
            call.ending = SealState::Open;
            if call.has_text() {
                out(StepEvent::CallArguments { slot, delta: Cow::Borrowed(call.text()) });
            }
        }
    }

    /// Voids everything known of the arguments so far.
    fn reset_arguments(&mut self, slot: CallSlot, text: &str, out: EventSink<'_>, at: u64) {
        report(out, ProblemKind::ContradictedSeal, at, text, Some(slot));
        if self.call(slot).is_some_and(|call| call.announced) {
            out(StepEvent::CallReopened { slot });
        }
        if let Some(call) = self.call_mut(slot) {
            call.ending = SealState::Open;
            call.clear_text();
        }
    }

    /// The arguments of an open block begin again (a field was written twice and the last one counts).
    pub(crate) fn restart_arguments(&mut self, slot: CallSlot, out: EventSink<'_>) {
        let Some(call) = self.call_mut(slot).filter(|call| call.ending == SealState::Open) else { return };
        if call.has_text() {
            call.clear_text();
            out(StepEvent::CallReopened { slot });
        }
    }

    // --- ending ---

    /// The upstream reports the call as complete: seals it.
    pub(crate) fn seal_explicit(&mut self, slot: CallSlot, out: EventSink<'_>, at: u64) {
        self.end_call(slot, SealEvidence::Explicit, StepEnding::Whole, out, at);
    }

    /// The upstream reports the call as complete, but it may be cut: only its head has arrived.
    pub(crate) fn hold(&mut self, slot: CallSlot) {
        if let Some(call) = self.call_mut(slot) {
            call.is_held = true;
        }
    }

    /// The upstream began a second generation: nothing before it may run.
    pub(crate) fn void_all(&mut self, out: EventSink<'_>, _at: u64) {
        for slot in (0..self.calls.len() as u32).map(CallSlot) {
            self.announce(slot, out);
            let Some(call) = self.call_mut(slot) else { continue };
            // Its number and id may come again for a call of the new generation.
            (call.index, call.block, call.source) = (None, None, CallSource::Void);
            call.id.clear();
            match std::mem::replace(&mut call.ending, SealState::Broken) {
                SealState::Broken => continue,
                SealState::Sealed(_) => out(StepEvent::CallReopened { slot }),
                SealState::Open => {}
            }
            let raw = RawArguments(call.text().to_owned());
            let message = "the upstream started the reply again".to_owned();
            out(StepEvent::CallBroken { slot, reason: BrokenCall::Ambiguous { message }, raw });
        }
        self.generation += 1;
        self.orphan_dropped = false;
    }

    /// Marks a call that must not run, in spite of earlier reports about it. `raw` is the model's text;
    /// `None` = its arguments so far.
    pub(crate) fn break_call(
        &mut self,
        slot: CallSlot,
        reason: BrokenCall,
        raw: Option<&str>,
        out: EventSink<'_>,
    ) {
        self.announce(slot, out);
        let bytes_max = self.arguments_bytes_max;
        let Some(call) = self.call_mut(slot) else { return };
        match std::mem::replace(&mut call.ending, SealState::Broken) {
            SealState::Broken => return,
            SealState::Sealed(_) => out(StepEvent::CallReopened { slot }),
            SealState::Open => {}
        }
        let raw = raw.unwrap_or_else(|| call.text());
        let raw = RawArguments(raw[..raw.floor_char_boundary(bytes_max)].to_owned());
        out(StepEvent::CallBroken { slot, reason, raw });
    }

    /// Name and argument text of a call that is sealed.
    pub(crate) fn sealed_call(&self, slot: CallSlot) -> Option<(&str, &str)> {
        self.call(slot)
            .filter(|call| matches!(call.ending, SealState::Sealed(_)))
            .map(|call| (call.name.as_str(), call.text()))
    }

    /// The step is over.
    pub(crate) fn close(&mut self, cut: bool, out: EventSink<'_>, at: u64) {
        let cut = if cut { StepEnding::Cut } else { StepEnding::Whole };
        for slot in (0..self.calls.len() as u32).map(CallSlot) {
            match self.call(slot).map(|call| (call.source, call.ending)) {
                Some((CallSource::Block, SealState::Open)) => {
                    self.break_call(slot, BrokenCall::Cut, None, out)
                }
                _ => self.end_call(slot, SealEvidence::Terminal, cut, out, at),
            }
        }
    }

    fn seal_if_complete(&mut self, slot: CallSlot, seal: SealEvidence, out: EventSink<'_>, at: u64) {
        if self.call(slot).is_some_and(|call| {
            call.ending == SealState::Open
                && call.source == CallSource::Field
                && !call.too_large
                && call.announced
                && call.reader.check_complete().is_ok()
        }) {
            self.end_call(slot, seal, StepEnding::Whole, out, at);
        }
    }

    fn end_call(&mut self, slot: CallSlot, seal: SealEvidence, cut: StepEnding, out: EventSink<'_>, at: u64) {
        let Some(call) = self.call_mut(slot) else { return };
        if call.ending != SealState::Open {
            return;
        }
        if let Some(lone) = call.carry.finish() {
            self.append(slot, lone.encode_utf8(&mut [0; 4]), out, at);
        }
        self.announce(slot, out);
        let has_orphans = self.has_orphans();
        let profile = &self.profile;
        let Some(call) = self.calls.get_mut(slot.0 as usize) else { return };
        let result = finalize::finalize_arguments(call, cut, profile);
        match result.and_then(|arguments| if has_orphans { sure_of(arguments) } else { Ok(arguments) }) {
            Ok(mut arguments) => {
                if call.carry.had_lone() {
                    arguments.repairs.push(ArgumentRepair::LoneSurrogate);
                }
                call.ending = SealState::Sealed(seal);
                call.is_sealed_empty = is_empty(&arguments);
                for repair in &arguments.repairs {
                    // Nothing sent for a call without arguments is what most servers do, not a finding.
                    if *repair != ArgumentRepair::EmptyIsObject || call.has_text() {
                        report(out, ProblemKind::Repaired { repair: *repair }, at, call.text(), Some(slot));
                    }
                }
                // A structure that merely closed before the cut may not be complete.
                let seal = if cut == StepEnding::Cut { seal.min(SealEvidence::Balanced) } else { seal };
                out(StepEvent::CallSealed { slot, seal, arguments });
            }
            Err(reason) => {
                call.ending = SealState::Broken;
                let raw = RawArguments(call.text().to_owned());
                out(StepEvent::CallBroken { slot, reason, raw });
            }
        }
    }

    // --- fragments that no call owns ---

    /// The call that a fragment belongs to whose number or id is no call's: the only one that is open. With
    /// several open ones nothing is guessed.
    pub(crate) fn adopt(&mut self, fragment: &str, out: EventSink<'_>, at: u64) -> Option<CallSlot> {
        let mut open = self.calls.iter().enumerate().filter(|(_, call)| call.is_open());
        match (open.next(), open.next()) {
            (Some((slot, call)), None) if !call.is_headless() => {
                let slot = CallSlot(slot as u32);
                self.report_misnumbered(slot, fragment, out, at);
                Some(slot)
            }
            (Some(_), Some(_)) => {
                report(out, ProblemKind::Ambiguous, at, fragment, None);
                None
            }
            _ => None,
        }
    }

    /// True if a call has these arguments by its own events: under another number they say nothing new.
    pub(crate) fn is_repetition_of_call(&mut self, text: &str, out: EventSink<'_>, at: u64) -> bool {
        let hash = value_hash(text);
        let same = self.calls.iter_mut().position(|call| {
            !call.is_headless() && (call.text() == text || hash.is_some_and(|hash| call.is_document(hash)))
        });
        if let Some(slot) = same {
            self.report_misnumbered(CallSlot(slot as u32), text, out, at);
        }
        same.is_some()
    }

    /// Names fragments under a number that is no call's, once for each call.
    fn report_misnumbered(&mut self, slot: CallSlot, fragment: &str, out: EventSink<'_>, at: u64) {
        self.announce_if_named(slot, out);
        if self.call_mut(slot).is_some_and(|call| !std::mem::replace(&mut call.is_misnumbered, true)) {
            report(out, ProblemKind::MisnumberedFragment, at, fragment, Some(slot));
        }
    }

    fn has_orphans(&self) -> bool {
        self.orphan_dropped || self.calls.iter().any(CallInProgress::is_orphan)
    }

    fn has_other_orphans(&self, slot: CallSlot) -> bool {
        let mut others = self.calls.iter().enumerate().filter(|(at, _)| *at != slot.0 as usize);
        self.orphan_dropped || others.any(|(_, call)| call.is_orphan())
    }

    /// Breaks calls that were sealed without arguments: the fragment that just came without an owner may
    /// belong to them.
    fn break_empty_calls(&mut self, out: EventSink<'_>) {
        for slot in (0..self.calls.len() as u32).map(CallSlot) {
            let is_taken_back = |call: &CallInProgress| {
                call.source == CallSource::Field
                    && call.is_sealed_empty
                    && matches!(call.ending, SealState::Sealed(_))
            };
            if self.call(slot).is_some_and(is_taken_back) {
                self.break_call(slot, without_arguments(), None, out);
            }
        }
    }

    // --- inside ---

    fn call(&self, slot: CallSlot) -> Option<&CallInProgress> {
        self.calls.get(slot.0 as usize)
    }

    fn call_mut(&mut self, slot: CallSlot) -> Option<&mut CallInProgress> {
        self.calls.get_mut(slot.0 as usize)
    }
}

/// End of the step: whole, or cut off by the stream or the token budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepEnding {
    Whole,
    Cut,
}

/// Refuses empty arguments, for a step with fragments that no call owns: they may be the arguments.
fn sure_of(arguments: CallArguments) -> Result<CallArguments, BrokenCall> {
    if is_empty(&arguments) { Err(without_arguments()) } else { Ok(arguments) }
}

fn is_empty(arguments: &CallArguments) -> bool {
    match &arguments.value {
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn without_arguments() -> BrokenCall {
    let message =
        "no arguments arrived for this call, but fragments arrived that belong to no call".to_owned();
    BrokenCall::Ambiguous { message }
}

fn is_empty_object(text: &str) -> bool {
    let inside = text.trim_ascii().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Equal for texts that are equal as JSON values; `None` for one that is no JSON.
fn value_hash(text: &str) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    JsonRef::parse(text).ok()?.to_value().hash(&mut hasher);
    Some(hasher.finish())
}

fn report(out: EventSink<'_>, kind: ProblemKind, at: u64, excerpt: &str, slot: Option<CallSlot>) {
    out(StepEvent::Problem(StepProblem { kind, at, excerpt: excerpt_of(excerpt), slot }));
}
