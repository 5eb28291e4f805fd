//! Tools: their definition, the selection that a model is offered, and the execution of one call.
//!
//! Never decides *when* a call runs, or whether it may: that is the engine's. Never fetches a schema, never
//! runs unchecked arguments, and turns a tool's panic, silence or flood of output into nothing but an
//! [`CallOutcome`](throughline_wire::CallOutcome).
//!
//! A tool is a Rust function ([`tool()`]) or anything with the trait [`Tool`]. A [`ToolRegistry`] holds tools and
//! selects those that are [offered](ToolRegistry::offered); a [`ToolExecutor`] runs one call.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use throughline_tools::{Effect, ToolExecutor, ToolRegistry, ToolInvocation, tool};
//! use throughline_wire::{CallArguments, CallOutcome, NotStarted};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct WeatherArgs {
//!     /// City, in any language.
//!     city: String,
//! }
//!
//! let weather = tool("weather.today", "Today's weather in a city", |args: WeatherArgs, _| async move {
//!     format!("{}: sunny", args.city)
//! });
//! let registry = ToolRegistry::builder().tool(weather.effect(Effect::Read).agent_callable()).build()?;
//!
//! let call = ToolInvocation::new("call_1", "weather.today", CallArguments::from_value(serde_json::json!({"city": 42})));
//! let outcome = ToolExecutor::default().run(&registry, call, |_progress| async {}).await;
//! let message = "/city: expected string, got 42".to_owned();
//! assert_eq!(outcome, CallOutcome::NotStarted(NotStarted::InvalidArguments { message }));
//! # Ok::<(), throughline_tools::RegistryError>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod builtin;
pub mod command;
pub mod http_tool;
pub mod mcp;
pub mod process;
pub mod vcp_plugin;
pub mod web_search;

mod body_text;
mod context;
mod discovery;
mod execute;
mod function;
mod naming;
mod output;
pub mod private_file;
mod question;
mod registry;
mod run_text;
mod schema;
mod secrets;
mod settings;
mod source_hook;
mod template;
mod toggles;
mod tool;
mod toolbox;
mod variables;

pub use body_text::{BodyExtent, BodyText};
pub use context::{ToolContext, ToolProgress};
pub use discovery::{DiscoveredTool, ToolAvailability, ToolCallingMode, WithheldReason, discover};
pub use execute::{ExecutorLimits, MESSAGE_CHARS_MAX, ToolExecutor, ToolInvocation};
pub use function::{FunctionTool, IntoReply, JsonOutput, NoArguments, argument_schema, tool, try_tool};
pub use naming::{TOOL_NAME_BYTES_MAX, WIRE_NAME_BYTES_MAX};
pub use output::{OutputLimits, OutputSpool};
pub use question::{QUESTION_WAIT_MAX_DEFAULT, QuestionHandler, complete_answer};
pub use registry::{RegisteredTool, RegistryBuilder, RegistryError, ToolFingerprint, ToolRegistry};
pub use run_text::{TEXT_CALLS_MAX, TextRun, TextRunOptions, run_text};
pub use schema::{
    CompiledSchema, SchemaError, SchemaFault, SchemaViolation, VIOLATIONS_COUNTED_MAX, VIOLATIONS_LISTED_MAX,
};
pub use secrets::{SECRET_BYTES_MIN, SecretSet, StreamRedactor, url_passwords};
pub use settings::ToolSettingError;
pub use source_hook::{CALLBACK_PATH, CallbackError, SourceAddition, SourceCallback, SourceHook};
pub use throughline_engine::{
    AddressRole, AddressRule, Effect, ElicitationMode, PermissionRule, PollingMode, ToolAnswer,
    ToolConcurrency, ToolQuestion,
};
pub use toggles::{ToolToggle, ToolToggles};
pub use tool::{AgentCallable, RunsOn, TOOL_TIMEOUT_DEFAULT, Tool, ToolError, ToolSpec};
pub use toolbox::{SourceFault, SourceReporter, ToolSource, Toolbox};
pub use variables::{ExpandedText, expand_variables};

/// The examples of the page run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
mod page {}
