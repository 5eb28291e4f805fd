//! Measured quirks of an upstream that change what is decoded or sent.

use crate::vocabulary::{DefinitionHash, ToolChoice, ToolDefinition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Handling of tool calls that a server leaks as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeakedCalls {
    /// Text stays verbatim and a problem names the format and the remedy.
    #[default]
    Report,
    /// Leaked calls become calls. Only calls of offered tools; never twice if the server also sent them
    /// structured.
    Run,
}

/// Field in which reasoning goes back to the upstream with the assistant message of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEcho {
    /// Not sent back (OpenAI, DashScope, xAI, Groq: unknown fields may be refused).
    #[default]
    None,
    /// As `reasoning_content` on every message of a turn with tool calls, a single space if there was none (DeepSeek V3.2+,
    /// Kimi, GLM).
    ReasoningContent,
    /// As `reasoning` (Ollama's compatible endpoint, newer vLLM).
    Reasoning,
    /// `reasoning_details[]` verbatim (OpenRouter).
    ReasoningDetails,
    /// As content parts of type `thinking` (Mistral).
    ThinkingParts,
}

/// Form of tool call ids that the upstream accepts back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolIdFormat {
    /// Anything: theirs verbatim, else ours.
    #[default]
    Any,
    /// Nine of `[A-Za-z0-9]` (Mistral, error 3280): others are mapped, the same id always to the same nine.
    NineAlphanumeric,
}

/// Form in which the schemas of tools are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSchemaForm {
    /// JSON Schema, draft 2020-12.
    #[default]
    Standard,
    /// Types, properties, items, fixed values and `anyOf` alone, everything typed and no reference (Moonshot; llama.cpp and
    /// what runs on it).
    Plain,
}

/// Measured quirks of an upstream. The default is a well-behaved server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamProfile {
    /// Argument fragments restate everything before them. Default false.
    pub cumulative_arguments: bool,
    /// Arguments may begin with a placeholder `{}`, so a closed object is no evidence. Default false.
    pub placeholder_arguments: bool,
    /// Calls come one after another, so the next one seals the one before. Default false.
    pub sequential_calls: bool,
    /// A reply ends with its finish reason, and no end marker follows (gateways of Anthropic Messages that leave out
    /// `message_stop`: esengine/DeepSeek-Reasonix#8756). Default false: such a reply counts as torn.
    pub finish_reason_ends: bool,
    /// Handling of leaked calls. Default: report.
    pub leaked_calls: LeakedCalls,
    /// Form in which reasoning is sent back. Default: none.
    pub reasoning_echo: ReasoningEcho,
    /// Format of call ids that the upstream accepts. Default: any.
    pub tool_id_format: ToolIdFormat,
    /// Send `stream_options: {include_usage: true}` (Mistral answers 422). Default true.
    pub include_usage: bool,
    /// Ask for `reasoning.encrypted_content` (Responses) and send it back; models that do not reason refuse the
    /// `include`. Default true; the driver learns from a refusal.
    pub encrypted_reasoning: bool,
    /// True if the model sees pictures. Default true; without, they become a note.
    pub vision: bool,
    /// Most pictures of a request, with its documents in Anthropic's format (20, 100 or 600, by model). Of more the oldest become
    /// notes. `0`: no limit, nor one for the pixels of many. Default: that of the dialect; the driver learns a smaller number from
    /// a refusal.
    pub pictures_max: Option<u32>,
    /// Longest base64 of a picture, in bytes (Anthropic, Bedrock: 5 MiB). A longer one becomes a note. `0`: no limit, nor one
    /// for pixels and for the bytes of all. Default: that of the dialect.
    pub picture_base64_max: Option<u32>,
    /// True if the model hears sound, in the formats that its API takes. Default false: sound becomes a note.
    pub audio: bool,
    /// True if the upstream fetches pictures from their address. Default false: then addresses are refused.
    /// Only for servers from which nothing of this network can be reached.
    pub fetches_images: bool,
    /// `tool_choice: "none"` is understood; if not, tools are left out of the last step. Default true.
    pub tool_choice_none: bool,
    /// True if a call can be forced (`tool_choice: "required"` or a name); if not, the prompt asks for it, as
    /// it does after a refusal. Default true.
    pub tool_choice_required: bool,
    /// True if `strict` of a tool is sent (OpenAI's formats). Default true: some servers do not know it, and
    /// others want it for all tools or none. The driver learns from a refusal.
    pub strict_tools: bool,
    /// True if a call can be forced while thinking is on (with DeepSeek, Kimi and DashScope it cannot).
    /// Default true; without, the prompt asks for it. The driver learns from a refusal. Claude never can.
    pub tool_choice_while_thinking: bool,
    /// The model may think where no `thinking` asks for it (Anthropic), so that its thoughts go back all the same: newer
    /// models of Claude do, and refuse changes. Default true; the driver learns from the refusal of an older one.
    /// <https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting>
    pub thinks_unasked: bool,
    /// True if cacheable parts are marked with `cache_control` (Anthropic). Default true: a conversation is
    /// sent again with each step.
    pub cache_control: bool,
    /// Ask for arguments while they are written, `eager_input_streaming` (Anthropic), which otherwise holds each value back until
    /// it is complete. Default false: gateways that do not know it refuse it, and the driver learns from that.
    /// <https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming>
    pub eager_arguments: bool,
    /// Send `prompt_cache_key` (OpenAI): requests that begin alike go where their beginning is cached. Default false: servers
    /// that do not know it may refuse it.
    pub prompt_cache_key: bool,
    /// Form of the schemas of tools. Default: standard; the driver learns from a refusal.
    pub tool_schemas: ToolSchemaForm,
    /// Most tools of a request (OpenAI: 128). More are left out from the end, and named. Default: no limit.
    pub tools_max: Option<u32>,
    /// Tools that are not sent, and named: the upstream takes their definitions in no form, and refuses every request that has
    /// one. Default none; no setting: the driver learns them from refusals.
    #[serde(skip)]
    pub refused_tools: BTreeSet<DefinitionHash>,
    /// True if a user message may follow results of tools. Default true; without, an assistant message is put
    /// between them (Mistral); the driver learns from a refusal.
    pub user_after_tool: bool,
    /// The limit of the answer is called `max_completion_tokens` (OpenAI's reasoning models), not `max_tokens`. Default false;
    /// the driver learns from a refusal.
    pub max_completion_tokens: bool,
    /// Settings that are not sent, by the names of the upstream's fields (`top_p`, `topP`). Default none; the driver learns
    /// from a refusal, for the model that refused.
    pub leave_out: BTreeSet<String>,
    /// System prompt as `developer` instead of `system` (OpenAI reasoning models). Default false.
    pub developer_role: bool,
}

impl UpstreamProfile {
    /// Refuses none of the tools that a forced call needs: the tool of that name, or all where none else is left.
    pub(crate) fn take_needed_tools(&mut self, tools: &[ToolDefinition], choice: &ToolChoice) {
        match choice {
            ToolChoice::Tool(name) => {
                for tool in tools.iter().filter(|tool| tool.name == *name) {
                    self.refused_tools.remove(&tool.definition_hash());
                }
            }
            ToolChoice::Required
                if tools.iter().all(|tool| self.refused_tools.contains(&tool.definition_hash())) =>
            {
                self.refused_tools.clear();
            }
            _ => {}
        }
    }
}

impl Default for UpstreamProfile {
    fn default() -> Self {
        Self {
            cumulative_arguments: false,
            placeholder_arguments: false,
            sequential_calls: false,
            finish_reason_ends: false,
            leaked_calls: LeakedCalls::Report,
            reasoning_echo: ReasoningEcho::None,
            tool_id_format: ToolIdFormat::Any,
            include_usage: true,
            encrypted_reasoning: true,
            vision: true,
            pictures_max: None,
            picture_base64_max: None,
            audio: false,
            fetches_images: false,
            tool_choice_none: true,
            tool_choice_required: true,
            strict_tools: true,
            tool_choice_while_thinking: true,
            thinks_unasked: true,
            cache_control: true,
            eager_arguments: false,
            prompt_cache_key: false,
            tool_schemas: ToolSchemaForm::Standard,
            tools_max: None,
            refused_tools: BTreeSet::new(),
            user_after_tool: true,
            max_completion_tokens: false,
            leave_out: BTreeSet::new(),
            developer_role: false,
        }
    }
}
