//! Built-in providers: address, key variable, wire format and measured quirks, in one table.
//!
//! To add one: a row here with its sources. Nothing else in Throughline names an upstream.

use throughline_wire::{Dialect, ReasoningEcho, ToolIdFormat, ToolSchemaForm, UpstreamProfile};

/// "A max of 128 functions are supported." <https://platform.openai.com/docs/api-reference/chat/create>
const OPENAI_TOOLS_MAX: Option<u32> = Some(128);

/// One row of the table.
#[derive(Clone, Debug)]
pub struct KnownProvider {
    /// Name in configuration and on the command line: `deepseek`.
    pub name: &'static str,
    /// The provider's own name.
    pub title: &'static str,
    /// Base URL, to which the dialect's path is appended.
    pub base_url: &'static str,
    /// The environment variable that holds the key; none = it needs no key.
    pub key_env: Option<&'static str>,
    /// Page where a person gets a key.
    pub key_url: Option<&'static str>,
    /// Path that only a valid key can read, where the list of models is public.
    pub key_check: Option<&'static str>,
    /// Wire format of the upstream.
    pub dialect: Dialect,
    /// Quirks of the upstream.
    pub profile: UpstreamProfile,
    /// A note for people.
    pub note: &'static str,
}

/// The row of that name.
pub fn find(name: &str) -> Option<KnownProvider> {
    all().into_iter().find(|provider| provider.name == name)
}

/// Names of all built-in providers, in the order of the table.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|provider| provider.name).collect()
}

/// The table.
pub fn all() -> Vec<KnownProvider> {
    vec![
        KnownProvider {
            // `developer` is understood by every current model and required by the reasoning ones.
            // https://platform.openai.com/docs/guides/text-generation
            profile: UpstreamProfile {
                developer_role: true,
                fetches_images: true,
                // https://platform.openai.com/docs/guides/prompt-caching
                prompt_cache_key: true,
                tools_max: OPENAI_TOOLS_MAX,
                ..UpstreamProfile::default()
            },
            ..chat_completions("openai", "OpenAI", "https://api.openai.com/v1", Some("OPENAI_API_KEY"))
                .with_key_url("https://platform.openai.com/api-keys").with_note("Chat Completions; `openai-responses` speaks the Responses API.")
        },
        KnownProvider {
            dialect: Dialect::OpenaiResponses,
            profile: UpstreamProfile {
                developer_role: true,
                fetches_images: true,
                // https://platform.openai.com/docs/guides/prompt-caching
                prompt_cache_key: true,
                tools_max: OPENAI_TOOLS_MAX,
                ..UpstreamProfile::default()
            },
            ..chat_completions(
                "openai-responses",
                "OpenAI (Responses)",
                "https://api.openai.com/v1",
                Some("OPENAI_API_KEY"),
            )
            .with_key_url("https://platform.openai.com/api-keys").with_note("Stateless: reasoning goes back encrypted, nothing is stored at OpenAI.")
        },
        KnownProvider {
            // Thinking models answer 400 "The `reasoning_content` in the thinking mode must be passed back to the API"
            // otherwise; models without thinking ignore it. https://api-docs.deepseek.com/guides/thinking_mode
            // A forced call: "Thinking mode does not support this tool_choice" (HTTP 400; deepseek-ai/DeepSeek-V3#1376).
            profile: UpstreamProfile {
                tool_choice_while_thinking: false,
                ..with_reasoning_echo(ReasoningEcho::ReasoningContent)
            },
            ..chat_completions("deepseek", "DeepSeek", "https://api.deepseek.com", Some("DEEPSEEK_API_KEY"))
                .with_key_url("https://platform.deepseek.com/api_keys").with_note("Thinking is on by default for the newer models.")
        },
        // Later deltas carry `name: ""` (CodexPlusPlus#771), which assembly ignores for everyone.
        chat_completions("siliconflow", "SiliconFlow", "https://api.siliconflow.cn/v1", Some("SILICONFLOW_API_KEY"))
            .with_key_url("https://cloud.siliconflow.cn/account/ak").with_note("Not every model has tools: `Function call is not supported for this model.`"),
        KnownProvider {
            // Old reasoning is ignored (vercel/ai, packages/alibaba), so it is not sent.
            // "The tool_choice parameter does not support being set to required or object in thinking mode" (HTTP 400;
            // cloudwego/eino#994).
            profile: UpstreamProfile { tool_choice_while_thinking: false, ..UpstreamProfile::default() },
            ..chat_completions(
                "dashscope",
                "Alibaba DashScope (Qwen)",
                "https://dashscope.aliyuncs.com/compatible-mode/v1",
                Some("DASHSCOPE_API_KEY"),
            )
            .with_key_url("https://bailian.console.aliyun.com/?tab=model#/api-key").with_note("Outside China: base_url = \"https://dashscope-intl.aliyuncs.com/compatible-mode/v1\".")
        },
        KnownProvider {
            // 400 "thinking is enabled but reasoning_content is missing in assistant tool call message at index N".
            // Its own form of JSON Schema (https://github.com/MoonshotAI/kimi-cli/issues/1595).
            // "tool_choice 'required' is incompatible with thinking enabled" (HTTP 400; AstrBotDevs/AstrBot#7805).
            profile: UpstreamProfile {
                tool_choice_while_thinking: false,
                tool_schemas: ToolSchemaForm::Plain,
                ..with_reasoning_echo(ReasoningEcho::ReasoningContent)
            },
            ..chat_completions("moonshot", "Moonshot (Kimi)", "https://api.moonshot.ai/v1", Some("MOONSHOT_API_KEY"))
                .with_key_url("https://platform.moonshot.ai/console/api-keys").with_note("In China: base_url = \"https://api.moonshot.cn/v1\". Kimi K2.5+ pins its temperature.")
        },
        KnownProvider {
            // With `clear_thinking: false` the whole sequence must come back unmodified.
            // https://docs.z.ai/guides/capabilities/thinking-mode
            // "Tool choice must be auto" (HTTP 400; vectorize-io/hindsight#4246).
            profile: UpstreamProfile {
                tool_choice_required: false,
                tool_choice_none: false,
                ..with_reasoning_echo(ReasoningEcho::ReasoningContent)
            },
            ..chat_completions("zhipu", "Zhipu (GLM)", "https://open.bigmodel.cn/api/paas/v4", Some("BIGMODEL_API_KEY"))
                .with_key_url("https://open.bigmodel.cn/usercenter/apikeys").with_note(
                    "Outside China: base_url = \"https://api.z.ai/api/paas/v4\", key_env = \"ZAI_API_KEY\".",
                )
        },
        KnownProvider {
            // https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning
            profile: UpstreamProfile { fetches_images: true, ..with_reasoning_echo(ReasoningEcho::ReasoningDetails) },
            // Its models are public. https://openrouter.ai/docs/api-reference/limits
            key_check: Some("/key"),
            ..chat_completions("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY"))
                .with_key_url("https://openrouter.ai/settings/keys").with_note("Models are named `vendor/model`: model = \"openrouter/anthropic/claude-…\".")
        },
        KnownProvider {
            // "A max of 128 functions are supported." https://console.groq.com/docs/api-reference#chat-create
            profile: UpstreamProfile { tools_max: OPENAI_TOOLS_MAX, ..UpstreamProfile::default() },
            ..chat_completions("groq", "Groq", "https://api.groq.com/openai/v1", Some("GROQ_API_KEY"))
                .with_key_url("https://console.groq.com/keys").with_note(
                    "A model that fails to write a call returns 400 `tool_use_failed`; the step is retried once.",
                )
        },
        KnownProvider {
            profile: UpstreamProfile {
                // Reasoning comes and goes as content parts. https://docs.mistral.ai/capabilities/reasoning
                reasoning_echo: ReasoningEcho::ThinkingParts,
                // 400, code 3280: "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9".
                tool_id_format: ToolIdFormat::NineAlphanumeric,
                // 422 `extra_forbidden` for `stream_options` (anon-kode#53); usage comes anyway.
                include_usage: false,
                // 400 "Unexpected role 'user' after role 'tool'".
                user_after_tool: false,
                fetches_images: true,
                ..UpstreamProfile::default()
            },
            ..chat_completions("mistral", "Mistral", "https://api.mistral.ai/v1", Some("MISTRAL_API_KEY"))
                .with_key_url("https://console.mistral.ai/api-keys").with_note("Refuses unknown fields with 422.")
        },
        KnownProvider {
            profile: UpstreamProfile { fetches_images: true, ..UpstreamProfile::default() },
            ..chat_completions("xai", "xAI (Grok)", "https://api.x.ai/v1", Some("XAI_API_KEY"))
                .with_key_url("https://console.x.ai").with_note("Some models refuse `reasoning_effort: none`.")
        },
        KnownProvider {
            dialect: Dialect::Anthropic,
            profile: UpstreamProfile {
                fetches_images: true,
                eager_arguments: true,
                ..UpstreamProfile::default()
            },
            ..chat_completions("anthropic", "Anthropic", "https://api.anthropic.com/v1", Some("ANTHROPIC_API_KEY"))
                .with_key_url("https://console.anthropic.com/settings/keys").with_note("Messages API; thinking blocks go back with their signatures.")
        },
        KnownProvider {
            dialect: Dialect::Gemini,
            // Every current model hears. https://ai.google.dev/gemini-api/docs/audio
            profile: UpstreamProfile { fetches_images: true, audio: true, ..UpstreamProfile::default() },
            ..chat_completions(
                "gemini",
                "Google Gemini",
                "https://generativelanguage.googleapis.com/v1beta",
                Some("GEMINI_API_KEY"),
            )
            .with_key_url("https://aistudio.google.com/apikey").with_note("Native API; thought signatures go back with their parts.")
        },
        KnownProvider {
            dialect: Dialect::Ollama,
            ..chat_completions("ollama", "Ollama", "http://localhost:11434", None)
                .with_note("Native /api/chat. Whole calls, not deltas; models without tools answer 400.")
        },
        KnownProvider {
            profile: with_grammars(),
            ..chat_completions("llama.cpp", "llama.cpp server", "http://localhost:8080/v1", None)
                .with_note("Older builds need `--jinja` for tools.")
        },
        KnownProvider {
            // Newer releases read `reasoning`; `reasoning_content` is the older name.
            // https://docs.vllm.ai/en/latest/features/reasoning_outputs.html.
            profile: with_reasoning_echo(ReasoningEcho::Reasoning),
            ..chat_completions("vllm", "vLLM", "http://localhost:8000/v1", None)
                .with_note("Tools need `--enable-auto-tool-choice --tool-call-parser …` on the server.")
        },
        KnownProvider {
            profile: with_grammars(),
            ..chat_completions("lmstudio", "LM Studio", "http://localhost:1234/v1", None)
                .with_note("Start the server in its Developer tab.")
        },
        // `finish_reason` on every chunk and index 0 for parallel calls (su-kaka/gcli2api): assembly copes with both
        // for everyone, so the profile is the default one.
        chat_completions("gcli2api", "gcli2api", "http://127.0.0.1:7861/v1", Some("GCLI2API_PASSWORD"))
            .with_note("The key is its password. Errors arrive inside a 200 stream."),
    ]
}

impl KnownProvider {
    fn with_key_url(self, url: &'static str) -> Self {
        Self { key_url: Some(url), ..self }
    }

    /// True if it runs on this machine at the table's address.
    pub fn is_local(&self) -> bool {
        ["//localhost", "//127.0.0.1"].iter().any(|here| self.base_url.contains(here))
    }

    fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// A row for a well-behaved server of the Chat Completions dialect.
fn chat_completions(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_env: Option<&'static str>,
) -> KnownProvider {
    KnownProvider {
        name,
        title,
        base_url,
        key_env,
        key_url: None,
        key_check: None,
        dialect: Dialect::OpenaiChat,
        profile: UpstreamProfile::default(),
        note: "",
    }
}

/// Schemas of tools become grammars, which not all of them can be (ggml-org/llama.cpp#26930).
fn with_grammars() -> UpstreamProfile {
    UpstreamProfile { tool_schemas: ToolSchemaForm::Plain, ..UpstreamProfile::default() }
}

fn with_reasoning_echo(reasoning_echo: ReasoningEcho) -> UpstreamProfile {
    UpstreamProfile { reasoning_echo, ..UpstreamProfile::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_known_provider_entry_is_valid() {
        let mut seen = BTreeSet::new();
        for row in all() {
            assert!(seen.insert(row.name), "{} is there twice", row.name);
            let url = url::Url::parse(row.base_url).expect(row.name);
            let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1"));
            assert!(local || url.scheme() == "https", "{}: a key must not travel in clear text", row.name);
            assert!(local || row.key_env.is_some(), "{}: a public upstream needs a key", row.name);
            assert!(!row.base_url.ends_with('/'), "{}: the dialect's path begins with one", row.name);
            assert!(local || row.key_url.is_some(), "{}: nobody is told where to get a key", row.name);
            assert_eq!(local, row.is_local(), "{}", row.name);
            assert!(!row.note.is_empty() && !row.name.contains('/'), "{}", row.name);
        }
    }

    #[test]
    fn documented_providers_are_known() {
        let promised = [
            "openai",
            "deepseek",
            "siliconflow",
            "dashscope",
            "moonshot",
            "zhipu",
            "openrouter",
            "groq",
            "mistral",
            "xai",
            "anthropic",
            "gemini",
            "ollama",
            "llama.cpp",
            "vllm",
            "lmstudio",
            "gcli2api",
        ];
        for name in promised {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("nobody").is_none());
    }
}
