//! The writer that dialects call: they report what they have read, and it emits [`StepEvent`]s.

mod reported_error;
mod text_mode;

use crate::assemble::{CallAssembler, CallDelta, CallHead};
use crate::decoder::{DecodeOptions, ThinkMode};
use crate::dialect::Dialect;
use crate::json::{JsonRef, SurrogateCarry, decode_string};
use crate::limits::DecodeLimits;
use crate::profile::{LeakedCalls, UpstreamProfile};
use crate::text_calls::{CallFormat, ThinkPiece, ThinkSplitter, find_leaked, without_structured};
use crate::vocabulary::{
    CallSlot, FinishReason, HostedTool, Media, ProblemKind, ProviderState, StepEvent, StepProblem, StreamEnd,
    UpstreamError, Usage,
};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use text_mode::{ReplyEnding, TextMode};

pub(crate) use reported_error::{body_error_of, error_of, event_words_of, http_status_of};

/// Callback that receives the events.
pub(crate) type EventSink<'s> = &'s mut dyn FnMut(StepEvent<'_>);

/// State of one step that outlives single frames.
pub(crate) struct StepState {
    dialect: Dialect,
    limits: DecodeLimits,
    profile: UpstreamProfile,
    offered: Vec<String>,
    pub(crate) primary_choice: ChoiceState,
    other_choices: BTreeMap<u32, ChoiceState>,
    usage: Option<Usage>,
    provider_state: Option<Value>,
    error: Option<UpstreamError>,
    /// Error text that nothing of the reply has followed so far.
    last_words: Option<UpstreamError>,
    complete: bool,
    over: bool,
    effect: FrameEffect,
    /// Changes when fragments that look like earlier ones mean something else.
    epoch: u64,
    think: Option<ThinkSplitter>,
    visible: VisibleText,
    /// Offset of the frame being decoded, for problems.
    pub(crate) offset: u64,
}

/// The visible text on its way to the caller.
enum VisibleText {
    /// Passed on as it is; stored to look for leaked calls in at the end.
    Plain(String),
    /// Calls are written in it.
    Calls(Box<TextMode>),
}

impl VisibleText {
    /// Passes text of the first choice on.
    fn push(&mut self, text: Cow<'_, str>, calls: &mut CallAssembler, sink: EventSink<'_>, at: u64) {
        match self {
            VisibleText::Plain(plain_text) => {
                plain_text.push_str(&text);
                sink(StepEvent::Text(text));
            }
            VisibleText::Calls(mode) => mode.push(&text, calls, sink, at),
        }
    }
}

/// Effect of the current frame so far, for the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameEffect {
    /// The frame had no effect.
    None,
    /// The frame had one fragment, whose string body is at this address.
    One { target: FragmentTarget, body_at: usize, body_len: usize },
    /// The frame had any other effect.
    Other,
}

/// Destination of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentTarget {
    Text,
    Thinking,
    Arguments(CallSlot),
}

/// One choice of a reply. All but the first are only reported.
pub(crate) struct ChoiceState {
    pub(crate) calls: CallAssembler,
    pub(crate) text: SurrogateCarry,
    pub(crate) thinking: SurrogateCarry,
    refusal: SurrogateCarry,
    finish: Option<(FinishReason, String)>,
}

impl ChoiceState {
    fn new(limits: &DecodeLimits, profile: &UpstreamProfile, offered: &[String]) -> Self {
        Self {
            calls: CallAssembler::new(limits, profile, offered),
            text: SurrogateCarry::default(),
            thinking: SurrogateCarry::default(),
            refusal: SurrogateCarry::default(),
            finish: None,
        }
    }
}

impl StepState {
    /// Calls are written in the text, which its pieces may cut anywhere.
    pub(crate) fn reads_calls_in_text(&self) -> bool {
        matches!(self.visible, VisibleText::Calls(_))
    }

    pub(crate) fn new(dialect: Dialect, options: DecodeOptions) -> Self {
        let DecodeOptions { limits, profile, think, offered, calls, argument_names: _ } = options;
        let primary_choice = ChoiceState::new(&limits, &profile, &offered);
        Self {
            dialect,
            limits,
            profile,
            offered,
            primary_choice,
            other_choices: BTreeMap::new(),
            usage: None,
            provider_state: None,
            error: None,
            last_words: None,
            complete: false,
            over: false,
            effect: FrameEffect::None,
            epoch: 0,
            think: match think {
                ThinkMode::Verbatim => None,
                ThinkMode::Split => Some(ThinkSplitter::new()),
            },
            visible: match calls {
                CallFormat::Native => VisibleText::Plain(String::new()),
                CallFormat::Text(format) => VisibleText::Calls(Box::new(TextMode::new(format))),
            },
            offset: 0,
        }
    }

    /// A new frame: its effects are counted from here.
    pub(crate) fn begin_frame(&mut self) {
        self.effect = FrameEffect::None;
    }

    pub(crate) fn effect(&self) -> FrameEffect {
        self.effect
    }

    /// Current epoch, see the field.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The bytes have ended after a finish reason, and by its profile that is how this upstream ends.
    pub(crate) fn finish_reason_ends(&self) -> bool {
        self.profile.finish_reason_ends && self.primary_choice.finish.is_some()
    }

    pub(crate) fn event_bytes_max(&self) -> usize {
        self.limits.event_bytes_max
    }

    fn note_effect(&mut self) {
        self.effect = FrameEffect::Other;
    }

    fn note_fragment(&mut self, target: FragmentTarget, body: &str) {
        self.effect = match self.effect {
            FrameEffect::None => {
                FrameEffect::One { target, body_at: body.as_ptr() as usize, body_len: body.len() }
            }
            _ => FrameEffect::Other,
        };
    }
}

/// Interface by which a dialect reports what it has read. All methods may be called in any order and any
/// number of times; contradictions are reported, never merged.
pub(crate) struct StepWriter<'s> {
    state: &'s mut StepState,
    choice: u32,
    sink: EventSink<'s>,
}

impl<'s> StepWriter<'s> {
    pub(crate) fn new(state: &'s mut StepState, sink: EventSink<'s>) -> Self {
        Self { state, choice: 0, sink }
    }

    // --- the reply's parts ---

    /// Selects the choice (`n > 1`) of everything that follows. Every frame begins with choice 0.
    pub(crate) fn choice(&mut self, index: u32) {
        self.choice = index;
        if index != 0 {
            self.state.note_effect();
            let state = &mut *self.state;
            let choices_max = state.limits.calls_per_step_max;
            if state.other_choices.len() < choices_max || state.other_choices.contains_key(&index) {
                state
                    .other_choices
                    .entry(index)
                    .or_insert_with(|| ChoiceState::new(&state.limits, &state.profile, &state.offered));
            }
        }
    }

    /// Visible text: a JSON string (nothing otherwise).
    pub(crate) fn text(&mut self, json: &JsonRef<'_>) {
        self.fragment(FragmentTarget::Text, json);
    }

    /// `text` begins with all the visible text so far (and there is some).
    pub(crate) fn is_more_of_text(&self, text: &str) -> bool {
        matches!(&self.state.visible, VisibleText::Plain(so_far) if !so_far.is_empty() && text.starts_with(so_far))
    }

    /// The whole visible text of the first choice again. A continuation is emitted; a different text counts
    /// as following the earlier one.
    pub(crate) fn text_snapshot(&mut self, text: &str) {
        self.state.note_effect();
        // Calls are read out of the text as it streams, so no plain text is left to compare.
        let VisibleText::Plain(so_far) = &self.state.visible else { return };
        let rest = match text.strip_prefix(so_far.as_str()) {
            Some(rest) => rest,
            // Without spaces at its ends, or with the thinking that preceded it.
            None if so_far.trim_end().ends_with(text.trim()) => "",
            None if !so_far.trim().is_empty() && text.trim_end().ends_with(so_far.trim()) => "",
            None => text,
        };
        self.text_str(Cow::Owned(rest.to_owned()));
    }

    /// Reasoning: a JSON string.
    pub(crate) fn thinking(&mut self, json: &JsonRef<'_>) {
        self.fragment(FragmentTarget::Thinking, json);
    }

    /// The model thinks and does not say what (redacted or not summarized).
    pub(crate) fn hidden_thinking(&mut self) {
        self.emit(StepEvent::Thinking(Cow::Borrowed("")));
    }

    /// A refusal: a JSON string.
    pub(crate) fn refusal(&mut self, json: &JsonRef<'_>) {
        let text = json.as_text(&mut self.choice_state().refusal);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.emit(StepEvent::Refusal(text));
        }
    }

    /// A picture made by the model.
    pub(crate) fn image(&mut self, media: Media) {
        self.emit(StepEvent::Image(media));
    }

    /// A piece of sound: base64 and its transcript.
    pub(crate) fn audio(&mut self, data: &str, transcript: &str) {
        self.audio_of(data, transcript, None, None);
    }

    /// A piece of sound whose media type the provider names, such as `audio/L16;codec=pcm;rate=24000`.
    pub(crate) fn typed_audio(&mut self, media_type: &str, data: &str) {
        let mut fields = media_type.split(';').map(str::trim);
        let format = match fields.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            // Gemini's samples are little-endian, contrary to RFC 2586 for L16.
            "audio/l16" | "audio/pcm" => "pcm16".to_owned(),
            "audio/mpeg" => "mp3".to_owned(),
            other => other.trim_start_matches("audio/").trim_start_matches("x-").to_owned(),
        };
        let sample_rate = fields.find_map(|field| field.strip_prefix("rate=")?.parse().ok());
        self.audio_of(data, "", Some(Cow::Owned(format)), sample_rate);
    }

    fn audio_of(
        &mut self,
        data: &str,
        transcript: &str,
        format: Option<Cow<'_, str>>,
        sample_rate: Option<u32>,
    ) {
        let (data, transcript) = (Cow::Borrowed(data), Cow::Borrowed(transcript));
        self.emit(StepEvent::Audio { data, transcript, format, sample_rate });
    }

    /// Emits a citation.
    pub(crate) fn citation(&mut self, json: &JsonRef<'_>) {
        self.emit(StepEvent::Citation(json.to_value()));
    }

    /// A source that was held back until now.
    pub(crate) fn citation_value(&mut self, value: Value) {
        self.emit(StepEvent::Citation(value));
    }

    /// The decoder has stored something of this frame: frames like it need the full decode.
    pub(crate) fn require_full_decode(&mut self) {
        self.state.note_effect();
    }

    /// From here on a frame that looks like an earlier one may belong elsewhere (an item number that is used again).
    pub(crate) fn invalidate_templates(&mut self) {
        self.state.epoch += 1;
        self.state.note_effect();
    }

    /// A tool that the provider ran.
    pub(crate) fn provider_tool(&mut self, hosted: HostedTool) {
        self.emit(StepEvent::Hosted(hosted));
    }

    // --- calls whose identity is a guess from index, id, name and shape (Chat Completions) ---

    /// One entry of `tool_calls`.
    pub(crate) fn call_delta(&mut self, delta: CallDelta<'_>) {
        let is_bare = delta.id.is_empty() && delta.name.is_empty() && self.choice == 0;
        let body = delta.arguments.and_then(JsonRef::string_body).filter(|_| is_bare);
        let before = self.calls().generation();
        let slot = self.with_calls(|calls, out, at| calls.apply_delta(delta, out, at));
        match (slot, body) {
            (Some(slot), Some(body)) if self.calls().generation() == before => {
                self.state.note_fragment(FragmentTarget::Arguments(slot), body);
            }
            _ => self.state.note_effect(),
        }
    }

    /// Calls of this choice so far.
    pub(crate) fn call_count(&mut self) -> usize {
        self.calls().count()
    }

    /// The `nth` call of a message that repeats what was streamed. False if it was not streamed.
    pub(crate) fn repeat_call(&mut self, nth: usize, call: &CallDelta<'_>) -> bool {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.apply_repeated(nth, call, out, at))
    }

    // --- calls whose identity is given by a block or item number ---

    /// Opens a block: always a new call, even if `key` named another one before. `key` is the dialect's block
    /// or item number.
    pub(crate) fn open_call(&mut self, key: u64, head: CallHead<'_>) -> CallSlot {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.open_block(key, head, out, at))
    }

    /// The call that `key` names now.
    pub(crate) fn slot_of_block(&mut self, key: u64) -> Option<CallSlot> {
        self.calls().slot_of_block(key)
    }

    /// The call that a fragment belongs to whose block or item number is no call's: the only one that is open, if there is
    /// one.
    pub(crate) fn adopt(&mut self, fragment: &JsonRef<'_>) -> Option<CallSlot> {
        self.state.note_effect();
        let text = fragment.as_str().unwrap_or(Cow::Borrowed(fragment.raw()));
        self.with_calls(|calls, out, at| calls.adopt(&text, out, at))
    }

    /// True if a call has these arguments by its own events.
    pub(crate) fn is_repetition_of_call(&mut self, text: &str) -> bool {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.is_repetition_of_call(text, out, at))
    }

    /// Argument text follows: a JSON string's content.
    pub(crate) fn append_arguments(&mut self, slot: CallSlot, json: &JsonRef<'_>) {
        if let Some(body) = json.string_body() {
            self.with_calls(|calls, out, at| calls.append_json_body(slot, body, out, at));
            if self.choice == 0 {
                self.state.note_fragment(FragmentTarget::Arguments(slot), body);
            }
        }
    }

    /// Appends argument text to a call.
    pub(crate) fn append_arguments_text(&mut self, slot: CallSlot, text: &str) {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.append(slot, text, out, at));
    }

    /// Sets the whole argument text, repeated or for the first time (`arguments.done`, `input` in a start
    /// event). A snapshot replaces the appended text; it is never appended to it.
    pub(crate) fn snapshot_arguments(&mut self, slot: CallSlot, text: &str) {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.apply_snapshot(slot, text, out, at));
    }

    /// True if only the head of `slot` has arrived.
    pub(crate) fn has_no_arguments(&mut self, slot: CallSlot) -> bool {
        self.calls().is_empty(slot)
    }

    /// The upstream reports the call as complete.
    pub(crate) fn seal_call(&mut self, slot: CallSlot) {
        self.state.note_effect();
        self.with_calls(|calls, out, at| calls.seal_explicit(slot, out, at));
    }

    /// The upstream reports the call as complete, without a byte of arguments: the dialect seals it when the
    /// model has continued.
    pub(crate) fn hold_call(&mut self, slot: CallSlot) {
        self.state.note_effect();
        self.with_calls(|calls, _, _| calls.hold(slot));
    }

    /// A whole call in one event (Gemini, Ollama): opened, filled and sealed. `arguments` is JSON text; empty = none.
    pub(crate) fn complete_call(&mut self, head: CallHead<'_>, arguments: &str) -> CallSlot {
        self.state.note_effect();
        self.with_calls(|calls, out, at| {
            let slot = calls.open(head, out, at);
            calls.append(slot, arguments, out, at);
            calls.seal_explicit(slot, out, at);
            slot
        })
    }

    /// The upstream began a second generation in this stream: every call so far is void.
    pub(crate) fn restart(&mut self, excerpt: &str) {
        self.problem(ProblemKind::Restarted, excerpt);
        let state = &mut *self.state;
        if let VisibleText::Calls(mode) = &mut state.visible {
            mode.restart(&mut state.primary_choice.calls, self.sink, state.offset);
        }
        self.with_calls(|calls, out, at| calls.void_all(out, at));
    }

    // --- the step as a whole ---

    /// Tokens; fields that are set replace earlier ones. No prompt is empty: a gateway that reports an empty
    /// one, and none from a cache, has no data, and its zeros replace nothing.
    pub(crate) fn usage(&mut self, usage: Usage) {
        let before = self.state.usage;
        let known = before.unwrap_or_default();
        let cached = usage.cached_input_tokens.max(usage.cache_written_tokens);
        let knows = usage.input_tokens != Some(0) || cached.is_some_and(|tokens| tokens > 0);
        let newest = |new: Option<u64>, known: Option<u64>| match new {
            Some(0) if !knows => known.or(new),
            new => new.or(known),
        };
        let merged = Usage {
            input_tokens: newest(usage.input_tokens, known.input_tokens),
            output_tokens: newest(usage.output_tokens, known.output_tokens),
            cached_input_tokens: newest(usage.cached_input_tokens, known.cached_input_tokens),
            cache_written_tokens: newest(usage.cache_written_tokens, known.cache_written_tokens),
            reasoning_tokens: newest(usage.reasoning_tokens, known.reasoning_tokens),
        };
        if before != Some(merged) {
            self.state.usage = Some(merged);
            self.invalidate_templates();
            (self.sink)(StepEvent::Usage(merged));
        }
    }

    /// Sets the finish reason. An empty `raw` is no reason; the last one counts.
    pub(crate) fn finish(&mut self, reason: FinishReason, raw: &str) {
        let known = &mut self.choice_state().finish;
        if !raw.is_empty() && known.as_ref().is_none_or(|known| (known.0, known.1.as_str()) != (reason, raw))
        {
            *known = Some((reason, raw.to_owned()));
            // A frame that repeats the former reason would change it back.
            self.invalidate_templates();
        }
    }

    /// True if a finish reason was given (for this choice).
    pub(crate) fn is_finished(&mut self) -> bool {
        self.choice_state().finish.is_some()
    }

    /// The protocol's end marker was seen (for Chat Completions a finish reason is one as well). Reading continues:
    /// usage and late text may follow.
    pub(crate) fn complete(&mut self) {
        if !std::mem::replace(&mut self.state.complete, true) {
            self.state.note_effect();
        }
    }

    /// The end marker after which nothing can follow: the step ends with this frame.
    pub(crate) fn complete_and_end(&mut self) {
        self.complete();
        self.state.over = true;
        self.state.note_effect();
    }

    /// The upstream reports an error; open calls become unusable.
    pub(crate) fn fail(&mut self, error: UpstreamError) {
        self.state.note_effect();
        if self.state.error.is_none() {
            self.state.error = Some(error);
        }
    }

    /// Sets text that is an error if it is the last data of the upstream: if more of the reply follows, it
    /// becomes a note.
    pub(crate) fn last_words(&mut self, words: UpstreamError) {
        self.state.last_words = Some(words);
    }

    /// Ends the stream with the last error text, if any. After a finish reason the reply is complete, in
    /// spite of such a text.
    pub(crate) fn fail_by_last_words(&mut self) {
        if let Some(words) = self.state.last_words.take()
            && !self.is_finished()
        {
            self.fail(words);
        }
    }

    /// Emits a problem.
    pub(crate) fn problem(&mut self, kind: ProblemKind, excerpt: &str) {
        let problem = StepProblem { kind, at: self.state.offset, excerpt: excerpt_of(excerpt), slot: None };
        self.emit(StepEvent::Problem(problem));
    }

    /// Sets the state that must be sent back on the next call, in the dialect's own form. The last value counts; it is
    /// emitted once, before the end.
    pub(crate) fn provider_state(&mut self, value: Value) {
        self.state.note_effect();
        self.state.provider_state = Some(value);
    }

    // --- the end, called by the decoder ---

    pub(crate) fn is_over(&self) -> bool {
        self.state.over
    }

    /// Closes every call, then emits the finish reason and the end of the step.
    pub(crate) fn close(&mut self) {
        self.choice = 0;
        let end = match self.state.error.take() {
            Some(error) => StreamEnd::Error(error),
            None if self.state.complete => StreamEnd::Complete,
            None => StreamEnd::Truncated,
        };
        let others: Vec<u32> = self.state.other_choices.keys().copied().collect();
        for index in others.into_iter().chain([0]) {
            self.choice = index;
            self.flush_surrogates();
            let cut = end != StreamEnd::Complete
                || matches!(
                    self.choice_state().finish,
                    Some((FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error, _))
                );
            let mut has_written_calls = false;
            if index == 0 {
                has_written_calls =
                    self.finish_text_calls(if cut { ReplyEnding::Cut } else { ReplyEnding::Complete }, &end);
            }
            self.with_calls(|calls, out, at| calls.close(cut, out, at));
            // The provider's state has these calls as text; sent along with the calls themselves it would
            // repeat them.
            if index == 0
                && let Some(value) = self.state.provider_state.take().filter(|_| !has_written_calls)
            {
                let dialect = self.state.dialect;
                (self.sink)(StepEvent::ProviderState(ProviderState { dialect, value }));
            }
            let has_calls = self.calls().has_calls();
            if let Some((reason, raw)) = self.choice_state().finish.take() {
                let reason = match reason {
                    FinishReason::Stop | FinishReason::ToolCalls if has_calls => FinishReason::ToolCalls,
                    FinishReason::ToolCalls => FinishReason::Stop,
                    other => other,
                };
                self.emit(StepEvent::Finish { reason, raw: Some(raw) });
            }
        }
        self.choice = 0;
        (self.sink)(StepEvent::End(end));
    }

    // --- inside ---

    fn choice_state(&mut self) -> &mut ChoiceState {
        match self.choice {
            0 => &mut self.state.primary_choice,
            index => match self.state.other_choices.get_mut(&index) {
                Some(choice) => choice,
                None => &mut self.state.primary_choice,
            },
        }
    }

    fn calls(&mut self) -> &mut CallAssembler {
        &mut self.choice_state().calls
    }

    fn with_calls<T>(&mut self, act: impl FnOnce(&mut CallAssembler, EventSink<'_>, u64) -> T) -> T {
        self.state.last_words = None;
        let at = self.state.offset;
        let sink = &mut *self.sink;
        match (self.choice, self.state.other_choices.get_mut(&self.choice)) {
            (index, Some(choice)) if index != 0 => {
                act(&mut choice.calls, &mut |event| emit_for_choice(index, event, sink), at)
            }
            // Choices beyond the limit are read into the void.
            (index, None) if index != 0 => {
                act(&mut CallAssembler::new(&self.state.limits, &self.state.profile, &[]), &mut |_| {}, at)
            }
            _ => act(&mut self.state.primary_choice.calls, sink, at),
        }
    }

    /// Anything but a fragment.
    fn emit(&mut self, event: StepEvent<'_>) {
        self.state.note_effect();
        self.send(event);
    }

    fn send(&mut self, event: StepEvent<'_>) {
        if !matches!(event, StepEvent::Problem(_)) {
            self.state.last_words = None;
        }
        match self.choice {
            0 => (self.sink)(event),
            index => emit_for_choice(index, event, self.sink),
        }
    }

    fn fragment(&mut self, target: FragmentTarget, json: &JsonRef<'_>) {
        let Some(body) = json.string_body().filter(|body| !body.is_empty()) else { return };
        match self.choice {
            0 => self.state.note_fragment(target, body),
            _ => self.state.note_effect(),
        }
        self.fragment_body(target, body);
    }

    /// Emits a fragment from its raw string body. The fast path joins here, so that both paths are one from
    /// here on.
    pub(crate) fn fragment_body(&mut self, target: FragmentTarget, body: &str) {
        let choice = self.choice_state();
        match target {
            FragmentTarget::Text => {
                let text = decode_string(body, &mut choice.text);
                self.text_str(text);
            }
            FragmentTarget::Thinking => {
                let text = decode_string(body, &mut choice.thinking);
                if !text.is_empty() {
                    self.send(StepEvent::Thinking(text));
                }
            }
            FragmentTarget::Arguments(slot) => {
                self.with_calls(|calls, out, at| calls.append_json_body(slot, body, out, at));
            }
        }
    }

    fn text_str(&mut self, text: Cow<'_, str>) {
        if text.is_empty() {
            return;
        }
        self.state.last_words = None;
        if self.choice != 0 {
            return self.send(StepEvent::Text(text));
        }
        let StepState { think, visible, primary_choice, offset, .. } = &mut *self.state;
        let (calls, sink) = (&mut primary_choice.calls, &mut *self.sink);
        match think {
            Some(splitter) => {
                splitter.push(&text, &mut |piece| send_piece(piece, visible, calls, sink, *offset))
            }
            None => visible.push(text, calls, sink, *offset),
        }
    }

    /// Handles calls in the complete text: those of text mode are read a second time, and leaked ones are
    /// reported, or made calls where the profile says so. Returns true if any call of the step is in its
    /// text.
    fn finish_text_calls(&mut self, ending: ReplyEnding, end: &StreamEnd) -> bool {
        let StepState { visible, primary_choice, profile, offered, offset, .. } = &mut *self.state;
        let (calls, sink) = (&mut primary_choice.calls, &mut *self.sink);
        let (plain_text, mut has_any) = match visible {
            VisibleText::Plain(plain_text) => (std::mem::take(plain_text), false),
            VisibleText::Calls(mode) => {
                mode.finish(ending, calls, sink, *offset);
                let has_any = mode.has_calls();
                (mode.check_against_parser(ending, calls, sink, *offset), has_any)
            }
        };
        let leaked = {
            let structured: Vec<_> = calls.names_and_arguments().collect();
            without_structured(find_leaked(&plain_text, offered), &structured)
        };
        for call in leaked {
            match profile.leaked_calls {
                LeakedCalls::Run if *end == StreamEnd::Complete => {
                    let id = call.id.as_deref().unwrap_or_default();
                    let head = CallHead { id, name: &call.name, ..CallHead::default() };
                    let slot = calls.open(head, sink, *offset);
                    calls.append(slot, &call.arguments, sink, *offset);
                    has_any = true;
                }
                _ => {
                    let kind = ProblemKind::LeakedCall { format: call.format.to_owned() };
                    let excerpt = excerpt_of(plain_text.get(call.span).unwrap_or_default());
                    sink(StepEvent::Problem(StepProblem { kind, at: *offset, excerpt, slot: None }));
                }
            }
        }
        has_any
    }

    fn flush_surrogates(&mut self) {
        let choice = self.choice_state();
        let (text, thinking, refusal) =
            (choice.text.finish(), choice.thinking.finish(), choice.refusal.finish());
        if let Some(text) = text {
            self.text_str(text.to_string().into());
        }
        let StepState { think, visible, primary_choice, offset, .. } = &mut *self.state;
        if let (0, Some(splitter)) = (self.choice, think) {
            let (calls, sink) = (&mut primary_choice.calls, &mut *self.sink);
            splitter.finish(&mut |piece| send_piece(piece, visible, calls, sink, *offset));
        }
        if let Some(text) = thinking {
            self.emit(StepEvent::Thinking(text.to_string().into()));
        }
        if let Some(text) = refusal {
            self.emit(StepEvent::Refusal(text.to_string().into()));
        }
    }
}

fn emit_for_choice(index: u32, event: StepEvent<'_>, sink: &mut dyn FnMut(StepEvent<'_>)) {
    sink(StepEvent::Choice { index, event: Box::new(event) });
}

fn send_piece(
    piece: ThinkPiece<'_>,
    visible: &mut VisibleText,
    calls: &mut CallAssembler,
    sink: EventSink<'_>,
    at: u64,
) {
    match piece {
        ThinkPiece::Text(text) => visible.push(Cow::Borrowed(text), calls, sink, at),
        ThinkPiece::Thinking(text) => sink(StepEvent::Thinking(Cow::Borrowed(text))),
    }
}

/// Excerpt of a text, at most 200 bytes.
pub(crate) fn excerpt_of(text: &str) -> String {
    let mut end = text.len().min(200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
