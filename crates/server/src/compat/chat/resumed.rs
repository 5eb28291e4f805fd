//! A request that brings results of the client's own tools, or the answer to a question, goes on with the turn that waits for
//! them.
//!
//! The turn's own history is exact: it has the calls that the server ran in the same step, which the client has never
//! seen. If the turn is gone (expired, stopped, another server's), or the request says which tool is to be called, the messages
//! as given are answered by a new one.

use super::answer::event_of;
use crate::chat_questions::{Asked, find};
use crate::error::ApiError;
use crate::hub::{Standing, Unparked};
use crate::principal::Principal;
use crate::state::AppState;
use crate::surface::chat_completions::question::{Reply, reply};
use crate::surface::chat_completions::request::ChatRequest;
use crate::surface::chat_completions::{Asking, Projection, call_id};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::TurnControl;
use throughline::engine::{ClientAnswer, ClientStatus, When};
use throughline::tools::Toggle;
use throughline_engine::{EventKind, TurnId};
use throughline_wire::{CallId, Message, UserPart};

/// Records read at once.
const RECORDS_PER_READ: usize = 1_024;

/// A turn that waits for what the request brings.
pub(super) struct Resumed {
    pub turn: TurnId,
    pub message_id: String,
    /// The last event of the answer before.
    pub after: u64,
    brings: Brings,
}

/// What the turn waits for.
enum Brings {
    /// Results of the client's own tools.
    Results {
        control: TurnControl,
        answers: Vec<(CallId, String)>,
        /// What the user says behind the results.
        then: Vec<UserPart>,
    },
    /// The answer of a person.
    Answer { asked: Asked, said: Vec<UserPart> },
}

/// A turn as far as its log goes, or as far as an answer before has shown it.
pub(super) struct Seen {
    pub projection: Projection,
    pub after: u64,
    pub message_id: String,
}

/// Brings a projection to an event of its turn, or to the last one.
pub(super) async fn caught_up(
    state: &AppState,
    turn: &TurnId,
    mut projection: Projection,
    upto: u64,
) -> Result<Seen, ApiError> {
    let (mut after, mut message_id) = (0, String::new());
    while after < upto {
        let mut records = state.log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        records.retain(|record| record.seq <= upto);
        let Some(last) = records.last() else { break };
        after = last.seq;
        for event in records.iter().filter_map(event_of) {
            if let EventKind::StreamStart { message_id: id, .. } = &event.kind {
                message_id = id.as_str().to_owned();
            }
            projection.catch_up(&event);
        }
    }
    Ok(Seen { projection, after, message_id })
}

/// The turn that waits for the results of this request, if there is one. The projection is brought to where its answer
/// before ended.
///
/// # Errors
/// 400: the turn waits for more than the request brings.
pub(super) async fn waiting_turn(
    state: &AppState,
    principal: &Principal,
    request: &ChatRequest,
    projection: &mut Projection,
) -> Result<Option<Resumed>, ApiError> {
    let mut answers = BTreeMap::new();
    let mut turns = Vec::new();
    for (id, output) in &request.talk.answers {
        // An id that is none of ours: another server's history.
        let Some((turn, call)) = call_id::ours(id) else { return Ok(None) };
        answers.insert(call, output.text.clone());
        turns.push(turn);
    }
    turns.dedup();
    let [turn] = turns.as_slice() else { return Ok(None) };
    let Ok(Standing::Running(control)) = state.hub.control(&principal.user, turn).await else {
        return Ok(None);
    };

    // Looked at apart: if the turn is not waiting, the projection of a new one begins with nothing.
    let Seen { projection: mut seen, after, message_id } =
        caught_up(state, turn, projection.afresh(), u64::MAX).await?;
    if !seen.waits_for_the_client_alone() {
        return Ok(None);
    }
    // A choice holds from the first step of a turn on, so it needs one of its own, and nobody will come back to this one.
    // What the client's tools give a waiting turn is text.
    let has_pictures = request.talk.answers.iter().any(|(_, output)| !output.media.is_empty());
    if !request.tool_choice.is_auto() || request.server_tools == Toggle::Off || has_pictures {
        let _ = control.cancel().await;
        return Ok(None);
    }
    let wanted = seen.calls_of_the_client();
    let missing: Vec<String> = wanted
        .iter()
        .filter(|call| !answers.contains_key(*call))
        .map(|call| format!("`{}`", call_id::public(call)))
        .collect();
    if !missing.is_empty() {
        return Err(ApiError::bad_request(
            "missing_results",
            format!("no result is there for {}", missing.join(", ")),
        )
        .param("messages")
        .remedy(
            "send the assistant's message with all its `tool_calls`, and one message of role `tool` for each",
        ));
    }
    let answers: Vec<_> =
        wanted.into_iter().filter_map(|call| answers.remove(&call).map(|text| (call, text))).collect();
    if state.hub.unpark(&principal.user, turn)? == Unparked::Gone {
        return Ok(None);
    }
    seen.go_on();
    *projection = seen;
    let then = request.talk.input.clone();
    let brings = Brings::Results { control, answers, then };
    Ok(Some(Resumed { turn: turn.clone(), message_id, after, brings }))
}

/// The turn whose question the request answers, if there is one. The projection is brought to where its answer before ended. // R: A3
pub(super) async fn asking_turn(
    state: &AppState,
    principal: &Principal,
    request: &ChatRequest,
    projection: &mut Projection,
) -> Result<Option<Resumed>, ApiError> {
    let user = principal.user.as_str();
    let said = said_since(request);
    if said.is_empty() {
        return Ok(None);
    }
    let Some(open) = find(state, user, &request.talk.history).await? else { return Ok(None) };
    let turn = open.turn();
    let is_gone = state.hub.unpark(user, &turn)? == Unparked::Gone;
    let Some(asked) = open.take(state, user).await? else { return Ok(None) };
    // It was answered elsewhere, or its time was over: a yes or a no still asks for the rest of it, and anything else is new.
    if is_gone && matches!(reply(&said), Reply::Words(_)) {
        return Ok(None);
    }
    // Whoever answers in words sees the next question in words, too.
    let begun = projection.afresh().asking(Asking::Text);
    let Ok(seen) = caught_up(state, &turn, begun, asked.after).await else { return Ok(None) };
    let Seen { projection: mut seen, after, message_id } = seen;
    seen.go_on_answered();
    *projection = seen;
    Ok(Some(Resumed { turn, message_id, after, brings: Brings::Answer { asked, said } }))
}

/// Everything that the user has said behind the assistant's last message.
fn said_since(request: &ChatRequest) -> Vec<UserPart> {
    let users = request.talk.history.iter().rev().map_while(|message| match message {
        Message::User(parts) => Some(parts),
        Message::Step(_) => None,
    });
    let mut messages: Vec<&Vec<UserPart>> = users.collect();
    messages.reverse();
    messages.push(&request.talk.input);
    messages.into_iter().flatten().cloned().collect()
}

impl Resumed {
    /// Gives the turn what it waits for.
    ///
    /// # Errors
    /// It cannot be given; nothing more will come of the turn.
    pub(super) async fn go_on(self, state: &AppState, principal: &Principal) -> Result<(), ApiError> {
        match self.brings {
            Brings::Results { control, answers, then } => {
                if !then.is_empty() {
                    // Before the results, so that the next step has both. If the turn has ended meanwhile, its answer says so.
                    let _ = control.say(then, When::NextStep).await;
                }
                for (call, text) in answers {
                    let output = Value::String(text);
                    let answer = ClientAnswer { status: ClientStatus::Success, output, applied: None };
                    // Another request may have brought the same: the first one counts.
                    let _ = state.app.answer_client_call(Some(principal.user.clone()), &call, answer).await;
                }
            }
            Brings::Answer { asked, said } => {
                asked.answer(state, &principal.user, &said).await?;
            }
        }
        Ok(())
    }
}
