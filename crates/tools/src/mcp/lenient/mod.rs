//! The messages of a server, read field by field: an invalid field affects only itself.
//!
//! The SDK reads a message as a whole. It drops a message that it cannot read, and the call waits for its
//! time limit. So every message of every transport is read here first, and the SDK is given one that it can
//! read: the valid parts of an answer with a fault for each of the others, or an error instead of an invalid
//! reply.

mod handshake;
mod json_text;
mod notification;
mod pending;
mod result;
mod tools;

pub(super) use result::base64_of;
pub(super) use tools::list_faults;
#[cfg(test)]
pub(super) use tools::read_list;

use super::depth::{MESSAGE_DEPTH_MAX, truncate_below};
use super::listing::TaskOnly;
use crate::schema::truncate_chars;
use pending::{FailedRequests, PendingRequests, RequestKind};
use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_wire::json::JsonError;

/// JSON-RPC code of the error that replaces an unreadable reply: the server has answered, but the result is
/// unknown. Outside the ranges that JSON-RPC reserves.
pub(crate) const UNREADABLE_REPLY: i32 = -31_077;

/// Most characters of a body that is no answer which an error has. It is read by the SDK, too, which writes it into a log.
const EXCERPT_CHARS_MAX: usize = 2_000;

/// Way on which a message came.
#[derive(Clone, Debug)]
pub(crate) enum MessageOrigin {
    /// A line of a program. Lines that are no messages are its log.
    Pipe,
    /// The HTTP answer to a request, by the number of the request.
    Response(i64),
    /// A stream of HTTP that belongs to no request.
    Stream,
}

/// Reads the messages of one connection. Clones read for the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageReader {
    pending: Arc<Mutex<PendingRequests>>,
    pub(crate) task_only: TaskOnly,
}

/// The beginning of a body, on one line.
fn excerpt(body: &str) -> String {
    let mut line = String::new();
    for word in body.split_whitespace() {
        line.extend((!line.is_empty()).then_some(' '));
        line.push_str(word);
        if line.len() > EXCERPT_CHARS_MAX {
            break;
        }
    }
    truncate_chars(&line, EXCERPT_CHARS_MAX)
}

impl MessageReader {
    fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a message of ours on its way out.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        self.pending().sent(message);
    }

    /// Drops a request whose reply is no longer awaited.
    pub(crate) fn forget(&self, id: &RequestId) {
        if let RequestId::Number(id) = id {
            self.pending().forget(*id);
        }
    }

    /// Converts one message of the server to those that the SDK is given: none for an invalid message, or for
    /// a reply that is not awaited.
    pub(crate) fn read(&self, message: &[u8], origin: &MessageOrigin) -> Vec<ServerJsonRpcMessage> {
        let text = String::from_utf8_lossy(message);
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.starts_with(['{', '[']) {
            return Vec::new();
        }
        let cut = truncate_below(text.as_bytes(), MESSAGE_DEPTH_MAX);
        let is_deep = cut.is_some();
        let cut = cut.map(|cut| String::from_utf8_lossy(&cut).into_owned());
        match json_text::parse(cut.as_deref().unwrap_or(text)) {
            Ok(Value::Array(batch)) if !is_deep => {
                batch.into_iter().flat_map(|message| self.read_value(message, origin, is_deep)).collect()
            }
            Ok(message) => self.read_value(message, origin, is_deep),
            Err(error) => self.unreadable(text, &no_json(error), origin),
        }
    }

    /// Converts the body of the answer to a request to the reply.
    ///
    /// # Errors
    ///
    /// The body has no reply, and the request is part of a handshake, whose failures have separate rules.
    pub(crate) fn read_answer(&self, body: &[u8], id: i64) -> Result<ServerJsonRpcMessage, String> {
        let messages = self.read(body, &MessageOrigin::Response(id));
        if let Some(reply) = reply_to(id, messages) {
            return Ok(reply);
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}').trim();
        let problem = match json_text::parse(text) {
            Err(error) => no_json(error),
            Ok(_) => "its answer holds no reply to the request".to_owned(),
        };
        self.fail_answer(id, problem).map_err(|problem| match text {
            "" => problem,
            // The code of the handshake knows the secrets that may be in it, and shows less of it than this.
            text => format!("{problem}: {}", excerpt(text)),
        })
    }

    /// An error instead of the answer to a request.
    ///
    /// # Errors
    ///
    /// The request is part of a handshake, whose failures have separate rules.
    pub(crate) fn fail_answer(&self, id: i64, problem: String) -> Result<ServerJsonRpcMessage, String> {
        let mut pending = self.pending();
        match pending.kind(id) {
            Some(RequestKind::Initialize | RequestKind::Discover) | None => Err(problem),
            Some(_) => {
                pending.forget(id);
                Ok(JsonRpcMessage::error(unreadable(&problem), Some(RequestId::Number(id))))
            }
        }
    }

    /// Reads the server's error from the body of an answer with an error status, if it is one.
    pub(crate) fn read_refusal(&self, body: &[u8], id: i64) -> Option<ServerJsonRpcMessage> {
        let text = String::from_utf8_lossy(body);
        let error = json_text::parse(text.trim_start_matches('\u{feff}').trim()).ok()?;
        let error = error.get("error").filter(|error| error.is_object())?.clone();
        self.pending().forget(id);
        Some(JsonRpcMessage::error(read_error(error), Some(RequestId::Number(id))))
    }

    /// The end of a message that was longer than is taken, of which both ends are there.
    pub(crate) fn too_long(
        &self,
        (head, tail): (&[u8], &[u8]),
        problem: &str,
        origin: &MessageOrigin,
    ) -> Vec<ServerJsonRpcMessage> {
        // The omitted middle counts as a string in the search for the id of the request.
        let text = format!("{}…{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        self.unreadable(text.trim(), problem, origin)
    }

    fn read_value(&self, message: Value, origin: &MessageOrigin, is_deep: bool) -> Vec<ServerJsonRpcMessage> {
        let Value::Object(message) = message else { return Vec::new() };
        if message.get("method").is_some_and(Value::is_string) {
            return notification::read(message, is_deep).into_iter().collect();
        }
        if message.contains_key("result") || message.contains_key("error") {
            return self.read_reply(message, origin, is_deep);
        }
        Vec::new()
    }

    fn read_reply(
        &self,
        mut message: Map<String, Value>,
        origin: &MessageOrigin,
        is_deep: bool,
    ) -> Vec<ServerJsonRpcMessage> {
        let error = message.remove("error").filter(|error| !error.is_null());
        let reply = match error {
            Some(error) => Err(read_error(error)),
            None => Ok(message.remove("result").unwrap_or_default()),
        };
        let id = match (message.get("id"), origin) {
            // Only our numeric ids count: a reply to a text id belongs to no request.
            (Some(Value::String(_)), _) => return Vec::new(),
            (Some(Value::Number(number)), _) => match integer(number) {
                Some(id) => id,
                None => return Vec::new(),
            },
            // A server that could not read the request has no number to answer it under.
            (_, MessageOrigin::Response(id)) => *id,
            (_, MessageOrigin::Pipe) => {
                // Some servers answer notifications: `{"result":null}`, or that they do not know the method.
                let says_nothing = match &reply {
                    Ok(result) => result.is_null() || result.as_object().is_some_and(Map::is_empty),
                    Err(error) => error.code == ErrorCode::METHOD_NOT_FOUND,
                };
                if says_nothing && self.pending().answers_notification() {
                    return Vec::new();
                }
                let error = reply.err().unwrap_or_else(|| unreadable("its reply names no request"));
                return errors(self.pending().orphan(error));
            }
            (_, MessageOrigin::Stream) => return Vec::new(),
        };
        let Some(kind) = self.pending().kind(id) else { return Vec::new() };
        let reply = match reply {
            // In a list the remaining parts of too deep definitions are reported. Any other answer would be
            // falsified.
            Ok(_) if is_deep && kind != RequestKind::ListTools => {
                Err(unreadable(&format!("the reply nests deeper than {MESSAGE_DEPTH_MAX} levels")))
            }
            Ok(result) => self.read_result(kind, result).map_err(|problem| unreadable(&problem)),
            Err(error) => Err(error),
        };
        let message = match reply {
            Ok(result) => JsonRpcMessage::response(result, RequestId::Number(id)),
            Err(error) => JsonRpcMessage::error(error, Some(RequestId::Number(id))),
        };
        let mut messages = vec![message];
        messages.extend(errors(self.pending().answered(id)));
        messages
    }

    fn read_result(&self, kind: RequestKind, result: Value) -> Result<ServerResult, String> {
        match kind {
            RequestKind::Initialize => Ok(handshake::read_initialize(result)),
            RequestKind::Discover => Ok(handshake::read_discover(result)),
            RequestKind::ListTools => {
                tools::read_list(result, &self.task_only).map(ServerResult::ListToolsResult)
            }
            RequestKind::CallTool => result::read_call(result),
            RequestKind::Listen | RequestKind::Other => Ok(serde_json::from_value(result.clone())
                .unwrap_or(ServerResult::CustomResult(CustomResult::new(result)))),
        }
    }

    /// A message that is no JSON. If it is a reply, its call ends now and not when its time is up.
    fn unreadable(&self, text: &str, problem: &str, origin: &MessageOrigin) -> Vec<ServerJsonRpcMessage> {
        let error = unreadable(problem);
        match (TornReply::of(text), origin) {
            (None, _) => Vec::new(),
            (Some(TornReply { id: Some(id) }), _) => self.fail(id, error),
            (Some(TornReply { id: None }), MessageOrigin::Response(id)) => self.fail(*id, error),
            (Some(TornReply { id: None }), MessageOrigin::Pipe) => errors(self.pending().orphan(error)),
            (Some(TornReply { id: None }), MessageOrigin::Stream) => Vec::new(),
        }
    }

    fn fail(&self, id: i64, error: ErrorData) -> Vec<ServerJsonRpcMessage> {
        let mut pending = self.pending();
        if pending.kind(id).is_none() {
            return Vec::new();
        }
        let mut failed = vec![(id, error)];
        failed.extend(pending.answered(id));
        errors(failed)
    }
}

/// True if a body may hold a message, by its beginning.
pub(crate) fn content_looks_like_message(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    matches!(body.first(), Some(b'{' | b'['))
}

fn reply_to(id: i64, messages: Vec<ServerJsonRpcMessage>) -> Option<ServerJsonRpcMessage> {
    messages.into_iter().find(|message| match message {
        JsonRpcMessage::Response(response) => response.id == RequestId::Number(id),
        JsonRpcMessage::Error(error) => error.id == Some(RequestId::Number(id)),
        _ => false,
    })
}

fn errors(failed: FailedRequests) -> Vec<ServerJsonRpcMessage> {
    let message = |(id, error)| JsonRpcMessage::error(error, Some(RequestId::Number(id)));
    failed.into_iter().map(message).collect()
}

fn unreadable(problem: &str) -> ErrorData {
    ErrorData::new(ErrorCode(UNREADABLE_REPLY), problem.to_owned(), None)
}

/// Description of a reply that is no JSON.
pub(super) fn no_json(error: JsonError) -> String {
    format!("its reply is no JSON: {error}")
}

/// The server's error, in any form.
fn read_error(error: Value) -> ErrorData {
    let code = match error.get("code") {
        Some(Value::Number(code)) => integer(code),
        Some(Value::String(code)) => code.trim().parse().ok(),
        _ => None,
    };
    let code = code.and_then(|code| i32::try_from(code).ok()).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let message = match (error.get("message"), &error) {
        (Some(Value::String(message)), _) | (_, Value::String(message)) => message.clone(),
        (Some(message), _) if !message.is_null() => message.to_string(),
        _ => error.to_string(),
    };
    ErrorData::new(code, message, error.get("data").cloned())
}

/// An integer, also in the form of a float (`7.0`).
fn integer(number: &serde_json::Number) -> Option<i64> {
    let whole = |float: &f64| float.fract() == 0.0 && float.abs() < 9e15;
    number.as_i64().or_else(|| number.as_f64().filter(whole).map(|float| float as i64))
}

/// A text that is no JSON and looks like a reply.
struct TornReply {
    /// Id of the request, if it is at a position where nothing inside the result could be mistaken for it.
    id: Option<i64>,
}

impl TornReply {
    fn of(text: &str) -> Option<Self> {
        let payload = ["\"result\"", "\"error\""].iter().filter_map(|name| text.find(name)).min();
        let head = &text[..payload.unwrap_or(text.len())];
        if !text.starts_with('{') || head.contains("\"method\"") {
            return None;
        }
        // `{"jsonrpc":"2.0","id":7,"result":…` or, as the TypeScript SDK writes it, `…},"jsonrpc":"2.0","id":7}`.
        let is_flat = head.matches(['{', '[']).count() == 1;
        let leading = if is_flat { id_in(head) } else { None };
        let id = leading.or_else(|| {
            let text = text.strip_suffix('}')?;
            // After the last bracket nothing is nested any more.
            id_in(&text[text.rfind(['}', ']'])? + 1..])
        });
        (payload.is_some() || id.is_some()).then_some(Self { id })
    }
}

/// Ids are ours, and numbers.
fn id_in(fields: &str) -> Option<i64> {
    let rest = fields.split("\"id\"").nth(1)?.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests;
