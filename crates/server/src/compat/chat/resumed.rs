//! A request that brings results of the client's own tools goes on with the turn that waits for them.
//!
//! The turn's own history is exact: it has the calls that the server ran in the same step, which the client has never
//! seen. If the turn is gone (expired, stopped, another server's), or the request says which tool is to be called, the messages
//! as given are answered by a new one.

use super::answer::event_of;
use crate::error::ApiError;
use crate::hub::{Standing, Unparked};
use crate::principal::Principal;
use crate::state::AppState;
use crate::surface::chat_completions::request::ChatRequest;
use crate::surface::chat_completions::{Projection, call_id};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::TurnControl;
use throughline::engine::{ClientAnswer, ClientStatus, When};
use throughline::tools::Toggle;
use throughline_engine::{EventKind, TurnId};
use throughline_wire::{CallId, UserPart};

/// Records read at once.
const RECORDS_PER_READ: usize = 1_024;

/// A turn that waits for what the request brings.
pub(super) struct Resumed {
    pub turn: TurnId,
    pub message_id: String,
    /// The last event of the answer before.
    pub after: u64,
    control: TurnControl,
    answers: Vec<(CallId, String)>,
    /// What the user says behind the results.
    then: Vec<UserPart>,
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
    let mut seen = projection.afresh();
    let (mut after, mut message_id) = (0, String::new());
    loop {
        let records = state.log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { break };
        after = last.seq;
        for event in records.iter().filter_map(event_of) {
            if let EventKind::StreamStart { message_id: id, .. } = &event.kind {
                message_id = id.as_str().to_owned();
            }
            seen.catch_up(&event);
        }
    }
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
    Ok(Some(Resumed { turn: turn.clone(), message_id, after, control, answers, then }))
}

impl Resumed {
    /// Gives the turn what it waits for.
    pub(super) async fn go_on(self, state: &AppState, principal: &Principal) {
        if !self.then.is_empty() {
            // Before the results, so that the next step has both. If the turn has ended meanwhile, its answer says so.
            let _ = self.control.say(self.then, When::NextStep).await;
        }
        for (call, text) in self.answers {
            let answer =
                ClientAnswer { status: ClientStatus::Success, output: Value::String(text), applied: None };
            // Another request may have brought the same: the first one counts.
            let _ = state.app.answer_client_call(Some(principal.user.clone()), &call, answer).await;
        }
    }
}
