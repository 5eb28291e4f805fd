//! What a dialect talks to: it says what it read, this turns it into [`StepEvent`]s.

mod text_mode;

use crate::assemble::{Assembly, CallDelta, CallHead};
use crate::decoder::{DecodeOptions, Think};
use crate::dialect::Dialect;
use crate::json::{Json, Surrogates, decode_string};
use crate::limits::Limits;
use crate::profile::{LeakedCalls, Profile};
use crate::text::{CallFormat, Piece, ThinkSplitter, find_leaked, not_structured};
use crate::vocabulary::{
    End, FinishReason, Hosted, Media, Problem, ProblemKind, ProviderState, Slot, StepEvent, UpstreamError,
    Usage,
};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use text_mode::{Ending, TextMode};

/// Where events go.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(StepEvent<'_>);

/// State of one step that outlives single frames.
pub(crate) struct StepState {
    dialect: Dialect,
    limits: Limits,
    profile: Profile,
    offered: Vec<String>,
    pub(crate) first: Choice,
    others: BTreeMap<u32, Choice>,
    usage: Option<Usage>,
    state: Option<Value>,
    error: Option<UpstreamError>,
    complete: bool,
    over: bool,
    effect: Effect,
    /// Changes when fragments that look like earlier ones mean something else.
    epoch: u64,
    think: Option<ThinkSplitter>,
    visible: Visible,
    /// Offset of the frame being decoded, for problems.
    pub(crate) at: u64,
}

/// The visible text on its way to the caller.
enum Visible {
    /// Passed on as it is; kept to look for leaked calls in at the end.
    Plain(String),
    /// Calls are written in it.
    Calls(Box<TextMode>),
}

impl Visible {
    /// Passes text of the first choice on.
    fn say(&mut self, text: Cow<'_, str>, calls: &mut Assembly, sink: Sink<'_>, at: u64) {
        match self {
            Visible::Plain(said) => {
                said.push_str(&text);
                sink(StepEvent::Text(text));
            }
            Visible::Calls(mode) => mode.push(&text, calls, sink, at),
        }
    }
}

/// What the frame being decoded has done so far, for the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// One fragment, whose string body stands at this address.
    One { target: Target, body_at: usize, body_len: usize },
    /// Anything else.
    Other,
}

/// Where a fragment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Text,
    Thinking,
    Arguments(Slot),
}

/// One choice of a reply. All but the first are only reported.
pub(crate) struct Choice {
    pub(crate) calls: Assembly,
    pub(crate) text: Surrogates,
    pub(crate) thinking: Surrogates,
    refusal: Surrogates,
    finish: Option<(FinishReason, String)>,
}

impl Choice {
    fn new(limits: &Limits, profile: &Profile, offered: &[String]) -> Self {
        Self {
            calls: Assembly::new(limits, profile, offered),
            text: Surrogates::default(),
            thinking: Surrogates::default(),
            refusal: Surrogates::default(),
            finish: None,
        }
    }
}

impl StepState {
    pub(crate) fn new(dialect: Dialect, options: DecodeOptions) -> Self {
        let DecodeOptions { limits, profile, think, offered, calls } = options;
        let first = Choice::new(&limits, &profile, &offered);
        Self {
            dialect,
            limits,
            profile,
            offered,
            first,
            others: BTreeMap::new(),
            usage: None,
            state: None,
            error: None,
            complete: false,
            over: false,
            effect: Effect::None,
            epoch: 0,
            think: match think {
                Think::Verbatim => None,
                Think::Split => Some(ThinkSplitter::new()),
            },
            visible: match calls {
                CallFormat::Native => Visible::Plain(String::new()),
                CallFormat::Text(format) => Visible::Calls(Box::new(TextMode::new(format))),
            },
            at: 0,
        }
    }

    /// A new frame: its effects are counted from here.
    pub(crate) fn begin_frame(&mut self) {
        self.effect = Effect::None;
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    /// See the field.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn event_bytes_max(&self) -> usize {
        self.limits.event_bytes_max
    }

    fn touch(&mut self) {
        self.effect = Effect::Other;
    }

    fn touch_fragment(&mut self, target: Target, body: &str) {
        self.effect = match self.effect {
            Effect::None => Effect::One { target, body_at: body.as_ptr() as usize, body_len: body.len() },
            _ => Effect::Other,
        };
    }
}

/// A dialect's way to say what it read. All methods may be called in any order and any number of times; what
/// contradicts what came before is reported, never merged.
pub(crate) struct Step<'s> {
    state: &'s mut StepState,
    choice: u32,
    sink: Sink<'s>,
}

impl<'s> Step<'s> {
    pub(crate) fn new(state: &'s mut StepState, sink: Sink<'s>) -> Self {
        Self { state, choice: 0, sink }
    }

    // --- the reply's parts ---

    /// What follows belongs to this choice (`n > 1`). Every frame begins with choice 0.
    pub(crate) fn choice(&mut self, index: u32) {
        self.choice = index;
        if index != 0 {
            self.state.touch();
            let state = &mut *self.state;
            let choices_max = state.limits.calls_per_step_max;
            if state.others.len() < choices_max || state.others.contains_key(&index) {
                state
                    .others
                    .entry(index)
                    .or_insert_with(|| Choice::new(&state.limits, &state.profile, &state.offered));
            }
        }
    }

    /// Visible text: a JSON string (nothing otherwise).
    pub(crate) fn text(&mut self, json: &Json<'_>) {
        self.fragment(Target::Text, json);
    }

    /// Reasoning: a JSON string.
    pub(crate) fn thinking(&mut self, json: &Json<'_>) {
        self.fragment(Target::Thinking, json);
    }

    /// The model thinks and does not say what (redacted or not summarised).
    pub(crate) fn thinking_unseen(&mut self) {
        self.emit(StepEvent::Thinking(Cow::Borrowed("")));
    }

    /// A refusal: a JSON string.
    pub(crate) fn refusal(&mut self, json: &Json<'_>) {
        let text = json.as_text(&mut self.choice_state().refusal);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.emit(StepEvent::Refusal(text));
        }
    }

    /// A picture made by the model.
    pub(crate) fn image(&mut self, media: Media) {
        self.emit(StepEvent::Image(media));
    }

    /// A piece of sound: base64 and what is being said.
    pub(crate) fn audio(&mut self, data: &str, transcript: &str) {
        self.emit(StepEvent::Audio { data: Cow::Borrowed(data), transcript: Cow::Borrowed(transcript) });
    }

    /// A source.
    pub(crate) fn citation(&mut self, json: &Json<'_>) {
        self.emit(StepEvent::Citation(json.to_value()));
    }

    /// A source that was kept until now.
    pub(crate) fn citation_value(&mut self, value: Value) {
        self.emit(StepEvent::Citation(value));
    }

    /// The decoder has kept something of this frame for itself: frames like it need the full decode.
    pub(crate) fn notice_change(&mut self) {
        self.state.touch();
    }

    /// From here on a frame that looks like an earlier one may belong elsewhere (an item number that is used again).
    pub(crate) fn forget_frames(&mut self) {
        self.state.epoch += 1;
        self.state.touch();
    }

    /// A tool that the provider ran.
    pub(crate) fn hosted(&mut self, hosted: Hosted) {
        self.emit(StepEvent::Hosted(hosted));
    }

    // --- calls whose identity is a guess from index, id, name and shape (Chat Completions) ---

    /// One entry of `tool_calls`.
    pub(crate) fn call_delta(&mut self, delta: CallDelta<'_>) {
        let is_bare = delta.id.is_empty() && delta.name.is_empty() && self.choice == 0;
        let body = delta.arguments.and_then(Json::string_body).filter(|_| is_bare);
        let before = self.calls().generation();
        let slot = self.with_calls(|calls, out, at| calls.delta(delta, out, at));
        match (slot, body) {
            (Some(slot), Some(body)) if self.calls().generation() == before => {
                self.state.touch_fragment(Target::Arguments(slot), body);
            }
            _ => self.state.touch(),
        }
    }

    // --- calls whose identity is given by a block or item number ---

    /// A block opens: always a new call, whatever `key` named before. `key` is the dialect's block or item number.
    pub(crate) fn open_call(&mut self, key: u64, head: CallHead<'_>) -> Slot {
        self.state.touch();
        self.with_calls(|calls, out, at| calls.open_block(key, head, out, at))
    }

    /// The call that `key` names now.
    pub(crate) fn call_of(&mut self, key: u64) -> Option<Slot> {
        self.calls().block(key)
    }

    /// Argument text follows: a JSON string's content.
    pub(crate) fn append_arguments(&mut self, slot: Slot, json: &Json<'_>) {
        if let Some(body) = json.string_body() {
            self.with_calls(|calls, out, at| calls.append_body(slot, body, out, at));
            if self.choice == 0 {
                self.state.touch_fragment(Target::Arguments(slot), body);
            }
        }
    }

    /// Argument text follows.
    pub(crate) fn append_arguments_text(&mut self, slot: Slot, text: &str) {
        self.state.touch();
        self.with_calls(|calls, out, at| calls.append(slot, text, out, at));
    }

    /// The whole argument text, once more or for the first time (`arguments.done`, `input` in a start event). A
    /// snapshot wins over what was appended; it is never appended to it.
    pub(crate) fn restate_arguments(&mut self, slot: Slot, text: &str) {
        self.state.touch();
        self.with_calls(|calls, out, at| calls.restate(slot, text, out, at));
    }

    /// Nothing of `slot` has arrived yet but its head.
    pub(crate) fn has_no_arguments(&mut self, slot: Slot) -> bool {
        self.calls().is_empty(slot)
    }

    /// The upstream says that the call is complete.
    pub(crate) fn seal_call(&mut self, slot: Slot) {
        self.state.touch();
        self.with_calls(|calls, out, at| calls.seal_explicit(slot, out, at));
    }

    /// A whole call in one event (Gemini, Ollama): opened, filled and sealed. `arguments` is JSON text; empty = none.
    pub(crate) fn whole_call(&mut self, head: CallHead<'_>, arguments: &str) -> Slot {
        self.state.touch();
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
        if let Visible::Calls(mode) = &mut state.visible {
            mode.begin_again(&mut state.first.calls, self.sink, state.at);
        }
        self.with_calls(|calls, out, at| calls.void_all(out, at));
    }

    // --- the step as a whole ---

    /// Tokens; fields that are set replace earlier ones.
    pub(crate) fn usage(&mut self, usage: Usage) {
        let before = self.state.usage;
        let known = before.unwrap_or_default();
        let merged = Usage {
            input_tokens: usage.input_tokens.or(known.input_tokens),
            output_tokens: usage.output_tokens.or(known.output_tokens),
            cached_input_tokens: usage.cached_input_tokens.or(known.cached_input_tokens),
            cache_written_tokens: usage.cache_written_tokens.or(known.cache_written_tokens),
            reasoning_tokens: usage.reasoning_tokens.or(known.reasoning_tokens),
        };
        if before != Some(merged) {
            self.state.usage = Some(merged);
            self.forget_frames();
            (self.sink)(StepEvent::Usage(merged));
        }
    }

    /// Why the model stopped. Empty `raw` is no reason; the last one counts.
    pub(crate) fn finish(&mut self, reason: FinishReason, raw: &str) {
        let known = &mut self.choice_state().finish;
        if !raw.is_empty() && known.as_ref().is_none_or(|known| (known.0, known.1.as_str()) != (reason, raw))
        {
            *known = Some((reason, raw.to_owned()));
            // A frame that says the former reason again would change it back.
            self.forget_frames();
        }
    }

    /// Was a finish reason given (for this choice)?
    pub(crate) fn is_finished(&mut self) -> bool {
        self.choice_state().finish.is_some()
    }

    /// The protocol's end marker was seen (for Chat Completions a finish reason is one as well). Reading goes on:
    /// usage and late text may follow.
    pub(crate) fn complete(&mut self) {
        if !std::mem::replace(&mut self.state.complete, true) {
            self.state.touch();
        }
    }

    /// The end marker after which nothing can follow: the step ends with this frame.
    pub(crate) fn complete_and_over(&mut self) {
        self.complete();
        self.state.over = true;
        self.state.touch();
    }

    /// The upstream reports an error; open calls become unusable.
    pub(crate) fn fail(&mut self, error: UpstreamError) {
        self.state.touch();
        if self.state.error.is_none() {
            self.state.error = Some(error);
        }
    }

    /// A finding.
    pub(crate) fn problem(&mut self, kind: ProblemKind, excerpt: &str) {
        let problem = Problem { kind, at: self.state.at, excerpt: excerpt_of(excerpt), slot: None };
        self.emit(StepEvent::Problem(problem));
    }

    /// What must be sent back on the next call, in the dialect's own form. The last value counts; it is emitted
    /// once, before the end.
    pub(crate) fn echo(&mut self, value: Value) {
        self.state.touch();
        self.state.state = Some(value);
    }

    // --- the end, called by the decoder ---

    pub(crate) fn is_over(&self) -> bool {
        self.state.over
    }

    /// Closes every call, then says why and how the step ended.
    pub(crate) fn close(&mut self) {
        self.choice = 0;
        let end = match self.state.error.take() {
            Some(error) => End::Error(error),
            None if self.state.complete => End::Complete,
            None => End::Truncated,
        };
        let others: Vec<u32> = self.state.others.keys().copied().collect();
        for index in others.into_iter().chain([0]) {
            self.choice = index;
            self.flush_surrogates();
            let cut = end != End::Complete
                || matches!(
                    self.choice_state().finish,
                    Some((FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error, _))
                );
            let mut has_written_calls = false;
            if index == 0 {
                has_written_calls = self.written_calls(if cut { Ending::Cut } else { Ending::Whole }, &end);
            }
            self.with_calls(|calls, out, at| calls.close(cut, out, at));
            // What the provider has of this text are its calls as text; beside the calls themselves it would say them
            // twice.
            if index == 0
                && let Some(value) = self.state.state.take().filter(|_| !has_written_calls)
            {
                let dialect = self.state.dialect;
                (self.sink)(StepEvent::Opaque(ProviderState { dialect, value }));
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

    fn choice_state(&mut self) -> &mut Choice {
        match self.choice {
            0 => &mut self.state.first,
            index => match self.state.others.get_mut(&index) {
                Some(choice) => choice,
                None => &mut self.state.first,
            },
        }
    }

    fn calls(&mut self) -> &mut Assembly {
        &mut self.choice_state().calls
    }

    fn with_calls<T>(&mut self, act: impl FnOnce(&mut Assembly, Sink<'_>, u64) -> T) -> T {
        let at = self.state.at;
        let sink = &mut *self.sink;
        match (self.choice, self.state.others.get_mut(&self.choice)) {
            (index, Some(choice)) if index != 0 => {
                act(&mut choice.calls, &mut |event| wrap(index, event, sink), at)
            }
            // Choices beyond the limit are read into the void.
            (index, None) if index != 0 => {
                act(&mut Assembly::new(&self.state.limits, &self.state.profile, &[]), &mut |_| {}, at)
            }
            _ => act(&mut self.state.first.calls, sink, at),
        }
    }

    /// Anything but a fragment.
    fn emit(&mut self, event: StepEvent<'_>) {
        self.state.touch();
        self.send(event);
    }

    fn send(&mut self, event: StepEvent<'_>) {
        match self.choice {
            0 => (self.sink)(event),
            index => wrap(index, event, self.sink),
        }
    }

    fn fragment(&mut self, target: Target, json: &Json<'_>) {
        let Some(body) = json.string_body().filter(|body| !body.is_empty()) else { return };
        match self.choice {
            0 => self.state.touch_fragment(target, body),
            _ => self.state.touch(),
        }
        self.fragment_body(target, body);
    }

    /// A fragment as it stands between its quotes. The fast path comes in here, so that both ways are one from here on.
    pub(crate) fn fragment_body(&mut self, target: Target, body: &str) {
        let choice = self.choice_state();
        match target {
            Target::Text => {
                let text = decode_string(body, &mut choice.text);
                self.text_str(text);
            }
            Target::Thinking => {
                let text = decode_string(body, &mut choice.thinking);
                if !text.is_empty() {
                    self.send(StepEvent::Thinking(text));
                }
            }
            Target::Arguments(slot) => {
                self.with_calls(|calls, out, at| calls.append_body(slot, body, out, at));
            }
        }
    }

    fn text_str(&mut self, text: Cow<'_, str>) {
        if text.is_empty() {
            return;
        }
        if self.choice != 0 {
            return self.send(StepEvent::Text(text));
        }
        let StepState { think, visible, first, at, .. } = &mut *self.state;
        let (calls, sink) = (&mut first.calls, &mut *self.sink);
        match think {
            Some(splitter) => splitter.push(&text, &mut |piece| send_piece(piece, visible, calls, sink, *at)),
            None => visible.say(text, calls, sink, *at),
        }
    }

    /// Calls in the text, when it is whole: those of text mode are read a second time, and those that the server leaked
    /// are named, or made calls where the profile says so. Says whether any call of the step stands in its text.
    /// // R: W8, X3
    fn written_calls(&mut self, ending: Ending, end: &End) -> bool {
        let StepState { visible, first, profile, offered, at, .. } = &mut *self.state;
        let (calls, sink) = (&mut first.calls, &mut *self.sink);
        let (said, mut has_any) = match visible {
            Visible::Plain(said) => (std::mem::take(said), false),
            Visible::Calls(mode) => {
                mode.finish(ending, calls, sink, *at);
                let has_any = mode.has_calls();
                (mode.judge(ending, calls, sink, *at), has_any)
            }
        };
        let leaked = {
            let structured: Vec<_> = calls.structured().collect();
            not_structured(find_leaked(&said, offered), &structured)
        };
        for call in leaked {
            match profile.leaked_calls {
                LeakedCalls::Run if *end == End::Complete => {
                    let id = call.id.as_deref().unwrap_or_default();
                    let head = CallHead { id, name: &call.name, ..CallHead::default() };
                    let slot = calls.open(head, sink, *at);
                    calls.append(slot, &call.arguments, sink, *at);
                    has_any = true;
                }
                _ => {
                    let kind = ProblemKind::LeakedCall { format: call.format.to_owned() };
                    let excerpt = excerpt_of(said.get(call.span).unwrap_or_default());
                    sink(StepEvent::Problem(Problem { kind, at: *at, excerpt, slot: None }));
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
        let StepState { think, visible, first, at, .. } = &mut *self.state;
        if let (0, Some(splitter)) = (self.choice, think) {
            let (calls, sink) = (&mut first.calls, &mut *self.sink);
            splitter.finish(&mut |piece| send_piece(piece, visible, calls, sink, *at));
        }
        if let Some(text) = thinking {
            self.emit(StepEvent::Thinking(text.to_string().into()));
        }
        if let Some(text) = refusal {
            self.emit(StepEvent::Refusal(text.to_string().into()));
        }
    }
}

fn wrap(index: u32, event: StepEvent<'_>, sink: &mut dyn FnMut(StepEvent<'_>)) {
    sink(StepEvent::Choice { index, event: Box::new(event) });
}

fn send_piece(piece: Piece<'_>, visible: &mut Visible, calls: &mut Assembly, sink: Sink<'_>, at: u64) {
    match piece {
        Piece::Text(text) => visible.say(Cow::Borrowed(text), calls, sink, at),
        Piece::Thinking(text) => sink(StepEvent::Thinking(Cow::Borrowed(text))),
    }
}

/// At most 200 bytes of what was found.
pub(crate) fn excerpt_of(text: &str) -> String {
    let mut end = text.len().min(200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// An error object in any of the shapes of `surfaces.md` §9.4: `{error: {message, type, code}}`, `{error: "text"}`,
/// `{detail}`, `{object: "error", message}`, `{type: "error", ...}`, `[{error: ...}]`.
pub(crate) fn error_of(json: &Json<'_>) -> Option<UpstreamError> {
    let text_of = |json: &Json<'_>, key: &str| json.scalar(key).map(Cow::into_owned);
    if let Some(first) = json.items().first() {
        return error_of(first);
    }
    if let Some(error) = json.get("error") {
        if let Some(message) = error.as_str() {
            let message = if message.is_empty() { json.raw().to_owned() } else { message.into_owned() };
            return Some(UpstreamError { message, kind: text_of(json, "type"), code: text_of(json, "code") });
        }
        if error.is_object() && !error.members().is_empty() {
            return Some(UpstreamError {
                message: text_of(error, "message").unwrap_or_else(|| excerpt_of(error.raw())),
                kind: text_of(error, "type").or_else(|| text_of(error, "status")),
                code: text_of(error, "code"),
            });
        }
        return None;
    }
    let says_error = json.get("object").and_then(Json::as_str).as_deref() == Some("error")
        || json.get("type").and_then(Json::as_str).as_deref() == Some("error");
    if let Some(message) = json.nonempty("message").filter(|_| says_error) {
        return Some(UpstreamError {
            message: message.into_owned(),
            kind: text_of(json, "type"),
            code: text_of(json, "code"),
        });
    }
    None
}
