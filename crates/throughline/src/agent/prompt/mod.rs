//! System prompts: templates of the configuration, their values, and their size in tokens.
//!
//! Only a prompt field written by an operator is a template: text of users, models and tools is inserted as it is and
//! never read as one. Everything here is a function of its arguments; the clock and the user come in as
//! [`PromptContext`].
//!
//! ```
//! use throughline::config::ToolMode;
//! use throughline::prompt::{PromptContext, PromptTemplate, ToolsText, system_prompt};
//!
//! let template = PromptTemplate::compile("You are {{ agent }}. Today is {{ date }}; call me {{ user }}.")?;
//! let facts = PromptContext {
//!     now: &"2026-11-21T14:05:00[UTC]".parse()?,
//!     user: "Ada",
//!     agent: "clerk",
//!     model: "ollama/qwen3",
//!     mode: ToolMode::Native,
//!     tools: ToolsText::default().into(),
//! };
//! let rendered = system_prompt(Some(&template), &facts)?;
//! assert_eq!(rendered.text, "You are clerk. Today is 2026-11-21; call me Ada.");
//!
//! let error = PromptTemplate::compile("Hello {{ usr }}").unwrap_err();
//! assert_eq!((error.line, error.column), (1, 10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod definitions;
#[cfg(not(feature = "prompt-templates"))]
mod plain;
mod rendered;
#[cfg(feature = "prompt-templates")]
mod template;
mod tokens;
#[cfg(feature = "prompt-templates")]
mod values;

pub use cache::{ToolsTextCache, ToolsTextKey};
pub use definitions::{ToolText, ToolsText};
#[cfg(not(feature = "prompt-templates"))]
pub use plain::PlainPrompt as PromptTemplate;
pub use rendered::{PROMPT_BYTES_MAX, TemplateError};
#[cfg(feature = "prompt-templates")]
pub use template::{FUEL_MAX, PromptTemplate};
pub use tokens::{TokenCounting, count, counting, estimate};

use crate::agent::ToolMode;
use jiff::Zoned;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// The user, as far as templates see.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptUser {
    /// `{{ user }}`.
    pub name: String,
    /// Time zone of `{{ date }}` and `{{ time }}`; `None` = this machine's.
    pub time_zone: Option<TimeZone>,
}

impl Default for PromptUser {
    /// An unnamed user: an account's name goes to no provider unless the configuration contains it.
    fn default() -> Self {
        Self { name: "the user".to_owned(), time_zone: None }
    }
}

/// The values of a template.
#[derive(Clone, Debug)]
pub struct PromptContext<'a> {
    /// `{{ date }}` and `{{ time }}`.
    pub now: &'a Zoned,
    /// `{{ user }}`.
    pub user: &'a str,
    /// `{{ agent }}`.
    pub agent: &'a str,
    /// `{{ model }}`: `upstream/model`.
    pub model: &'a str,
    /// `{{ mode }}`.
    pub mode: ToolMode,
    /// `{{ tools }}`: empty unless the tools travel as text.
    pub tools: Arc<ToolsText>,
}

/// A system prompt, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Text of the prompt; empty if the agent has none.
    pub text: String,
    /// Names given to `tools(…)` that are no source, group or tool of this agent.
    pub unmatched: Vec<String>,
}

/// The system prompt of a turn: the template, followed by the tool definitions if calls travel as text and
/// the template does not include them, since a model without definitions cannot call.
///
/// # Errors
/// The template, with line and column.
pub fn system_prompt(
    template: Option<&PromptTemplate>,
    context: &PromptContext<'_>,
) -> Result<SystemPrompt, TemplateError> {
    let rendered = match template {
        Some(template) => template.render(context)?,
        None => rendered::RenderedPrompt::default(),
    };
    let mut text = rendered.text;
    if rendered.tools == rendered::ToolsPlacement::Nowhere && !context.tools.is_empty() {
        let trimmed_len = text.trim_end().len();
        text.truncate(trimmed_len);
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&context.tools.full_text());
    }
    Ok(SystemPrompt { text, unmatched: rendered.unmatched })
}
