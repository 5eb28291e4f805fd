//! A request that contains results of the client's tools, or the answer to a question, continues the turn
//! that waits for them.
//!
//! The turn's own history is exact: it has the calls that the server ran in the same step, which the client
//! has never received. If the turn has ended (expired, stopped), or the request forces a tool, a new turn
//! answers the messages as given, with the reasoning that their turns have stored. If another server of the
//! same database runs the turn, the response is an error that names it.

use super::responder::parse_event;
use crate::chat_approvals::{StoredQuestions, find_in_conversation, find_open};
use crate::error::ApiError;
use crate::principal::Principal;
use crate::projections::chat_completions::question::{QuestionReply, read_reply};
use crate::projections::chat_completions::request::ChatRequest;
use crate::projections::chat_completions::{ApprovalChannel, ChatProjection, call_id};
use crate::state::AppState;
use crate::turn_log;
use crate::turn_manager::{TurnLookup, UnparkOutcome, WaitsFor};
use http::StatusCode;
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::TurnControl;
use throughline::engine::{ClientAnswer, ClientStatus, MessageTiming};
use throughline::tools::ToolToggle;
use throughline_engine::{EventKind, TurnId};
use throughline_wire::{Call, CallId, CallOutcome, ClosedStep, Message, UserPart};

/// Records per read.
const RECORDS_PER_READ: usize = 1_024;

/// Steps that get their reasoning back: each may be of another turn, which is read for it.
const STEPS_RESTORED_MAX: usize = 16;

/// A turn that waits for the request's input.
pub(super) struct ResumableTurn {
    pub turn: TurnId,
    pub message_id: String,
    /// The last event of the answer before.
    pub after: u64,
    input: ResumeInput,
}

/// Input that the turn waits for.
enum ResumeInput {
    /// Results of the client's own tools.
    Results {
        control: TurnControl,
        answers: Vec<(CallId, String)>,
        /// Message of the user after the results.
        message: Vec<UserPart>,
    },
    /// The answer of a person.
    Answer { questions: StoredQuestions, message: Vec<UserPart> },
}

/// A turn as far as its log goes, or as far as an answer before has shown it.
pub(super) struct TurnProjection {
    pub projection: ChatProjection,
    pub after: u64,
    pub message_id: String,
}

/// Brings a projection to an event of its turn, or to the last one.
pub(super) async fn project_up_to(
    state: &AppState,
    turn: &TurnId,
    mut projection: ChatProjection,
    upto: u64,
) -> Result<TurnProjection, ApiError> {
    let (mut after, mut message_id) = (0, String::new());
    while after < upto {
        let mut records = state.log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        records.retain(|record| record.seq <= upto);
        let Some(last) = records.last() else { break };
        after = last.seq;
        for event in records.iter().filter_map(parse_event) {
            if let EventKind::StreamStart { message_id: id, .. } = &event.kind {
                message_id = id.as_str().to_owned();
            }
            projection.replay(&event);
        }
    }
    Ok(TurnProjection { projection, after, message_id })
}

/// The turn that waits for the results of this request, if there is one. The projection is brought to where its answer
/// before ended.
///
/// # Errors
/// 400: the turn waits for more than the request brings. 503: another server runs it, or this one is starting.
pub(super) async fn turn_awaiting_results(
    state: &AppState,
    principal: &Principal,
    request: &ChatRequest,
    projection: &mut ChatProjection,
) -> Result<Option<ResumableTurn>, ApiError> {
    let mut answers = BTreeMap::new();
    let mut turns = Vec::new();
    for (id, output) in &request.transcript.tool_results {
        // An id in another format: another server's history.
        let Some((turn, call)) = call_id::parse_public(id) else { return Ok(None) };
        answers.insert(call, output.text.clone());
        turns.push(turn);
    }
    turns.dedup();
    let [turn] = turns.as_slice() else { return Ok(None) };
    let Some(TurnLookup::Running(control)) = find_turn(state, &principal.user, turn).await? else {
        return Ok(None);
    };

    // Looked at apart: if the turn is not waiting, the projection of a new one begins with nothing.
    let now = project_up_to(state, turn, projection.new_answer(), u64::MAX).await?;
    if !now.projection.calls().waits_for_results() {
        if now.projection.calls().has_unseen_question() {
            // No client returns to this turn.
            let _ = control.cancel().await;
        }
        return Ok(None);
    }
    // A tool choice applies from the first step of a turn, so it needs a new turn, and this one has no client
    // any more. Results of client tools can only be text in a waiting turn.
    let has_pictures = request.transcript.tool_results.iter().any(|(_, output)| !output.media.is_empty());
    if !request.tool_choice.is_auto() || request.server_tools == ToolToggle::Off || has_pictures {
        let _ = control.cancel().await;
        return Ok(None);
    }
    let wanted = now.projection.calls().client_call_ids();
    let missing: Vec<String> = wanted
        .iter()
        .filter(|call| !answers.contains_key(*call))
        .map(|call| format!("`{}`", call_id::to_public(call)))
        .collect();
    if !missing.is_empty() {
        return Err(ApiError::bad_request(
            "missing_results",
            format!("missing results for {}", missing.join(", ")),
        )
        .param("messages")
        .remedy(
            "send the assistant's message with all its `tool_calls`, and one message of role `tool` for each",
        ));
    }
    let answers: Vec<_> =
        wanted.into_iter().filter_map(|call| answers.remove(&call).map(|text| (call, text))).collect();
    let asks = now.projection.calls().has_question();
    // Events after the handover have not been shown: a person may have answered on the page.
    let TurnProjection { projection: mut turn_projection, after, message_id } =
        match now.projection.calls().handed_over_at() {
            Some(seq) => project_up_to(state, turn, projection.new_answer(), seq.0).await?,
            None => now,
        };
    // Last: an error before it leaves the turn parked, for another try.
    if state.turn_manager.unpark(&principal.user, turn, WaitsFor::ToolResults)? == UnparkOutcome::Ended {
        return Ok(None);
    }
    if asks {
        // The client that showed the calls could be asked in the text, regardless of this request's settings.
        turn_projection = turn_projection.with_approval_channel(ApprovalChannel::Text);
    }
    turn_projection.resume_with_results();
    *projection = turn_projection;
    let message = request.transcript.input.clone();
    let resume_input = ResumeInput::Results { control, answers, message };
    Ok(Some(ResumableTurn { turn: turn.clone(), message_id, after, input: resume_input }))
}

/// Gives the steps since the user's last message the reasoning that their turns have stored: a client returns text and calls, and
/// models that think refuse a step in the middle of an answer without it. Steps that a client has changed stay as they are.
pub(super) async fn restore_reasoning(state: &AppState, principal: &Principal, history: &mut [Message]) {
    let latest = history.iter_mut().rev().map_while(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    let mut of_turn: Option<(TurnId, Vec<ClosedStep>)> = None;
    for step in latest.take(STEPS_RESTORED_MAX) {
        let id = step.calls.first().and_then(|(call, _)| call_id::parse_public(call.id.as_str()));
        let Some((turn, _)) = id else { continue };
        let stored = match of_turn {
            Some((known, stored)) if known == turn => stored,
            _ => match state.turn_manager.steps_of(&principal.user, &turn).await {
                Ok(stored) => stored,
                // The request can be answered without.
                Err(error) => {
                    tracing::warn!(
                        turn = turn.as_str(),
                        ?error,
                        "the stored reasoning of a turn cannot be read"
                    );
                    return;
                }
            },
        };
        let with_state = stored.iter().filter(|stored| stored.provider_state.is_some());
        if let Some(stored) = with_state.into_iter().find(|stored| is_same_step(step, stored)) {
            step.provider_state.clone_from(&stored.provider_state);
            step.model.clone_from(&stored.model);
            step.thinking.clone_from(&stored.thinking);
            for ((call, _), (known, _)) in step.calls.iter_mut().zip(&stored.calls) {
                call.upstream_id.clone_from(&known.upstream_id);
            }
        }
        of_turn = Some((turn, stored));
    }
}

/// True if a client has returned a step as it was.
fn is_same_step(returned: &ClosedStep, stored: &ClosedStep) -> bool {
    let is_same_call = |((returned, _), (stored, _)): (&(Call, CallOutcome), &(Call, CallOutcome))| {
        let arguments = match (&returned.arguments, &stored.arguments) {
            (Ok(returned), Ok(stored)) => returned.value == stored.value,
            (Err(returned), Err(stored)) => returned == stored,
            _ => false,
        };
        call_id::to_public(&stored.id) == returned.id.as_str() && returned.name == stored.name && arguments
    };
    returned.text == stored.text
        && returned.calls.len() == stored.calls.len()
        && returned.calls.iter().zip(&stored.calls).all(is_same_call)
}

/// The state of a turn; `None` if it does not exist or belongs to another user. An uncertain state is an
/// error: a second turn would run in parallel.
async fn find_turn(state: &AppState, user: &str, turn: &TurnId) -> Result<Option<TurnLookup>, ApiError> {
    match state.turn_manager.lookup(user, turn).await {
        // After the restart it continues. Otherwise nothing here can continue it.
        Ok(TurnLookup::NotRunning) if state.turn_manager.is_stopping() => Err(turn_log::not_running(turn)),
        Ok(found) => Ok(Some(found)),
        Err(error) if error.status == StatusCode::NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

/// The turn whose question the request answers, if there is one. The projection is brought to where its answer before ended.
///
/// # Errors
/// 503: another server runs it, or this one is starting. The code is good for another try.
pub(super) async fn turn_awaiting_answer(
    state: &AppState,
    principal: &Principal,
    request: &ChatRequest,
    projection: &mut ChatProjection,
) -> Result<Option<ResumableTurn>, ApiError> {
    let user = principal.user.as_str();
    let mut input = input_since_reply(request);
    if input.is_empty() {
        return Ok(None);
    }
    let mut open_questions = find_open(state, user, &request.transcript.history).await?;
    if let (None, Some(conversation)) = (&open_questions, &request.conversation_id) {
        open_questions = find_in_conversation(state, user, conversation).await?;
        input.clone_from(&request.transcript.input);
    }
    let Some(open_questions) = open_questions else { return Ok(None) };
    let turn = open_questions.turn();
    // Before the code is used up, and the turn taken from the parked ones.
    find_turn(state, user, &turn).await?;
    // A user who answers in the chat sees the next question in the chat, too.
    let initial = projection.new_answer().with_approval_channel(ApprovalChannel::Text);
    let TurnProjection { projection: mut turn_projection, after, message_id } =
        project_up_to(state, &turn, initial, open_questions.after()).await?;
    let is_expired = state.turn_manager.unpark(user, &turn, WaitsFor::Approval)? == UnparkOutcome::Ended;
    let claimed = open_questions.claim(state, user).await;
    if !matches!(claimed, Ok(Some(_))) {
        state.turn_manager.resume_failed(&turn);
    }
    let Some(questions) = claimed? else { return Ok(None) };
    // The question was answered elsewhere, or has expired: a yes or a no still requests the rest of the
    // answer, and any other message is new input.
    if is_expired && matches!(read_reply(&input), QuestionReply::Words(_)) {
        return Ok(None);
    }
    turn_projection.resume_with_answer();
    *projection = turn_projection;
    Ok(Some(ResumableTurn {
        turn,
        message_id,
        after,
        input: ResumeInput::Answer { questions, message: input },
    }))
}

/// All messages of the user after the assistant's last message.
fn input_since_reply(request: &ChatRequest) -> Vec<UserPart> {
    let users = request.transcript.history.iter().rev().map_while(|message| match message {
        Message::User(parts) => Some(parts),
        Message::Step(_) => None,
    });
    let mut messages: Vec<&Vec<UserPart>> = users.collect();
    messages.reverse();
    messages.push(&request.transcript.input);
    messages.into_iter().flatten().cloned().collect()
}

impl ResumableTurn {
    /// Delivers the input that the turn waits for.
    ///
    /// # Errors
    /// It cannot be delivered; the turn produces no more output.
    pub(super) async fn deliver(self, state: &AppState, principal: &Principal) -> Result<(), ApiError> {
        match self.input {
            ResumeInput::Results { control, answers, message } => {
                if !message.is_empty() {
                    // Sent before the results, so that the next step has both. If the turn has ended by now,
                    // its answer reports that.
                    let _ = control.send(message, MessageTiming::NextStep).await;
                }
                for (call, text) in answers {
                    let output = Value::String(text);
                    let answer = ClientAnswer { status: ClientStatus::Success, output, applied: None };
                    // Another request may have brought the same: the first one counts.
                    let _ = state.app.answer_client_call(Some(principal.user.clone()), &call, answer).await;
                }
            }
            ResumeInput::Answer { questions, message: input } => {
                questions.answer(state, &principal.user, &input).await?;
            }
        }
        Ok(())
    }
}
