//! Recorded bytes of a turn's upstreams, decoded again by this release and compared with the turn's log: shows on
//! real replies what a new decoder changes.

use crate::error::Error;
use crate::turn::StoredTurn;
use crate::upstream::DecodeProfile;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use throughline_engine::{BlockStart, Event, EventKind, ToolInput};
use throughline_store::RawExtent;
use throughline_wire::text_calls::CallFormat;
use throughline_wire::{
    ArgumentNames, BrokenCall, CallId, CallSlot, DecodeLimits, DecodeOptions, Dialect, FinishReason,
    ModelReply, ThinkMode, ToolDefinition, ToolName, Usage,
};

/// Source of calls that the provider ran itself; they are not the model's to write.
const HOSTED: &str = "upstream";
/// Characters of a text that a difference shows, starting a little before the position.
const SHOWN_CHARS_MAX: usize = 80;
/// Prefix of [`unreadable_arguments`].
const UNREADABLE: &str = "unreadable: ";
/// Characters shown before the position.
const BEFORE_CHARS: usize = 20;

/// Bytes of one answer of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBytes {
    /// Step that made the call, from 1.
    pub step: u32,
    /// Number of its attempt, from 1.
    pub attempt: u32,
    /// Complete or cut off.
    pub extent: RawExtent,
    /// Raw bytes as received.
    pub bytes: Vec<u8>,
}

/// One reply, decoded again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedecodedReply {
    /// Step that made the call, from 1.
    pub step: u32,
    /// Number of its attempt, from 1.
    pub attempt: u32,
    /// The upstream that answered.
    pub upstream: String,
    /// The upstream's name of the model.
    pub model: String,
    /// Bytes that were decoded.
    pub bytes: usize,
    /// Result of the comparison.
    pub outcome: RedecodeOutcome,
}

/// Result of decoding a recorded answer again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedecodeOutcome {
    /// The reply is decoded as before.
    Same,
    /// Equal up to the end of the shorter one: the call was cancelled, or not all of its bytes were recorded.
    #[serde(rename = "same_so_far")]
    SamePrefix,
    /// At least one part is decoded differently.
    Different(Vec<DecodeDifference>),
    /// The log has no such call.
    #[serde(rename = "not_in_the_log")]
    NotInLog,
    /// The decode profile was not recorded.
    #[serde(rename = "how_unknown")]
    NoDecodeProfile,
}

/// A part that is decoded differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecodeDifference {
    /// The part that differs: `text`, `thinking`, `refusal`, `call 1`, `call_format`, `finish`, `usage`.
    pub what: String,
    /// The character at which two texts part, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<usize>,
    /// Recorded then; around the position.
    pub recorded: String,
    /// Decoded now; around the position.
    pub decoded: String,
}

/// Decodes recorded replies of a turn again and compares each with the turn's events.
///
/// # Errors
/// The turn's calls traveled in a text protocol that this release does not have.
pub fn redecode(
    stored: &StoredTurn,
    events: &[Event],
    recorded_replies: &[RecordedBytes],
) -> Result<Vec<RedecodedReply>, Error> {
    let logged = logged_calls(events);
    let calls = stored.call_format()?;
    let redecode_one = |raw: &RecordedBytes| {
        let mut redecoded = RedecodedReply {
            step: raw.step,
            attempt: raw.attempt,
            upstream: String::new(),
            model: String::new(),
            bytes: raw.bytes.len(),
            outcome: RedecodeOutcome::NotInLog,
        };
        let Some(then) = logged.get(&(raw.step, raw.attempt)) else { return redecoded };
        redecoded.upstream.clone_from(&then.upstream);
        redecoded.model.clone_from(&then.model);
        redecoded.outcome = match stored.decode_profiles.get(then.fallback) {
            None => RedecodeOutcome::NoDecodeProfile,
            Some(DecodeProfile { dialect, profile }) => {
                let options = DecodeOptions {
                    limits: DecodeLimits::default(),
                    profile: profile.clone(),
                    think: ThinkMode::Split,
                    offered: wire_names(stored, &then.offered),
                    calls: calls.clone(),
                    argument_names: argument_names(stored, *dialect, &calls),
                };
                let reply = ModelReply::decode(&raw.bytes, *dialect, options);
                compare(&then.content, &ReplyContent::from_reply(&reply), raw.extent)
            }
        };
        redecoded
    };
    Ok(recorded_replies.iter().map(redecode_one).collect())
}

/// Text protocols write the tools' own names.
fn argument_names(stored: &StoredTurn, dialect: Dialect, calls: &CallFormat) -> ArgumentNames {
    let tools: Vec<ToolDefinition> = match calls {
        CallFormat::Text(_) => Vec::new(),
        _ => stored.setup.tools.iter().map(|tool| tool.definition.clone()).collect(),
    };
    ArgumentNames::of(dialect, &tools)
}

fn wire_names(stored: &StoredTurn, offered: &[ToolName]) -> Vec<String> {
    let tools = stored.setup.tools.iter().filter(|tool| offered.contains(&tool.name));
    tools.map(|tool| tool.wire_name.as_str().to_owned()).collect()
}

/// One model call as recorded in the log.
#[derive(Default)]
struct LoggedCall {
    upstream: String,
    model: String,
    fallback: usize,
    offered: Vec<ToolName>,
    content: ReplyContent,
}

/// Contents of a reply, in the order of the message.
#[derive(Debug, Default)]
struct ReplyContent {
    text: String,
    thinking: String,
    refusal: String,
    calls: BTreeMap<(u32, CallSlot), ComparedCall>,
    finish: Option<(FinishReason, Option<String>)>,
    usage: Option<Usage>,
}

#[derive(Debug, Default)]
struct ComparedCall {
    name: String,
    /// `None` = they never came to an end.
    arguments: Option<String>,
}

impl ReplyContent {
    fn from_reply(reply: &ModelReply) -> Self {
        let call = |call: &throughline_wire::ReplyCall| {
            let arguments = call.ending.as_ref().map(|ending| match ending {
                Ok(arguments) => arguments.text.clone(),
                Err((why, _)) => unreadable_arguments(why),
            });
            ((call.position, call.slot), ComparedCall { name: call.name.as_str().to_owned(), arguments })
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

/// Placeholder for arguments that cannot be parsed.
fn unreadable_arguments(why: &BrokenCall) -> String {
    format!("{UNREADABLE}{}", to_json(why))
}

/// Identity of a decoded call: step and attempt of its reply; step and slot of the call.
type CallKey = ((u32, u32), (u32, CallSlot));

/// Every model call of a log, by step and attempt.
fn logged_calls(events: &[Event]) -> BTreeMap<(u32, u32), LoggedCall> {
    let mut calls_by_attempt: BTreeMap<(u32, u32), LoggedCall> = BTreeMap::new();
    let mut current: Option<(u32, u32)> = None;
    let mut refusals: HashMap<u32, bool> = HashMap::new();
    let mut calls: HashMap<CallId, CallKey> = HashMap::new();
    for event in events {
        if let (EventKind::StepStart { upstream, model, attempt, fallback, tools_offered, .. }, Some(step)) =
            (&event.kind, event.step)
        {
            current = Some((step, *attempt));
            let recorded = calls_by_attempt.entry((step, *attempt)).or_default();
            recorded.upstream.clone_from(upstream);
            recorded.model.clone_from(model);
            recorded.fallback = *fallback as usize;
            recorded.offered.clone_from(tools_offered);
            continue;
        }
        let Some(key) = current else { continue };
        let content = &mut calls_by_attempt.entry(key).or_default().content;
        match &event.kind {
            EventKind::BlockStart(BlockStart::Text { code }) => {
                if let Some(block) = event.block {
                    refusals.insert(block, code.as_deref() == Some("refusal"));
                }
            }
            EventKind::ContentDelta { text, .. } => {
                let refused = event.block.and_then(|block| refusals.get(&block)).copied().unwrap_or(false);
                if refused { content.refusal.push_str(text) } else { content.text.push_str(text) }
            }
            EventKind::Thinking { text, .. } => content.thinking.push_str(text),
            EventKind::ToolUse { wire_name, source, slot, position, .. } if source != HOSTED => {
                let call_key = (*position, *slot);
                content
                    .calls
                    .insert(call_key, ComparedCall { name: wire_name.as_str().to_owned(), arguments: None });
                if let Some(id) = &event.tool_id {
                    calls.insert(id.clone(), (key, call_key));
                }
            }
            EventKind::ToolInput(input) => {
                if let Some(call) = compared_call_mut(&mut calls_by_attempt, &calls, event) {
                    call.arguments = input_text(input);
                }
            }
            EventKind::ToolInputReset => {
                if let Some(call) = compared_call_mut(&mut calls_by_attempt, &calls, event) {
                    call.arguments = None;
                }
            }
            EventKind::StepEnd { finish: Some(finish), finish_raw, usage, .. } => {
                content.finish = Some((*finish, finish_raw.clone()));
                content.usage = *usage;
            }
            _ => {}
        }
    }
    calls_by_attempt
}

fn compared_call_mut<'a>(
    calls_by_attempt: &'a mut BTreeMap<(u32, u32), LoggedCall>,
    calls: &HashMap<CallId, CallKey>,
    event: &Event,
) -> Option<&'a mut ComparedCall> {
    let (key, call_key) = calls.get(event.tool_id.as_ref()?)?;
    calls_by_attempt.get_mut(key)?.content.calls.get_mut(call_key)
}

/// The argument text as it was run, or what could not be read.
fn input_text(input: &ToolInput) -> Option<String> {
    match (&input.text, &input.arguments) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(arguments)) => Some(arguments.to_string()),
        (None, None) => input.broken.as_ref().map(unreadable_arguments),
    }
}

/// Extent of the comparison: everything, or a common prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparisonExtent {
    /// Both must be complete.
    Complete,
    /// One may be the beginning of the other.
    Prefix,
}

fn compare(then: &ReplyContent, now: &ReplyContent, extent: RawExtent) -> RedecodeOutcome {
    let comparison = match (extent, &then.finish) {
        (RawExtent::Complete, Some(_)) => ComparisonExtent::Complete,
        _ => ComparisonExtent::Prefix,
    };
    // Arguments that had not arrived completely cannot be compared.
    let is_cut = |arguments: &&String| arguments.starts_with(UNREADABLE);
    let mut differences = Vec::new();
    for (what, then, now) in [
        ("text", &then.text, &now.text),
        ("thinking", &then.thinking, &now.thinking),
        ("refusal", &then.refusal, &now.refusal),
    ] {
        differences.extend(text_difference(what, then, now, comparison));
    }
    for (at, (then, now)) in then.calls.values().zip(now.calls.values()).enumerate() {
        let what = format!("call {}", at + 1);
        differences.extend(text_difference(
            &format!("{what} name"),
            &then.name,
            &now.name,
            ComparisonExtent::Complete,
        ));
        match (&then.arguments, &now.arguments) {
            (Some(then), Some(now))
                if comparison == ComparisonExtent::Complete || ![then, now].iter().any(is_cut) =>
            {
                differences.extend(text_difference(&format!("{what} arguments"), then, now, comparison));
            }
            (then, now) if comparison == ComparisonExtent::Complete && then != now => {
                let arguments_text =
                    |arguments: &Option<String>| arguments.clone().unwrap_or_else(|| "none".to_owned());
                differences.push(DecodeDifference {
                    what,
                    at: None,
                    recorded: arguments_text(then),
                    decoded: arguments_text(now),
                });
            }
            _ => {}
        }
    }
    if comparison == ComparisonExtent::Complete {
        let (calls, finish, usage) = (
            (then.calls.len().to_string(), now.calls.len().to_string()),
            (to_json(&then.finish), to_json(&now.finish)),
            (to_json(&then.usage), to_json(&now.usage)),
        );
        for (what, (then, now)) in [("calls", calls), ("finish", finish), ("usage", usage)] {
            if then != now {
                differences.push(DecodeDifference {
                    what: what.to_owned(),
                    at: None,
                    recorded: then,
                    decoded: now,
                });
            }
        }
    }
    match (differences.is_empty(), comparison) {
        (false, _) => RedecodeOutcome::Different(differences),
        (true, ComparisonExtent::Complete) => RedecodeOutcome::Same,
        (true, ComparisonExtent::Prefix) => RedecodeOutcome::SamePrefix,
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Position of the first difference of two texts.
fn text_difference(
    what: &str,
    then: &str,
    now: &str,
    comparison: ComparisonExtent,
) -> Option<DecodeDifference> {
    let same = match comparison {
        ComparisonExtent::Complete => then == now,
        ComparisonExtent::Prefix => then.starts_with(now) || now.starts_with(then),
    };
    if same {
        return None;
    }
    let at = then.chars().zip(now.chars()).take_while(|(then, now)| then == now).count();
    let around =
        |text: &str| text.chars().skip(at.saturating_sub(BEFORE_CHARS)).take(SHOWN_CHARS_MAX).collect();
    Some(DecodeDifference {
        what: what.to_owned(),
        at: Some(at),
        recorded: around(then),
        decoded: around(now),
    })
}
