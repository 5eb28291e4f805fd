//! A whole reply as the object that `throughline decode` prints.

use super::json_text::raw_value;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use throughline_wire::{
    CallArguments, CallKind, FinishReason, HostedTool, Media, ModelReply, ReplyAudio, ReplyCall, StepProblem,
    StreamEnd, UpstreamError, Usage,
};

/// The printed object. Keys that are always present come first, optional ones follow.
#[derive(Serialize)]
pub(crate) struct ReplyView<'a> {
    text: &'a str,
    reasoning: &'a str,
    finish_reason: Option<FinishReason>,
    finish_reason_raw: Option<&'a str>,
    tool_calls: Vec<CallView<'a>>,
    end: &'static str,
    error: Option<ErrorView<'a>>,
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "str::is_empty")]
    refusal: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<ChoiceView<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hosted: &'a [HostedTool],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    images: &'a [Media],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    audio: &'a [ReplyAudio],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    citations: &'a [serde_json::Value],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    problems: &'a [StepProblem],
}

#[derive(Serialize)]
struct CallView<'a> {
    id: Option<&'a str>,
    name: &'a str,
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
}

#[derive(Serialize)]
struct ChoiceView<'a> {
    index: u32,
    text: &'a str,
    reasoning: &'a str,
    tool_calls: Vec<CallView<'a>>,
    finish_reason: Option<FinishReason>,
}

/// An upstream's error under the names it has on the wire.
#[derive(Serialize)]
pub(crate) struct ErrorView<'a> {
    message: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

impl<'a> From<&'a UpstreamError> for ErrorView<'a> {
    fn from(error: &'a UpstreamError) -> Self {
        ErrorView { message: &error.message, kind: error.kind.as_deref(), code: error.code.as_deref() }
    }
}

impl<'a> From<&'a ModelReply> for ReplyView<'a> {
    fn from(reply: &'a ModelReply) -> Self {
        // A decoder reports its end exactly once; without it the bytes just stopped.
        let end = reply.end.as_ref().unwrap_or(&StreamEnd::Truncated);
        ReplyView {
            text: &reply.text,
            reasoning: &reply.thinking,
            finish_reason: reply.finish.as_ref().map(|(reason, _)| *reason),
            finish_reason_raw: reply.finish.as_ref().and_then(|(_, raw)| raw.as_deref()),
            tool_calls: calls(reply),
            end: end.name(),
            error: end.error().map(ErrorView::from),
            usage: reply.usage,
            refusal: &reply.refusal,
            choices: choices(reply),
            hosted: &reply.hosted,
            images: &reply.images,
            audio: &reply.audio,
            citations: &reply.citations,
            problems: &reply.problems,
        }
    }
}

/// All choices, the first one included; empty if there is only that one.
fn choices(reply: &ModelReply) -> Vec<ChoiceView<'_>> {
    if reply.choices.is_empty() {
        return Vec::new();
    }
    let first = choice(0, reply);
    let others = reply.choices.iter().map(|(index, reply)| choice(*index, reply));
    std::iter::once(first).chain(others).collect()
}

fn choice(index: u32, reply: &ModelReply) -> ChoiceView<'_> {
    ChoiceView {
        index,
        text: &reply.text,
        reasoning: &reply.thinking,
        tool_calls: calls(reply),
        finish_reason: reply.finish.as_ref().map(|(reason, _)| *reason),
    }
}

fn calls(reply: &ModelReply) -> Vec<CallView<'_>> {
    reply.calls.iter().map(call).collect()
}

fn call(call: &ReplyCall) -> CallView<'_> {
    CallView {
        id: call.upstream_id.as_ref().map(|id| id.as_str()),
        name: call.name.as_str(),
        arguments: call.arguments().ok().and_then(|arguments| exact(arguments, call.kind)),
        raw: call.arguments().err(),
    }
}

/// Arguments as JSON: their own text where there is one, so that integers beyond 64 bits keep their digits.
pub(crate) fn exact(arguments: &CallArguments, kind: CallKind) -> Option<Box<RawValue>> {
    match kind {
        CallKind::Custom => to_raw_value(&arguments.text).ok(),
        CallKind::Function => raw_value(&arguments.text).or_else(|| to_raw_value(&arguments.value).ok()),
    }
}
