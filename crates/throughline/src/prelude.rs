//! The names that most programs need: `use throughline::prelude::*;`
//!
//! ```
//! use throughline::prelude::*;
//!
//! let clock = tool("clock.now", "The time", |_: NoArguments, _| async { "noon" }).effect(Effect::Read);
//! let local = Upstream::new("local", Dialect::Ollama, "http://127.0.0.1:11434")?;
//! let app = Throughline::builder().upstream(local).model("qwen3").tool(clock.agent_callable()).build()?;
//! # let _ = app;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::tools::{Effect, NoArguments, Tool, ToolContext, ToolError, tool, try_tool};
pub use crate::wire::Dialect;
pub use crate::{
    Agent, AnswerError, ApprovalDecision, ApprovalMode, ApprovalRequest, ApprovalResponse, AssistantMessage,
    CallStatus, Conversation, Event, EventKind, MessageBlock, Throughline, ToolMode, TurnHandle, TurnRequest,
    TurnStatus, Upstream, UserInput,
};
