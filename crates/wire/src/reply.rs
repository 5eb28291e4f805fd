//! The fold of a step's events to one whole reply.

use crate::decoder::{DecodeOptions, StepDecoder};
use crate::dialect::Dialect;
use crate::vocabulary::{
    BrokenCall, Call, CallArguments, CallId, CallKind, CallOutcome, CallSlot, ClosedStep, FinishReason,
    HostedTool, Media, NotStarted, ProviderState, RawArguments, StepEvent, StepProblem, StreamEnd,
    UpstreamCallId, Usage, WireName,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// One call of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCall {
    /// Slot of the call.
    pub slot: CallSlot,
    /// Sort key of the message order.
    pub position: u32,
    /// Id given by the upstream, if usable.
    pub upstream_id: Option<UpstreamCallId>,
    /// Name of the tool.
    pub name: WireName,
    /// JSON or free text.
    pub kind: CallKind,
    /// Argument text so far.
    pub text: String,
    /// Final arguments, or the reason why they are missing; `None` while the call is open.
    pub ending: Option<Result<CallArguments, (BrokenCall, RawArguments)>>,
}

impl ReplyCall {
    /// True once its arguments are final and can be read: it can run.
    pub fn is_complete(&self) -> bool {
        self.arguments().is_ok()
    }

    /// The final arguments.
    ///
    /// # Errors
    /// The text so far, of arguments that cannot be read or are not final.
    pub fn arguments(&self) -> Result<&CallArguments, &str> {
        match &self.ending {
            Some(Ok(arguments)) => Ok(arguments),
            Some(Err((_, raw))) => Err(&raw.0),
            None => Err(&self.text),
        }
    }

    /// The call under an id of the caller's, ready to be sent back with its outcome.
    pub fn to_call(&self, id: impl Into<CallId>) -> Call {
        Call {
            id: id.into(),
            upstream_id: self.upstream_id.clone(),
            name: self.name.clone(),
            kind: self.kind,
            arguments: self.arguments().cloned().map_err(|text| RawArguments(text.to_owned())),
            ran_with: None,
        }
    }
}

impl Serialize for ReplyCall {
    /// OpenAI's form: an entry of `tool_calls`. A call without an id gets its slot's.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = self.to_call(self.id());
        let (name, text) = (&call.name, call.arguments_text());
        let entry = match self.kind {
            CallKind::Function => {
                json!({"id": self.id(), "type": "function", "function": {"name": name, "arguments": text}})
            }
            CallKind::Custom => {
                json!({"id": self.id(), "type": "custom", "custom": {"name": name, "input": text}})
            }
        };
        entry.serialize(serializer)
    }
}

impl ReplyCall {
    /// Id given by the upstream, or one made from the slot.
    pub fn id(&self) -> String {
        let theirs = self.upstream_id.as_ref().map(|id| id.as_str().to_owned());
        theirs.unwrap_or_else(|| format!("call_{}", self.slot.0))
    }
}

impl Serialize for ModelReply {
    /// OpenAI's form: the assistant's message, with the calls that are complete.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        message.insert("content".into(), text(&self.text));
        message.insert("refusal".into(), text(&self.refusal));
        if !self.thinking.is_empty() {
            message.insert("reasoning_content".into(), json!(self.thinking));
        }
        let calls: Vec<_> = self.calls.iter().filter(|call| call.is_complete()).collect();
        if !calls.is_empty() {
            let calls = serde_json::to_value(calls).map_err(serde::ser::Error::custom)?;
            message.insert("tool_calls".into(), calls);
        }
        message.serialize(serializer)
    }
}

/// One piece of sound as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplyAudio {
    /// Base64; pieces are decoded one by one.
    pub data: String,
    /// Transcript of the audio.
    pub transcript: String,
}

/// A whole reply.
///
/// ```
/// use throughline_wire::{ModelReply, StepEvent};
///
/// let mut reply = ModelReply::default();
/// reply.apply(StepEvent::Thinking("Greet.".into()));
/// reply.apply(StepEvent::Text("Hel".into()));
/// reply.apply(StepEvent::Text("lo".into()));
/// assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("Greet.", "Hello"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// Visible text, deltas joined.
    pub text: String,
    /// Reasoning, joined.
    pub thinking: String,
    /// Refusal, joined.
    pub refusal: String,
    /// Calls in the order of the message.
    pub calls: Vec<ReplyCall>,
    /// Sound, in order.
    pub audio: Vec<ReplyAudio>,
    /// Pictures.
    pub images: Vec<Media>,
    /// Sources.
    pub citations: Vec<Value>,
    /// Tools that the provider ran.
    pub hosted: Vec<HostedTool>,
    /// Finish reason, with the upstream's own word.
    pub finish: Option<(FinishReason, Option<String>)>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Provider state to be sent back.
    pub provider_state: Option<ProviderState>,
    /// Problems found while decoding.
    pub problems: Vec<StepProblem>,
    /// End of the stream; `None` while it runs.
    pub end: Option<StreamEnd>,
    /// Further choices by their number.
    pub choices: Vec<(u32, ModelReply)>,
}

impl ModelReply {
    /// Decodes a recorded reply: all its bytes together. For a stream use [`StepDecoder`].
    ///
    /// ```
    /// use throughline_wire::{Dialect, DecodeOptions, ModelReply};
    ///
    /// let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// let reply = ModelReply::decode(body, Dialect::OpenaiChat, DecodeOptions::default());
    /// assert_eq!(reply.text, "Hi");
    /// ```
    pub fn decode(bytes: &[u8], dialect: Dialect, options: DecodeOptions) -> Self {
        let (mut decoder, mut reply) = (StepDecoder::new(dialect, options), Self::default());
        decoder.push(bytes, &mut |event| reply.apply(event));
        decoder.finish(&mut |event| reply.apply(event));
        reply
    }

    /// True if it has text, media, sources or calls; not if only facts about it came, such as its end.
    pub fn has_content(&self) -> bool {
        let texts = [&self.text, &self.thinking, &self.refusal];
        let parts = [self.calls.len(), self.hosted.len(), self.choices.len(), self.citations.len()];
        let media = self.audio.len() + self.images.len();
        texts.iter().any(|text| !text.is_empty()) || parts.iter().sum::<usize>() + media > 0
    }

    /// The reply as a step of the history for the next request to `model`: each call gets the outcome that `run` returns,
    /// so that none can be left without one. A call that cannot be read gets its reason, and `run` does not see it.
    ///
    /// ```
    /// use throughline_wire::{CallOutcome, DeltaAccumulator, Message, ToolOutput};
    ///
    /// let mut deltas = DeltaAccumulator::default();
    /// deltas.push(&serde_json::json!({"index": 0, "id": "c1", "function": {"name": "ping", "arguments": "{}"}}));
    /// let step = deltas.seal().into_step("gpt-5", |_call| CallOutcome::Done(ToolOutput::text("pong")));
    /// assert_eq!(step.calls.len(), 1);
    /// let history = vec![Message::Step(step)];
    /// # let _ = history;
    /// ```
    pub fn into_step(
        self,
        model: impl Into<String>,
        mut run: impl FnMut(&Call) -> CallOutcome,
    ) -> ClosedStep {
        let calls = self.calls.iter().map(|reply_call| {
            let call = reply_call.to_call(reply_call.id());
            let outcome = match (&call.arguments, &reply_call.ending) {
                (Ok(_), _) => run(&call),
                (Err(_), Some(Err((broken, _)))) => {
                    let message = format!("the arguments cannot be read ({broken:?})");
                    CallOutcome::NotStarted(NotStarted::InvalidArguments { message })
                }
                (Err(_), _) => CallOutcome::NotStarted(NotStarted::Interrupted),
            };
            (call, outcome)
        });
        ClosedStep {
            calls: calls.collect(),
            thinking: self.thinking,
            text: self.text,
            provider_state: self.provider_state,
            model: model.into(),
        }
    }

    /// Takes one more event.
    pub fn apply(&mut self, event: StepEvent<'_>) {
        match event {
            StepEvent::Text(text) => self.text.push_str(&text),
            StepEvent::Thinking(text) => self.thinking.push_str(&text),
            StepEvent::Refusal(text) => self.refusal.push_str(&text),
            StepEvent::Image(media) => self.images.push(media),
            StepEvent::Audio { data, transcript, .. } => {
                self.audio.push(ReplyAudio { data: data.into_owned(), transcript: transcript.into_owned() });
            }
            StepEvent::Citation(value) => self.citations.push(value),
            StepEvent::CallOpened { slot, position, upstream_id, name, kind, .. } => {
                let call =
                    ReplyCall { slot, position, upstream_id, name, kind, text: String::new(), ending: None };
                let at = self.calls.partition_point(|other| (other.position, other.slot) <= (position, slot));
                self.calls.insert(at, call);
            }
            StepEvent::CallArguments { slot, delta } => {
                if let Some(call) = self.call(slot) {
                    call.text.push_str(&delta);
                }
            }
            StepEvent::CallSealed { slot, arguments, .. } => {
                if let Some(call) = self.call(slot) {
                    call.ending = Some(Ok(arguments));
                }
            }
            StepEvent::CallReopened { slot } => {
                if let Some(call) = self.call(slot) {
                    call.text.clear();
                    call.ending = None;
                }
            }
            StepEvent::CallBroken { slot, reason: why, raw } => {
                if let Some(call) = self.call(slot) {
                    call.ending = Some(Err((why, raw)));
                }
            }
            StepEvent::Hosted(hosted) => self.hosted.push(hosted),
            StepEvent::ProviderState(state) => self.provider_state = Some(state),
            StepEvent::Usage(usage) => self.usage = Some(usage),
            StepEvent::Finish { reason, raw } => self.finish = Some((reason, raw)),
            StepEvent::End(end) => self.end = Some(end),
            StepEvent::Problem(problem) => self.problems.push(problem),
            StepEvent::Choice { index, event } => {
                let at = match self.choices.binary_search_by_key(&index, |(index, _)| *index) {
                    Ok(at) => at,
                    Err(at) => {
                        self.choices.insert(at, (index, ModelReply::default()));
                        at
                    }
                };
                self.choices[at].1.apply(*event);
            }
        }
    }

    fn call(&mut self, slot: CallSlot) -> Option<&mut ReplyCall> {
        // Calls end near the back: fragments mostly belong to the last one opened.
        self.calls.iter_mut().rev().find(|call| call.slot == slot)
    }
}
