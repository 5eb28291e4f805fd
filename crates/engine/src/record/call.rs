//! One call: its identity, and the state that it is in with the data of that state.

use crate::event::{CallProgress, ToolInput, ToolResult};
use crate::id::{ApprovalId, UnixMillis};
use crate::policy::loop_guard::CallSignature;
use crate::policy::{ApprovalDecision, PolicyInput};
use crate::setup::TurnSetup;
use crate::text::canonical;
use crate::tool::PollingMode;
use serde_json::Value;
use std::mem;
use throughline_wire::{
    BrokenCall, CallArguments, CallId, CallKind, CallOutcome, CallSlot, RawArguments, SealEvidence,
    UpstreamCallId, WireName,
};

/// Most bytes of partial output stored of a running tool.
const PARTIAL_BYTES_MAX: usize = 64 << 10;

/// Handle of a call in the record. Only [`CallList`] mints one, so it always leads to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallHandle(usize);

impl CallHandle {
    /// Number of calls of the turn that were opened before this one.
    pub(crate) fn ordinal(self) -> usize {
        self.0
    }
}

/// The calls of a turn, in order of appearance. None is ever removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallList(Vec<CallRecord>);

impl CallList {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &CallRecord> {
        self.0.iter()
    }

    pub(crate) fn handles(&self) -> impl DoubleEndedIterator<Item = CallHandle> + use<> {
        (0..self.0.len()).map(CallHandle)
    }

    pub(crate) fn get(&self, handle: CallHandle) -> &CallRecord {
        &self.0[handle.0]
    }

    /// The latest call that fits.
    pub(crate) fn find(&self, fits: impl Fn(&CallRecord) -> bool) -> Option<CallHandle> {
        self.0.iter().rposition(fits).map(CallHandle)
    }

    /// All calls that fit, in order.
    pub(crate) fn select(&self, fits: impl Fn(&CallRecord) -> bool) -> Vec<CallHandle> {
        self.handles().filter(|handle| fits(self.get(*handle))).collect()
    }

    /// The call with this id. `block`: where it is shown, since a search among thousands takes long.
    pub(super) fn find_mut(&mut self, id: &CallId, block: Option<u32>) -> Option<&mut CallRecord> {
        let is_it = |call: &CallRecord| call.id == *id;
        let at = block.and_then(|block| self.0.binary_search_by_key(&block, |call| call.block).ok());
        let at = at.filter(|at| is_it(&self.0[*at])).or_else(|| self.0.iter().rposition(is_it))?;
        self.0.get_mut(at)
    }

    pub(super) fn push(&mut self, call: CallRecord) {
        self.0.push(call);
    }
}

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallRecord {
    pub id: CallId,
    pub step: u32,
    pub slot: CallSlot,
    pub position: u32,
    pub block: u32,
    pub upstream_id: Option<UpstreamCallId>,
    pub wire_name: WireName,
    pub kind: CallKind,
    pub target: CallTarget,
    /// Number of changes of the arguments or of the tool's definition.
    pub version: u32,
    /// Number of starts.
    pub attempts: u32,
    /// Number of questions to people.
    pub questions: u32,
    /// Number of questions that the running tool has asked.
    pub tool_questions: u32,
    /// Last answer. Later changes do not remove it: it names the arguments and the definition that it is
    /// about.
    pub answer: Option<ApprovalAnswer>,
    /// Output and message for the model, where people are shown others; until the call is closed.
    pub model_text: Option<(String, Option<String>)>,
    pub state: CallState,
}

/// The tool that a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTarget {
    /// Position in the setup's tools.
    Offered(usize),
    /// No tool of this name is offered.
    Unknown,
    /// The provider runs it.
    Hosted,
}

/// The life of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Arguments are arriving: their text so far.
    Preparing(String),
    /// The arguments are final, or will never be.
    Sealed(SealedInput),
    /// A person is asked.
    AwaitingApproval(OpenApproval),
    Running(Run),
    Closed(ClosedCall),
}

impl Default for CallState {
    fn default() -> Self {
        CallState::Preparing(String::new())
    }
}

/// Arguments that are final, or will never be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SealedInput {
    pub arguments: Result<CallArguments, (BrokenCall, RawArguments)>,
    pub seal: Option<SealEvidence>,
    /// Arguments that a person entered instead of the model's.
    pub edited: Option<CallArguments>,
    /// Rule that last required an approval or allowed the start.
    pub rule: Option<String>,
}

impl SealedInput {
    fn new(input: &ToolInput) -> Self {
        Self { arguments: input.arguments(), seal: input.seal, edited: None, rule: None }
    }

    /// Arguments of a call that ends before they are whole.
    fn cut(text: String) -> Self {
        let arguments = Err((BrokenCall::Cut, RawArguments(text)));
        Self { arguments, seal: None, edited: None, rule: None }
    }
}

/// A question to a person: may the call run?
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenApproval {
    pub input: SealedInput,
    pub approval_id: ApprovalId,
    /// Text of the question.
    pub asked: String,
    pub expires_at: Option<UnixMillis>,
    pub arguments_hash: String,
    pub fingerprint: String,
}

/// One start of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub input: SealedInput,
    pub since: UnixMillis,
    /// The open question of the tool.
    pub elicitation: Option<OpenElicitation>,
    /// Time for which the tool has waited for people, in milliseconds.
    pub asked_ms: u64,
    /// Output so far.
    pub partial: String,
    pub progress_events: u32,
}

/// Open question of a running tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenElicitation {
    pub approval_id: ApprovalId,
    pub since: UnixMillis,
    /// Values have to be filled in.
    pub needs_values: bool,
}

/// A call with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClosedCall {
    pub input: SealedInput,
    pub outcome: CallOutcome,
    /// Entry for the loop guard, if it watches this call.
    pub guard: Option<CallSignature>,
    /// True if another call replaced it.
    pub superseded: bool,
}

/// An answer, and the exact arguments and definition that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalAnswer {
    pub decision: ApprovalDecision,
    pub reason: Option<String>,
    arguments_hash: String,
    fingerprint: String,
}

impl ApprovalAnswer {
    /// True if it was given about exactly this.
    pub(crate) fn applies_to(&self, case: &PolicyInput<'_>) -> bool {
        self.fingerprint == case.fingerprint
            && self.arguments_hash == canonical::arguments_hash(case.arguments)
    }
}

impl CallRecord {
    // --- reading it ---

    pub(crate) fn is_hosted(&self) -> bool {
        self.target == CallTarget::Hosted
    }

    pub(crate) fn is_preparing(&self) -> bool {
        matches!(self.state, CallState::Preparing(_))
    }

    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.state, CallState::Sealed(_))
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, CallState::Closed(_))
    }

    pub(crate) fn open_approval(&self) -> Option<&OpenApproval> {
        if let CallState::AwaitingApproval(open) = &self.state { Some(open) } else { None }
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        if let CallState::Running(run) = &self.state { Some(run) } else { None }
    }

    pub(crate) fn closed(&self) -> Option<&ClosedCall> {
        if let CallState::Closed(closed) = &self.state { Some(closed) } else { None }
    }

    /// The open question of the running tool.
    pub(crate) fn elicitation(&self) -> Option<&OpenElicitation> {
        self.run()?.elicitation.as_ref()
    }

    /// True if another call replaced it.
    pub(crate) fn is_superseded(&self) -> bool {
        self.closed().is_some_and(|closed| closed.superseded)
    }

    /// Argument text so far, as long as it is arriving.
    pub(crate) fn arriving_text(&self) -> &str {
        if let CallState::Preparing(text) = &self.state { text } else { "" }
    }

    /// Final arguments of the call with their seal and rule.
    pub(crate) fn input(&self) -> Option<&SealedInput> {
        match &self.state {
            CallState::Preparing(_) => None,
            CallState::Sealed(input)
            | CallState::AwaitingApproval(OpenApproval { input, .. })
            | CallState::Running(Run { input, .. })
            | CallState::Closed(ClosedCall { input, .. }) => Some(input),
        }
    }

    /// The arguments as the model wrote them.
    pub(crate) fn original_arguments(&self) -> Option<&CallArguments> {
        self.input()?.arguments.as_ref().ok()
    }

    /// The arguments that it would run with.
    pub(crate) fn effective_arguments(&self) -> Option<&CallArguments> {
        let input = self.input()?;
        let written = input.arguments.as_ref().ok()?;
        Some(input.edited.as_ref().unwrap_or(written))
    }

    /// Rule that last required an approval or allowed the start.
    pub(crate) fn rule(&self) -> Option<&str> {
        self.input()?.rule.as_deref()
    }

    /// Fragments of arguments that no call owns: they may be what another call of the step lacks.
    pub(crate) fn is_orphan(&self) -> bool {
        let arguments = self.input().map(|input| &input.arguments);
        matches!(arguments, Some(Err((BrokenCall::Nameless, raw))) if !raw.0.trim_ascii().is_empty())
    }

    /// Position of the call in the recorded order.
    pub(crate) fn recorded_order(&self) -> (u32, u32, CallSlot) {
        (self.step, self.position, self.slot)
    }

    /// Tool and arguments as the guard compares them.
    pub(crate) fn guard_hash(&self) -> u64 {
        let arguments = match self.input().map(|input| &input.arguments) {
            Some(Ok(arguments)) => canonical::text(&arguments.value),
            Some(Err((_, raw))) => raw.0.clone(),
            None => self.arriving_text().to_owned(),
        };
        canonical::hash(&[self.wire_name.as_str(), &arguments])
    }

    fn guard_signature(&self, outcome: &CallOutcome, setup: &TurnSetup) -> Option<CallSignature> {
        let is_watched = match self.target {
            CallTarget::Offered(tool) => {
                setup.tools.get(tool).is_none_or(|tool| tool.polling != PollingMode::Poller)
            }
            CallTarget::Unknown => true,
            CallTarget::Hosted => false,
        };
        is_watched.then(|| CallSignature {
            call: self.guard_hash(),
            result: canonical::hash(&[&outcome.model_text()]),
        })
    }

    // --- its events, one method each; one that makes no sense in a state changes nothing ---

    pub(super) fn append_input(&mut self, delta: &str) {
        if let CallState::Preparing(text) = &mut self.state {
            text.push_str(delta);
        }
    }

    pub(super) fn seal(&mut self, input: &ToolInput) {
        match self.state {
            CallState::Preparing(_) | CallState::Sealed(_) | CallState::AwaitingApproval(_) => {
                self.state = CallState::Sealed(SealedInput::new(input));
            }
            CallState::Running(_) | CallState::Closed(_) => {}
        }
    }

    pub(super) fn reset_input(&mut self) {
        if !self.is_closed() {
            self.version += 1;
            self.state = CallState::default();
        }
    }

    /// `attempt` is the start that was not made because of the new definition.
    pub(super) fn redefine(&mut self, attempt: Option<u32>) {
        let is_starting = self.run().is_some() && attempt == Some(self.attempts);
        if !(is_starting || self.is_sealed() || self.open_approval().is_some()) {
            return;
        }
        if let Some(input) = self.take_open_input() {
            self.version += 1;
            self.state = CallState::Sealed(SealedInput { rule: None, ..input });
        }
    }

    pub(super) fn ask(&mut self, rule: &str, open: impl FnOnce(SealedInput) -> OpenApproval) {
        self.questions += 1;
        if let Some(input) = self.take_open_input() {
            let input = SealedInput { rule: Some(rule.to_owned()), ..input };
            self.state = CallState::AwaitingApproval(open(input));
        }
    }

    pub(super) fn ask_for_tool(&mut self, approval_id: &ApprovalId, needs_values: bool, at: UnixMillis) {
        self.questions += 1;
        self.tool_questions += 1;
        if let CallState::Running(run) = &mut self.state {
            run.elicitation =
                Some(OpenElicitation { approval_id: approval_id.clone(), since: at, needs_values });
        }
    }

    /// A question is answered: the one about this call, or that of its running tool.
    pub(super) fn resolve(
        &mut self,
        approval_id: &ApprovalId,
        decision: ApprovalDecision,
        reason: Option<&str>,
        edited: Option<&Value>,
        at: UnixMillis,
    ) {
        if let CallState::Running(run) = &mut self.state
            && let Some(elicitation) = run.elicitation.take_if(|open| open.approval_id == *approval_id)
        {
            run.asked_ms = run.asked_ms.saturating_add(at.abs_diff(elicitation.since));
        }
        if self.open_approval().is_none_or(|open| open.approval_id != *approval_id) {
            return;
        }
        let CallState::AwaitingApproval(open) = mem::take(&mut self.state) else { return };
        let OpenApproval { mut input, mut arguments_hash, fingerprint, .. } = open;
        if let Some(edited) = edited {
            let edited = CallArguments::from_value(edited.clone());
            arguments_hash = canonical::arguments_hash(&edited);
            input.edited = Some(edited);
            self.version += 1;
        }
        let reason = reason.map(str::to_owned);
        self.answer = Some(ApprovalAnswer { decision, reason, arguments_hash, fingerprint });
        self.state = CallState::Sealed(input);
    }

    pub(super) fn start(&mut self, attempt: u32, rule: Option<&str>, at: UnixMillis) {
        self.attempts = attempt;
        if let Some(input) = self.take_open_input() {
            self.state = CallState::Running(Run {
                input: SealedInput { rule: rule.map(str::to_owned), ..input },
                since: at,
                elicitation: None,
                asked_ms: 0,
                partial: String::new(),
                progress_events: 0,
            });
        }
    }

    pub(super) fn set_model_text(&mut self, text: &str, message: Option<&String>) {
        self.model_text = Some((text.to_owned(), message.cloned()));
    }

    pub(super) fn report(&mut self, progress: &CallProgress) {
        if let CallState::Running(run) = &mut self.state {
            run.progress_events += 1;
            if let Some(delta) = &progress.output_delta {
                append_partial(&mut run.partial, delta);
            }
        }
    }

    pub(super) fn close(&mut self, result: &ToolResult, setup: &TurnSetup) {
        let mut outcome = result.outcome();
        if let Some((text, message)) = self.model_text.take() {
            match (&mut outcome, message) {
                (CallOutcome::Failed { message: shown, .. }, Some(message)) => *shown = message,
                (CallOutcome::Unknown { message: shown, .. }, Some(message)) => *shown = Some(message),
                _ => {}
            }
            if let Some(output) = outcome.output_mut() {
                output.text = text;
            }
        }
        let guard = self.guard_signature(&outcome, setup);
        let input = match mem::take(&mut self.state) {
            CallState::Preparing(text) => SealedInput::cut(text),
            CallState::Sealed(input)
            | CallState::AwaitingApproval(OpenApproval { input, .. })
            | CallState::Running(Run { input, .. })
            | CallState::Closed(ClosedCall { input, .. }) => input,
        };
        self.state = CallState::Closed(ClosedCall { input, outcome, guard, superseded: false });
    }

    pub(super) fn supersede(&mut self) {
        if let CallState::Closed(closed) = &mut self.state {
            closed.superseded = true;
        }
    }

    /// Takes the final arguments out of a state that the caller replaces. `None`, with nothing taken, if they are
    /// still arriving or the call is closed.
    fn take_open_input(&mut self) -> Option<SealedInput> {
        match mem::take(&mut self.state) {
            CallState::Sealed(input)
            | CallState::AwaitingApproval(OpenApproval { input, .. })
            | CallState::Running(Run { input, .. }) => Some(input),
            state @ (CallState::Preparing(_) | CallState::Closed(_)) => {
                self.state = state;
                None
            }
        }
    }
}

/// Appends to the output so far, of which the beginning stays.
fn append_partial(partial: &mut String, delta: &str) {
    let mut room = PARTIAL_BYTES_MAX.saturating_sub(partial.len()).min(delta.len());
    while !delta.is_char_boundary(room) {
        room -= 1;
    }
    partial.push_str(&delta[..room]);
}
