//! The only place that builds a [`ClosedStep`]: calls leave it as pairs with their outcome.
//!
//! A call that has no outcome yet has no pair, so a request cannot be written while one is open:
//! [`next_request`] gives `None` then. Calls of a step that broke off may be incomplete; they are left out,
//! even if an early start has run them ("ran, not used").

use crate::id::ConversationId;
use crate::record::{CallRecord, ClosedCall, StepEnd, TurnRecord};
use crate::setup::{TurnSetup, TurnStart};
use crate::step::shorten::shorten_outputs;
use crate::text::canonical;
use crate::text_rules::apply_to_request;
use crate::tool::{CallRunner, OfferedTool};
use std::collections::BTreeMap;
use throughline_wire::{
    Call, CallArguments, CallOutcome, ClosedStep, Message, ModelRequest, ToolChoice, UserPart,
};

/// The next model call; `None` while a call has no outcome.
pub(crate) fn next_request(
    record: &TurnRecord,
    setup: &TurnSetup,
    start: &TurnStart,
) -> Option<ModelRequest> {
    let choice = tool_choice(record, setup);
    let mut messages = full_history(record, setup, start)?;
    // The key depends on the original messages, not on what text rules make of them.
    let cache_key = cache_key(&messages, start);
    apply_to_request(&setup.text_rules, &mut messages);
    if record.outputs_shortened {
        shorten_outputs(&mut messages, setup.limits.shortened_output_bytes_max);
    }
    Some(ModelRequest {
        cache_key: Some(cache_key),
        model: setup
            .upstreams
            .get(record.upstream)
            .map(|upstream| upstream.model.clone())
            .unwrap_or_default(),
        instructions: setup.instructions.clone(),
        messages,
        tools: offered_tools(&choice, setup).map(|tool| tool.definition.clone()).collect(),
        tool_choice: choice,
        settings: setup.settings.clone(),
    })
}

/// Number of results that would become shorter if the history had to be shortened.
pub(crate) fn shortenable_results(record: &TurnRecord, setup: &TurnSetup, start: &TurnStart) -> usize {
    let messages = full_history(record, setup, start);
    messages.map_or(0, |mut messages| shorten_outputs(&mut messages, setup.limits.shortened_output_bytes_max))
}

fn full_history(record: &TurnRecord, setup: &TurnSetup, start: &TurnStart) -> Option<Vec<Message>> {
    let mut messages = setup.history.clone();
    messages.extend(turn_messages(record, start)?);
    Some(messages)
}

fn cache_key(messages: &[Message], start: &TurnStart) -> String {
    conversation_key(start.conversation_id.as_ref(), messages)
        .unwrap_or_else(|| start.turn_id.as_str().to_owned())
}

/// Key of a conversation, as in [`ModelRequest::cache_key`]: its id or, if a client sends the whole history
/// each time, a hash of its beginning, which stays the same as the history grows. `None` = the history is
/// empty.
pub fn conversation_key(conversation: Option<&ConversationId>, messages: &[Message]) -> Option<String> {
    match (conversation, messages.first()) {
        (Some(conversation), _) => Some(conversation.as_str().to_owned()),
        (None, first) => first.map(canonical::hash_of),
    }
}

/// Tool choice of the current step. A forced choice holds until one step is committed: a step that was lost with its
/// process is requested again.
pub(crate) fn tool_choice(record: &TurnRecord, setup: &TurnSetup) -> ToolChoice {
    let no_step_committed = record.steps.iter().all(|step| step.end != StepEnd::Committed);
    match record.tools_off_after {
        Some(_) => ToolChoice::None,
        None if no_step_committed => setup.tool_choice.clone(),
        None => ToolChoice::Auto,
    }
}

/// The tools that a step of this choice is offered, in stable order.
pub(crate) fn offered_tools<'s>(
    choice: &'s ToolChoice,
    setup: &'s TurnSetup,
) -> impl Iterator<Item = &'s OfferedTool> {
    // A requester that forces a call means one of the tools that it has declared.
    let has_requester_tools = setup.tools.iter().any(|tool| tool.runs == CallRunner::Requester);
    setup.tools.iter().filter(move |tool| match choice {
        // History needs them.
        ToolChoice::Auto | ToolChoice::None => true,
        ToolChoice::Required => !has_requester_tools || tool.runs == CallRunner::Requester,
        ToolChoice::Tool(name) => tool.wire_name == *name,
    })
}

/// Messages that the turn adds to the history so far; `None` while a call has no outcome.
pub(crate) fn turn_messages(record: &TurnRecord, start: &TurnStart) -> Option<Vec<Message>> {
    // A turn without input continues the end of the history: the outcome of a call, or a truncated answer.
    let mut messages = Vec::new();
    if !start.input.is_empty() {
        messages.push(Message::User(start.input.clone()));
    }
    let mut calls_of_steps = BTreeMap::<u32, Vec<&CallRecord>>::new();
    for call in record.calls.iter() {
        calls_of_steps.entry(call.step).or_default().push(call);
    }
    for (number, step) in (1..).zip(&record.steps) {
        let mut calls = calls_of_steps.remove(&number).unwrap_or_default();
        if calls.iter().any(|call| !call.is_closed()) {
            return None;
        }
        calls.retain(|call| !call.is_hosted() && !call.is_superseded() && record.is_in_history(number));
        calls.sort_by_key(|call| call.recorded_order());
        let calls: Vec<(Call, CallOutcome)> = calls.into_iter().filter_map(call_with_outcome).collect();
        let closed = ClosedStep {
            thinking: step.thinking.clone(),
            text: step.text_by_model(),
            calls,
            // The state of a step that broke off may refer to calls that are left out here. Providers do not
            // accept reasoning alone as a message.
            provider_state: step
                .provider_state
                .clone()
                .filter(|_| step.end == StepEnd::Committed && !step.answer_missing),
            model: step.model.clone(),
        };
        let is_empty = closed.text.is_empty() && closed.calls.is_empty() && closed.provider_state.is_none();
        if !is_empty {
            messages.push(Message::Step(closed));
        }
        // Notes and messages of the user come after all outcomes of a step: nothing separates a call from its
        // outcome.
        for note in &step.notes {
            messages.push(Message::User(vec![UserPart::Text { text: note.clone() }]));
        }
        for delivered in &step.messages {
            messages.push(Message::User(delivered.input.clone()));
        }
    }
    Some(messages)
}

/// A call with how it ended.
fn call_with_outcome(call: &CallRecord) -> Option<(Call, CallOutcome)> {
    let ClosedCall { input, outcome, .. } = call.closed()?;
    let arguments = match &input.arguments {
        Ok(arguments) => Ok(arguments.clone()),
        Err((_, raw)) => Err(raw.clone()),
    };
    let is_edit = |edited: &&CallArguments| {
        call.original_arguments().is_none_or(|written| written.value != edited.value)
    };
    let call = Call {
        id: call.id.clone(),
        upstream_id: call.upstream_id.clone(),
        name: call.wire_name.clone(),
        kind: call.kind,
        arguments,
        ran_with: input.edited.as_ref().filter(is_edit).cloned(),
    };
    Some((call, outcome.clone()))
}
