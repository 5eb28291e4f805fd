//! Arguments of `chat` and `ask`.

use super::ModelArgs;
use clap::{Args as ClapArgs, ValueHint};
use std::path::PathBuf;

/// Options that put the prompt into a template.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct TemplateArgs {
    /// Put the prompt into this template; `throughline templates` lists them
    #[arg(long, short, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Value of a placeholder of the template (repeatable)
    #[arg(long = "param", short, value_name = "NAME=VALUE", requires = "template")]
    pub(crate) params: Vec<String>,
}

/// `throughline templates`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TemplatesArgs {
    /// Configuration file [default: throughline.toml in the current directory, if there is one]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options that choose the conversation, and whether it is kept.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct KeepArgs {
    /// Continue the conversation that was last active; a reply that was cut off goes on
    #[arg(long = "continue", short, conflicts_with_all = ["resume", "no_log"])]
    pub(crate) continues: bool,
    /// Continue this conversation
    #[arg(long, value_name = "CONVERSATION", conflicts_with = "no_log")]
    pub(crate) resume: Option<String>,
    /// Keep nothing: no conversation, no history, no replay
    #[arg(long)]
    pub(crate) no_log: bool,
}

/// `throughline chat`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// Instructions on top of the agent's own
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) template: TemplateArgs,
    /// Approve every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Plain text without repainting, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// `throughline ask`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AskArgs {
    /// Prompt. Standard input follows it, if it is not a terminal; `-` puts it elsewhere
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// Instructions on top of the agent's own
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) template: TemplateArgs,
    /// Add a text file to the prompt (repeatable)
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Vec<PathBuf>,
    /// Attach an image (png, jpeg, gif or webp; repeatable)
    #[arg(long, short = 'a', visible_alias = "attach", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Vec<PathBuf>,
    /// Approve every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Answer with JSON that fits this JSON Schema, given as a file or as JSON; print the JSON alone
    #[arg(long, value_name = "FILE|JSON", conflicts_with_all = ["json", "events"])]
    pub(crate) schema: Option<String>,
    /// Print the finished message as one JSON object
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print the turn's events as JSON lines as they arrive
    #[arg(long)]
    pub(crate) events: bool,
    /// Print the answer and errors, and nothing about the turn
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
