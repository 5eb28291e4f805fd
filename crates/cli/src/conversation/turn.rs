//! A turn that is followed: its events, and commands to it. The same for a turn of the library and for one
//! over the API.

use super::api::{ApiFailure, ApiReply, ConversationApi, query_value};
use crate::chat::dialog::DialogReply;
use crate::chat::queue::QueuedText;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use throughline::{
    ApprovalDecision, ApprovalMode, ApprovalResponse, Event, EventKind, RememberRequest, ToolAnswer,
    ToolAnswerResult, TurnControl, TurnHandle,
};
use throughline_engine::{ArgumentConstraints, QuestionKind, UserMessageId};

/// Timeout for a server to reconnect to a turn that it runs.
const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// Pause between two attempts.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);

/// A turn, followed from one of its events to its end.
pub(crate) enum OngoingTurn {
    /// A turn of the library that is not stored.
    Ephemeral(Box<TurnHandle>),
    Stored(Box<StoredLiveTurn>),
}

/// A turn of a store, followed over the API.
pub(crate) struct StoredLiveTurn {
    api: ConversationApi,
    id: String,
    events: Option<EventReader>,
    after: u64,
    has_ended: bool,
    /// Approval mode of this command itself, since a server asks in any case.
    approval: Option<ApprovalMode>,
    /// Error that ended the following before the turn's end.
    lost: Option<ApiFailure>,
}

/// Sends to a turn. Cheap to clone.
#[derive(Clone)]
pub(crate) enum OngoingControl {
    /// A turn of the library.
    Ephemeral(TurnControl),
    Stored {
        api: ConversationApi,
        turn: String,
    },
}

impl OngoingTurn {
    /// Follows a turn of a store from its first event.
    ///
    /// # Errors
    /// The turn does not exist, or the server does not answer.
    pub(crate) async fn attach(
        api: ConversationApi,
        id: String,
        approval: Option<ApprovalMode>,
    ) -> Result<Self, ApiFailure> {
        let events = api.events(&id, 0).await?.map(EventReader::new);
        let has_ended = events.is_none();
        Ok(Self::Stored(Box::new(StoredLiveTurn {
            api,
            id,
            events,
            after: 0,
            has_ended,
            approval,
            lost: None,
        })))
    }

    /// The next event; `None` after the last one, or if the turn cannot be followed any more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match self {
            Self::Ephemeral(turn) => turn.next().await,
            Self::Stored(turn) => turn.next().await,
        }
    }

    pub(crate) fn control(&self) -> OngoingControl {
        match self {
            Self::Ephemeral(turn) => OngoingControl::Ephemeral(turn.control()),
            Self::Stored(turn) => OngoingControl::Stored { api: turn.api.clone(), turn: turn.id.clone() },
        }
    }

    /// Cancels the turn. The events tell whether it was in time.
    pub(crate) async fn cancel(&self) {
        self.control().cancel().await;
    }

    /// The error that ended the events before their end.
    pub(crate) fn lost(&mut self) -> Option<ApiFailure> {
        match self {
            Self::Ephemeral(_) => None,
            Self::Stored(turn) => turn.lost.take(),
        }
    }
}

impl StoredLiveTurn {
    async fn next(&mut self) -> Option<Event> {
        while !self.has_ended {
            let event = match &mut self.events {
                Some(events) => events.next().await,
                None => Ok(None),
            };
            match event {
                Ok(Some(event)) => {
                    // A server may repeat events after a reconnect.
                    if event.seq.0 <= self.after {
                        continue;
                    }
                    self.after = event.seq.0;
                    self.has_ended = matches!(event.kind, EventKind::StreamEnd { .. });
                    self.answer_by_itself(&event).await;
                    return Some(event);
                }
                Ok(None) | Err(_) => self.reconnect().await,
            }
        }
        None
    }

    /// Finds the turn again after its stream broke off.
    async fn reconnect(&mut self) {
        let since = Instant::now();
        loop {
            match self.api.events(&self.id, self.after).await {
                Ok(Some(reply)) => return self.events = Some(EventReader::new(reply)),
                Ok(None) => return self.has_ended = true,
                Err(failure) if since.elapsed() < RECONNECT_MAX && is_passing(&failure) => {
                    tokio::time::sleep(RECONNECT_INTERVAL).await;
                }
                Err(failure) => {
                    (self.lost, self.has_ended) = (Some(failure), true);
                    return;
                }
            }
        }
    }

    async fn answer_by_itself(&self, event: &Event) {
        let EventKind::ApprovalRequest { approval_id, kind, .. } = &event.kind else { return };
        let body = match &self.approval {
            Some(ApprovalMode::AllowAll) if *kind == QuestionKind::Call => json!({"decision": "approve"}),
            Some(ApprovalMode::DenyAll { reason }) => json!({"decision": "deny", "reason": reason}),
            _ => return,
        };
        // The outcome is in the events.
        let _ = self.api.post(&approval_path(&self.id, approval_id.as_str()), &body).await;
    }
}

/// A server that starts, or is not there for a moment.
fn is_passing(failure: &ApiFailure) -> bool {
    failure.is_disconnected() || failure.status == 503
}

fn approval_path(turn: &str, question: &str) -> String {
    format!("/v1/turns/{}/approvals/{}", query_value(turn), query_value(question))
}

impl OngoingControl {
    /// Stops the turn.
    pub(crate) async fn cancel(&self) {
        match self {
            Self::Ephemeral(control) => {
                let _ = control.cancel().await;
            }
            Self::Stored { api, turn } => {
                let path = format!("/v1/turns/{}/cancel", query_value(turn));
                // The turn has ended, or its server has: the events tell.
                let _ = api.post(&path, &json!({})).await;
            }
        }
    }

    /// Answers a question. The events tell whether the turn accepted it.
    ///
    /// # Errors
    /// The reason why the content does not fit: the question is still open.
    pub(crate) async fn answer(&self, reply: DialogReply) -> Result<(), String> {
        match self {
            Self::Ephemeral(control) => answer_library(control, reply).await,
            Self::Stored { api, turn } => {
                let (question, body) = reply_body(reply);
                match api.post(&approval_path(turn, &question), &body).await {
                    // Answered elsewhere, or expired: its event is on the way.
                    Err(failure) if matches!(failure.status, 404 | 409 | 410) => Ok(()),
                    Err(failure) => Err(failure.message),
                    Ok(_) => Ok(()),
                }
            }
        }
    }

    /// Sends a message into the turn. Messages that it does not read stay in the queue and begin the next
    /// turn.
    pub(crate) async fn send(&self, queued: QueuedText) {
        match self {
            Self::Ephemeral(control) => {
                let _ = control.send_as(queued.id, queued.text, queued.when).await;
            }
            Self::Stored { api, turn } => {
                let body = json!({
                    "input": [{"type": "text", "text": queued.text}],
                    "when": queued.when,
                    "id": queued.id.as_str(),
                });
                let _ = api.post(&format!("/v1/turns/{}/messages", query_value(turn)), &body).await;
            }
        }
    }

    /// Retracts a message. The events tell if it was read already.
    pub(crate) async fn retract(&self, id: UserMessageId) {
        match self {
            Self::Ephemeral(control) => {
                let _ = control.retract(id).await;
            }
            Self::Stored { api, turn } => {
                let (turn, id) = (query_value(turn), query_value(id.as_str()));
                let _ = api.delete(&format!("/v1/turns/{turn}/messages/{id}")).await;
            }
        }
    }
}

async fn answer_library(control: &TurnControl, reply: DialogReply) -> Result<(), String> {
    let _ = match reply {
        DialogReply::Decide(id, answer) => control.answer_with(id, answer).await,
        DialogReply::ApproveAll => control.answer_all(ApprovalDecision::Approve, None).await,
        DialogReply::ToolAnswered(id, answer) => {
            return match control.answer_tool(id, answer).await {
                ToolAnswerResult::Invalid { message } => Err(message),
                ToolAnswerResult::Accepted | ToolAnswerResult::NotOpen | ToolAnswerResult::TurnEnded => {
                    Ok(())
                }
            };
        }
    };
    Ok(())
}

/// The question and the body of an answer over the API.
fn reply_body(reply: DialogReply) -> (String, Value) {
    match reply {
        DialogReply::ApproveAll => ("all".to_owned(), json!({"decision": "approve"})),
        DialogReply::Decide(id, answer) => (id.as_str().to_owned(), decision_body(&answer)),
        DialogReply::ToolAnswered(id, answer) => {
            let body = match answer {
                ToolAnswer::Accept { content: Some(content) } => {
                    json!({"decision": "approve", "arguments": content})
                }
                ToolAnswer::Accept { content: None } => json!({"decision": "approve"}),
                _ => json!({"decision": "deny"}),
            };
            (id.as_str().to_owned(), body)
        }
    }
}

fn decision_body(answer: &ApprovalResponse) -> Value {
    let mut body = json!({"decision": answer.decision});
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body[name] = value;
        }
    };
    set("reason", answer.reason.clone().map(Value::from));
    set("arguments", answer.arguments.clone());
    set("arguments_hash", answer.arguments_hash.clone().map(Value::from));
    set("remember", answer.remember.as_ref().map(remember_body));
    set("stop", answer.stop.then_some(Value::Bool(true)));
    body
}

fn remember_body(remember: &RememberRequest) -> Value {
    let arguments = match &remember.constraints {
        ArgumentConstraints::Exact => json!("these"),
        ArgumentConstraints::Any => json!("any"),
        ArgumentConstraints::Arguments(tests) => json!(tests),
    };
    json!({"scope": remember.scope, "arguments": arguments})
}

/// Events out of a server-sent stream.
struct EventReader {
    reply: ApiReply,
    buffer: Vec<u8>,
    /// Bytes in which no frame ends.
    scanned: usize,
    events: VecDeque<Event>,
}

impl EventReader {
    fn new(reply: ApiReply) -> Self {
        Self { reply, buffer: Vec::new(), scanned: 0, events: VecDeque::new() }
    }

    async fn next(&mut self) -> Result<Option<Event>, ApiFailure> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let Some(chunk) = self.reply.chunk().await? else { return Ok(None) };
            self.buffer.extend_from_slice(&chunk);
            self.events.extend(take_events(&mut self.buffer, &mut self.scanned));
        }
    }
}

/// Takes the events of all whole frames off the front of the buffer. Frames end with an empty line; those that are no event
/// of the log (comments, snapshots) are skipped.
fn take_events(buffer: &mut Vec<u8>, scanned: &mut usize) -> Vec<Event> {
    let (mut events, mut begin) = (Vec::new(), 0);
    let mut at = *scanned;
    while at + 1 < buffer.len() {
        if buffer[at] == b'\n' && buffer[at + 1] == b'\n' {
            events.extend(event_of_frame(&buffer[begin..at]));
            begin = at + 2;
            at = begin;
        } else {
            at += 1;
        }
    }
    buffer.drain(..begin);
    *scanned = buffer.len().saturating_sub(1);
    events
}

fn event_of_frame(frame: &[u8]) -> Option<Event> {
    let mut lines = frame.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(b"data: ")).and_then(|data| serde_json::from_slice(data).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sse_events_are_parsed_for_every_chunk_size() {
        let event = |seq: u64| {
            format!(
                "id: {seq}\nevent: content_delta\ndata: {{\"type\":\"content_delta\",\"block\":0,\"text\":\"ü\",\
                 \"turn_id\":\"t\",\"seq\":{seq},\"timestamp\":0}}\n\n"
            )
        };
        let stream = format!("retry: 1000\n: open\n\n{}: hb 1\n\n{}{}", event(1), event(2), event(3));
        for size in 1..40 {
            let (mut buffer, mut scanned, mut seen) = (Vec::new(), 0, Vec::new());
            for chunk in stream.as_bytes().chunks(size) {
                buffer.extend_from_slice(chunk);
                seen.extend(take_events(&mut buffer, &mut scanned).into_iter().map(|event| event.seq.0));
            }
            assert_eq!(seen, [1, 2, 3], "{size}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn decision_request_includes_arguments_and_their_hash() {
        let answer = ApprovalResponse::approve().with_arguments(json!({"a": 1})).for_arguments("h");
        let (question, body) = reply_body(DialogReply::Decide("q".into(), answer));
        assert_eq!(question, "q");
        assert_eq!(body, json!({"decision": "approve", "arguments": {"a": 1}, "arguments_hash": "h"}));
        let remember = RememberRequest::any(throughline::ApprovalScope::Conversation);
        assert_eq!(remember_body(&remember), json!({"scope": "conversation", "arguments": "any"}));
    }
}
