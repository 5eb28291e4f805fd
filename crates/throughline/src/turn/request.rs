//! Requests for turns: the user's input, and the settings that differ from the application's.

use crate::agent::ToolMode;
use crate::approval::ApprovalMode;
use crate::clients::ClientToolSpec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_engine::{ConversationId, RememberedDecision, TurnId};
use throughline_tools::{ToolToggle, argument_schema};
use throughline_wire::{Media, Message, ModelSettings, ToolChoice, ToolName, UserPart};

/// Request of one turn, with everything that can differ from the application's settings.
///
/// ```
/// use throughline::TurnRequest;
///
/// let request = TurnRequest {
///     agent: Some("clerk".to_owned()),
///     instructions: Some("Answer in one sentence.".to_owned()),
///     ..TurnRequest::new("Sum up our conversation.")
/// };
/// assert!(request.history.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct TurnRequest {
    /// The user's input.
    pub input: UserInput,
    /// Messages before this turn, oldest first.
    pub history: Vec<Message>,
    /// Name of the agent that answers; `None` = the application's default agent.
    pub agent: Option<String>,
    /// `upstream/model` instead of the agent's models.
    pub model: Option<String>,
    /// Transport of tool calls; `None` = as the agent sets. The history works with any.
    pub mode: Option<ToolMode>,
    /// The approval mode; `None` = the application's.
    pub approval: Option<ApprovalMode>,
    /// Conversation id reported in the events.
    pub conversation_id: Option<ConversationId>,
    /// Remembered decisions that apply to this turn, in addition to the permanent ones.
    pub remembered: Vec<RememberedDecision>,
    /// The user who owns the turn, in an application with several users: only the same user's clients run tools for
    /// it.
    pub user: Option<String>,
    /// Id of the turn, unique everywhere; `None` = a new one.
    pub turn_id: Option<TurnId>,
    /// Instructions appended to the agent's own.
    pub instructions: Option<String>,
    /// Sampling that differs from the agent's.
    pub settings: ModelSettings,
    /// First call of the turn, as if the model had made it: rules, questions and the log apply as to any
    /// call, and the model is called once it has ended.
    pub first_call: Option<FirstCall>,
    /// Tools declared by the requester, offered under exactly their names. A call of one waits until
    /// [`Throughline::answer_client_call`](crate::Throughline::answer_client_call) answers it, at most `own_tool_ms_max`. Their effect and timeout settings
    /// are ignored: they run where they were declared.
    pub request_tools: Vec<ClientToolSpec>,
    /// Permits, requires or forbids tool calls. A call is forced in the first step only, and from `request_tools` if
    /// there are any; [`ToolChoice::None`] applies to the whole turn, and no tool is offered in it.
    pub tool_choice: ToolChoice,
    /// Offers the agent's tools in addition to `request_tools`; the agent's toggles apply as well.
    pub tools: ToolToggle,
    /// The agent, or the bare model.
    pub persona: PersonaMode,
    /// Maximum number of attempts of the first model call, for requesters that retry themselves.
    pub first_step_attempts_max: Option<u32>,
    /// Passes the raw bytes of the upstreams to the [`TurnObserver`](crate::TurnObserver).
    pub keep_raw: bool,
    /// The requester's span as W3C Trace Context (`traceparent`): stored with the turn and passed to the
    /// [`TurnObserver`](crate::TurnObserver), with no other effect.
    pub trace_parent: Option<String>,
    /// JSON Schema of the answer: the model is instructed to answer with one JSON value that fits it. See
    /// [`answer_as`](Self::answer_as).
    pub answer_schema: Option<Value>,
}

impl TurnRequest {
    /// A turn with this input and the application's settings.
    pub fn new(input: impl Into<UserInput>) -> Self {
        Self { input: input.into(), ..Self::default() }
    }

    /// Instructs the model to answer with a value of this type;
    /// [`TurnHandle::finish_as`](crate::TurnHandle::finish_as) reads it.
    /// [`Throughline::ask_as`](crate::Throughline::ask_as) does both, and repeats the call once if the answer
    /// cannot be parsed.
    #[must_use]
    pub fn answer_as<T: JsonSchema>(self) -> Self {
        Self { answer_schema: Some(argument_schema::<T>()), ..self }
    }
}

impl<I: Into<UserInput>> From<I> for TurnRequest {
    fn from(input: I) -> Self {
        Self::new(input)
    }
}

/// Call with which a turn begins.
///
/// ```
/// use throughline::{FirstCall, TurnRequest};
///
/// let request = TurnRequest {
///     input: "Run `notes.save` again.".into(),
///     first_call: Some(FirstCall::new("notes.save", serde_json::json!({"text": "milk"}))),
///     ..TurnRequest::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstCall {
    /// A tool that the agent offers.
    pub tool: ToolName,
    /// Arguments of the call.
    pub arguments: Value,
}

impl FirstCall {
    /// A call of this tool.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: ToolName::new(tool), arguments }
    }
}

/// The agent, or the model without the agent's prompt and tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PersonaMode {
    /// The agent: with its prompt, its tools and its sampling.
    #[default]
    Agent,
    /// The model alone, without any of them.
    BareModel,
}

/// User input: text, images and files in any order.
///
/// ```
/// use throughline::UserInput;
/// let input = UserInput::from("What is on this picture?").image("image/png", b"\x89PNG...");
/// assert_eq!(input.parts().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInput(Vec<UserPart>);

impl UserInput {
    /// Empty input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(UserPart::Text { text: text.into() });
        self
    }

    /// Appends an image. Models without image input get a note instead.
    pub fn image(mut self, media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(UserPart::Image(Media::new(media_type.into(), STANDARD.encode(bytes))));
        self
    }

    /// Appends any other file. Upstreams that cannot take it get a note instead.
    pub fn file(
        mut self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        let media = Media::new(media_type.into(), STANDARD.encode(bytes));
        self.0.push(UserPart::File { name: name.into(), media });
        self
    }

    /// The parts in order.
    pub fn parts(&self) -> &[UserPart] {
        &self.0
    }

    pub(crate) fn from_parts(parts: Vec<UserPart>) -> Self {
        Self(parts)
    }

    pub(crate) fn into_parts(self) -> Vec<UserPart> {
        self.0
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

impl From<&String> for UserInput {
    fn from(text: &String) -> Self {
        Self::new().text(text.as_str())
    }
}

impl From<Vec<UserPart>> for UserInput {
    fn from(parts: Vec<UserPart>) -> Self {
        Self(parts)
    }
}
