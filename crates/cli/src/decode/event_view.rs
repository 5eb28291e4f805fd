//! One event of a step as a JSON line.

use super::json_text::raw_value;
use super::reply_view::ErrorView;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use throughline_wire::{
    ArgumentRepair, BrokenCall, CallArguments, CallKind, CallSlot, FinishReason, HostedTool, SealEvidence,
    StepEvent, StepProblem, Usage,
};

/// The line's object, with the event's name in `type`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EventView<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
    },
    Refusal {
        text: &'a str,
    },
    Image {
        media_type: &'a str,
        data: &'a str,
    },
    Audio {
        data: &'a str,
        transcript: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
    },
    Citation {
        source: &'a Value,
    },
    CallOpened {
        slot: CallSlot,
        position: u32,
        upstream_id: Option<&'a str>,
        name: &'a str,
        kind: CallKind,
    },
    CallArguments {
        slot: CallSlot,
        delta: &'a str,
    },
    CallSealed {
        slot: CallSlot,
        seal: SealEvidence,
        arguments: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        repairs: &'a [ArgumentRepair],
    },
    CallReopened {
        slot: CallSlot,
    },
    CallBroken {
        slot: CallSlot,
        why: &'a BrokenCall,
        raw: &'a str,
    },
    Hosted {
        hosted: &'a HostedTool,
    },
    /// State to send back can be long and only matters to the upstream: the view has its size alone.
    ProviderState {
        dialect: &'static str,
        size: usize,
    },
    Usage {
        usage: Usage,
    },
    Finish {
        reason: FinishReason,
        raw: Option<&'a str>,
    },
    End {
        end: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorView<'a>>,
    },
    Problem {
        problem: &'a StepProblem,
    },
    Choice {
        index: u32,
        event: Box<EventView<'a>>,
    },
    /// An event of a newer decoder.
    Other {
        debug: String,
    },
}

impl<'a> From<&'a StepEvent<'a>> for EventView<'a> {
    fn from(event: &'a StepEvent<'a>) -> Self {
        match event {
            StepEvent::Text(text) => EventView::Text { text },
            StepEvent::Thinking(text) => EventView::Thinking { text },
            StepEvent::Refusal(text) => EventView::Refusal { text },
            StepEvent::Image(media) => EventView::Image { media_type: &media.media_type, data: media.data() },
            StepEvent::Audio { data, transcript, format, sample_rate } => {
                EventView::Audio { data, transcript, format: format.as_deref(), sample_rate: *sample_rate }
            }
            StepEvent::Citation(source) => EventView::Citation { source },
            // Its arguments follow.
            StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments: _ } => {
                EventView::CallOpened {
                    slot: *slot,
                    position: *position,
                    upstream_id: upstream_id.as_ref().map(|id| id.as_str()),
                    name: name.as_str(),
                    kind: *kind,
                }
            }
            StepEvent::CallArguments { slot, delta } => EventView::CallArguments { slot: *slot, delta },
            StepEvent::CallSealed { slot, seal, arguments } => EventView::CallSealed {
                slot: *slot,
                seal: *seal,
                arguments: exact(arguments),
                repairs: &arguments.repairs,
            },
            StepEvent::CallReopened { slot } => EventView::CallReopened { slot: *slot },
            StepEvent::CallBroken { slot, reason: why, raw } => {
                EventView::CallBroken { slot: *slot, why, raw: &raw.0 }
            }
            StepEvent::Hosted(hosted) => EventView::Hosted { hosted },
            StepEvent::ProviderState(state) => EventView::ProviderState {
                dialect: state.dialect.name(),
                size: state.value.to_string().len(),
            },
            StepEvent::Usage(usage) => EventView::Usage { usage: *usage },
            StepEvent::Finish { reason, raw } => EventView::Finish { reason: *reason, raw: raw.as_deref() },
            StepEvent::End(end) => {
                EventView::End { end: end.name(), error: end.error().map(ErrorView::from) }
            }
            StepEvent::Problem(problem) => EventView::Problem { problem },
            StepEvent::Choice { index, event } => {
                EventView::Choice { index: *index, event: Box::new(EventView::from(event.as_ref())) }
            }
            other => EventView::Other { debug: format!("{other:?}") },
        }
    }
}

/// Exact JSON of the arguments. The seal does not mark a custom call: its arguments are free text, which is a
/// string value but not a JSON document.
fn exact(arguments: &CallArguments) -> Option<Box<RawValue>> {
    match &arguments.value {
        Value::String(text) if *text == arguments.text => to_raw_value(text).ok(),
        value => raw_value(&arguments.text).or_else(|| to_raw_value(value).ok()),
    }
}
