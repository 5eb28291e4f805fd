//! A step of the model: from the request to its end, event by event.

use crate::action::TurnAction;
use crate::event::{BlockKind, BlockStart, CallStatus, EventKind, ToolInput, TurnFault, WaitReason};
use crate::input::{FailureKind, TimerId};
use crate::machine::{
    EventTarget, FilteredText, NOTIFY_AFTER_MS, SILENCE_NOTIFY_AFTER_MS, SilenceWatch, TurnMachine,
};
use crate::record::{
    Backoff, CallHandle, CallState, HOSTED, ModelAttempt, OpenBlock, TurnPhase, is_commit, notice_code,
};
use crate::step::request;
use crate::step::retry::{self, FailedCall, RetryDecision};
use crate::text::early_summary::EarlySummary;
use crate::text::suggest::suggest_names;
use crate::text_rules::{TextFilter, TextRuleRole, TextRuleTarget, select};
use crate::tool::Effect;
use crate::wording;
use std::borrow::Cow;
use throughline_wire::{
    BrokenCall, CallArguments, CallId, CallKind, CallOutcome, CallSlot, FinishReason, HostedTool, NotStarted,
    ProblemKind, RawArguments, StepEvent, StepProblem, StreamEnd, ToolChoice, ToolName, ToolOutput,
    UpstreamCallId, WireName, display_escape,
};

impl TurnMachine<'_> {
    /// The next step of the turn. False if there is nothing to call.
    pub(crate) fn next_step(&mut self) -> bool {
        if self.setup.upstreams.is_empty() {
            self.fault(wording::no_upstream());
            return true;
        }
        if self.setup.history_too_long {
            self.shorten_outputs();
        }
        self.call_model(self.record.step() + 1, 1, self.record.upstream);
        true
    }

    /// From now on the model reads old results in short. False if that changes nothing.
    fn shorten_outputs(&mut self) -> bool {
        if self.record.outputs_shortened {
            return false;
        }
        let results = request::shortenable_results(self.record, self.setup, self.start);
        if results > 0 {
            self.notice(notice_code::SHORTENED, wording::shortened(results));
        }
        results > 0
    }

    fn call_model(&mut self, step: u32, attempt: u32, upstream: usize) {
        let Some(choice) = self.setup.upstreams.get(upstream) else { return };
        let tools_offered = match request::tool_choice(self.record, self.setup) {
            ToolChoice::None => Vec::new(),
            choice => request::offered_tools(&choice, self.setup).map(|tool| tool.name.clone()).collect(),
        };
        let start = EventKind::StepStart {
            upstream: choice.name.clone(),
            model: choice.model.clone(),
            attempt,
            fallback: upstream as u32,
            tools_offered,
        };
        self.volatile.finish = None;
        self.volatile.usage = None;
        self.volatile.provider_state = None;
        self.volatile.filtered_text = None;
        self.volatile.choice_reported = false;
        self.volatile.silence = SilenceWatch { since: self.now, ..SilenceWatch::default() };
        self.emit(EventTarget { step: Some(step), ..EventTarget::default() }, start);
        // Every call of the earlier steps is closed, or this code would not be reached.
        if let Some(request) = request::next_request(self.record, self.setup, self.start) {
            self.push_action(TurnAction::CallModel { step, attempt, upstream, request: Box::new(request) });
            self.set_timer(TimerId::ModelSilence { step, attempt }, self.now + NOTIFY_AFTER_MS);
        }
    }

    // --- events of the model's reply ---

    pub(crate) fn model_event(&mut self, step: u32, attempt: u32, event: StepEvent<'static>) {
        if self.record.reply_of(step, attempt).is_none() {
            return;
        }
        // Remarks about a reply do not begin it: tools that were left out, the length of its prompt.
        let is_reply = !matches!(
            event,
            StepEvent::Problem(_)
                | StepEvent::Usage(_)
                | StepEvent::ProviderState(_)
                | StepEvent::Finish { .. }
        );
        if is_reply || self.volatile.silence.has_begun {
            let heard = SilenceWatch { since: self.now, has_begun: true, reported_by: None };
            if std::mem::replace(&mut self.volatile.silence, heard).reported_by.is_some() {
                self.set_timer(TimerId::ModelSilence { step, attempt }, self.now + SILENCE_NOTIFY_AFTER_MS);
            }
        }
        match event {
            StepEvent::Text(text) => self.append_text(text, BlockStart::Text { code: None }),
            StepEvent::Refusal(text) => {
                self.append_text(text, BlockStart::Text { code: Some("refusal".into()) })
            }
            StepEvent::Thinking(text) => self.append_thinking(text),
            StepEvent::Image(media) => {
                self.close_block();
                self.start_block(BlockStart::Image(media));
            }
            StepEvent::Audio { data, transcript, format, sample_rate } => {
                let open = self.open_block(BlockStart::Audio);
                let (data, transcript) = (data.into_owned(), transcript.into_owned());
                let format = format.map(Cow::into_owned);
                self.emit(open, EventKind::AudioDelta { format, sample_rate, data, transcript });
            }
            StepEvent::Citation(source) => {
                let block = self.record.open_block().map(|open| open.block);
                self.emit(EventTarget { block, ..self.step_target() }, EventKind::Citation { source });
            }
            StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments } => {
                let arguments = arguments.as_deref();
                self.call_opened(OpenedCall { slot, position, upstream_id, name, kind, arguments }, None);
            }
            StepEvent::CallArguments { slot, delta } => self.call_arguments(slot, &delta),
            StepEvent::CallSealed { slot, seal, arguments } => {
                if let Some(handle) = self.preparing_call(slot) {
                    self.volatile.early_summaries.remove(&self.record.call(handle).id);
                    self.emit(
                        self.call_target(handle),
                        EventKind::ToolInput(ToolInput::sealed(&arguments, seal)),
                    );
                    self.arguments_sealed(handle);
                }
            }
            StepEvent::CallReopened { slot } => self.call_reopened(slot),
            StepEvent::CallBroken { slot, reason: why, raw } => self.call_broken(slot, why, raw),
            StepEvent::Hosted(hosted) => self.hosted_call(hosted),
            StepEvent::ProviderState(state) => self.volatile.provider_state = Some(state),
            StepEvent::Usage(usage) => self.volatile.usage = Some(usage),
            StepEvent::Finish { reason, raw } => self.volatile.finish = Some((reason, raw)),
            StepEvent::End(end) => self.stream_ended(end),
            StepEvent::Problem(problem) => self.decoder_problem(&problem),
            StepEvent::Choice { index, .. } => {
                if !std::mem::replace(&mut self.volatile.choice_reported, true) {
                    self.report_problem(
                        "further_choice",
                        None,
                        format!("choice {index} is ignored"),
                        None,
                        EventTarget::default(),
                    );
                }
            }
            // The vocabulary may grow; what this release does not know is reported, not dropped silently.
            other => self.report_problem(
                "unknown_event",
                None,
                format!("{other:?}").chars().take(200).collect(),
                None,
                EventTarget::default(),
            ),
        }
    }

    fn append_text(&mut self, text: Cow<'static, str>, start: BlockStart) {
        if text.is_empty() {
            return;
        }
        let open = self.open_block(start);
        if let Some(shown) = self.shown_text(&text) {
            if !shown.is_empty() {
                self.emit(open, EventKind::ContentDelta { text: shown });
            }
        } else {
            self.emit(open, EventKind::ContentDelta { text: text.into_owned() });
        }
    }

    /// Text of the open block that may be shown now with this piece; `None` if no rule is about it.
    fn shown_text(&mut self, piece: &str) -> Option<String> {
        if self.volatile.filtered_text.is_none() {
            let rules = || select(&self.setup.text_rules, TextRuleTarget::Shown, TextRuleRole::Assistant);
            rules().next()?;
            let (written, shown) = (String::new(), String::new());
            self.volatile.filtered_text =
                Some(FilteredText { filter: TextFilter::new(rules()), written, shown });
        }
        let text = self.volatile.filtered_text.as_mut()?;
        text.written.push_str(piece);
        let shown = text.filter.push(piece);
        text.shown.push_str(&shown);
        Some(shown)
    }

    /// The rest of the open text block, and the model's own words where they differ.
    fn finish_shown_text(&mut self, block: u32) {
        let Some(FilteredText { mut filter, written, mut shown }) = self.volatile.filtered_text.take() else {
            return;
        };
        let target = EventTarget { block: Some(block), ..self.step_target() };
        let rest = filter.finish();
        shown.push_str(&rest);
        if !rest.is_empty() {
            self.emit(target.clone(), EventKind::ContentDelta { text: rest });
        }
        if shown != written {
            self.emit(target, EventKind::ModelText { text: written, message: None });
        }
    }

    fn append_thinking(&mut self, text: Cow<'static, str>) {
        let already_thinking = self.record.open_block().is_some_and(|open| open.kind == BlockKind::Thinking);
        if text.is_empty() && already_thinking {
            return;
        }
        let open = self.open_block(BlockStart::Thinking);
        self.emit(open, EventKind::Thinking { text: text.into_owned() });
    }

    /// The open block of this kind, opened if need be.
    fn open_block(&mut self, start: BlockStart) -> EventTarget {
        let wanted = match &start {
            BlockStart::Text { code } => (BlockKind::Text, code.is_some()),
            BlockStart::Thinking => (BlockKind::Thinking, false),
            _ => (BlockKind::Audio, false),
        };
        let OpenBlock { block, .. } = match self.record.open_block() {
            Some(open) if (open.kind, open.refusal) == wanted => open,
            _ => {
                self.close_block();
                let block = self.start_block(start);
                OpenBlock { block, kind: wanted.0, refusal: wanted.1 }
            }
        };
        EventTarget { block: Some(block), ..self.step_target() }
    }

    /// Opens a block and returns its number.
    pub(crate) fn start_block(&mut self, start: BlockStart) -> u32 {
        let block = self.record.blocks;
        self.emit(EventTarget { block: Some(block), ..self.step_target() }, EventKind::BlockStart(start));
        block
    }

    pub(crate) fn close_block(&mut self) {
        if let Some(open) = self.record.open_block() {
            self.finish_shown_text(open.block);
            self.emit(EventTarget { block: Some(open.block), ..self.step_target() }, EventKind::BlockEnd);
        }
    }

    // --- calls ---

    fn call_opened(&mut self, call: OpenedCall<'_>, supersedes: Option<CallId>) {
        let OpenedCall { slot, position, upstream_id, name, kind: call_kind, arguments } = call;
        if supersedes.is_none() && self.record.find_call_in_slot(slot).is_some() {
            return;
        }
        self.close_block();
        let tool = self.setup.tools.iter().find(|tool| tool.wire_name == name);
        // A card shows its arguments as soon as they are known.
        let input_summary = arguments
            .filter(|_| call_kind == CallKind::Function)
            .and_then(|text| EarlySummary::default().push("", text))
            .unwrap_or_default();
        let use_ = EventKind::ToolUse {
            // The model has invented the name of a tool that is not offered.
            tool_name: tool.map_or_else(
                || ToolName::new(display_escape::escape_once(name.as_str())),
                |tool| tool.name.clone(),
            ),
            title: tool.map(|tool| display_escape::escape(&tool.title).into_owned()).unwrap_or_default(),
            source: tool.map(|tool| tool.source.clone()).unwrap_or_default(),
            effect: tool.map_or(Effect::External, |tool| tool.effect),
            wire_name: name,
            status: CallStatus::Preparing,
            input_summary: input_summary.clone(),
            upstream_id,
            slot,
            position,
            call_kind,
            supersedes,
        };
        if let Some(handle) = self.emit_tool_use(use_) {
            let id = self.record.call(handle).id.clone();
            self.volatile.early_summaries.insert(id, EarlySummary::showing(input_summary));
        }
    }

    /// Emits a `tool_use` with the next id and block.
    fn emit_tool_use(&mut self, use_: EventKind) -> Option<CallHandle> {
        // Minted from turn and ordinal: no randomness, and the same again after a restore.
        let id = CallId::new(format!("{}.{}", self.start.turn_id, self.record.calls.len() + 1));
        let target =
            EventTarget { block: Some(self.record.blocks), tool: Some(id.clone()), ..self.step_target() };
        self.emit(target, use_);
        self.record.find_call(&id)
    }

    /// The call of a slot, if its arguments may still change.
    fn preparing_call(&self, slot: CallSlot) -> Option<CallHandle> {
        self.record.find_call_in_slot(slot).filter(|handle| self.record.call(*handle).is_preparing())
    }

    fn call_arguments(&mut self, slot: CallSlot, delta: &str) {
        if let Some(handle) = self.preparing_call(slot).filter(|_| !delta.is_empty()) {
            let input_summary = self.early_summary(handle, delta);
            let piece = EventKind::ToolInputDelta { delta: delta.to_owned(), input_summary };
            self.emit(self.call_target(handle), piece);
        }
    }

    /// One line about the arguments that are complete with this piece, if the card does not have it already.
    fn early_summary(&mut self, handle: CallHandle, delta: &str) -> Option<String> {
        let call = self.record.call(handle);
        if call.kind != CallKind::Function {
            return None;
        }
        self.volatile.early_summaries.entry(call.id.clone()).or_default().push(call.arriving_text(), delta)
    }

    fn call_broken(&mut self, slot: CallSlot, why: BrokenCall, raw: RawArguments) {
        if self.preparing_call(slot).is_none() {
            self.call_reopened(slot);
        }
        if let Some(handle) = self.preparing_call(slot) {
            let input = ToolInput::broken(why, raw, self.record.call(handle).arriving_text());
            self.emit(self.call_target(handle), EventKind::ToolInput(input));
        }
    }

    /// The upstream contradicted the arguments. A start with these arguments is taken back: a running tool is
    /// stopped, a recorded result is left out of the history and the call continues under a new id.
    fn call_reopened(&mut self, slot: CallSlot) {
        let Some(handle) = self.record.find_call_in_slot(slot) else { return };
        let call = self.record.call(handle);
        self.volatile.early_summaries.remove(&call.id);
        let target = self.call_target(handle);
        match &call.state {
            CallState::Preparing(_) | CallState::Sealed(_) | CallState::AwaitingApproval(_) => {
                self.emit(target, EventKind::ToolInputReset);
            }
            CallState::Running(_) => {
                let (call, attempt) = (call.id.clone(), call.attempts);
                self.withdraw_question(handle, "reset");
                self.push_action(TurnAction::CancelTool { call, attempt });
                self.emit(target, EventKind::ToolInputReset);
            }
            CallState::Closed(closed) if matches!(closed.outcome, CallOutcome::Cancelled(_)) => {}
            CallState::Closed(_) if call.attempts == 0 => {}
            CallState::Closed(_) => {
                let (id, position, kind) = (call.id.clone(), call.position, call.kind);
                let (upstream_id, name) = (call.upstream_id.clone(), call.wire_name.clone());
                let remedy =
                    Some("The result is not used; the tool runs again with the final arguments.".into());
                self.report_problem("contradicted_seal", None, String::new(), remedy, target);
                let call = OpenedCall { slot, position, upstream_id, name, kind, arguments: None };
                self.call_opened(call, Some(id));
            }
        }
    }

    /// A tool that the provider ran itself: a card like any other, and nothing to run.
    fn hosted_call(&mut self, hosted: HostedTool) {
        let upstream_id = hosted.id.clone().map(UpstreamCallId::new);
        let step = self.record.step();
        let open = self.record.calls.find(|call| {
            call.is_hosted()
                && call.step == step
                && !call.is_closed()
                && upstream_id.is_some()
                && call.upstream_id == upstream_id
        });
        let handle = match open {
            Some(handle) => handle,
            None => {
                self.close_block();
                let slot = CallSlot(u32::MAX - self.record.calls.len() as u32);
                let use_ = EventKind::ToolUse {
                    tool_name: ToolName::new(hosted.name.as_str()),
                    wire_name: WireName::new(hosted.name),
                    title: String::new(),
                    source: HOSTED.into(),
                    effect: Effect::External,
                    status: CallStatus::Preparing,
                    input_summary: String::new(),
                    upstream_id,
                    slot,
                    position: u32::MAX,
                    call_kind: CallKind::Function,
                    supersedes: None,
                };
                let Some(handle) = self.emit_tool_use(use_) else { return };
                handle
            }
        };
        if let Some(input) = hosted.input.filter(|_| self.record.call(handle).is_preparing()) {
            let input = ToolInput::sealed(
                &CallArguments::from_value(input),
                throughline_wire::SealEvidence::Explicit,
            );
            self.emit(self.call_target(handle), EventKind::ToolInput(input));
        }
        if let Some(value) = hosted.output {
            let output = ToolOutput { value: Some(value.clone()), ..ToolOutput::text(value.to_string()) };
            self.close(handle, CallOutcome::Done(output));
        }
    }

    // --- findings ---

    fn decoder_problem(&mut self, problem: &StepProblem) {
        let call = problem.slot.and_then(|slot| self.record.find_call_in_slot(slot));
        let target = call.map_or_else(EventTarget::default, |handle| self.call_target(handle));
        let (code, detail) = problem_code(&problem.kind);
        let excerpt = match detail {
            // A sentence ends with its own full stop.
            Some(detail) if detail.ends_with('.') => format!("{detail} {}", problem.excerpt),
            Some(detail) => format!("{detail}: {}", problem.excerpt),
            None => problem.excerpt.clone(),
        };
        let is_same = |(of, what): &(String, String)| *of == code && *what == excerpt;
        if problem.kind.is_about_request() && self.record.left_out.iter().any(is_same) {
            return;
        }
        self.report_problem(&code, Some(problem.at), excerpt, wording::problem_remedy(&problem.kind), target);
    }

    pub(crate) fn report_problem(
        &mut self,
        code: &str,
        at: Option<u64>,
        excerpt: String,
        remedy: Option<String>,
        target: EventTarget,
    ) {
        let problems = self.record.steps.last().map_or(0, |step| step.problems);
        if problems < self.setup.limits.problems_per_step_max {
            let target = if target.step.is_some() { target } else { self.step_target() };
            self.emit(target, EventKind::Problem { code: code.into(), at, excerpt, remedy });
        }
    }

    // --- the end of the stream ---

    fn stream_ended(&mut self, end: StreamEnd) {
        match end {
            StreamEnd::Complete => self.stream_completed(),
            StreamEnd::Error(error) => self.stream_failed(wording::upstream_error(&error), None),
            // Truncated; an end that is not known is no complete one.
            _ => self.stream_failed(wording::truncated(), None),
        }
    }

    fn stream_completed(&mut self) {
        self.close_block();
        self.cut_open_calls();
        let (finish, raw) = match self.volatile.finish.take() {
            Some((reason, raw)) => (reason, raw),
            // Ended normally without a finish reason.
            None => (FinishReason::Stop, None),
        };
        match finish {
            finish if is_commit(finish) => {}
            FinishReason::Length => {
                self.notice(notice_code::LENGTH, wording::length());
            }
            FinishReason::ContentFilter => self.fault_block(wording::content_filter(raw.as_deref())),
            _ => self.fault_block(wording::unexpected_finish(raw.as_deref())),
        }
        self.end_step(Some(finish), raw);
    }

    pub(crate) fn end_step(&mut self, finish: Option<FinishReason>, finish_raw: Option<String>) {
        for handle in self.record.calls.handles() {
            let call = self.record.call(handle);
            if call.is_hosted() && !call.is_closed() {
                let outcome = if finish.is_some_and(is_commit) {
                    CallOutcome::Done(ToolOutput::default())
                } else {
                    CallOutcome::unknown()
                };
                self.close(handle, outcome);
            }
        }
        let usage = self.volatile.usage.take();
        let segments = self.record.waterfall.since_last_step(self.now);
        let (target, step) = (self.step_target(), self.record.step());
        self.emit(target, EventKind::StepEnd { finish, finish_raw, usage, segments });
        if let Some(state) = self.volatile.provider_state.take() {
            let step_state = crate::action::StepProviderState { step, state };
            self.record.apply_provider_state(&step_state);
            self.out.provider_states.push(step_state);
        }
    }

    /// Half-received calls will never be whole.
    pub(crate) fn cut_open_calls(&mut self) {
        self.volatile.early_summaries.clear();
        for handle in self.record.calls.select(|call| call.is_preparing() && !call.is_hosted()) {
            let text = self.record.call(handle).arriving_text();
            let input = ToolInput::broken(BrokenCall::Cut, RawArguments(text.to_owned()), text);
            self.emit(self.call_target(handle), EventKind::ToolInput(input));
        }
    }

    // --- failures ---

    pub(crate) fn model_failed(&mut self, step: u32, attempt: u32, failed: FailedCall) {
        if self.record.reply_of(step, attempt).is_some() {
            self.stream_failed(wording::upstream_failed(&failed.failure), Some(failed));
        }
    }

    /// The call failed. Before the first token it is retried, with the same upstream or another; after it,
    /// what was shown stays and the turn ends with an error that names a way to continue.
    fn stream_failed(&mut self, fault: TurnFault, failed: Option<FailedCall>) {
        match self.record.reply() {
            Some(reply) if !reply.content_shown => {
                let failed = failed.unwrap_or_else(|| FailedCall::without_limit(wording::as_failure(&fault)));
                if !self.retry_or_fall_back(reply.attempt, &failed) {
                    self.fault(fault);
                }
            }
            _ => self.fault(wording::mid_stream(fault, failed.as_ref().map(|failed| &failed.failure))),
        }
    }

    fn retry_or_fall_back(&mut self, attempted: ModelAttempt, failed: &FailedCall) -> bool {
        let (step, upstream) = (self.record.step(), self.record.upstream);
        let ModelAttempt { number: attempt, tries } = attempted;
        let failure = &failed.failure;
        if failure.kind == FailureKind::ContextTooLong && self.shorten_outputs() {
            self.call_model(step, attempt + 1, upstream);
            return true;
        }
        let has_fallback = upstream + 1 < self.setup.upstreams.len();
        let counter = u64::from(step) << 32 | u64::from(attempt);
        let mut policy = self.setup.retry;
        if let (1, Some(fewer_attempts)) = (step, self.setup.first_step_attempts_max) {
            policy.attempts_max = policy.attempts_max.min(fewer_attempts);
        }
        let next = retry::decide(failed, &policy, tries, has_fallback, self.start.nonce, counter);
        match next {
            RetryDecision::GiveUp => false,
            RetryDecision::Retry { wait_ms } => {
                let until = self.now.saturating_add_unsigned(wait_ms);
                let reason = match failure.kind {
                    FailureKind::RateLimited => WaitReason::RateLimit,
                    _ => WaitReason::Retry,
                };
                let why = Some(failure.message.clone());
                self.emit(
                    self.step_target(),
                    EventKind::Waiting { reason, since: None, until: Some(until), why },
                );
                self.set_timer(TimerId::Retry { step, attempt: attempt + 1 }, until);
                true
            }
            RetryDecision::Fallback => {
                let excerpt = failure.message.clone();
                let to = &self.setup.upstreams[upstream + 1];
                let remedy = Some(format!("{} / {} is used instead.", to.name, to.model));
                self.report_problem("fallback", None, excerpt, remedy, EventTarget::default());
                self.call_model(step, attempt + 1, upstream + 1);
                true
            }
        }
    }

    pub(crate) fn retry_timer_fired(&mut self, step: u32, attempt: u32) {
        if let TurnPhase::Backoff(Backoff { attempt: failed, .. }) = &self.record.phase
            && step == self.record.step()
            && attempt == failed.number + 1
        {
            self.call_model(step, attempt, self.record.upstream);
        }
    }

    /// Names of offered tools like `name`.
    pub(crate) fn unknown_tool(&self, name: &WireName) -> NotStarted {
        let offered = self.setup.tools.iter().map(|tool| tool.wire_name.as_str());
        let closest = suggest_names(name.as_str(), offered).into_iter().map(str::to_owned).collect();
        NotStarted::UnknownTool { closest }
    }
}

/// A stable word for a finding, and what its kind carries.
fn problem_code(kind: &ProblemKind) -> (String, Option<String>) {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(code)) => (code, None),
        Ok(serde_json::Value::Object(members)) => match members.into_iter().next() {
            Some((code, detail)) => {
                let detail = detail
                    .as_object()
                    .and_then(|fields| fields.values().next())
                    .and_then(|value| value.as_str());
                (code, detail.map(ToOwned::to_owned))
            }
            None => ("problem".into(), None),
        },
        _ => ("problem".into(), None),
    }
}

/// A call as the upstream names it first.
struct OpenedCall<'a> {
    slot: CallSlot,
    position: u32,
    upstream_id: Option<UpstreamCallId>,
    name: WireName,
    kind: CallKind,
    /// Argument text that came with the name.
    arguments: Option<&'a str>,
}
