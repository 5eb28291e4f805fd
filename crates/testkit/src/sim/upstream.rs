//! A hostile upstream: what one model call will say, when, and how it breaks.

use super::rng::SimRng;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::{
    BrokenCall, CallArguments, CallKind, CallSlot, Dialect, FinishReason, HostedTool, ModelRequest,
    ProblemKind, ProviderState, RawArguments, SealEvidence, StepEvent, StepProblem, StreamEnd, ToolChoice,
    UpstreamCallId, UpstreamError, Usage, WireName,
};

/// An item of the upstream's reply, with its delay in milliseconds after the previous one.
pub(super) type TimedReplyItem = (i64, ReplyItem);

pub(super) enum ReplyItem {
    Event(StepEvent<'static>),
    Failed(UpstreamFailure),
}

/// The whole reply to a request. The last item always ends it: a stalled stream ends with the driver's timeout.
pub(super) fn reply(rng: &mut SimRng, request: &ModelRequest) -> Vec<TimedReplyItem> {
    if rng.chance(5) {
        return vec![(rng.wait(300), ReplyItem::Failed(early_failure(rng)))];
    }
    let mut items: Vec<TimedReplyItem> = Vec::new();
    let first = rng.wait(300);
    let mut push_event = |rng: &mut SimRng, event| {
        let wait = if items.is_empty() { first } else { rng.wait(60) };
        items.push((wait, ReplyItem::Event(event)));
    };
    if rng.chance(30) {
        let thought = if rng.chance(20) { "" } else { "hm " };
        push_event(rng, StepEvent::Thinking(thought.into()));
    }
    let wants_calls = match &request.tool_choice {
        ToolChoice::Auto => rng.chance(75),
        ToolChoice::None => rng.chance(10),
        ToolChoice::Required | ToolChoice::Tool(_) => rng.chance(95),
    };
    for _ in 0..rng.below(4) {
        push_event(rng, StepEvent::Text("word ".into()));
    }
    if rng.chance(1) && rng.chance(20) {
        for _ in 0..5_000 {
            items.push((0, ReplyItem::Event(StepEvent::Text("flood ".into()))));
        }
    }
    let calls = if wants_calls { 1 + rng.below(4) as u32 } else { 0 };
    let mut open = Vec::new();
    for slot in 0..calls {
        for event in call(rng, CallSlot(slot), request) {
            items.push((rng.wait(60), ReplyItem::Event(event)));
        }
        open.push(CallSlot(slot));
        if rng.chance(20) {
            items.push((rng.wait(60), ReplyItem::Event(StepEvent::Text("and ".into()))));
        }
        if rng.chance(12) {
            let slot = CallSlot(rng.below(u64::from(slot) + 1) as u32);
            reopen_call(rng, slot, &mut items);
        }
    }
    extras(rng, &mut items);
    // From a forked generator, so that existing seeds still generate the same run.
    if rng.fork(5).chance(4) {
        orphan(CallSlot(calls), &mut items);
    }
    end(rng, calls, &mut items);
    if rng.chance(5) {
        // Bytes after the end, and the end once more.
        items.push((rng.wait(50), ReplyItem::Event(StepEvent::Text("late".into()))));
        items.push((rng.wait(50), ReplyItem::Event(StepEvent::End(StreamEnd::Complete))));
    }
    items
}

fn call(rng: &mut SimRng, slot: CallSlot, request: &ModelRequest) -> Vec<StepEvent<'static>> {
    let offered: Vec<&WireName> = request.tools.iter().map(|tool| &tool.name).collect();
    let name = match rng.below(20) {
        0 => WireName::new("web_raed"),
        // Repeated equal calls: loops.
        1..8 => WireName::new("web_read"),
        _ => rng.pick(&offered).map_or_else(|| WireName::new("nothing"), |name| (*name).clone()),
    };
    let upstream_id = rng.chance(80).then(|| UpstreamCallId::new(format!("call_{}", rng.below(3))));
    let position = if rng.chance(90) { slot.0 } else { rng.below(4) as u32 };
    let mut events = vec![StepEvent::CallOpened {
        slot,
        position,
        upstream_id,
        name,
        kind: CallKind::Function,
        arguments: None,
    }];
    let arguments = arguments(rng);
    for piece in pieces(&arguments.text, rng) {
        events.push(StepEvent::CallArguments { slot, delta: piece.into() });
    }
    match rng.below(20) {
        0 => {
            let raw = RawArguments(arguments.text[..arguments.text.len() / 2].to_owned());
            let reason = if rng.chance(50) {
                BrokenCall::Cut
            } else {
                BrokenCall::InvalidJson { message: "cut".into() }
            };
            events.push(StepEvent::CallBroken { slot, reason, raw });
        }
        // Never sealed: it depends on the end what becomes of it.
        1 => {}
        _ => events.push(StepEvent::CallSealed { slot, seal: seal(rng), arguments }),
    }
    events
}

/// Fragments of arguments that no call owns.
fn orphan(slot: CallSlot, items: &mut Vec<TimedReplyItem>) {
    let opened = StepEvent::CallOpened {
        slot,
        position: slot.0,
        upstream_id: None,
        name: WireName::new(""),
        kind: CallKind::Function,
        arguments: None,
    };
    let raw = RawArguments(r#"{"q":"nobody's"}"#.to_owned());
    let broken = StepEvent::CallBroken { slot, reason: BrokenCall::Nameless, raw };
    items.extend([opened, broken].map(|event| (0, ReplyItem::Event(event))));
}

fn arguments(rng: &mut SimRng) -> CallArguments {
    let text = match rng.below(4) {
        0 => "{}".to_owned(),
        1 => r#"{ "q" : "spaced" }"#.to_owned(),
        _ => format!(r#"{{"q":"{}"}}"#, rng.below(3)),
    };
    CallArguments { value: serde_json::from_str(&text).unwrap_or_default(), text, repairs: Vec::new() }
}

fn seal(rng: &mut SimRng) -> SealEvidence {
    *rng.pick(&[
        SealEvidence::Explicit,
        SealEvidence::Explicit,
        SealEvidence::Balanced,
        SealEvidence::Balanced,
        SealEvidence::Successor,
        SealEvidence::Terminal,
    ])
    .unwrap_or(&SealEvidence::Explicit)
}

fn pieces(text: &str, rng: &mut SimRng) -> Vec<String> {
    let at = rng.below(text.len() as u64 + 1) as usize;
    [&text[..at], &text[at..]].into_iter().filter(|piece| !piece.is_empty()).map(ToOwned::to_owned).collect()
}

/// A seal was wrong: the call begins again, and may break or never end.
fn reopen_call(rng: &mut SimRng, slot: CallSlot, items: &mut Vec<TimedReplyItem>) {
    items.push((rng.wait(200), ReplyItem::Event(StepEvent::CallReopened { slot })));
    let arguments = arguments(rng);
    match rng.below(10) {
        0 => {}
        1 => items.push((
            rng.wait(60),
            ReplyItem::Event(StepEvent::CallBroken {
                slot,
                reason: BrokenCall::Cut,
                raw: RawArguments(arguments.text),
            }),
        )),
        _ => {
            items.push((
                rng.wait(60),
                ReplyItem::Event(StepEvent::CallArguments { slot, delta: arguments.text.clone().into() }),
            ));
            let event = StepEvent::CallSealed { slot, seal: seal(rng), arguments };
            items.push((rng.wait(60), ReplyItem::Event(event)));
        }
    }
}

fn extras(rng: &mut SimRng, items: &mut Vec<TimedReplyItem>) {
    if rng.chance(20) {
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(rng.below(99)), ..Usage::default() };
        items.push((0, ReplyItem::Event(StepEvent::Usage(usage))));
    }
    if rng.chance(10) {
        let value = serde_json::json!({"items": rng.below(9)});
        items.push((
            0,
            ReplyItem::Event(StepEvent::ProviderState(ProviderState { dialect: Dialect::OpenaiChat, value })),
        ));
    }
    if rng.chance(5) {
        let output = rng.chance(50).then(|| serde_json::json!("found"));
        let hosted = HostedTool { id: Some("h".into()), name: "search".into(), input: None, output };
        items.push((0, ReplyItem::Event(StepEvent::Hosted(hosted))));
    }
    if rng.chance(10) {
        for _ in 0..rng.below(5) {
            let problem = StepProblem {
                kind: ProblemKind::IdChanged,
                at: 7,
                excerpt: "x".into(),
                slot: Some(CallSlot(0)),
            };
            items.push((0, ReplyItem::Event(StepEvent::Problem(problem))));
        }
    }
}

fn end(rng: &mut SimRng, calls: u32, items: &mut Vec<TimedReplyItem>) {
    let finish = |items: &mut Vec<TimedReplyItem>, reason| {
        items.push((0, ReplyItem::Event(StepEvent::Finish { reason, raw: None })));
    };
    let normal = if calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
    let ending = match rng.below(40) {
        0 => ReplyItem::Event(StepEvent::End(StreamEnd::Truncated)),
        1 => {
            // The finish came, the end did not.
            finish(items, normal);
            ReplyItem::Event(StepEvent::End(StreamEnd::Truncated))
        }
        2 => ReplyItem::Event(StepEvent::End(StreamEnd::Error(UpstreamError {
            message: "boom".into(),
            ..UpstreamError::default()
        }))),
        3 => ReplyItem::Failed(failure(FailureKind::IdleTimeout, None, None)),
        4 => ReplyItem::Failed(failure(FailureKind::Broken, None, None)),
        5 => ReplyItem::Event(StepEvent::End(StreamEnd::Complete)),
        other => {
            let reason = match other {
                6 | 7 => FinishReason::Length,
                8 => FinishReason::ContentFilter,
                9 => FinishReason::Other,
                10 | 11 => FinishReason::Pause,
                // A wrong finish reason: calls, and a plain stop; or none, and tool calls.
                12 => FinishReason::Stop,
                13 => FinishReason::ToolCalls,
                _ => normal,
            };
            finish(items, reason);
            ReplyItem::Event(StepEvent::End(StreamEnd::Complete))
        }
    };
    let wait = if matches!(ending, ReplyItem::Failed(_)) { 30_000 } else { rng.wait(80) };
    items.push((wait, ending));
}

fn early_failure(rng: &mut SimRng) -> UpstreamFailure {
    match rng.below(10) {
        0..3 => failure(FailureKind::RateLimited, Some(429), rng.chance(50).then(|| rng.below(90_000))),
        3..5 => failure(FailureKind::Status, Some(503), None),
        5 => failure(FailureKind::ContextTooLong, Some(400), None),
        6 => failure(FailureKind::Connect, None, None),
        7 => failure(FailureKind::FirstByteTimeout, None, None),
        8 => failure(FailureKind::Unauthorized, Some(401), None),
        _ => failure(FailureKind::ToolsUnsupported, Some(400), None),
    }
}

fn failure(kind: FailureKind, status: Option<u16>, retry_after_ms: Option<u64>) -> UpstreamFailure {
    UpstreamFailure { kind, status, message: format!("{kind:?}"), retry_after_ms }
}
