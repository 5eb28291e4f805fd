//! A hostile upstream: what one model call will say, when, and how it breaks.

use super::rng::Rng;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::{
    Arguments, BrokenCall, CallKind, Dialect, End, FinishReason, Hosted, ModelRequest, Problem, ProblemKind,
    ProviderState, RawArguments, Seal, Slot, StepEvent, ToolChoice, UpstreamCallId, UpstreamError, Usage,
    WireName,
};

/// One thing that comes from the upstream, so many milliseconds after the one before.
pub(super) type Item = (i64, Said);

pub(super) enum Said {
    Event(StepEvent<'static>),
    Failed(UpstreamFailure),
}

/// The whole reply to a request. The last item always ends it: a stalled stream ends with the driver's timeout.
pub(super) fn reply(rng: &mut Rng, request: &ModelRequest) -> Vec<Item> {
    if rng.chance(5) {
        return vec![(rng.wait(300), Said::Failed(early_failure(rng)))];
    }
    let mut items: Vec<Item> = Vec::new();
    let first = rng.wait(300);
    let mut said = |rng: &mut Rng, event| {
        let wait = if items.is_empty() { first } else { rng.wait(60) };
        items.push((wait, Said::Event(event)));
    };
    if rng.chance(30) {
        let thought = if rng.chance(20) { "" } else { "hm " };
        said(rng, StepEvent::Thinking(thought.into()));
    }
    let wants_calls = match &request.tool_choice {
        ToolChoice::Auto => rng.chance(75),
        ToolChoice::None => rng.chance(10),
        ToolChoice::Required | ToolChoice::Tool(_) => rng.chance(95),
    };
    for _ in 0..rng.below(4) {
        said(rng, StepEvent::Text("word ".into()));
    }
    if rng.chance(1) && rng.chance(20) {
        for _ in 0..5_000 {
            items.push((0, Said::Event(StepEvent::Text("flood ".into()))));
        }
    }
    let calls = if wants_calls { 1 + rng.below(4) as u32 } else { 0 };
    let mut open = Vec::new();
    for slot in 0..calls {
        for event in call(rng, Slot(slot), request) {
            items.push((rng.wait(60), Said::Event(event)));
        }
        open.push(Slot(slot));
        if rng.chance(20) {
            items.push((rng.wait(60), Said::Event(StepEvent::Text("and ".into()))));
        }
        if rng.chance(12) {
            let slot = Slot(rng.below(u64::from(slot) + 1) as u32);
            contradict(rng, slot, &mut items);
        }
    }
    extras(rng, &mut items);
    end(rng, calls, &mut items);
    if rng.chance(5) {
        // Bytes after the end, and the end once more.
        items.push((rng.wait(50), Said::Event(StepEvent::Text("late".into()))));
        items.push((rng.wait(50), Said::Event(StepEvent::End(End::Complete))));
    }
    items
}

fn call(rng: &mut Rng, slot: Slot, request: &ModelRequest) -> Vec<StepEvent<'static>> {
    let offered: Vec<&WireName> = request.tools.iter().map(|tool| &tool.name).collect();
    let name = match rng.below(20) {
        0 => WireName::new("web_raed"),
        // The same again and again: circles.
        1..8 => WireName::new("web_read"),
        _ => rng.pick(&offered).map_or_else(|| WireName::new("nothing"), |name| (*name).clone()),
    };
    let upstream_id = rng.chance(80).then(|| UpstreamCallId::new(format!("call_{}", rng.below(3))));
    let position = if rng.chance(90) { slot.0 } else { rng.below(4) as u32 };
    let mut events =
        vec![StepEvent::CallOpened { slot, position, upstream_id, name, kind: CallKind::Function }];
    let arguments = arguments(rng);
    for piece in pieces(&arguments.text, rng) {
        events.push(StepEvent::CallArguments { slot, delta: piece.into() });
    }
    match rng.below(20) {
        0 => {
            let raw = RawArguments(arguments.text[..arguments.text.len() / 2].to_owned());
            let why = if rng.chance(50) {
                BrokenCall::Cut
            } else {
                BrokenCall::InvalidJson { message: "cut".into() }
            };
            events.push(StepEvent::CallBroken { slot, why, raw });
        }
        // Never sealed: it depends on the end what becomes of it.
        1 => {}
        _ => events.push(StepEvent::CallSealed { slot, seal: seal(rng), arguments }),
    }
    events
}

fn arguments(rng: &mut Rng) -> Arguments {
    let text = match rng.below(4) {
        0 => "{}".to_owned(),
        1 => r#"{ "q" : "spaced" }"#.to_owned(),
        _ => format!(r#"{{"q":"{}"}}"#, rng.below(3)),
    };
    Arguments { value: serde_json::from_str(&text).unwrap_or_default(), text, repairs: Vec::new() }
}

fn seal(rng: &mut Rng) -> Seal {
    *rng.pick(&[
        Seal::Explicit,
        Seal::Explicit,
        Seal::Balanced,
        Seal::Balanced,
        Seal::Successor,
        Seal::Terminal,
    ])
    .unwrap_or(&Seal::Explicit)
}

fn pieces(text: &str, rng: &mut Rng) -> Vec<String> {
    let at = rng.below(text.len() as u64 + 1) as usize;
    [&text[..at], &text[at..]].into_iter().filter(|piece| !piece.is_empty()).map(ToOwned::to_owned).collect()
}

/// A seal was wrong: the call begins again, and may break or never end.
fn contradict(rng: &mut Rng, slot: Slot, items: &mut Vec<Item>) {
    items.push((rng.wait(200), Said::Event(StepEvent::CallReopened { slot })));
    let arguments = arguments(rng);
    match rng.below(10) {
        0 => {}
        1 => items.push((
            rng.wait(60),
            Said::Event(StepEvent::CallBroken {
                slot,
                why: BrokenCall::Cut,
                raw: RawArguments(arguments.text),
            }),
        )),
        _ => {
            items.push((
                rng.wait(60),
                Said::Event(StepEvent::CallArguments { slot, delta: arguments.text.clone().into() }),
            ));
            let event = StepEvent::CallSealed { slot, seal: seal(rng), arguments };
            items.push((rng.wait(60), Said::Event(event)));
        }
    }
}

fn extras(rng: &mut Rng, items: &mut Vec<Item>) {
    if rng.chance(20) {
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(rng.below(99)), ..Usage::default() };
        items.push((0, Said::Event(StepEvent::Usage(usage))));
    }
    if rng.chance(10) {
        let value = serde_json::json!({"items": rng.below(9)});
        items
            .push((0, Said::Event(StepEvent::Opaque(ProviderState { dialect: Dialect::OpenaiChat, value }))));
    }
    if rng.chance(5) {
        let output = rng.chance(50).then(|| serde_json::json!("found"));
        let hosted = Hosted { id: Some("h".into()), name: "search".into(), input: None, output };
        items.push((0, Said::Event(StepEvent::Hosted(hosted))));
    }
    if rng.chance(10) {
        for _ in 0..rng.below(5) {
            let problem =
                Problem { kind: ProblemKind::IdChanged, at: 7, excerpt: "x".into(), slot: Some(Slot(0)) };
            items.push((0, Said::Event(StepEvent::Problem(problem))));
        }
    }
}

fn end(rng: &mut Rng, calls: u32, items: &mut Vec<Item>) {
    let finish = |items: &mut Vec<Item>, reason| {
        items.push((0, Said::Event(StepEvent::Finish { reason, raw: None })));
    };
    let normal = if calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
    let ending = match rng.below(40) {
        0 => Said::Event(StepEvent::End(End::Truncated)),
        1 => {
            // The finish came, the end did not.
            finish(items, normal);
            Said::Event(StepEvent::End(End::Truncated))
        }
        2 => Said::Event(StepEvent::End(End::Error(UpstreamError {
            message: "boom".into(),
            ..UpstreamError::default()
        }))),
        3 => Said::Failed(failure(FailureKind::IdleTimeout, None, None)),
        4 => Said::Failed(failure(FailureKind::Broken, None, None)),
        5 => Said::Event(StepEvent::End(End::Complete)),
        other => {
            let reason = match other {
                6 | 7 => FinishReason::Length,
                8 => FinishReason::ContentFilter,
                9 => FinishReason::Other,
                10 | 11 => FinishReason::Pause,
                // A lie: calls, and a plain stop; or none, and tool calls.
                12 => FinishReason::Stop,
                13 => FinishReason::ToolCalls,
                _ => normal,
            };
            finish(items, reason);
            Said::Event(StepEvent::End(End::Complete))
        }
    };
    let wait = if matches!(ending, Said::Failed(_)) { 30_000 } else { rng.wait(80) };
    items.push((wait, ending));
}

fn early_failure(rng: &mut Rng) -> UpstreamFailure {
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
