//! Upstreams that are known by name: address, key variable, wire format and measured quirks, in one table.
//!
//! To add one: a row here with its sources. Nothing else in Throughline names an upstream.

use throughline_wire::{Dialect, Profile, ReasoningEcho, ToolIdFormat};

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Known {
    /// What it is called in configuration and on the command line: `deepseek`.
    pub name: &'static str,
    /// What it calls itself.
    pub title: &'static str,
    /// Where the dialect's path is appended.
    pub base_url: &'static str,
    /// The environment variable that holds the key; none = it needs no key.
    pub key_env: Option<&'static str>,
    /// Where a person gets a key.
    pub key_url: Option<&'static str>,
    /// What only a good key is shown, where the list of models is shown to everybody.
    pub key_check: Option<&'static str>,
    /// Its wire format.
    pub dialect: Dialect,
    /// Its quirks.
    pub profile: Profile,
    /// What a person should know.
    pub note: &'static str,
}

/// The row of that name.
pub fn known(name: &str) -> Option<Known> {
    all().into_iter().find(|known| known.name == name)
}

/// Every name, in the order of the table.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|known| known.name).collect()
}

/// The table.
pub fn all() -> Vec<Known> {
    vec![
        Known {
            // `developer` is understood by every current model and required by the reasoning ones.
            // https://platform.openai.com/docs/guides/text-generation
            profile: Profile {
                developer_role: true,
                fetches_images: true,
                // https://platform.openai.com/docs/guides/prompt-caching
                prompt_cache_key: true,
                ..Profile::default()
            },
            ..chat("openai", "OpenAI", "https://api.openai.com/v1", Some("OPENAI_API_KEY"))
                .keys_at("https://platform.openai.com/api-keys").note("Chat Completions; `openai-responses` speaks the Responses API.")
        },
        Known {
            dialect: Dialect::OpenaiResponses,
            profile: Profile {
                developer_role: true,
                fetches_images: true,
                // https://platform.openai.com/docs/guides/prompt-caching
                prompt_cache_key: true,
                ..Profile::default()
            },
            ..chat(
                "openai-responses",
                "OpenAI (Responses)",
                "https://api.openai.com/v1",
                Some("OPENAI_API_KEY"),
            )
            .keys_at("https://platform.openai.com/api-keys").note("Stateless: reasoning goes back encrypted, nothing is stored at OpenAI.")
        },
        Known {
            // Thinking models answer 400 "The `reasoning_content` in the thinking mode must be passed back to the API"
            // otherwise; models without thinking ignore it. https://api-docs.deepseek.com/guides/thinking_mode
            profile: echo(ReasoningEcho::ReasoningContent),
            ..chat("deepseek", "DeepSeek", "https://api.deepseek.com", Some("DEEPSEEK_API_KEY"))
                .keys_at("https://platform.deepseek.com/api_keys").note("Thinking is on by default for the newer models.")
        },
        // Later deltas carry `name: ""` (CodexPlusPlus#771), which assembly ignores for everyone.
        chat("siliconflow", "SiliconFlow", "https://api.siliconflow.cn/v1", Some("SILICONFLOW_API_KEY"))
            .keys_at("https://cloud.siliconflow.cn/account/ak").note("Not every model has tools: `Function call is not supported for this model.`"),
        // Old reasoning is ignored (vercel/ai, packages/alibaba), so it is not sent.
        chat(
            "dashscope",
            "Alibaba DashScope (Qwen)",
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            Some("DASHSCOPE_API_KEY"),
        )
        .keys_at("https://bailian.console.aliyun.com/?tab=model#/api-key").note("Outside China: base_url = \"https://dashscope-intl.aliyuncs.com/compatible-mode/v1\"."),
        Known {
            // 400 "thinking is enabled but reasoning_content is missing in assistant tool call message at index N".
            profile: echo(ReasoningEcho::ReasoningContent),
            ..chat("moonshot", "Moonshot (Kimi)", "https://api.moonshot.ai/v1", Some("MOONSHOT_API_KEY"))
                .keys_at("https://platform.moonshot.ai/console/api-keys").note("In China: base_url = \"https://api.moonshot.cn/v1\". Kimi K2.5+ pins its temperature.")
        },
        Known {
            // With `clear_thinking: false` the whole sequence must come back unmodified.
            // https://docs.z.ai/guides/capabilities/thinking-mode
            profile: echo(ReasoningEcho::ReasoningContent),
            ..chat("zhipu", "Zhipu (GLM)", "https://open.bigmodel.cn/api/paas/v4", Some("BIGMODEL_API_KEY"))
                .keys_at("https://open.bigmodel.cn/usercenter/apikeys").note(
                    "Outside China: base_url = \"https://api.z.ai/api/paas/v4\", key_env = \"ZAI_API_KEY\".",
                )
        },
        Known {
            // https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning
            profile: Profile { fetches_images: true, ..echo(ReasoningEcho::ReasoningDetails) },
            // Its models are everybody's. https://openrouter.ai/docs/api-reference/limits
            key_check: Some("/key"),
            ..chat("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY"))
                .keys_at("https://openrouter.ai/settings/keys").note("Models are named `vendor/model`: model = \"openrouter/anthropic/claude-…\".")
        },
        chat("groq", "Groq", "https://api.groq.com/openai/v1", Some("GROQ_API_KEY")).keys_at("https://console.groq.com/keys").note(
            "A model that fails to write a call answers 400 `tool_use_failed`; the step is tried once more.",
        ),
        Known {
            profile: Profile {
                // Reasoning comes and goes as content parts. https://docs.mistral.ai/capabilities/reasoning
                reasoning_echo: ReasoningEcho::ThinkingParts,
                // 400, code 3280: "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9".
                tool_id_format: ToolIdFormat::NineAlphanumeric,
                // 422 `extra_forbidden` for `stream_options` (anon-kode#53); usage comes anyway.
                include_usage: false,
                fetches_images: true,
                ..Profile::default()
            },
            ..chat("mistral", "Mistral", "https://api.mistral.ai/v1", Some("MISTRAL_API_KEY"))
                .keys_at("https://console.mistral.ai/api-keys").note("Refuses unknown fields with 422.")
        },
        Known {
            profile: Profile { fetches_images: true, ..Profile::default() },
            ..chat("xai", "xAI (Grok)", "https://api.x.ai/v1", Some("XAI_API_KEY"))
                .keys_at("https://console.x.ai").note("Some models refuse `reasoning_effort: none`.")
        },
        Known {
            dialect: Dialect::Anthropic,
            profile: Profile { fetches_images: true, ..Profile::default() },
            ..chat("anthropic", "Anthropic", "https://api.anthropic.com/v1", Some("ANTHROPIC_API_KEY"))
                .keys_at("https://console.anthropic.com/settings/keys").note("Messages API; thinking blocks go back with their signatures.")
        },
        Known {
            dialect: Dialect::Gemini,
            // Every current model hears. https://ai.google.dev/gemini-api/docs/audio
            profile: Profile { fetches_images: true, audio: true, ..Profile::default() },
            ..chat(
                "gemini",
                "Google Gemini",
                "https://generativelanguage.googleapis.com/v1beta",
                Some("GEMINI_API_KEY"),
            )
            .keys_at("https://aistudio.google.com/apikey").note("Native API; thought signatures go back with their parts.")
        },
        Known {
            dialect: Dialect::Ollama,
            ..chat("ollama", "Ollama", "http://localhost:11434", None)
                .note("Native /api/chat. Whole calls, not deltas; models without tools answer 400.")
        },
        chat("llama.cpp", "llama.cpp server", "http://localhost:8080/v1", None)
            .note("Older builds need `--jinja` for tools."),
        Known {
            // Newer releases read `reasoning`; `reasoning_content` is the older name.
            // https://docs.vllm.ai/en/latest/features/reasoning_outputs.html.
            profile: echo(ReasoningEcho::Reasoning),
            ..chat("vllm", "vLLM", "http://localhost:8000/v1", None)
                .note("Tools need `--enable-auto-tool-choice --tool-call-parser …` on the server.")
        },
        chat("lmstudio", "LM Studio", "http://localhost:1234/v1", None)
            .note("Start the server in its Developer tab."),
        // `finish_reason` on every chunk and index 0 for parallel calls (su-kaka/gcli2api): assembly copes with both
        // for everyone, so the profile is the default one.
        chat("gcli2api", "gcli2api", "http://127.0.0.1:7861/v1", Some("GCLI2API_PASSWORD"))
            .note("The key is its password. Errors arrive inside a 200 stream."),
    ]
}

impl Known {
    fn keys_at(self, url: &'static str) -> Self {
        Self { key_url: Some(url), ..self }
    }

    /// Whether it runs on this machine, where the table looks for it.
    pub fn is_local(&self) -> bool {
        ["//localhost", "//127.0.0.1"].iter().any(|here| self.base_url.contains(here))
    }

    fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// A row for a well-behaved server of the Chat Completions dialect.
fn chat(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_env: Option<&'static str>,
) -> Known {
    Known {
        name,
        title,
        base_url,
        key_env,
        key_url: None,
        key_check: None,
        dialect: Dialect::OpenaiChat,
        profile: Profile::default(),
        note: "",
    }
}

fn echo(reasoning_echo: ReasoningEcho) -> Profile {
    Profile { reasoning_echo, ..Profile::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_can_be_used_as_it_is() {
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
    fn the_names_of_the_documentation_are_all_there() {
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
            assert!(known(name).is_some(), "{name}");
        }
        assert!(known("nobody").is_none());
    }
}
