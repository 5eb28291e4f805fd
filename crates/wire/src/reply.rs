//! The fold of a step's events to one whole reply.

use crate::vocabulary::{
    BrokenCall, CallArguments, CallKind, CallSlot, FinishReason, HostedTool, Media, ProviderState,
    RawArguments, StepEvent, StepProblem, StreamEnd, UpstreamCallId, Usage, WireName,
};
use serde::Serialize;
use serde_json::Value;

/// One call of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCall {
    /// Slot of the call.
    pub slot: CallSlot,
    /// Sort key of the message order.
    pub position: u32,
    /// Their id, if usable.
    pub upstream_id: Option<UpstreamCallId>,
    /// The tool's name.
    pub name: WireName,
    /// JSON or free text.
    pub kind: CallKind,
    /// Fragments so far.
    pub text: String,
    /// Final arguments, or why there are none; `None` while the call is open.
    pub ending: Option<Result<CallArguments, (BrokenCall, RawArguments)>>,
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
    /// Why it stopped.
    pub finish: Option<(FinishReason, Option<String>)>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// To be echoed.
    pub provider_state: Option<ProviderState>,
    /// Findings.
    pub problems: Vec<StepProblem>,
    /// End of the stream; `None` while it runs.
    pub end: Option<StreamEnd>,
    /// Further choices by their number.
    pub choices: Vec<(u32, ModelReply)>,
}

impl ModelReply {
    /// Takes one more event.
    pub fn apply(&mut self, event: StepEvent<'_>) {
        match event {
            StepEvent::Text(text) => self.text.push_str(&text),
            StepEvent::Thinking(text) => self.thinking.push_str(&text),
            StepEvent::Refusal(text) => self.refusal.push_str(&text),
            StepEvent::Image(media) => self.images.push(media),
            StepEvent::Audio { data, transcript } => {
                self.audio.push(ReplyAudio { data: data.into_owned(), transcript: transcript.into_owned() });
            }
            StepEvent::Citation(value) => self.citations.push(value),
            StepEvent::CallOpened { slot, position, upstream_id, name, kind } => {
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
