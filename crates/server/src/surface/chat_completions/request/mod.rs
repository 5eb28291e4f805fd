//! A request for a chat completion as this server understands it. Pure: nothing is looked up here but files, by a closure.
//!
//! Fields that OpenAI does not know, or that change nothing here, are ignored, as every server does; a field that we
//! know and cannot do is refused by its name, since an answer that silently is another one is worse than none.

mod field;
mod messages;
mod sampling;
mod tools;

pub use messages::{Senses, Talk, UploadedFile, files_wanted};
pub use sampling::Sampling;
pub use tools::DeclaredTool;

use super::question::without_codes;
use super::{Asking, Refusal, UsageChunk};
use field::Field;
use serde_json::{Value, json};
use throughline::config::Render;
use throughline::tools::Toggle;
use throughline_wire::{Message, Outcome, ToolChoice, UserPart};

/// How the answer is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As server-sent events.
    Stream,
    /// As one body.
    Whole,
}

/// What the client says about calls that would ask a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalWish {
    /// Hold the stream open and wait for an answer.
    Ask,
    /// Deny them.
    Deny,
}

impl ApprovalWish {
    /// As a header says it.
    ///
    /// # Errors
    /// It is neither.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        Self::named(value.trim())
            .ok_or_else(|| Refusal::invalid("Throughline-Approval", "the header is neither `ask` nor `deny`"))
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// As the client names it.
    pub model: String,
    /// Streamed or not.
    pub delivery: Delivery,
    /// Whether tokens are told at the end of a stream.
    pub usage_chunk: UsageChunk,
    /// Everything in `system` and `developer` messages, in order.
    pub instructions: Option<String>,
    /// What was said.
    pub talk: Talk,
    /// Sampling and the form of the answer.
    pub sampling: Sampling,
    /// Fields that nothing here reads, by name: the answer is given without them, and says so.
    pub unknown: Vec<String>,
    /// Tools that the client runs itself.
    pub tools: Vec<DeclaredTool>,
    /// Whether one of them must be called.
    pub tool_choice: ToolChoice,
    /// Whether the server's tools are offered.
    pub server_tools: Toggle,
    /// How server-side tools are shown; `None` = as the model's name or the server says.
    pub render: Option<Render>,
    /// Go on with this conversation of the server's instead of the history in the request.
    pub conversation_id: Option<String>,
    /// What becomes of calls that would ask; `None` = as the server does it.
    pub approval: Option<ApprovalWish>,
}

impl ChatRequest {
    /// Reads a request. `file` finds a file that the user has uploaded; `senses` are the model's.
    ///
    /// # Errors
    /// What cannot be understood or done, with its place.
    pub fn read(
        body: &Value,
        file: &dyn Fn(&str) -> Option<UploadedFile>,
        senses: Senses,
    ) -> Result<Self, Refusal> {
        let body = Field::whole(body)?;
        let model = body.required("model")?.text()?.to_owned();
        if model.is_empty() {
            return Err(
                Refusal::invalid("model", "`model` is empty").remedy("GET /v1/models lists what there is")
            );
        }
        refuse_what_cannot_be_done(&body)?;
        let delivery = match body.flag("stream")? {
            Some(true) => Delivery::Stream,
            None | Some(false) => Delivery::Whole,
        };
        let asks_for_usage = match body.get("stream_options") {
            Some(options) => options.flag("include_usage")?.unwrap_or(false),
            None => false,
        };
        let usage_chunk = match (delivery, asks_for_usage) {
            (Delivery::Whole, _) | (Delivery::Stream, true) => UsageChunk::Wanted,
            (Delivery::Stream, false) => UsageChunk::Unwanted,
        };
        let calling = tools::read(&body)?;
        let (instructions, talk) = messages::read(&body.required("messages")?, file, senses)?;
        let ours = Ours::read(&body)?;
        Ok(Self {
            model,
            delivery,
            usage_chunk,
            instructions,
            talk,
            sampling: Sampling::read(&body)?,
            unknown: unknown(&body),
            tools: calling.tools,
            tool_choice: calling.choice,
            server_tools: ours.tools.unwrap_or(calling.server_tools),
            render: ours.render,
            conversation_id: ours.conversation_id,
            approval: ours.approval,
        })
    }
}

impl ChatRequest {
    /// Where questions of the turn are put, if tools are shown like this. A client that says nothing of questions never waits
    /// for one. // R: A1
    ///
    /// # Errors
    /// It wants to be asked, and cannot be.
    pub fn asking(&self, render: Render) -> Result<Asking, Refusal> {
        match (self.approval, render, self.delivery) {
            (Some(ApprovalWish::Deny), ..) => Ok(Asking::Nobody),
            (_, Render::Text | Render::Details, _) => Ok(Asking::Text),
            (Some(ApprovalWish::Ask), _, Delivery::Stream) => Ok(Asking::Events),
            (Some(ApprovalWish::Ask), _, Delivery::Whole) => Err(Refusal::unsupported(
                "stream",
                "the request wants questions to be asked, and an answer without streaming has no way to ask them",
            )
            .code("approval_needs_stream")
            .remedy(
                "send `stream: true` and answer at `answer_url` of the `approval_request`, have questions put in the text \
                 (`throughline.render: \"text\"`), or allow the tools by rules",
            )),
            (None, ..) => Ok(Asking::Nobody),
        }
    }

    /// Takes codes of questions out of everything that a model is told. // R: A3
    pub fn forget_codes(&mut self) {
        let Talk { history, input, answers: _ } = &mut self.talk;
        self.instructions.iter_mut().for_each(without_codes);
        for message in history {
            match message {
                Message::User(parts) => forget_in(parts),
                Message::Step(step) => {
                    without_codes(&mut step.text);
                    without_codes(&mut step.thinking);
                    for (_, outcome) in &mut step.calls {
                        if let Outcome::Done(output) = outcome {
                            without_codes(&mut output.text);
                        }
                    }
                }
            }
        }
        forget_in(input);
    }
}

fn forget_in(parts: &mut [UserPart]) {
    for part in parts {
        if let UserPart::Text { text } = part {
            without_codes(text);
        }
    }
}

/// The body field `throughline`: what only this server understands.
#[derive(Default)]
struct Ours {
    render: Option<Render>,
    conversation_id: Option<String>,
    approval: Option<ApprovalWish>,
    tools: Option<Toggle>,
}

impl Ours {
    fn read(body: &Field<'_>) -> Result<Self, Refusal> {
        let Some(ours) = body.get("throughline") else { return Ok(Self::default()) };
        let render = match ours.get("render") {
            None => None,
            Some(render) => Some(Render::named(render.text()?).ok_or_else(|| {
                let names = Render::ALL.map(|(name, _)| name);
                render.invalid(format!("is no rendering; there are {}", names.join(", ")))
            })?),
        };
        let conversation_id = match ours.get("conversation_id") {
            None => None,
            Some(id) => Some(id.text()?.to_owned()),
        };
        let approval = match ours.get("approval") {
            None => None,
            Some(wish) => Some(
                ApprovalWish::named(wish.text()?)
                    .ok_or_else(|| wish.invalid("is neither `ask` nor `deny`"))?,
            ),
        };
        let tools = ours.flag("tools")?.map(|on| if on { Toggle::On } else { Toggle::Off });
        Ok(Self { render, conversation_id, approval, tools })
    }
}

/// Fields that are read here, or that change nothing of the answer.
const KNOWN: &[&str] = &[
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
    // Said of the request, not of the answer.
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
];
/// So many are named.
const UNKNOWN_NAMED_MAX: usize = 16;

fn unknown(body: &Field<'_>) -> Vec<String> {
    let fields = body.value().as_object().into_iter().flatten();
    let says_something = |value: &&Value| !value.is_null() && **value != false && **value != 0;
    fields
        .filter(|(name, value)| says_something(value) && !KNOWN.contains(&name.as_str()))
        .map(|(name, _)| name.as_str())
        .filter(|name| !sampling::HINTS.contains(name) && name.len() <= 64)
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        .take(UNKNOWN_NAMED_MAX)
        .map(str::to_owned)
        .collect()
}

fn refuse_what_cannot_be_done(body: &Field<'_>) -> Result<(), Refusal> {
    // Lua and JavaScript write 1.0.
    if let Some(n) = body.get("n")
        && n.value().as_f64() != Some(1.0)
    {
        return Err(Refusal::unsupported("n", "one answer is given to a request: `n` must be 1")
            .remedy("send the request several times"));
    }
    let nothing = [json!([]), json!("auto"), json!("none")];
    for (old, new) in [("functions", "tools"), ("function_call", "tool_choice")] {
        if body.get(old).is_some_and(|field| !nothing.contains(field.value())) {
            return Err(Refusal::unsupported(old, format!("`{old}` is no longer understood"))
                .remedy(format!("send `{new}`")));
        }
    }
    if let Some(modalities) = body.get("modalities")
        && modalities.items()?.iter().any(|modality| modality.value() != "text")
    {
        return Err(Refusal::unsupported(
            "modalities",
            "answers are text: sound is not given on this surface",
        )
        .remedy("leave `modalities` out"));
    }
    Ok(())
}
