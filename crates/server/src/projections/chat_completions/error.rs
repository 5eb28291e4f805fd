//! Errors in the format that OpenAI's clients read.

use serde_json::{Value, json};
use throughline_engine::{CallStatus, ToolResult, TurnFault, TurnStatus};

/// `{"error": {...}}`: the body of a refused request, or a data line of a stream that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatErrorBody {
    /// The whole description for a person: clients show nothing else.
    pub message: String,
    /// The class: `upstream_error`, `server_error`.
    pub kind: String,
    /// A stable code.
    pub code: String,
    /// The HTTP status, if nothing has been sent yet.
    pub status: u16,
    /// Time to wait before a retry, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Hint for clients that retry automatically.
    pub retry: RetryHint,
}

/// Usefulness of an automatic retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryHint {
    /// The status tells the client.
    ByStatus,
    /// The client must not retry, although the status suggests it.
    Never,
}

/// Reason why a call that was partly sent to the client cannot be run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BrokenCallCause<'a> {
    /// The call was refused with this reason.
    Refused(&'a str),
    /// The arguments were malformed, and the corrected ones differ from those already sent.
    Mended,
    /// The model had no tokens left.
    Cut,
    /// The turn ended, or called the model again, before it was complete.
    Unfinished,
    /// Another client has sent its result, and the turn continues there.
    AnsweredElsewhere,
}

impl<'a> BrokenCallCause<'a> {
    /// The cause for a call that has ended so.
    pub(crate) fn of(result: &'a ToolResult) -> Self {
        if result.status == CallStatus::Success {
            return Self::AnsweredElsewhere;
        }
        let words = result.error.as_ref().and_then(|error| error.message.as_ref().or(error.limit.as_ref()));
        words.map_or(Self::Unfinished, |words| Self::Refused(words))
    }
}

/// Default `Retry-After` in milliseconds for 429 and 503, which always have one.
const RETRY_AFTER_MS: u64 = 1_000;

/// The classes of OpenAI's errors, which clients switch on.
struct ErrorClass {
    status: u16,
    kind: &'static str,
    /// Replaces the code of the fault.
    code: Option<&'static str>,
}

impl ErrorClass {
    fn of(fault: &TurnFault) -> Self {
        let class = |status, kind, code| Self { status, kind, code };
        match (fault.code.as_str(), fault.status) {
            ("rate_limited", _) => class(429, "rate_limit_error", Some("rate_limit_exceeded")),
            ("insufficient_quota", _) => class(429, "insufficient_quota", None),
            ("context_too_long", _) => class(400, "invalid_request_error", Some("context_length_exceeded")),
            ("model_not_found", _) => class(404, "invalid_request_error", None),
            ("tool_calling_unsupported" | "content_filter", _) => class(400, "invalid_request_error", None),
            ("overloaded", _) => class(503, "upstream_error", Some("upstream_error")),
            // 529 is Anthropic's status for overload. 408 would blame a slow request, which browsers repeat
            // automatically. 425 is unknown to clients.
            ("upstream_error", Some(408 | 425 | 503 | 529)) => class(503, "upstream_error", None),
            ("upstream_error", Some(400..=499)) => class(400, "invalid_request_error", None),
            _ => class(502, "upstream_error", None),
        }
    }
}

impl ChatErrorBody {
    /// The end of a turn that did not come to one.
    pub(crate) fn for_turn(fault: Option<&TurnFault>, status: TurnStatus) -> Self {
        if let Some(fault) = fault {
            let ErrorClass { status, kind, code } = ErrorClass::of(fault);
            let waits = matches!(status, 429 | 503).then(|| fault.retry_after_ms.unwrap_or(RETRY_AFTER_MS));
            let is_quota = fault.code == "insufficient_quota";
            return Self {
                message: fault.to_string(),
                kind: kind.to_owned(),
                code: code.unwrap_or(&fault.code).to_owned(),
                status,
                retry_after_ms: waits.filter(|_| !is_quota),
                retry: if is_quota { RetryHint::Never } else { RetryHint::ByStatus },
            };
        }
        let (code, message) = match status {
            TurnStatus::Interrupted => {
                ("interrupted", "The server stopped in the middle of this answer. Send the request again.")
            }
            _ => ("failed", "The answer could not be completed. Send the request again."),
        };
        Self {
            message: message.to_owned(),
            kind: "server_error".to_owned(),
            code: code.to_owned(),
            status: 500,
            retry_after_ms: None,
            retry: RetryHint::ByStatus,
        }
    }

    /// A call of the client's own that had begun to arrive.
    pub(crate) fn for_broken_call(name: &str, cause: BrokenCallCause<'_>) -> Self {
        let reason = match cause {
            BrokenCallCause::Refused(message) => message.trim_end_matches('.'),
            BrokenCallCause::Mended => "its arguments were repaired after a part of them had been sent",
            BrokenCallCause::Cut => "the limit of tokens has cut it off",
            BrokenCallCause::Unfinished => "the turn ended before it was complete",
            BrokenCallCause::AnsweredElsewhere => "its result came from another source",
        };
        let remedy = match cause {
            BrokenCallCause::AnsweredElsewhere => "The answer continues there.",
            _ => "Send the request again.",
        };
        Self {
            message: format!("The call of `{name}` cannot be run: {reason}. {remedy}"),
            kind: "upstream_error".to_owned(),
            code: "broken_call".to_owned(),
            status: 502,
            retry_after_ms: None,
            retry: RetryHint::ByStatus,
        }
    }

    /// True if clients send the request again at this status.
    pub(crate) fn is_tried_again(&self) -> bool {
        self.retry == RetryHint::ByStatus && matches!(self.status, 408 | 409 | 429 | 500..)
    }

    /// The error object as served.
    pub(crate) fn to_value(&self) -> Value {
        let Self { message, kind, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "code": code, "param": null}})
    }
}

/// Reason why a request is refused before anything runs: HTTP 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRequestError {
    /// A stable code.
    pub code: &'static str,
    /// Description of the error, in a sentence.
    pub message: String,
    pub remedy: Option<String>,
    /// Path of the value: `messages[3].content[0]`.
    pub param: String,
}

impl InvalidRequestError {
    /// A field that is not as it must be.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "invalid_request", message: message.into(), remedy: None, param: param.into() }
    }

    /// A field that is right and that we cannot do.
    pub(crate) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "unsupported", message: message.into(), remedy: None, param: param.into() }
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
