//! The waist of the hourglass: what every dialect, mode, replay and simulation becomes.

use super::{
    CallArguments, CallKind, CallSlot, Media, ProviderState, RawArguments, UpstreamCallId, WireName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// One event of a model step. Text is borrowed from the decoder's input where it can be.
///
/// Order within a step: for each call `CallOpened`, any `CallArguments`, then exactly one of `CallSealed` and
/// `CallBroken`; a `CallReopened` (a contradiction after a seal) starts that call's argument text afresh and is
/// followed by a second ending. `Finish` comes at most once, `StreamEnd` exactly once and last.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepEvent<'a> {
    /// Visible text.
    Text(Cow<'a, str>),
    /// Reasoning. Empty text = the model is thinking.
    Thinking(Cow<'a, str>),
    /// The model declines; separate from text.
    Refusal(Cow<'a, str>),
    /// A picture made by the model.
    Image(Media),
    /// A piece of sound.
    Audio {
        /// Base64.
        data: Cow<'a, str>,
        /// New part of the transcript.
        transcript: Cow<'a, str>,
        /// Format, where the provider names one: `pcm16`, `mp3`, …
        format: Option<Cow<'a, str>>,
        /// In Hz, where the provider names it.
        sample_rate: Option<u32>,
    },
    /// A source, in the dialect's own form.
    Citation(Value),
    /// A call has its name.
    CallOpened {
        /// Slot of the call.
        slot: CallSlot,
        /// Position in the message: calls are recorded by (`position`, `slot`), which is the order of the
        /// upstream's numbers if they are valid.
        position: u32,
        /// Id given by the upstream, if usable.
        upstream_id: Option<UpstreamCallId>,
        /// Name of the tool.
        name: WireName,
        /// JSON or free text.
        kind: CallKind,
        /// Argument text that the upstream sent together with the name: all of it in dialects with whole
        /// calls. For viewers that show the call; the same text follows as `CallArguments`.
        arguments: Option<Cow<'a, str>>,
    },
    /// A fragment of argument text, to be appended.
    CallArguments {
        /// Slot of the call.
        slot: CallSlot,
        /// Argument text to append.
        delta: Cow<'a, str>,
    },
    /// A call's arguments are final as far as `seal` is evidence.
    CallSealed {
        /// Slot of the call.
        slot: CallSlot,
        /// Strength of the evidence that the call is complete.
        seal: SealEvidence,
        /// Arguments to run with.
        arguments: CallArguments,
    },
    /// Bytes arrived that contradict an earlier seal. The argument text so far is void; the call will end again.
    CallReopened {
        /// Slot of the call.
        slot: CallSlot,
    },
    /// A call that must not run.
    CallBroken {
        /// Slot of the call.
        slot: CallSlot,
        /// Reason why the call must not run.
        reason: BrokenCall,
        /// The text as received.
        raw: RawArguments,
    },
    /// A tool that the provider ran itself.
    Hosted(HostedTool),
    /// To be echoed on the next call, never shown.
    ProviderState(ProviderState),
    /// Tokens, as last reported.
    Usage(Usage),
    /// The model stopped.
    Finish {
        /// Normalized: a normal stop is `ToolCalls` exactly if there are calls.
        reason: FinishReason,
        /// As on the wire.
        raw: Option<String>,
    },
    /// The step is over.
    End(StreamEnd),
    /// A problem, with its handling.
    Problem(StepProblem),
    /// A choice other than the first (`n > 1`): decoded and reported, never run.
    Choice {
        /// Number of the choice on the wire.
        index: u32,
        /// Event of the choice.
        event: Box<StepEvent<'a>>,
    },
}

impl StepEvent<'_> {
    /// The same event with every text owned.
    pub fn into_owned(self) -> StepEvent<'static> {
        use StepEvent as E;
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            E::Text(text) => E::Text(own(text)),
            E::Thinking(text) => E::Thinking(own(text)),
            E::Refusal(text) => E::Refusal(own(text)),
            E::Image(media) => E::Image(media),
            E::Audio { data, transcript, format, sample_rate } => E::Audio {
                data: own(data),
                transcript: own(transcript),
                format: format.map(own),
                sample_rate,
            },
            E::Citation(value) => E::Citation(value),
            E::CallOpened { slot, position, upstream_id, name, kind, arguments } => {
                E::CallOpened { slot, position, upstream_id, name, kind, arguments: arguments.map(own) }
            }
            E::CallArguments { slot, delta } => E::CallArguments { slot, delta: own(delta) },
            E::CallSealed { slot, seal, arguments } => E::CallSealed { slot, seal, arguments },
            E::CallReopened { slot } => E::CallReopened { slot },
            E::CallBroken { slot, reason: why, raw } => E::CallBroken { slot, reason: why, raw },
            E::Hosted(hosted) => E::Hosted(hosted),
            E::ProviderState(state) => E::ProviderState(state),
            E::Usage(usage) => E::Usage(usage),
            E::Finish { reason, raw } => E::Finish { reason, raw },
            E::End(end) => E::End(end),
            E::Problem(problem) => E::Problem(problem),
            E::Choice { index, event } => E::Choice { index, event: Box::new((*event).into_owned()) },
        }
    }
}

/// Evidence that a call's arguments are final, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealEvidence {
    /// The top-level object has closed. Never for `{}`; the schema check is the caller's.
    Balanced,
    /// The next call has opened, on an upstream known to be sequential.
    Successor,
    /// A finish reason, or the end of a stream that had its terminal event.
    Terminal,
    /// Explicit signal of the upstream: block stop, `arguments.done`, a whole call in one event of a dialect
    /// without fragments, the END marker of a text protocol.
    Explicit,
}

/// Reason why a call must not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BrokenCall {
    /// The stream or the token budget ended inside it.
    Cut,
    /// The text is not one JSON document.
    InvalidJson {
        /// Description of the error, with its byte offset.
        message: String,
    },
    /// Two readings are possible and none is guessed.
    Ambiguous {
        /// Rules that disagree.
        message: String,
    },
    /// The arguments exceed a limit.
    TooLarge {
        /// Name of the limit.
        limit: String,
    },
    /// Arguments arrived, a name never did. They may be what another call of the step lacks, so a caller runs nothing with
    /// effects of such a step.
    Nameless,
    /// A block of a text protocol that breaks its grammar (text mode): nothing in it is guessed.
    Refused {
        /// The reason and the correction, for the user and the model.
        message: String,
    },
}

/// Reason why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// A normal stop without calls.
    Stop,
    /// Cut by the token budget.
    Length,
    /// A normal stop with calls.
    ToolCalls,
    /// Withheld by a filter.
    ContentFilter,
    /// The provider paused and wants the same again (Anthropic `pause_turn`).
    Pause,
    /// The upstream reported a failure.
    Error,
    /// Any other reason.
    Other,
}

/// End of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEnd {
    /// The protocol's end marker was seen.
    Complete,
    /// The bytes just stopped.
    Truncated,
    /// An error was reported in the stream, or came instead of one.
    Error(UpstreamError),
}

impl StreamEnd {
    /// Name in serialized form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::Error(_) => "error",
        }
    }

    /// The error that the upstream reported.
    pub fn error(&self) -> Option<&UpstreamError> {
        match self {
            Self::Error(error) => Some(error),
            Self::Complete | Self::Truncated => None,
        }
    }
}

/// An error as the upstream put it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamError {
    /// Message of the upstream.
    pub message: String,
    /// `type` on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `code` on the wire, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Tokens of one step, as last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, as the upstream counts them: [`Usage::prompt_tokens`] is the whole prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Generated tokens, reasoning included where the upstream does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Prompt tokens served from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Prompt tokens that were written to a cache, where that has a separate price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written_tokens: Option<u64>,
    /// Generated tokens that were reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Tokens of the whole prompt. Upstreams that report tokens written to a cache (Anthropic, Bedrock) count
    /// the rest of the prompt alone; for others a cache is part of `input_tokens`.
    pub fn prompt_tokens(&self) -> Option<u64> {
        let input = self.input_tokens?;
        let Some(written) = self.cache_written_tokens else { return Some(input) };
        Some(input.saturating_add(written).saturating_add(self.cached_input_tokens.unwrap_or_default()))
    }
}

/// A tool that the provider ran itself (web search, code interpreter): shown, never run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostedTool {
    /// Id given by the upstream.
    pub id: Option<String>,
    /// Name given by the upstream.
    pub name: String,
    /// Input of the tool, if known.
    pub input: Option<Value>,
    /// Output of the tool, if known.
    pub output: Option<Value>,
}

/// A finding of the decoder. Decoders never fail on input: they report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProblem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Offset in the decoded body, in bytes.
    pub at: u64,
    /// The bytes concerned, at most 200, lossy.
    pub excerpt: String,
    /// The call concerned.
    pub slot: Option<CallSlot>,
}

/// Kinds of findings; each is a row of `docs/conformance.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// An event whose payload is not JSON; skipped.
    InvalidEvent,
    /// Bytes that are not UTF-8; replaced by U+FFFD.
    InvalidUtf8,
    /// A binary frame whose checksum is wrong; skipped, and everything after it.
    BadChecksum,
    /// A limit was reached; `limit` is its name.
    LimitReached {
        /// Name of the limit.
        limit: String,
    },
    /// Arguments were changed to be readable.
    Repaired {
        /// Repair that was made.
        repair: super::ArgumentRepair,
    },
    /// A second, different name for a call that has one; ignored.
    NameChanged,
    /// An id that changed or repeats an earlier call's; the first stands.
    IdChanged,
    /// Entries of a call list that say nothing.
    PhantomCall,
    /// More bytes after the arguments were complete.
    ContradictedSeal,
    /// Two readings were possible.
    Ambiguous,
    /// A fragment of arguments under a number or id that is no call's; it went to the only call that was open.
    MisnumberedFragment,
    /// An end marker of another format, before the format's own finish; not taken for the end.
    ForeignEnd,
    /// A tool call written as text, in the named format.
    LeakedCall {
        /// The format: `hermes`, `mistral`, ...
        format: String,
    },
    /// The upstream began a second generation in the same stream.
    Restarted,
    /// Text that looks like a call of the text protocol but is not one, or a call with a harmless flaw (text
    /// mode; each is in `docs/text-protocol.md`).
    CallMarkup {
        /// Position (line and column of the reply's text) and description.
        finding: String,
        /// Kind of the finding.
        kind: crate::text_calls::FindingKind,
    },
    /// A stream that broke before its first content: the whole reply was requested again. Reported by the
    /// client of the upstream, not by a decoder.
    StreamReplaced,
    /// Tools that the upstream refuses, or that exceed its limit; `excerpt` names those that were not sent.
    /// Reported by the client of the upstream.
    ToolsLeftOut,
    /// Settings that exclude one another, or that the model does not support; `excerpt` names those that were
    /// not sent. Reported by the client of the upstream.
    SettingsLeftOut,
    /// An event or block of a kind that we do not know; skipped, `excerpt` names it.
    UnknownEvent,
}

impl ProblemKind {
    /// True if it is about the request, so that other requests of the turn have it as well.
    pub fn is_about_request(&self) -> bool {
        matches!(self, Self::ToolsLeftOut | Self::SettingsLeftOut)
    }
}
