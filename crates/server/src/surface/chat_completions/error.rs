//! What goes wrong, as OpenAI's clients read it.

use serde_json::{Value, json};
use throughline_engine::{Fault, TurnStatus};

/// `{"error": {...}}`: the body of a refused request, or a data line of a stream that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorBody {
    /// Everything that a person should know: clients show this and nothing else.
    pub message: String,
    /// The class: `upstream_error`, `server_error`.
    pub kind: String,
    /// A stable word.
    pub code: String,
}

impl ErrorBody {
    /// The end of a turn that did not come to one.
    pub(crate) fn of_turn(fault: Option<&Fault>, status: TurnStatus) -> Self {
        if let Some(fault) = fault {
            let sentences = [&fault.what, &fault.why, &fault.remedy];
            let message: Vec<&str> =
                sentences.into_iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
            return Self {
                message: message.join(" "),
                kind: "upstream_error".to_owned(),
                code: fault.code.clone(),
            };
        }
        let (code, message) = match status {
            TurnStatus::Interrupted => {
                ("interrupted", "The server stopped in the middle of this answer. Send the request again.")
            }
            _ => ("failed", "The answer could not be completed. Send the request again."),
        };
        Self { message: message.to_owned(), kind: "server_error".to_owned(), code: code.to_owned() }
    }

    /// As it is served.
    pub fn to_value(&self) -> Value {
        let Self { message, kind, code } = self;
        json!({"error": {"message": message, "type": kind, "code": code, "param": null}})
    }
}

/// Why a request is refused before anything runs: HTTP 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A stable word.
    pub code: &'static str,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do instead.
    pub remedy: Option<String>,
    /// Where: `messages[3].content[0]`.
    pub param: String,
}

impl Refusal {
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
