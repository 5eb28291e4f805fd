//! The machine of one `apply`: the turn's record, what dies with the process, and the output.
//!
//! The handling of inputs is in the folders of a turn's story: `turn`, `step`, `call`, `approval`. Every change
//! goes through [`TurnMachine::emit`].

use crate::action::{TurnAction, TurnOutput};
use crate::event::{Event, EventKind};
use crate::id::{ApprovalId, EventSeq, UnixMillis};
use crate::input::{ArgumentValidation, QueuedMessage, TimerId};
use crate::policy::RememberRequest;
use crate::record::{CallHandle, CallRecord, TurnRecord};
use crate::setup::{TurnSetup, TurnStart};
use crate::text::early_summary::EarlySummary;
use crate::text_rules::TextFilter;
use std::collections::{BTreeMap, BTreeSet};
use throughline_wire::{CallArguments, CallId, FinishReason, ProviderState, Usage};

/// Shortest wait that is reported, in milliseconds. Below the 3 s after which people look for a mistake of theirs.
pub(crate) const NOTIFY_AFTER_MS: UnixMillis = 2_000;
/// Shortest silence during a reply that is reported, in milliseconds. Models pause for a second or two, and
/// the user still has text to read during such a pause.
pub(crate) const SILENCE_NOTIFY_AFTER_MS: UnixMillis = 5_000;

/// State that dies with the process: the stream being read, checks under way, requests not yet fulfilled.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransientState {
    pub finish: Option<(FinishReason, Option<String>)>,
    pub usage: Option<Usage>,
    pub provider_state: Option<ProviderState>,
    /// Check of a call's arguments, by call.
    pub checks: BTreeMap<CallId, ArgumentCheck>,
    /// Check of the arguments that a person entered instead, by call.
    pub edits: BTreeMap<CallId, ArgumentCheck>,
    /// The call whose check was answered by the input that is being applied.
    pub just_checked: Option<CallId>,
    /// Number of checks requested so far.
    pub checks_requested: u32,
    /// Calls that the user wants to end although their arguments are still arriving.
    pub cancel_when_sealed: BTreeSet<CallId>,
    /// Starts that were cancelled and have not ended yet.
    pub cancelled_starts: BTreeSet<(CallId, u32)>,
    /// The step's further choices were reported.
    pub choice_reported: bool,
    /// Silence of the upstream in this try.
    pub silence: SilenceWatch,
    /// Messages of the user that wait to be taken in. Their senders still hold them.
    pub queue: Vec<QueuedMessage>,
    /// The open text block, if text rules change what people are shown of it.
    pub filtered_text: Option<FilteredText>,
    /// Output of running tools that is shown as it comes, by start.
    pub filtered_outputs: BTreeMap<(CallId, u32), TextFilter>,
    /// Open questions of tools, by the id that people know: the tool's own number of it.
    pub tool_questions: BTreeMap<ApprovalId, u64>,
    /// Summary line for the card of a call whose arguments are still arriving, by call.
    pub early_summaries: BTreeMap<CallId, EarlySummary>,
}

impl TransientState {
    /// The check of the arguments that a call has now.
    pub(crate) fn check_of(&self, call: &CallRecord) -> Option<&ArgumentCheck> {
        let check = self.checks.get(&call.id)?;
        matches!(check.subject, CheckSubject::Arguments(version) if version == call.version).then_some(check)
    }

    /// The hold of the check that a call waits for.
    pub(crate) fn hold_of(&self, call: &CallRecord) -> Option<CheckHold> {
        let check = self.check_of(call).filter(|check| call.is_sealed() && check.is_open())?;
        check.hold
    }

    /// A check that is not answered, by its number.
    pub(crate) fn open_check(&mut self, call: &CallId, version: u32) -> Option<&mut ArgumentCheck> {
        self.checks.get_mut(call).filter(|check| check.version == version && check.is_open())
    }
}

/// Watch for an upstream that sends nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SilenceWatch {
    /// Time of the request, or of the last data received, shown or not.
    pub since: UnixMillis,
    /// True if the upstream has sent something in this attempt.
    pub has_begun: bool,
    /// Event that last reported this silence; no timer runs until data arrives again.
    pub reported_by: Option<EventSeq>,
}

/// A text that people are shown otherwise than it is written.
#[derive(Clone, Debug)]
pub(crate) struct FilteredText {
    pub filter: TextFilter,
    /// Text as the model wrote it.
    pub written: String,
    /// Text as people are shown it.
    pub shown: String,
}

/// Check of arguments that was requested from the driver.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentCheck {
    /// Number of the check.
    pub version: u32,
    pub subject: CheckSubject,
    /// True if the call is next in the schedule and starts with the result of the check: until then no other
    /// call starts before it.
    pub is_for_start: bool,
    /// Set if the check is held for a client that may reconnect.
    pub hold: Option<CheckHold>,
    /// Result of the check.
    pub validation: Option<ArgumentValidation>,
}

/// Hold of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckHold {
    /// The client is expected back by then.
    pub until: UnixMillis,
    pub report: HoldReport,
}

/// State of the notice that a check is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldReport {
    /// Due at this time, if the wait is still what the turn waits for.
    DueAt(UnixMillis),
    /// Reported, last by this event.
    By(EventSeq),
}

impl ArgumentCheck {
    pub(crate) fn new(version: u32, subject: CheckSubject) -> Self {
        Self { version, subject, is_for_start: false, hold: None, validation: None }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.validation.is_none()
    }
}

/// Arguments under check.
#[derive(Clone, Debug)]
pub(crate) enum CheckSubject {
    /// The arguments of a call as of this version.
    Arguments(u32),
    /// Arguments that a person wants instead.
    Edit(Box<PendingEdit>),
}

/// An answer that counts if its arguments fit.
#[derive(Clone, Debug)]
pub(crate) struct PendingEdit {
    pub approval: ApprovalId,
    pub arguments: CallArguments,
    pub by: String,
    pub reason: Option<String>,
    pub remember: Option<RememberRequest>,
}

/// A turn with everything that one `apply` needs.
pub(crate) struct TurnMachine<'a> {
    pub setup: &'a TurnSetup,
    pub start: &'a TurnStart,
    pub record: &'a mut TurnRecord,
    pub volatile: &'a mut TransientState,
    pub now: UnixMillis,
    pub out: &'a mut TurnOutput,
}

/// Step, block and call that an event belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventTarget {
    pub step: Option<u32>,
    pub block: Option<u32>,
    pub tool: Option<CallId>,
}

impl TurnMachine<'_> {
    /// The only way anything changes: the event is written and applied.
    pub(crate) fn emit(&mut self, target: EventTarget, kind: EventKind) {
        let event = Event {
            turn_id: self.start.turn_id.clone(),
            seq: self.record.seq.next(),
            timestamp: self.now,
            step: target.step,
            block: target.block,
            tool_id: target.tool,
            kind,
        };
        self.record.apply(&event, self.setup);
        self.out.events.push(event);
    }

    pub(crate) fn push_action(&mut self, action: TurnAction) {
        self.out.actions.push(action);
    }

    pub(crate) fn set_timer(&mut self, id: TimerId, at: UnixMillis) {
        self.push_action(TurnAction::SetTimer { id, at });
    }

    /// The current step, for events.
    pub(crate) fn step_target(&self) -> EventTarget {
        EventTarget { step: Some(self.record.step()).filter(|step| *step > 0), ..EventTarget::default() }
    }

    /// A call, for events.
    pub(crate) fn call_target(&self, handle: CallHandle) -> EventTarget {
        let call = self.record.call(handle);
        EventTarget { step: Some(call.step), block: Some(call.block), tool: Some(call.id.clone()) }
    }
}
