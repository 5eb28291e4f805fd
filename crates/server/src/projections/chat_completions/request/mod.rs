//! A request for a chat completion, parsed. Pure: it only looks up files, through a closure.
//!
//! Fields that OpenAI does not have, or that change nothing here, are ignored, as every server does; a field
//! that is known and not supported is refused by its name, since a silently different answer would be worse
//! than none.

mod field;
mod members;
mod messages;
mod sampling;
mod tools;

pub(crate) use messages::ChatTranscript;
pub(crate) use messages::{InputModalities, UploadedFile, referenced_files};
pub(crate) use sampling::{AccountFields, SamplingOptions, UpstreamApi};
pub(crate) use tools::DeclaredTool;

use super::question::{strip_codes, strip_codes_in};
use super::{ApprovalChannel, InvalidRequestError, UsageChunk};
use field::BodyField;
use messages::ReadMessages;
use serde_json::{Value, json};
use throughline::config::ToolRendering;
use throughline::tools::ToolToggle;
use throughline_wire::{CallOutcome, Dialect, Message, ReasoningTarget, ToolChoice};

/// Delivery of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryMode {
    /// Server-sent events.
    Stream,
    /// One body.
    Complete,
}

/// Preference of the client about calls that need approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalPreference {
    /// Hold the stream open and wait for an answer.
    Ask,
    Deny,
}

impl ApprovalPreference {
    /// Parses the value of the header.
    ///
    /// # Errors
    /// The value is neither.
    pub(crate) fn of_header(value: &str) -> Result<Self, InvalidRequestError> {
        Self::named(value.trim()).ok_or_else(|| {
            InvalidRequestError::invalid("Throughline-Approval", "the header must be `ask` or `deny`")
        })
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChatRequest {
    /// Model as the client names it.
    pub model: String,
    /// Streamed or not.
    pub delivery: DeliveryMode,
    pub usage_chunk: UsageChunk,
    /// Text of all `system` and `developer` messages, in order.
    pub instructions: Option<String>,
    /// Messages of the chat.
    pub transcript: ChatTranscript,
    /// Sampling and the form of the answer.
    pub sampling: SamplingOptions,
    /// Names of unknown fields, which the answer reports as ignored.
    pub unknown_fields: Vec<String>,
    /// Names of ignored members and parts of messages.
    pub omitted_of_messages: Vec<String>,
    /// Names of ignored members of tools.
    pub omitted_of_tools: Vec<String>,
    /// Tools that the client runs itself.
    pub tools: Vec<DeclaredTool>,
    pub tool_choice: ToolChoice,
    /// Toggle of the server's tools.
    pub server_tools: ToolToggle,
    /// Rendering of server-side tools; `None` for that of the model's name or the server.
    pub render: Option<ToolRendering>,
    /// Conversation of the server to continue, instead of the history in the request.
    pub conversation_id: Option<String>,
    /// Handling of calls that need approval; `None` for the server's default.
    pub approval: Option<ApprovalPreference>,
}

impl ChatRequest {
    /// Parses a request. `file` finds a file that the user has uploaded; `modalities` are the model's, and `target` is the model
    /// itself, if it is known.
    ///
    /// # Errors
    /// A part that is invalid or unsupported, with its path.
    pub(crate) fn read(
        body: &Value,
        file: &dyn Fn(&str) -> Option<UploadedFile>,
        modalities: InputModalities,
        target: Option<&ReasoningTarget>,
    ) -> Result<Self, InvalidRequestError> {
        let body = BodyField::root(body)?;
        let model = body.required("model")?.text()?.to_owned();
        if model.is_empty() {
            return Err(InvalidRequestError::invalid("model", "`model` is empty")
                .remedy("GET /v1/models lists the models"));
        }
        reject_unsupported(&body)?;
        let delivery = match body.flag("stream")? {
            Some(true) => DeliveryMode::Stream,
            None | Some(false) => DeliveryMode::Complete,
        };
        let asks_for_usage = match body.get("stream_options") {
            Some(options) => options.flag("include_usage")?.unwrap_or(false),
            None => false,
        };
        let usage_chunk = match (delivery, asks_for_usage) {
            (DeliveryMode::Complete, _) | (DeliveryMode::Stream, true) => UsageChunk::Wanted,
            (DeliveryMode::Stream, false) => UsageChunk::Unwanted,
        };
        let tool_options = tools::read_tools(&body)?;
        let ReadMessages { instructions, transcript, omitted } =
            messages::read_messages(&body.required("messages")?, file, modalities, target)?;
        let options = ThroughlineOptions::read(&body)?;
        Ok(Self {
            model,
            delivery,
            usage_chunk,
            instructions,
            transcript,
            sampling: SamplingOptions::read(&body)?,
            unknown_fields: unknown_fields(&body),
            omitted_of_messages: omitted.into_iter().collect(),
            omitted_of_tools: tool_options.omitted.into_iter().take(NAMED_MAX).collect(),
            tools: tool_options.tools,
            tool_choice: tool_options.choice,
            server_tools: options.tools.unwrap_or(tool_options.server_tools),
            render: options.render,
            conversation_id: options.conversation_id,
            approval: options.approval,
        })
    }
}

impl ChatRequest {
    /// Fields without an equivalent at an upstream of this API: the answer ignores and reports them.
    pub(crate) fn ignored_fields(&self, api: UpstreamApi) -> Vec<&str> {
        let mut ignored = self.sampling.ignored_fields(api);
        let holds_to_schemas = matches!(api.dialect, Dialect::OpenaiChat | Dialect::OpenaiResponses);
        if !holds_to_schemas && self.tools.iter().any(|tool| tool.strict == Some(true)) {
            ignored.push("tools.function.strict");
        }
        ignored
    }

    /// Channel for approval questions, with this rendering of tools. A client that does not set an approval
    /// preference never waits for a question.
    ///
    /// # Errors
    /// The client requests questions, and the rendering cannot show them.
    pub(crate) fn approval_channel(
        &self,
        render: ToolRendering,
    ) -> Result<ApprovalChannel, InvalidRequestError> {
        match (self.approval, render, self.delivery) {
            (Some(ApprovalPreference::Deny), ..) => Ok(ApprovalChannel::DenyAll),
            (_, ToolRendering::Text | ToolRendering::Details, _) => Ok(ApprovalChannel::Text),
            (Some(ApprovalPreference::Ask), _, DeliveryMode::Stream) => Ok(ApprovalChannel::Events),
            (Some(ApprovalPreference::Ask), _, DeliveryMode::Complete) => Err(InvalidRequestError::unsupported(
                "stream",
                "the request asks for approvals, which a response without streaming cannot request",
            )
            .code("approval_needs_stream")
            .remedy(
                "send `stream: true` and answer at `answer_url` of the `approval_request`, have questions put in the text \
                 (`throughline.render: \"text\"`), or allow the tools by rules",
            )),
            (None, ..) => Ok(ApprovalChannel::DenyAll),
        }
    }

    /// Removes codes of questions from all text for the model.
    pub(crate) fn strip_codes(&mut self) {
        let ChatTranscript { history, input, tool_results: _ } = &mut self.transcript;
        self.instructions.iter_mut().for_each(strip_codes);
        for message in history {
            match message {
                Message::User(parts) => strip_codes_in(parts),
                Message::Step(step) => {
                    strip_codes(&mut step.text);
                    strip_codes(&mut step.thinking);
                    // What the upstream wants back has the same text in it.
                    if let Some(state) = &mut step.provider_state {
                        state.for_each_text(&mut |text| strip_codes(text));
                    }
                    for (_, outcome) in &mut step.calls {
                        if let CallOutcome::Done(output) = outcome {
                            strip_codes(&mut output.text);
                        }
                    }
                }
            }
        }
        strip_codes_in(input);
    }
}

/// The body field `throughline`: what only this server understands.
#[derive(Default)]
struct ThroughlineOptions {
    render: Option<ToolRendering>,
    conversation_id: Option<String>,
    approval: Option<ApprovalPreference>,
    tools: Option<ToolToggle>,
}

impl ThroughlineOptions {
    fn read(body: &BodyField<'_>) -> Result<Self, InvalidRequestError> {
        let Some(options) = body.get("throughline") else { return Ok(Self::default()) };
        let render = match options.get("render") {
            None => None,
            Some(render) => Some(ToolRendering::from_name(render.text()?).ok_or_else(|| {
                let names = ToolRendering::ALL.map(|(name, _)| name);
                render.invalid(format!("is no rendering; there are {}", names.join(", ")))
            })?),
        };
        let conversation_id = match options.get("conversation_id") {
            None => None,
            Some(id) => Some(id.text()?.to_owned()),
        };
        let approval = match options.get("approval") {
            None => None,
            Some(preference) => Some(
                ApprovalPreference::named(preference.text()?)
                    .ok_or_else(|| preference.invalid("must be `ask` or `deny`"))?,
            ),
        };
        let tools = options.flag("tools")?.map(|on| if on { ToolToggle::On } else { ToolToggle::Off });
        Ok(Self { render, conversation_id, approval, tools })
    }
}

/// Fields that are read here, or that change nothing of the answer.
const KNOWN_FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "response_format",
    "logit_bias",
    "n",
    "modalities",
    "parallel_tool_calls",
    "throughline",
];
/// Maximum number of ignored fields that are named, and of members of messages: some proxies limit headers to
/// 8 KiB.
const NAMED_MAX: usize = 16;

fn unknown_fields(body: &BodyField<'_>) -> Vec<String> {
    let fields = body.value().as_object().into_iter().flatten();
    let fields = fields
        .filter(|(name, value)| says_something(value) && !KNOWN_FIELDS.contains(&name.as_str()))
        .map(|(name, _)| name.as_str())
        .filter(|name| !sampling::HINTS.contains(name) && !sampling::ACCOUNT_FIELDS.contains(name))
        .filter(|name| is_plain_name(name));
    fields.take(NAMED_MAX).map(str::to_owned).collect()
}

/// False for `null`, what is off, and what is empty.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::Number(_) => *value != 0,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// True for a name that needs no escaping in a header.
fn is_plain_name(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn reject_unsupported(body: &BodyField<'_>) -> Result<(), InvalidRequestError> {
    // Lua and JavaScript write 1.0.
    if let Some(n) = body.get("n")
        && n.value().as_f64() != Some(1.0)
    {
        return Err(InvalidRequestError::unsupported(
            "n",
            "only one answer per request is supported: `n` must be 1",
        )
        .remedy("send the request several times"));
    }
    let nothing = [json!([]), json!("auto"), json!("none")];
    for (old, new) in [("functions", "tools"), ("function_call", "tool_choice")] {
        if body.get(old).is_some_and(|field| !nothing.contains(field.value())) {
            return Err(InvalidRequestError::unsupported(old, format!("`{old}` is no longer understood"))
                .remedy(format!("send `{new}`")));
        }
    }
    if let Some(modalities) = body.get("modalities")
        && modalities.items()?.iter().any(|modality| modality.value() != "text")
    {
        return Err(InvalidRequestError::unsupported(
            "modalities",
            "only text answers are supported here; audio is not",
        )
        .remedy("leave `modalities` out"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
