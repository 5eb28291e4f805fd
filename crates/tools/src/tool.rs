//! The trait of a tool: a description that never changes, and a call.

use crate::context::ToolContext;
use crate::secrets::SecretSet;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use throughline_engine::{AddressRole, Effect, PermissionRule, PollingMode, ToolConcurrency};
use throughline_wire::{CallArguments, NotStarted, ToolName, ToolOutput, VcpCommand};

/// Time limit of a tool that does not set one.
pub const TOOL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Something that a model can call.
///
/// The contract:
/// - `definition` **must** give the same answer every time; it is called once, when the tool is registered.
/// - `call` is only made with arguments that fit the schema of the definition. Several calls **may** run in
///   parallel, unless the definition's concurrency class says otherwise.
/// - `call` **must not** block its thread: long computations and file access belong in `spawn_blocking`, with
///   checks of [`ToolContext::is_cancelled`] at intervals.
/// - `call` **must not** do more than the definition's effect declares: a tool that reads may be started
///   before the model has finished, run again, or have its result thrown away.
/// - `call` **may** panic or never return: it ends as a failed or timed-out call and harms nothing else.
/// - **On cancel** (by the user, or over time) the context's token fires. The tool **should** undo or finish
///   what must not be left half done and return; what it returns is retained as partial output. After a grace
///   of [1.5 seconds](crate::ExecutorLimits::grace) its future is dropped at its current await: only drop
///   guards still run, and a later result is discarded.
/// - Large output **should** be written through [`ToolContext::write`] as it comes: memory stays flat and the card
///   shows it. An output returned as one text is limited too, but has been in memory by then.
///
/// Most tools are simpler made from a function: [`tool`](crate::tool()). The trait is for those that know their
/// definition only when they run, such as the tools of a server:
///
/// ```
/// use async_trait::async_trait;
/// use throughline_tools::{AgentCallable, Effect, Tool, ToolContext, ToolError, ToolSpec};
/// use throughline_wire::{CallArguments, ToolOutput};
///
/// /// A thermometer with a name of its own.
/// struct Thermometer {
///     room: String,
/// }
///
/// #[async_trait]
/// impl Tool for Thermometer {
///     fn definition(&self) -> ToolSpec {
///         let description = format!("Temperature in the {}", self.room);
///         let mut spec = ToolSpec::new(format!("thermometer.{}", self.room), description);
///         spec.effect = Effect::Read;
///         spec.agent_callable = AgentCallable::Yes;
///         spec
///     }
///
///     async fn call(&self, _arguments: &CallArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text("21 °C"))
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, purpose, arguments and effect.
    fn definition(&self) -> ToolSpec;

    /// Runs it.
    ///
    /// # Errors
    /// The message to the model instead of an output; it is never fatal to the turn.
    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// Definition of a tool without its implementation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Name, `group.method`, for example `live2d.expression`.
    pub name: ToolName,
    /// For people, on the card. Default: the name.
    pub title: String,
    /// Purpose of the tool and when to use it, for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object schema. Default: an object without properties.
    pub parameters: Value,
    /// JSON Schema that arguments are checked against, for a tool that takes more than it asks models for: a number where
    /// it wants text. Default: that of `parameters`.
    pub accepted: Option<Value>,
    /// JSON Schema of the structured output, for readers; the output is not checked against it.
    pub output: Option<Value>,
    /// Effect on the outside. Default: external, the greatest.
    pub effect: Effect,
    /// Permission for models to call the tool. Default: no. Registration alone is not enough.
    pub agent_callable: AgentCallable,
    /// Calls that it may run concurrently with.
    pub concurrency: ToolConcurrency,
    /// Time limit of one call. Default 30 s.
    pub timeout: Duration,
    /// Permission that the tool itself asks for on top of the rules for its effect. Default: none.
    pub permission: PermissionRule,
    /// Role in opening addresses: a call to a host that neither a person nor the settings have named needs an
    /// approval. Default: none.
    pub addresses: AddressRole,
    /// `Poller` for a tool that is meant to be called repeatedly with the same arguments. The loop guard
    /// ignores such tools.
    pub polling: PollingMode,
    /// Process that runs the tool. Default: this one.
    pub runs_on: RunsOn,
    /// Name in the VCP text protocol. Default: its wire name.
    pub vcp_command: Option<VcpCommand>,
    /// Source of the tool: `rust`, `builtin`, `demo`, `mcp:<server>`. Default `rust`.
    pub source: String,
}

impl ToolSpec {
    /// A tool of this name, with every other field at its default.
    pub fn new(name: impl Into<ToolName>, description: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            title: name.as_str().to_owned(),
            name,
            description: description.into(),
            parameters: serde_json::json!({"type": "object", "properties": {}}),
            accepted: None,
            output: None,
            effect: Effect::External,
            agent_callable: AgentCallable::No,
            concurrency: ToolConcurrency::default(),
            timeout: TOOL_TIMEOUT_DEFAULT,
            permission: PermissionRule::ByEffect,
            addresses: AddressRole::None,
            polling: PollingMode::No,
            runs_on: RunsOn::Here,
            vcp_command: None,
            source: "rust".to_owned(),
        }
    }
}

/// Permission for models to call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentCallable {
    /// Registered for other uses only.
    #[default]
    No,
    /// May be offered to models.
    Yes,
}

/// Process that runs a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunsOn {
    /// In this process.
    #[default]
    Here,
    /// In a connected page or app, which executes and answers.
    Client,
}

/// Failure of a tool. The model reads the message, and may try something else.
///
/// Any error type becomes one with `?`, its sources joined to the message. For that to work it is not an
/// `std::error::Error` itself.
///
/// ```
/// use throughline_tools::ToolError;
/// use throughline_wire::ToolOutput;
///
/// let error = ToolError::new("the disk is full").with_partial(ToolOutput::text("3 of 5 files written"));
/// assert_eq!(error.to_string(), "the disk is full");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool started and did not succeed.
    Failed {
        /// The error, and if possible an alternative.
        message: String,
        /// Output before the failure.
        partial: Option<Box<ToolOutput>>,
    },
    /// The tool did not start: nothing happened.
    NotStarted(NotStarted),
    /// A wait of the tool exceeded a limit of its own; the limit of the definition is enforced by the
    /// executor.
    TimedOut {
        /// Limit that was exceeded.
        limit: Duration,
    },
    /// The tool started, or a request was sent, and then the connection broke: its outcome is unknown. The
    /// executor turns this into an unknown outcome or a retryable failure, depending on the tool's effect.
    Lost {
        /// Everything that is known about the loss.
        message: String,
        /// Output before the loss.
        partial: Option<Box<ToolOutput>>,
    },
}

impl ToolError {
    /// A failure with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), partial: None }
    }

    /// A connection that broke after a request may have been sent or executed, with what is known.
    ///
    /// ```
    /// use throughline_tools::ToolError;
    ///
    /// let error = ToolError::lost("the printer went silent after page 2");
    /// assert_eq!(error.to_string(), "the printer went silent after page 2");
    /// ```
    pub fn lost(message: impl Into<String>) -> Self {
        Self::Lost { message: message.into(), partial: None }
    }

    /// Arguments that fit the schema and still make no sense (a time zone that does not exist): nothing was done.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::NotStarted(NotStarted::InvalidArguments { message: message.into() })
    }

    /// Adds the output produced before the failure.
    #[must_use]
    pub fn with_partial(self, output: ToolOutput) -> Self {
        match self {
            Self::Failed { message, .. } => Self::Failed { message, partial: Some(Box::new(output)) },
            Self::Lost { message, .. } => Self::Lost { message, partial: Some(Box::new(output)) },
            other => other,
        }
    }

    /// The same error with secrets removed from its texts.
    pub(crate) fn redacted(self, secrets: &SecretSet) -> Self {
        let text = |message: String| secrets.redact(&message).into_owned();
        let output = |partial: Option<Box<ToolOutput>>| {
            partial.map(|partial| Box::new(secrets.redact_output(*partial)))
        };
        match self {
            Self::Failed { message, partial } => {
                Self::Failed { message: text(message), partial: output(partial) }
            }
            Self::Lost { message, partial } => {
                Self::Lost { message: text(message), partial: output(partial) }
            }
            Self::NotStarted(NotStarted::InvalidArguments { message }) => {
                Self::invalid_arguments(text(message))
            }
            // The other words are ours.
            Self::NotStarted(_) | Self::TimedOut { .. } => self,
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { message, .. } | Self::Lost { message, .. } => f.write_str(message),
            Self::NotStarted(NotStarted::InvalidArguments { message }) => {
                write!(f, "invalid arguments: {message}")
            }
            Self::NotStarted(NotStarted::NoViewer) => f.write_str("no viewer is connected that could run it"),
            Self::NotStarted(other) => write!(f, "not started: {other:?}"),
            Self::TimedOut { limit } => write!(f, "no answer in {} ms", limit.as_millis()),
        }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors repeat their source in their own text.
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::new(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the calendar")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn tool_error_from_any_error_includes_its_sources() {
        fn fails() -> Result<(), ToolError> {
            Err("x".parse::<i32>().map_err(Outer).unwrap_err())?
        }
        assert_eq!(
            fails().unwrap_err().to_string(),
            "cannot read the calendar: invalid digit found in string"
        );
    }

    #[test]
    fn tool_spec_defaults_are_conservative() {
        let spec = ToolSpec::new("a.b", "");
        assert_eq!(spec.effect, Effect::External);
        assert_eq!(spec.agent_callable, AgentCallable::No);
        assert_eq!(spec.timeout, Duration::from_secs(30));
    }
}
