//! WebSocket messages other than events.

use crate::api::approvals::ResolveApproval;
use crate::api::calls::CallResult;
use crate::api::messages::SendMessage;
use crate::api::turns::{StartTurn, TurnStarted};
use crate::error::{ApiError, ErrorMessage};
use crate::extract::parse_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::{AssistantMessage, ClientToolSpec};
use throughline_engine::suggest_names;

/// Names of all operations.
const OP_NAMES: [&str; 11] = [
    "start",
    "subscribe",
    "unsubscribe",
    "approve",
    "answer",
    "cancel",
    "cancel_call",
    "say",
    "tools",
    "result",
    "ping",
];

/// Operation that a client requests.
#[derive(Debug)]
pub(super) enum ClientOp {
    Start(Box<StartTurn>),
    Subscribe(SubscribeOp),
    Unsubscribe(TurnOp),
    Approve(ApprovalOp),
    Cancel(TurnOp),
    CancelCall(CallOp),
    SendMessage(SendMessageOp),
    Tools(DeclareToolsOp),
    Result(CallResultOp),
    Ping,
}

/// An operation, with the client's id for it, which the answer repeats.
#[derive(Debug)]
pub(super) struct OpRequest {
    pub reference: Option<Value>,
    pub op: Result<ClientOp, ApiError>,
    /// The equivalent HTTP request, if it is a command to a turn: its owner may be another server.
    pub command: Option<CommandRequest>,
}

/// A command to a turn as a request over HTTP.
#[derive(Debug)]
pub(super) struct CommandRequest {
    pub turn_id: String,
    pub path: String,
    /// JSON.
    pub body: String,
}

/// True for ids in the server's format: they need no escaping in a path.
fn is_path_segment(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

impl CommandRequest {
    fn new(op: &str, mut fields: serde_json::Map<String, Value>) -> Option<Self> {
        let mut take_id = |name: &str| match fields.remove(name) {
            Some(Value::String(id)) if is_path_segment(&id) => Some(id),
            _ => None,
        };
        let turn_id = take_id("turn_id")?;
        let command = match op {
            "approve" | "answer" => format!("approvals/{}", take_id("approval_id")?),
            "cancel" => "cancel".to_owned(),
            "cancel_call" => format!("calls/{}/cancel", take_id("tool_id")?),
            "say" => "messages".to_owned(),
            "result" => format!("calls/{}/result", take_id("tool_id")?),
            _ => return None,
        };
        let path = format!("/v1/turns/{turn_id}/{command}");
        Some(Self { turn_id, path, body: Value::Object(fields).to_string() })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeOp {
    pub turn_id: String,
    /// Number of the last event that the client has.
    #[serde(default)]
    pub after: u64,
    /// `snapshot`: begin with the current message.
    #[serde(default)]
    pub from: Option<crate::api::events::StartFrom>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnOp {
    pub turn_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ApprovalOp {
    pub turn_id: String,
    pub approval_id: String,
    #[serde(flatten)]
    pub answer: ResolveApproval,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallOp {
    pub turn_id: String,
    pub tool_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallResultOp {
    pub turn_id: String,
    pub tool_id: String,
    #[serde(flatten)]
    pub result: CallResult,
}

#[derive(Debug, Deserialize)]
pub(super) struct SendMessageOp {
    pub turn_id: String,
    #[serde(flatten)]
    pub message: SendMessage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeclareToolsOp {
    /// The client's id, under which it may reconnect. Absent = one for this connection.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Agent that the tools are for. An agent's toggles apply to these tools as to all others.
    #[serde(default)]
    #[allow(dead_code, reason = "accepted for clients that send it")]
    pub agent: Option<String>,
    pub tools: Vec<ClientToolSpec>,
}

/// Server message other than an event.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum ServerMessage<'a> {
    /// A turn runs; its events follow.
    Started(TurnStarted),
    /// A turn's events follow.
    Subscribed { turn_id: &'a str },
    /// No more events of this turn follow: the client unsubscribed, the turn has ended, or the server stops.
    Unsubscribed { turn_id: &'a str, last_seq: u64, ended: bool },
    /// The operation succeeded. The events have its result.
    Done { status: &'a str },
    /// The message is queued.
    Queued { id: String },
    /// The tools are offered from now on.
    ToolsDeclared { client_id: &'a str, tools: usize },
    /// Answer to a ping.
    Pong { timestamp: i64 },
    /// The operation failed.
    Error(ErrorMessage),
}

/// Snapshot that replaces the events up to a number.
#[derive(Debug, Serialize)]
pub(super) struct SnapshotMessage<'a> {
    pub r#type: &'static str,
    pub turn_id: &'a str,
    pub last_seq: u64,
    pub message: &'a AssistantMessage,
}

/// Reads one message of a client.
pub(super) fn parse_request(text: &str) -> OpRequest {
    let mut fields: serde_json::Map<String, Value> = match parse_json(text.as_bytes()) {
        Ok(fields) => fields,
        Err(error) => {
            let op = Err(error.remedy("send one JSON object a message"));
            return OpRequest { reference: None, op, command: None };
        }
    };
    let reference = fields.remove("ref");
    let name = match fields.remove("op") {
        Some(Value::String(name)) => name,
        _ => {
            let error = ApiError::bad_request("missing_field", "the operation").param("op");
            let op = Err(error.remedy(format!("one of {}", OP_NAMES.join(", "))));
            return OpRequest { reference, op, command: None };
        }
    };
    let command = CommandRequest::new(&name, fields.clone());
    OpRequest { reference, op: parse_op(&name, Value::Object(fields)), command }
}

fn parse_op(name: &str, fields: Value) -> Result<ClientOp, ApiError> {
    // Through text, so that errors are the same as over HTTP.
    let text = fields.to_string();
    let text = text.as_bytes();
    Ok(match name {
        "start" => ClientOp::Start(Box::new(parse_json(text)?)),
        "subscribe" => ClientOp::Subscribe(parse_json(text)?),
        "unsubscribe" => ClientOp::Unsubscribe(parse_json(text)?),
        // A running tool's question is answered like any other.
        "approve" | "answer" => ClientOp::Approve(parse_json(text)?),
        "cancel" => ClientOp::Cancel(parse_json(text)?),
        "cancel_call" => ClientOp::CancelCall(parse_json(text)?),
        "say" => ClientOp::SendMessage(parse_json(text)?),
        "tools" => ClientOp::Tools(parse_json(text)?),
        "result" => ClientOp::Result(parse_json(text)?),
        "ping" => ClientOp::Ping,
        name => {
            let error = ApiError::bad_request("unknown_op", format!("there is no op `{name}`")).param("op");
            let suggestions = suggest_names(name, OP_NAMES);
            return Err(error.remedy(match suggestions.first() {
                Some(suggestions) => {
                    format!("did you mean `{suggestions}`? There are {}", OP_NAMES.join(", "))
                }
                None => format!("there are {}", OP_NAMES.join(", ")),
            }));
        }
    })
}
