//! The kept bytes of a turn's upstreams, decoded again by this release and compared with what the turn's log says was
//! understood then: what a new decoder changes is seen on real replies. R: S5

use crate::error::Error;
use crate::stored::{ReadAs, StoredTurn};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use throughline_engine::{BlockStart, Event, EventKind, ToolInput};
use throughline_wire::{
    BrokenCall, CallId, DecodeOptions, FinishReason, Limits, Reply, Slot, StepDecoder, Think, ToolName, Usage,
};

/// Source of calls that the provider ran itself; they are not the model's to write.
const HOSTED: &str = "upstream";
/// Characters of a text that a difference shows, from a little before the place.
const SHOWN_CHARS_MAX: usize = 80;
/// How [`unreadable`] begins.
const UNREADABLE: &str = "unreadable: ";
/// Characters in front of the place.
const BEFORE_CHARS: usize = 20;

/// Bytes of one answer of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBytes {
    /// The step that asked, from 1.
    pub step: u32,
    /// Which try of it, from 1.
    pub attempt: u32,
    /// Whether that is all.
    pub extent: KeptExtent,
    /// As they came.
    pub bytes: Vec<u8>,
}

/// Whether all bytes of an answer are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptExtent {
    /// All.
    Whole,
    /// The beginning: the rest was over a limit.
    Beginning,
}

/// One answer, decoded again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecodedAgain {
    /// The step that asked, from 1.
    pub step: u32,
    /// Which try of it, from 1.
    pub attempt: u32,
    /// Who answered.
    pub upstream: String,
    /// The upstream's name of the model.
    pub model: String,
    /// Bytes that were decoded.
    pub bytes: usize,
    /// What came out.
    pub outcome: Again,
}

/// What decoding again says of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// What was understood then is understood now.
    Same,
    /// As far as both go: the call was broken off, or not all of its bytes are kept.
    SameSoFar,
    /// Something is understood otherwise.
    Different(Vec<Difference>),
    /// The log knows no such call.
    NotInTheLog,
    /// How it is to be read was not kept.
    HowUnknown,
}

/// Something that is understood otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: `text`, `thinking`, `refusal`, `call 1`, `calls`, `finish`, `usage`.
    pub what: String,
    /// The character at which two texts part, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<usize>,
    /// Then; around the place.
    pub recorded: String,
    /// Now; around the place.
    pub decoded: String,
}

/// Decodes kept answers of a turn again, and compares each with the turn's events.
///
/// # Errors
/// The turn's calls travelled as text of a protocol that this release does not know.
pub fn decode_again(
    stored: &StoredTurn,
    events: &[Event],
    kept: &[KeptBytes],
) -> Result<Vec<DecodedAgain>, Error> {
    let recorded = recorded(events);
    let calls = stored.calls()?;
    let again = |kept: &KeptBytes| {
        let mut again = DecodedAgain {
            step: kept.step,
            attempt: kept.attempt,
            upstream: String::new(),
            model: String::new(),
            bytes: kept.bytes.len(),
            outcome: Again::NotInTheLog,
        };
        let Some(then) = recorded.get(&(kept.step, kept.attempt)) else { return again };
        again.upstream.clone_from(&then.upstream);
        again.model.clone_from(&then.model);
        again.outcome = match stored.read_as.get(then.fallback) {
            None => Again::HowUnknown,
            Some(ReadAs { dialect, profile }) => {
                let options = DecodeOptions {
                    limits: Limits::default(),
                    profile: profile.clone(),
                    think: Think::Split,
                    offered: wire_names(stored, &then.offered),
                    calls: calls.clone(),
                };
                let mut decoder = StepDecoder::new(*dialect, options);
                let mut reply = Reply::default();
                decoder.push(&kept.bytes, &mut |event| reply.apply(event));
                decoder.finish(&mut |event| reply.apply(event));
                compare(&then.said, &Said::of(&reply), kept.extent)
            }
        };
        again
    };
    Ok(kept.iter().map(again).collect())
}

fn wire_names(stored: &StoredTurn, offered: &[ToolName]) -> Vec<String> {
    let tools = stored.setup.tools.iter().filter(|tool| offered.contains(&tool.name));
    tools.map(|tool| tool.wire_name.as_str().to_owned()).collect()
}

/// One model call as the log has it.
#[derive(Default)]
struct Recorded {
    upstream: String,
    model: String,
    fallback: usize,
    offered: Vec<ToolName>,
    said: Said,
}

/// What a reply says, in the order of the message.
#[derive(Debug, Default)]
struct Said {
    text: String,
    thinking: String,
    refusal: String,
    calls: BTreeMap<(u32, Slot), SaidCall>,
    finish: Option<(FinishReason, Option<String>)>,
    usage: Option<Usage>,
}

#[derive(Debug, Default)]
struct SaidCall {
    name: String,
    /// `None` = they never came to an end.
    arguments: Option<String>,
}

impl Said {
    fn of(reply: &Reply) -> Self {
        let call = |call: &throughline_wire::ReplyCall| {
            let arguments = call.ending.as_ref().map(|ending| match ending {
                Ok(arguments) => arguments.text.clone(),
                Err((why, _)) => unreadable(why),
            });
            ((call.position, call.slot), SaidCall { name: call.name.as_str().to_owned(), arguments })
        };
        Self {
            text: reply.text.clone(),
            thinking: reply.thinking.clone(),
            refusal: reply.refusal.clone(),
            calls: reply.calls.iter().map(call).collect(),
            finish: reply.finish.clone(),
            usage: reply.usage,
        }
    }
}

/// What stands for arguments that nobody can read.
fn unreadable(why: &BrokenCall) -> String {
    format!("{UNREADABLE}{}", shown(why))
}

/// Where a call was decoded: step and attempt of its reply; step and place among the calls of the step.
type Origin = ((u32, u32), (u32, Slot));

/// Every model call of a log, by step and attempt.
fn recorded(events: &[Event]) -> BTreeMap<(u32, u32), Recorded> {
    let mut found: BTreeMap<(u32, u32), Recorded> = BTreeMap::new();
    let mut current: Option<(u32, u32)> = None;
    let mut refusals: HashMap<u32, bool> = HashMap::new();
    let mut calls: HashMap<CallId, Origin> = HashMap::new();
    for event in events {
        if let (EventKind::StepStart { upstream, model, attempt, fallback, tools_offered }, Some(step)) =
            (&event.kind, event.step)
        {
            current = Some((step, *attempt));
            let recorded = found.entry((step, *attempt)).or_default();
            recorded.upstream.clone_from(upstream);
            recorded.model.clone_from(model);
            recorded.fallback = *fallback as usize;
            recorded.offered.clone_from(tools_offered);
            continue;
        }
        let Some(key) = current else { continue };
        let said = &mut found.entry(key).or_default().said;
        match &event.kind {
            EventKind::BlockStart(BlockStart::Text { code }) => {
                if let Some(block) = event.block {
                    refusals.insert(block, code.as_deref() == Some("refusal"));
                }
            }
            EventKind::ContentDelta { text } => {
                let refused = event.block.and_then(|block| refusals.get(&block)).copied().unwrap_or(false);
                if refused { said.refusal.push_str(text) } else { said.text.push_str(text) }
            }
            EventKind::Thinking { text } => said.thinking.push_str(text),
            EventKind::ToolUse { wire_name, source, slot, position, .. } if source != HOSTED => {
                let place = (*position, *slot);
                said.calls.insert(place, SaidCall { name: wire_name.as_str().to_owned(), arguments: None });
                if let Some(id) = &event.tool_id {
                    calls.insert(id.clone(), (key, place));
                }
            }
            EventKind::ToolInput(input) => {
                if let Some(call) = call_of(&mut found, &calls, event) {
                    call.arguments = written(input);
                }
            }
            EventKind::ToolInputReset => {
                if let Some(call) = call_of(&mut found, &calls, event) {
                    call.arguments = None;
                }
            }
            EventKind::StepEnd { finish: Some(finish), finish_raw, usage, .. } => {
                said.finish = Some((*finish, finish_raw.clone()));
                said.usage = *usage;
            }
            _ => {}
        }
    }
    found
}

fn call_of<'a>(
    found: &'a mut BTreeMap<(u32, u32), Recorded>,
    calls: &HashMap<CallId, Origin>,
    event: &Event,
) -> Option<&'a mut SaidCall> {
    let (key, place) = calls.get(event.tool_id.as_ref()?)?;
    found.get_mut(key)?.said.calls.get_mut(place)
}

/// The argument text as it was run, or what could not be read.
fn written(input: &ToolInput) -> Option<String> {
    match (&input.text, &input.arguments) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(arguments)) => Some(arguments.to_string()),
        (None, None) => input.broken.as_ref().map(unreadable),
    }
}

/// How much of both there is to compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All.
    Whole,
    /// One is the beginning of the other.
    Beginning,
}

fn compare(then: &Said, now: &Said, extent: KeptExtent) -> Again {
    let reach = match (extent, &then.finish) {
        (KeptExtent::Whole, Some(_)) => Reach::Whole,
        _ => Reach::Beginning,
    };
    // Of arguments that were still coming nothing can be said.
    let is_cut = |arguments: &&String| arguments.starts_with(UNREADABLE);
    let mut found = Vec::new();
    for (what, then, now) in [
        ("text", &then.text, &now.text),
        ("thinking", &then.thinking, &now.thinking),
        ("refusal", &then.refusal, &now.refusal),
    ] {
        found.extend(texts(what, then, now, reach));
    }
    for (at, (then, now)) in then.calls.values().zip(now.calls.values()).enumerate() {
        let what = format!("call {}", at + 1);
        found.extend(texts(&format!("{what} name"), &then.name, &now.name, Reach::Whole));
        match (&then.arguments, &now.arguments) {
            (Some(then), Some(now)) if reach == Reach::Whole || ![then, now].iter().any(is_cut) => {
                found.extend(texts(&format!("{what} arguments"), then, now, reach));
            }
            (then, now) if reach == Reach::Whole && then != now => {
                let said =
                    |arguments: &Option<String>| arguments.clone().unwrap_or_else(|| "none".to_owned());
                found.push(Difference { what, at: None, recorded: said(then), decoded: said(now) });
            }
            _ => {}
        }
    }
    if reach == Reach::Whole {
        let (calls, finish, usage) = (
            (then.calls.len().to_string(), now.calls.len().to_string()),
            (shown(&then.finish), shown(&now.finish)),
            (shown(&then.usage), shown(&now.usage)),
        );
        for (what, (then, now)) in [("calls", calls), ("finish", finish), ("usage", usage)] {
            if then != now {
                found.push(Difference { what: what.to_owned(), at: None, recorded: then, decoded: now });
            }
        }
    }
    match (found.is_empty(), reach) {
        (false, _) => Again::Different(found),
        (true, Reach::Whole) => Again::Same,
        (true, Reach::Beginning) => Again::SameSoFar,
    }
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Where two texts part, if they do.
fn texts(what: &str, then: &str, now: &str, reach: Reach) -> Option<Difference> {
    let same = match reach {
        Reach::Whole => then == now,
        Reach::Beginning => then.starts_with(now) || now.starts_with(then),
    };
    if same {
        return None;
    }
    let at = then.chars().zip(now.chars()).take_while(|(then, now)| then == now).count();
    let around =
        |text: &str| text.chars().skip(at.saturating_sub(BEFORE_CHARS)).take(SHOWN_CHARS_MAX).collect();
    Some(Difference { what: what.to_owned(), at: Some(at), recorded: around(then), decoded: around(now) })
}
