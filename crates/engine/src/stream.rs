//! A step of the model: from the request to its end, event by event.

use crate::action::Action;
use crate::closest::closest_names;
use crate::event::{BlockKind, BlockStart, CallStatus, EventKind, Fault, ToolInput, WaitReason};
use crate::input::{FailureKind, TimerId, UpstreamFailure};
use crate::ledger;
use crate::record::{CallState, HOSTED, OpenBlock, Phase, Shown, code, commits};
use crate::retry::{self, Next, Others};
use crate::setup::Effect;
use crate::turn::{About, Heard, Machine};
use crate::waiting;
use crate::wording;
use std::borrow::Cow;
use throughline_wire::{
    Arguments, BrokenCall, CallId, CallKind, End, FinishReason, Hosted, NotStarted, Outcome, Output, Problem,
    ProblemKind, RawArguments, Slot, StepEvent, ToolChoice, ToolName, UpstreamCallId, WireName, visible,
};

impl Machine<'_> {
    /// The next step of the turn. False if there is nothing to call.
    pub(crate) fn next_step(&mut self) -> bool {
        if self.setup.upstreams.is_empty() {
            self.fault(wording::no_upstream());
            return true;
        }
        self.call_model(self.record.step() + 1, 1, self.record.upstream);
        true
    }

    fn call_model(&mut self, step: u32, attempt: u32, upstream: usize) {
        let Some(choice) = self.setup.upstreams.get(upstream) else { return };
        let tools_offered = match ledger::choice(self.record, self.setup) {
            ToolChoice::None => Vec::new(),
            choice => ledger::offered(&choice, self.setup).map(|tool| tool.name.clone()).collect(),
        };
        let start = EventKind::StepStart {
            upstream: choice.name.clone(),
            model: choice.model.clone(),
            attempt,
            fallback: upstream as u32,
            tools_offered,
        };
        self.live.finish = None;
        self.live.usage = None;
        self.live.provider_state = None;
        self.live.choice_told = false;
        self.live.heard = Heard::Nothing;
        self.emit(About { step: Some(step), ..About::default() }, start);
        // Every call of the steps before is closed: that is how this place is reached.
        if let Some(request) = ledger::request(self.record, self.setup, self.start) {
            self.act(Action::CallModel { step, attempt, upstream, request: Box::new(request) });
            self.timer_at(TimerId::FirstByte { step, attempt }, self.now + waiting::TELL_AFTER_MS);
        }
    }

    // --- what the model says ---

    pub(crate) fn model(&mut self, step: u32, attempt: u32, event: StepEvent<'static>) {
        let current = step == self.record.step() && attempt == self.record.attempt;
        if !current || !matches!(self.record.phase, Phase::Streaming { .. }) {
            return;
        }
        self.live.heard = Heard::Something;
        match event {
            StepEvent::Text(text) => self.delta(text, BlockStart::Text { code: None }),
            StepEvent::Refusal(text) => self.delta(text, BlockStart::Text { code: Some("refusal".into()) }),
            StepEvent::Thinking(text) => self.thinking(text),
            StepEvent::Image(media) => {
                self.close_block();
                self.block(BlockStart::Image(media));
            }
            StepEvent::Audio { data, transcript } => {
                let open = self.open(BlockStart::Audio);
                let (data, transcript) = (data.into_owned(), transcript.into_owned());
                self.emit(open, EventKind::AudioDelta { format: None, sample_rate: None, data, transcript });
            }
            StepEvent::Citation(source) => {
                let block = self.record.open.map(|open| open.block);
                self.emit(About { block, ..self.about_step() }, EventKind::Citation { source });
            }
            StepEvent::CallOpened { slot, position, upstream_id, name, kind } => {
                self.call_opened(slot, position, upstream_id, name, kind, None);
            }
            StepEvent::CallArguments { slot, delta } => self.call_arguments(slot, &delta),
            StepEvent::CallSealed { slot, seal, arguments } => {
                if let Some(at) = self.preparing(slot) {
                    self.emit(self.about_call(at), EventKind::ToolInput(ToolInput::sealed(&arguments, seal)));
                    self.sealed(at);
                }
            }
            StepEvent::CallReopened { slot } => self.call_reopened(slot),
            StepEvent::CallBroken { slot, why, raw } => self.call_broken(slot, why, raw),
            StepEvent::Hosted(hosted) => self.hosted(hosted),
            StepEvent::Opaque(state) => self.live.provider_state = Some(state),
            StepEvent::Usage(usage) => self.live.usage = Some(usage),
            StepEvent::Finish { reason, raw } => self.live.finish = Some((reason, raw)),
            StepEvent::End(end) => self.stream_ended(end),
            StepEvent::Problem(problem) => self.problem(&problem),
            StepEvent::Choice { index, .. } => {
                if !std::mem::replace(&mut self.live.choice_told, true) {
                    self.report(
                        "further_choice",
                        None,
                        format!("choice {index} is not used"),
                        None,
                        About::default(),
                    );
                }
            }
            // The vocabulary may grow; what this release does not know is reported, not dropped silently.
            other => self.report(
                "unknown_event",
                None,
                format!("{other:?}").chars().take(200).collect(),
                None,
                About::default(),
            ),
        }
    }

    fn delta(&mut self, text: Cow<'static, str>, start: BlockStart) {
        if !text.is_empty() {
            let open = self.open(start);
            self.emit(open, EventKind::ContentDelta { text: text.into_owned() });
        }
    }

    fn thinking(&mut self, text: Cow<'static, str>) {
        let thinks_already = self.record.open.is_some_and(|open| open.kind == BlockKind::Thinking);
        if text.is_empty() && thinks_already {
            return;
        }
        let open = self.open(BlockStart::Thinking);
        self.emit(open, EventKind::Thinking { text: text.into_owned() });
    }

    /// The open block of this kind, opened if need be.
    fn open(&mut self, start: BlockStart) -> About {
        let wanted = match &start {
            BlockStart::Text { code } => (BlockKind::Text, code.is_some()),
            BlockStart::Thinking => (BlockKind::Thinking, false),
            _ => (BlockKind::Audio, false),
        };
        let OpenBlock { block, .. } = match self.record.open {
            Some(open) if (open.kind, open.refusal) == wanted => open,
            _ => {
                self.close_block();
                let block = self.block(start);
                OpenBlock { block, kind: wanted.0, refusal: wanted.1 }
            }
        };
        About { block: Some(block), ..self.about_step() }
    }

    /// Opens a block and says which.
    pub(crate) fn block(&mut self, start: BlockStart) -> u32 {
        let block = self.record.blocks;
        self.emit(About { block: Some(block), ..self.about_step() }, EventKind::BlockStart(start));
        block
    }

    pub(crate) fn close_block(&mut self) {
        if let Some(open) = self.record.open {
            self.emit(About { block: Some(open.block), ..self.about_step() }, EventKind::BlockEnd);
        }
    }

    // --- calls ---

    fn call_opened(
        &mut self,
        slot: Slot,
        position: u32,
        upstream_id: Option<UpstreamCallId>,
        name: WireName,
        call_kind: CallKind,
        supersedes: Option<CallId>,
    ) {
        if supersedes.is_none() && self.record.call_in(slot).is_some() {
            return;
        }
        self.close_block();
        let tool = self.setup.tools.iter().find(|tool| tool.wire_name == name);
        let use_ = EventKind::ToolUse {
            tool_name: tool.map_or_else(|| ToolName::new(name.as_str()), |tool| tool.name.clone()),
            title: tool.map(|tool| visible::escape(&tool.title).into_owned()).unwrap_or_default(),
            source: tool.map(|tool| tool.source.clone()).unwrap_or_default(),
            effect: tool.map_or(Effect::External, |tool| tool.effect),
            wire_name: name,
            status: CallStatus::Preparing,
            input_summary: String::new(),
            upstream_id,
            slot,
            position,
            call_kind,
            supersedes,
        };
        self.tool_use(use_);
    }

    /// Emits a `tool_use` with the next id and block.
    fn tool_use(&mut self, use_: EventKind) -> CallId {
        // Minted from turn and ordinal: no randomness, and the same again after a restore. R: W4
        let id = CallId::new(format!("{}.{}", self.start.turn_id, self.record.calls.len() + 1));
        let about = About { block: Some(self.record.blocks), tool: Some(id.clone()), ..self.about_step() };
        self.emit(about, use_);
        id
    }

    /// The call of a slot, if its arguments may still change.
    fn preparing(&self, slot: Slot) -> Option<usize> {
        self.record.call_in(slot).filter(|at| self.record.calls[*at].state == CallState::Preparing)
    }

    fn call_arguments(&mut self, slot: Slot, delta: &str) {
        if let Some(at) = self.preparing(slot).filter(|_| !delta.is_empty()) {
            self.emit(self.about_call(at), EventKind::ToolInputDelta { delta: delta.to_owned() });
        }
    }

    fn call_broken(&mut self, slot: Slot, why: BrokenCall, raw: RawArguments) {
        if self.preparing(slot).is_none() {
            self.call_reopened(slot);
        }
        if let Some(at) = self.preparing(slot) {
            let input = ToolInput::broken(why, raw, &self.record.calls[at].text);
            self.emit(self.about_call(at), EventKind::ToolInput(input));
        }
    }

    /// The upstream contradicted the arguments. A start that was made of them is taken back: a running tool is
    /// stopped, a recorded result is left out of the history and the call goes on under a new id. R: T6
    fn call_reopened(&mut self, slot: Slot) {
        let Some(at) = self.record.call_in(slot) else { return };
        let call = &self.record.calls[at];
        let about = self.about_call(at);
        match &call.state {
            CallState::Preparing | CallState::Sealed | CallState::Asked { .. } => {
                self.emit(about, EventKind::ToolInputReset);
            }
            CallState::Running { .. } => {
                let (call, attempt) = (call.id.clone(), call.attempts);
                self.withdraw_question(at, "reset");
                self.act(Action::CancelTool { call, attempt });
                self.emit(about, EventKind::ToolInputReset);
            }
            CallState::Closed { outcome: Outcome::Cancelled(_), .. } => {}
            CallState::Closed { .. } if call.attempts == 0 => {}
            CallState::Closed { .. } => {
                let (id, position, kind) = (call.id.clone(), call.position, call.kind);
                let (upstream_id, name) = (call.upstream_id.clone(), call.wire_name.clone());
                let remedy =
                    Some("The result is not used; the tool runs again with the final arguments.".into());
                self.report("contradicted_seal", None, String::new(), remedy, about);
                self.call_opened(slot, position, upstream_id, name, kind, Some(id));
            }
        }
    }

    /// A tool that the provider ran itself: a card like any other, and nothing to run.
    fn hosted(&mut self, hosted: Hosted) {
        let theirs = hosted.id.clone().map(UpstreamCallId::new);
        let step = self.record.step();
        let open = self.record.calls.iter().position(|call| {
            call.hosted
                && call.step == step
                && !call.is_closed()
                && theirs.is_some()
                && call.upstream_id == theirs
        });
        let at = match open {
            Some(at) => at,
            None => {
                self.close_block();
                let slot = Slot(u32::MAX - self.record.calls.len() as u32);
                self.tool_use(EventKind::ToolUse {
                    tool_name: ToolName::new(hosted.name.as_str()),
                    wire_name: WireName::new(hosted.name),
                    title: String::new(),
                    source: HOSTED.into(),
                    effect: Effect::External,
                    status: CallStatus::Preparing,
                    input_summary: String::new(),
                    upstream_id: theirs,
                    slot,
                    position: u32::MAX,
                    call_kind: CallKind::Function,
                    supersedes: None,
                });
                self.record.calls.len() - 1
            }
        };
        if let Some(input) = hosted.input.filter(|_| self.record.calls[at].arguments.is_none()) {
            let input = ToolInput::sealed(&Arguments::from_value(input), throughline_wire::Seal::Explicit);
            self.emit(self.about_call(at), EventKind::ToolInput(input));
        }
        if let Some(value) = hosted.output {
            let output = Output { value: Some(value.clone()), ..Output::text(value.to_string()) };
            self.close(at, Outcome::Done(output));
        }
    }

    // --- findings ---

    fn problem(&mut self, problem: &Problem) {
        let call = problem.slot.and_then(|slot| self.record.call_in(slot));
        let about = call.map_or_else(About::default, |at| self.about_call(at));
        let (code, detail) = problem_code(&problem.kind);
        let excerpt = match detail {
            // A sentence stands alone.
            Some(detail) if detail.ends_with('.') => format!("{detail} {}", problem.excerpt),
            Some(detail) => format!("{detail}: {}", problem.excerpt),
            None => problem.excerpt.clone(),
        };
        self.report(&code, Some(problem.at), excerpt, wording::remedy_of(&problem.kind), about);
    }

    pub(crate) fn report(
        &mut self,
        code: &str,
        at: Option<u64>,
        excerpt: String,
        remedy: Option<String>,
        about: About,
    ) {
        if self.record.problems < self.setup.limits.problems_per_step_max {
            let about = if about.step.is_some() { about } else { self.about_step() };
            self.emit(about, EventKind::Problem { code: code.into(), at, excerpt, remedy });
        }
    }

    // --- the end of the stream ---

    fn stream_ended(&mut self, end: End) {
        match end {
            End::Complete => self.completed(),
            End::Truncated => self.broke_off(wording::truncated(), None),
            End::Error(error) => self.broke_off(wording::upstream_error(&error), None),
        }
    }

    fn completed(&mut self) {
        self.close_block();
        self.cut_open_calls();
        let (finish, raw) = match self.live.finish.take() {
            Some((reason, raw)) => (reason, raw),
            // Ended in good order without a word about why.
            None => (FinishReason::Stop, None),
        };
        match finish {
            finish if commits(finish) => {}
            FinishReason::Length => {
                self.notice(code::LENGTH, wording::length());
            }
            FinishReason::ContentFilter => self.fault_block(wording::content_filter(raw.as_deref())),
            _ => self.fault_block(wording::strange_finish(raw.as_deref())),
        }
        self.end_step(Some(finish), raw);
    }

    pub(crate) fn end_step(&mut self, finish: Option<FinishReason>, finish_raw: Option<String>) {
        for at in 0..self.record.calls.len() {
            if self.record.calls[at].hosted && !self.record.calls[at].is_closed() {
                let outcome = match finish.is_some_and(commits) {
                    true => Outcome::Done(Output::default()),
                    false => Outcome::Unknown,
                };
                self.close(at, outcome);
            }
        }
        let usage = self.live.usage.take();
        let segments = self.record.waterfall.since_last_step(self.now);
        let (about, step) = (self.about_step(), self.record.step());
        self.emit(about, EventKind::StepEnd { finish, finish_raw, usage, segments });
        if let Some(state) = self.live.provider_state.take() {
            let beside = crate::action::Beside { step, state };
            self.record.absorb_beside(&beside);
            self.out.beside.push(beside);
        }
    }

    /// Half-received calls will never be whole. R: W5
    pub(crate) fn cut_open_calls(&mut self) {
        let open: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| {
                self.record.calls[*at].state == CallState::Preparing && !self.record.calls[*at].hosted
            })
            .collect();
        for at in open {
            let raw = RawArguments(self.record.calls[at].text.clone());
            let input = ToolInput::broken(BrokenCall::Cut, raw, &self.record.calls[at].text);
            self.emit(self.about_call(at), EventKind::ToolInput(input));
        }
    }

    // --- failures --- R: T11

    pub(crate) fn model_failed(&mut self, step: u32, attempt: u32, failure: UpstreamFailure) {
        let current = step == self.record.step() && attempt == self.record.attempt;
        if current && matches!(self.record.phase, Phase::Streaming { .. }) {
            self.broke_off(wording::failed(&failure), Some(failure));
        }
    }

    /// The call failed. Before the first token it is tried again, here or elsewhere; after it, what was shown stays and
    /// the turn ends with an error that says how to go on.
    fn broke_off(&mut self, fault: Fault, failure: Option<UpstreamFailure>) {
        if self.record.phase == (Phase::Streaming { shown: Shown::No }) {
            let failure = failure.unwrap_or_else(|| wording::as_failure(&fault));
            if self.try_again(&failure) {
                return;
            }
            self.fault(fault);
            return;
        }
        self.fault(wording::mid_stream(fault));
    }

    fn try_again(&mut self, failure: &UpstreamFailure) -> bool {
        let (step, attempt, upstream) = (self.record.step(), self.record.attempt, self.record.upstream);
        if failure.kind == FailureKind::ContextTooLong && !self.record.shortened {
            let results = ledger::shortens(self.record, self.setup, self.start);
            if results > 0 {
                self.notice(code::SHORTENED, wording::shortened(results));
                self.call_model(step, attempt + 1, upstream);
                return true;
            }
        }
        let others = match upstream + 1 < self.setup.upstreams.len() {
            true => Others::Left,
            false => Others::None,
        };
        let place = u64::from(step) << 32 | u64::from(attempt);
        let mut policy = self.setup.retry;
        if let (1, Some(fewer)) = (step, self.setup.first_step_attempts_max) {
            policy.attempts_max = policy.attempts_max.min(fewer);
        }
        let next = retry::next(failure, &policy, self.record.tries, others, self.start.nonce, place);
        match next {
            Next::GiveUp => false,
            Next::Retry { wait_ms } => {
                let until = self.now.saturating_add_unsigned(wait_ms);
                let reason = match failure.kind {
                    FailureKind::RateLimited => WaitReason::RateLimit,
                    _ => WaitReason::Retry,
                };
                let why = Some(failure.message.clone());
                self.emit(self.about_step(), EventKind::Waiting { reason, until: Some(until), why });
                self.timer_at(crate::input::TimerId::Retry { step, attempt: attempt + 1 }, until);
                true
            }
            Next::Fallback => {
                let excerpt = failure.message.clone();
                let to = &self.setup.upstreams[upstream + 1];
                let remedy = Some(format!("{} / {} is asked instead.", to.name, to.model));
                self.report("fallback", None, excerpt, remedy, About::default());
                self.call_model(step, attempt + 1, upstream + 1);
                true
            }
        }
    }

    pub(crate) fn retry_due(&mut self, step: u32, attempt: u32) {
        let due = matches!(self.record.phase, Phase::Backoff { .. });
        if due && step == self.record.step() && attempt == self.record.attempt + 1 {
            self.call_model(step, attempt, self.record.upstream);
        }
    }

    /// Names of offered tools like `name`.
    pub(crate) fn closest_to(&self, name: &WireName) -> NotStarted {
        let offered = self.setup.tools.iter().map(|tool| tool.wire_name.as_str());
        let closest = closest_names(name.as_str(), offered).into_iter().map(str::to_owned).collect();
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
