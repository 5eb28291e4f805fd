//! What is said over the WebSocket beside events.

use crate::api::approvals::Approve;
use crate::api::calls::CallResult;
use crate::api::messages::Say;
use crate::api::turns::{StartTurn, TurnStarted};
use crate::error::{ApiError, ErrorContent};
use crate::extract::parse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::{ClientTool, Message};
use throughline_engine::closest_names;

/// All operations.
const NAMES: [&str; 11] = [
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

/// What a client wants.
#[derive(Debug)]
pub(super) enum Op {
    Start(Box<StartTurn>),
    Subscribe(Subscribe),
    Unsubscribe(OfTurn),
    Approve(OfQuestion),
    Cancel(OfTurn),
    CancelCall(OfCall),
    Say(OfTurnSay),
    Tools(Tools),
    Result(OfCallResult),
    Ping,
}

/// An operation, and the client's own word for it, which is in the answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub reference: Option<Value>,
    pub op: Result<Op, ApiError>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subscribe {
    pub turn_id: String,
    /// The last event that was seen.
    #[serde(default)]
    pub after: u64,
    /// `snapshot`: begin with the message as it is.
    #[serde(default)]
    pub from: Option<crate::api::events::FromWhat>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTurn {
    pub turn_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfQuestion {
    pub turn_id: String,
    pub approval_id: String,
    #[serde(flatten)]
    pub answer: Approve,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfCall {
    pub turn_id: String,
    pub tool_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfCallResult {
    pub turn_id: String,
    pub tool_id: String,
    #[serde(flatten)]
    pub result: CallResult,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfTurnSay {
    pub turn_id: String,
    #[serde(flatten)]
    pub say: Say,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tools {
    /// The client's id; it may come back under it. Absent = one for this connection.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Which agent they are for. Toggles of agents hold for these tools as for all, so that it need not be said.
    #[serde(default)]
    #[allow(dead_code, reason = "accepted for clients that say it")]
    pub agent: Option<String>,
    pub tools: Vec<ClientTool>,
}

/// What the server says beside events.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Told<'a> {
    /// A turn runs; its events follow.
    Started(TurnStarted),
    /// A turn's events follow.
    Subscribed { turn_id: &'a str },
    /// No more events of this turn come: they were not wanted any more, all have come, or the server stops.
    Unsubscribed { turn_id: &'a str, last_seq: u64, ended: bool },
    /// It was done. What came of it is in the events.
    Done { status: &'a str },
    /// A message waits for its time.
    Queued { id: String },
    /// These tools are offered from now on.
    ToolsDeclared { client_id: &'a str, tools: usize },
    /// The server is there.
    Pong { timestamp: i64 },
    /// It was not done.
    Error { error: ErrorContent },
}

/// What stands for the events up to a number.
#[derive(Debug, Serialize)]
pub(super) struct WholeMessage<'a> {
    pub r#type: &'static str,
    pub turn_id: &'a str,
    pub last_seq: u64,
    pub message: &'a Message,
}

/// Reads one message of a client.
pub(super) fn read(text: &str) -> Asked {
    let mut fields: serde_json::Map<String, Value> = match parse(text.as_bytes()) {
        Ok(fields) => fields,
        Err(error) => {
            return Asked { reference: None, op: Err(error.remedy("send one JSON object a message")) };
        }
    };
    let reference = fields.remove("ref");
    let name = match fields.remove("op") {
        Some(Value::String(name)) => name,
        _ => {
            let error = ApiError::bad_request("missing_field", "`op` says what is wanted").param("op");
            return Asked { reference, op: Err(error.remedy(format!("one of {}", NAMES.join(", ")))) };
        }
    };
    Asked { reference, op: op(&name, Value::Object(fields)) }
}

fn op(name: &str, fields: Value) -> Result<Op, ApiError> {
    // Through text, so that what does not fit is told in the same words as over HTTP.
    let text = fields.to_string();
    let text = text.as_bytes();
    Ok(match name {
        "start" => Op::Start(Box::new(parse(text)?)),
        "subscribe" => Op::Subscribe(parse(text)?),
        "unsubscribe" => Op::Unsubscribe(parse(text)?),
        // A running tool's question is answered like any other.
        "approve" | "answer" => Op::Approve(parse(text)?),
        "cancel" => Op::Cancel(parse(text)?),
        "cancel_call" => Op::CancelCall(parse(text)?),
        "say" => Op::Say(parse(text)?),
        "tools" => Op::Tools(parse(text)?),
        "result" => Op::Result(parse(text)?),
        "ping" => Op::Ping,
        name => {
            let error = ApiError::bad_request("unknown_op", format!("there is no op `{name}`")).param("op");
            let meant = closest_names(name, NAMES);
            return Err(error.remedy(match meant.first() {
                Some(meant) => format!("did you mean `{meant}`? There are {}", NAMES.join(", ")),
                None => format!("there are {}", NAMES.join(", ")),
            }));
        }
    })
}
