//! The table of known models. It needs nothing but the type of the facts, so that `cargo xtask models` includes this file and
//! need not build the library.

use super::ModelFacts;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Name by its maker, without a date unless the row applies to that date only.
    pub name: &'static str,
    /// The facts.
    pub facts: ModelFacts,
    /// Documents of its maker that state them.
    pub documents: &'static [ModelDocument],
}

/// A document of a maker about its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelDocument {
    /// Address of the document.
    pub url: &'static str,
    /// Date of its last change as `YYYY-MM-DD`, or, if it states none, of the copy that was read, or else of the reading.
    /// The first of the month where no day is stated.
    pub dated: &'static str,
}

/// Day of reading of documents without a date that were read as copies without one. Those that are read again get a day of
/// their own.
pub(super) const READ: &str = "2026-11-29";

const fn dated(url: &'static str, dated: &'static str) -> ModelDocument {
    ModelDocument { url, dated }
}

/// The page of a model, where a maker has one for each: the maker's name of the page, and the date.
macro_rules! page {
    (openai $page:literal, $date:expr) => {
        dated(concat!("https://developers.openai.com/api/docs/models/", $page), $date)
    };
    (claude $page:literal, $date:expr) => {
        dated(concat!("https://platform.claude.com/docs/en/models/", $page, "/overview"), $date)
    };
    (gemini $page:literal, $date:expr) => {
        dated(concat!("https://ai.google.dev/gemini-api/docs/models/", $page), $date)
    };
    (grok $page:literal, $date:expr) => {
        dated(concat!("https://docs.x.ai/developers/models/", $page), $date)
    };
    (mistral $page:literal, $date:expr) => {
        dated(
            concat!(
                "https://github.com/mistralai/platform-docs-public/blob/main/src/schema/models/models/",
                $page,
                ".ts"
            ),
            $date,
        )
    };
}

const OPENAI_VISION: ModelDocument =
    dated("https://developers.openai.com/api/docs/guides/images-vision", READ);
const CLAUDE_MODELS: ModelDocument = dated("https://platform.claude.com/docs/en/models/overview", READ);
const CLAUDE_TOOLS: ModelDocument =
    dated("https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview", READ);
const CLAUDE_SKILL: ModelDocument =
    dated("https://github.com/anthropics/skills/blob/main/skills/claude-api/shared/models.md", READ);
// Older than Claude Sonnet 4.5, which it does not list: the release of the newest model in it.
const CLAUDE_2025: ModelDocument = dated("https://docs.claude.com/en/docs/about-claude/models", "2025-08-05");
const GEMINI_4: ModelDocument =
    dated("https://ai.google.dev/gemini-api/docs/generate-content/latest-model", READ);
const GEMINI_3_8_FLASH: ModelDocument =
    dated("https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/3-8-flash", READ);
const GEMINI_2_5_PRO: ModelDocument =
    dated("https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/2-5-pro", READ);
const GEMINI_2_5: ModelDocument = dated("https://ai.google.dev/gemini-api/docs/models", "2025-06-01");
const DEEPSEEK: ModelDocument = dated("https://api-docs.deepseek.com/quick_start/pricing", "2026-11-15");
const DEEPSEEK_VISION: ModelDocument = dated("https://api-docs.deepseek.com/guides/vision", READ);
const DEEPSEEK_FIGURES: ModelDocument =
    dated("https://github.com/deepseek-ai/awesome-deepseek-agent/blob/main/docs/codex.md", "2026-05-13");
const QWEN: ModelDocument = dated(
    "https://github.com/modelstudioai/skills/blob/03f04a4586fdf0d1163aab0e94c12b62af2233ba/skills/bailian-docs-llm-wiki/models/models.jsonl",
    "2026-10-09",
);
const QWEN_FAMILIES: ModelDocument = dated(
    "https://github.com/modelstudioai/skills/blob/03f04a4586fdf0d1163aab0e94c12b62af2233ba/skills/bailian-docs-llm-wiki/models/families.jsonl",
    "2026-10-09",
);
const QWEN_FLASH: ModelDocument = dated(
    "https://github.com/modelstudioai/skills/blob/main/skills/bailian-docs-llm-wiki/models/groups/qwen-flash.json",
    "2026-05-28",
);
const KIMI_CODE: ModelDocument = dated(
    "https://github.com/MoonshotAI/kimi-code/blob/main/docs/en/configuration/config-files.md",
    "2026-08-20",
);
const KIMI_K2_6: ModelDocument = dated("https://platform.kimi.com/docs/pricing/chat-k26", READ);
const KIMI_K2_5: ModelDocument =
    dated("https://github.com/MoonshotAI/Kimi-K2.5/blob/master/README.md", "2026-01-31");
const KIMI_K2: ModelDocument =
    dated("https://platform.moonshot.cn/docs/guide/kimi-k2-5-quickstart", "2026-01-28");
const KIMI_K2_0711: ModelDocument =
    dated("https://github.com/MoonshotAI/Kimi-K2/blob/main/README.md", "2025-07-29");
const GLM: ModelDocument = dated("https://docs.bigmodel.cn/cn/guide/start/model-overview", "2026-02-01");
const GLM_TOOLS: ModelDocument = dated("https://docs.z.ai/guides/tools/stream-tool", READ);
const GLM_5: ModelDocument = dated("https://docs.bigmodel.cn/cn/guide/start/migrate-to-glm-new", READ);
const GLM_4_7: ModelDocument = dated("https://docs.z.ai/guides/llm/glm-4.7", READ);
const GLM_V: ModelDocument = dated("https://github.com/zai-org/GLM-V/blob/main/README.md", "2026-04-02");
const GLM_4_5: ModelDocument = dated("https://github.com/zai-org/GLM-4.5/blob/main/README.md", "2026-02-01");
const MINIMAX: ModelDocument =
    dated("https://platform.minimax.io/docs/api-reference/text-anthropic-api", READ);
const MINIMAX_M3_1: ModelDocument = dated("https://platform.minimax.io/docs/guides/text-generation", READ);
const MINIMAX_M3: ModelDocument =
    dated("https://platform.minimax.io/docs/api-reference/text-chat-openai", READ);
const MINIMAX_CODE: ModelDocument = dated(
    "https://github.com/MiniMax-AI/minimax-code/blob/main/packages/config/src/minimax-model-catalog.ts",
    "2026-09-01",
);
const GROK_4_7: ModelDocument = dated("https://docs.x.ai/developers/models", "2026-09-21");
const GROK_4_5: ModelDocument = dated("https://docs.x.ai/developers/grok-4-5", READ);
const LLAMA_4: ModelDocument =
    dated("https://github.com/meta-llama/llama-models/blob/main/models/llama4/MODEL_CARD.md", "2025-04-05");
const LLAMA_4_PROMPT: ModelDocument = dated(
    "https://github.com/meta-llama/llama-models/blob/main/models/llama4/prompt_format.md",
    "2025-05-07",
);
const LLAMA_3_3: ModelDocument =
    dated("https://github.com/meta-llama/llama-models/blob/main/models/llama3_3/MODEL_CARD.md", "2025-02-12");
const LLAMA_3_2_VISION: ModelDocument = dated(
    "https://github.com/meta-llama/llama-models/blob/main/models/llama3_2/MODEL_CARD_VISION.md",
    "2024-09-30",
);
const LLAMA_3_2: ModelDocument =
    dated("https://github.com/meta-llama/llama-models/blob/main/models/llama3_2/MODEL_CARD.md", "2024-10-24");
const LLAMA_3_1: ModelDocument =
    dated("https://github.com/meta-llama/llama-models/blob/main/models/llama3_1/MODEL_CARD.md", "2024-09-30");

/// Statements of the documents on pictures, tools and sound, in this order.
type Abilities = [Option<bool>; 3];
const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
/// No document of the row states it, or two of the maker's contradict each other.
const UNSAID: Option<bool> = None;

const fn row(
    name: &'static str,
    context_tokens: Option<u64>,
    output_tokens: Option<u64>,
    [vision, tools, audio]: Abilities,
    documents: &'static [ModelDocument],
) -> KnownModel {
    let facts = ModelFacts { context_tokens, output_tokens, vision, tools, audio };
    KnownModel { name, facts, documents }
}

/// The table: name, tokens of context, tokens of an answer, abilities, documents. `128K` of a maker is
/// entered as 128,000, the lower reading.
#[rustfmt::skip]
pub const KNOWN_MODELS: &[KnownModel] = &[
    // OpenAI. `audio` is unknown where the copy of a page has lost its list of modalities.
    row("gpt-6.1-sol",                      Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-6.1-sol", READ)]),
    row("gpt-6-astra",                      Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-6-astra", "2026-09-24")]),
    row("gpt-6-sol",                        Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-6-sol", READ)]),
    row("gpt-6-luna",                       Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-6-luna", READ)]),
    row("gpt-5.6",                          Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5.6-sol", READ)]),
    row("gpt-5.6-sol",                      Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5.6-sol", READ)]),
    row("gpt-5.6-terra",                    Some(1_050_000),  Some(128_000), [YES, UNSAID, NO],        &[page!(openai "gpt-5.6-terra", READ)]),
    row("gpt-5.6-luna",                     Some(1_050_000),  Some(128_000), [UNSAID, UNSAID, UNSAID], &[page!(openai "gpt-5.6-luna", READ)]),
    row("gpt-5.5",                          Some(1_050_000),  Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5.5", READ)]),
    row("gpt-5.4",                          Some(1_050_000),  Some(128_000), [YES, UNSAID, NO],        &[page!(openai "gpt-5.4", READ)]),
    row("gpt-5.4-mini",                     Some(400_000),    Some(128_000), [YES, UNSAID, UNSAID],    &[page!(openai "gpt-5.4-mini", READ), OPENAI_VISION]),
    row("gpt-5.4-nano",                     Some(400_000),    Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5.4-nano", READ)]),
    row("gpt-5.3-codex",                    Some(400_000),    Some(128_000), [YES, UNSAID, UNSAID],    &[page!(openai "gpt-5.3-codex", READ), OPENAI_VISION]),
    row("gpt-5.2",                          Some(400_000),    Some(128_000), [YES, UNSAID, UNSAID],    &[page!(openai "gpt-5.2", READ), OPENAI_VISION]),
    row("gpt-5.1",                          Some(400_000),    Some(128_000), [UNSAID, UNSAID, UNSAID], &[page!(openai "gpt-5.1", READ)]),
    row("gpt-5.1-codex-mini",               Some(400_000),    Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5.1-codex-mini", READ)]),
    row("gpt-5.1-chat-latest",              None,             Some(16_384),  [YES, YES, NO],           &[page!(openai "gpt-5.1-chat-latest", READ)]), // its page states a prompt larger than the window
    row("gpt-5",                            Some(400_000),    Some(128_000), [YES, UNSAID, UNSAID],    &[page!(openai "gpt-5", READ), OPENAI_VISION]),
    row("gpt-5-mini",                       Some(400_000),    Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5-mini", READ)]),
    row("gpt-5-nano",                       Some(400_000),    Some(128_000), [YES, YES, NO],           &[page!(openai "gpt-5-nano", READ)]),
    row("gpt-5-pro",                        Some(400_000),    Some(272_000), [YES, YES, NO],           &[page!(openai "gpt-5-pro", READ)]),
    row("gpt-5-codex",                      Some(400_000),    Some(128_000), [UNSAID, UNSAID, UNSAID], &[page!(openai "gpt-5-codex", READ)]),
    row("gpt-5-chat-latest",                Some(128_000),    Some(16_384),  [YES, UNSAID, UNSAID],    &[page!(openai "gpt-5-chat-latest", READ), OPENAI_VISION]),
    row("gpt-4.1",                          Some(1_047_576),  Some(32_768),  [YES, YES, NO],           &[page!(openai "gpt-4.1", READ)]),
    row("gpt-4.1-mini",                     Some(1_047_576),  Some(32_768),  [YES, YES, NO],           &[page!(openai "gpt-4.1-mini", "2026-10-04")]),
    row("gpt-4.1-nano",                     Some(1_047_576),  Some(32_768),  [YES, YES, UNSAID],       &[page!(openai "gpt-4.1-nano", READ), OPENAI_VISION]),
    row("gpt-4o",                           Some(128_000),    Some(16_384),  [YES, YES, NO],           &[page!(openai "gpt-4o", "2026-09-24")]),
    row("gpt-4o-2024-05-13",                Some(128_000),    None,          [YES, YES, NO],           &[page!(openai "gpt-4o", "2026-09-24")]), // writes less than the others
    row("gpt-4o-mini",                      Some(128_000),    Some(16_384),  [YES, YES, NO],           &[page!(openai "gpt-4o-mini", "2026-10-04")]),
    row("gpt-4o-audio-preview",             Some(128_000),    Some(16_384),  [NO, YES, YES],           &[page!(openai "gpt-4o-audio-preview", READ)]),
    row("gpt-audio",                        Some(128_000),    Some(16_384),  [NO, UNSAID, YES],        &[page!(openai "gpt-audio", READ)]),
    row("o4-mini",                          Some(200_000),    Some(100_000), [YES, YES, NO],           &[page!(openai "o4-mini", READ)]),
    row("o3",                               Some(200_000),    Some(100_000), [YES, UNSAID, UNSAID],    &[page!(openai "o3", READ), OPENAI_VISION]),
    row("o3-pro",                           Some(200_000),    Some(100_000), [YES, YES, NO],           &[page!(openai "o3-pro", READ)]),
    row("o3-mini",                          Some(200_000),    Some(100_000), [NO, YES, NO],            &[page!(openai "o3-mini", READ)]),
    row("o1",                               Some(200_000),    Some(100_000), [YES, UNSAID, UNSAID],    &[page!(openai "o1", READ), OPENAI_VISION]),
    row("gpt-4-turbo",                      Some(128_000),    Some(4_096),   [YES, UNSAID, NO],        &[page!(openai "gpt-4-turbo", READ)]),
    row("gpt-4",                            Some(8_192),      Some(8_192),   [NO, UNSAID, NO],         &[page!(openai "gpt-4", READ)]),
    row("gpt-3.5-turbo",                    Some(16_385),     Some(4_096),   [UNSAID, UNSAID, UNSAID], &[page!(openai "gpt-3.5-turbo", READ)]),
    row("gpt-oss-120b",                     Some(131_072),    Some(131_072), [NO, YES, NO],            &[page!(openai "gpt-oss-120b", READ)]), // one pool for both
    row("gpt-oss-20b",                      Some(131_072),    Some(131_072), [UNSAID, YES, UNSAID],    &[page!(openai "gpt-oss-20b", READ)]),

    // Anthropic.
    row("claude-fable-5-1",                 Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "fable-5-1", READ), CLAUDE_MODELS]),
    row("claude-fable-5",                   Some(1_000_000),  Some(128_000), [YES, YES, UNSAID],       &[page!(claude "fable-5", READ), CLAUDE_MODELS]),
    row("claude-opus-5-5",                  Some(1_000_000),  Some(128_000), [YES, YES, UNSAID],       &[CLAUDE_MODELS, CLAUDE_TOOLS]),
    row("claude-opus-5",                    Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "opus-5", READ), CLAUDE_TOOLS]),
    row("claude-sonnet-5-5",                Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "sonnet-5-5", READ), CLAUDE_TOOLS]),
    row("claude-sonnet-5",                  Some(1_000_000),  Some(128_000), [YES, YES, UNSAID],       &[page!(claude "sonnet-5", READ), CLAUDE_MODELS, CLAUDE_TOOLS]),
    row("claude-haiku-5-5",                 Some(1_000_000),  Some(128_000), [YES, YES, UNSAID],       &[page!(claude "haiku-5-5", READ), CLAUDE_MODELS]),
    row("claude-opus-4-8",                  Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "opus-4-8", READ), CLAUDE_TOOLS]),
    row("claude-opus-4-7",                  Some(1_000_000),  Some(128_000), [YES, YES, UNSAID],       &[CLAUDE_SKILL, CLAUDE_TOOLS]),
    row("claude-opus-4-6",                  Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "opus-4-6", READ), CLAUDE_TOOLS]),
    row("claude-opus-4-5",                  Some(200_000),    Some(64_000),  [YES, YES, NO],           &[page!(claude "opus-4-5", READ), CLAUDE_TOOLS]),
    row("claude-sonnet-4-6",                Some(1_000_000),  Some(128_000), [YES, YES, NO],           &[page!(claude "sonnet-4-6", READ), CLAUDE_TOOLS]),
    row("claude-sonnet-4-5",                Some(200_000),    Some(64_000),  [YES, YES, NO],           &[page!(claude "sonnet-4-5", READ), CLAUDE_TOOLS]), // a million with a header that asks for it
    row("claude-haiku-4-5",                 Some(200_000),    Some(64_000),  [YES, YES, UNSAID],       &[page!(claude "haiku-4-5", READ), CLAUDE_MODELS, CLAUDE_TOOLS]),
    row("claude-opus-4-1",                  Some(200_000),    Some(32_000),  [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-opus-4-0",                  Some(200_000),    Some(32_000),  [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-opus-4",                    Some(200_000),    Some(32_000),  [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-sonnet-4-0",                Some(200_000),    Some(64_000),  [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-sonnet-4",                  Some(200_000),    Some(64_000),  [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-3-7-sonnet-latest",         Some(200_000),    Some(64_000),  [YES, UNSAID, UNSAID],    &[CLAUDE_2025]),
    row("claude-3-7-sonnet",                Some(200_000),    Some(64_000),  [YES, UNSAID, UNSAID],    &[CLAUDE_2025]),
    row("claude-3-5-haiku-latest",          Some(200_000),    Some(8_000),   [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-3-5-haiku",                 Some(200_000),    Some(8_000),   [YES, YES, UNSAID],       &[CLAUDE_2025, CLAUDE_TOOLS]),
    row("claude-3-haiku",                   Some(200_000),    Some(4_000),   [YES, UNSAID, UNSAID],    &[CLAUDE_2025]),

    // Google, which counts the prompt alone; with Gemini 4, prompt and answer together.
    row("gemini-4-argon",                   Some(1_000_000),  None,          [UNSAID, UNSAID, UNSAID], &[GEMINI_4]),
    row("gemini-3.8-flash",                 None,             None,          [YES, UNSAID, YES],       &[GEMINI_3_8_FLASH]),
    row("gemini-3.1-pro-preview",           Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[page!(gemini "gemini-3.1-pro-preview", "2026-02-01")]),
    row("gemini-3.1-flash-lite",            Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[page!(gemini "gemini-3.1-flash-lite", READ)]),
    row("gemini-3-pro-preview",             Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[page!(gemini "gemini-3-pro-preview", "2025-11-01")]),
    row("gemini-3-flash-preview",           Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[page!(gemini "gemini-3-flash-preview", "2025-12-01")]),
    row("gemini-2.5-pro",                   Some(1_048_576),  Some(65_535),  [YES, YES, YES],          &[GEMINI_2_5, GEMINI_2_5_PRO]),
    row("gemini-2.5-flash",                 Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[GEMINI_2_5]),
    row("gemini-2.5-flash-lite",            Some(1_048_576),  Some(65_536),  [YES, YES, YES],          &[page!(gemini "gemini-2.5-flash-lite", "2025-07-01")]),

    // DeepSeek.
    row("deepseek-flash",                   Some(1_000_000),  Some(384_000), [YES, YES, UNSAID],       &[DEEPSEEK, DEEPSEEK_VISION, DEEPSEEK_FIGURES]),
    row("deepseek-v4-pro",                  Some(1_000_000),  Some(384_000), [NO, YES, UNSAID],        &[DEEPSEEK, DEEPSEEK_FIGURES]),
    row("deepseek-v4-flash",                Some(1_000_000),  Some(384_000), [UNSAID, YES, UNSAID],    &[DEEPSEEK, DEEPSEEK_FIGURES]), // a former name of the first
    row("deepseek-v4-flash-vision-exp",     Some(1_000_000),  Some(384_000), [YES, YES, UNSAID],       &[DEEPSEEK, DEEPSEEK_FIGURES]),

    // Alibaba.
    row("qwen3.8-max",                      Some(1_000_000),  Some(131_072), [YES, YES, NO],           &[QWEN]),
    row("qwen3.8-flash",                    Some(1_000_000),  Some(131_072), [YES, YES, NO],           &[QWEN]),
    row("qwen3.8-omni-flash",               Some(1_000_000),  Some(131_072), [YES, YES, YES],          &[QWEN]),
    row("qwen3.8-omni-flash-realtime",      None,             None,          [YES, YES, YES],          &[QWEN]),
    row("qwen3.8-27b",                      Some(1_000_000),  Some(131_072), [YES, YES, NO],           &[QWEN]),
    row("qwen3.8-2.4t-a95b",                Some(1_000_000),  Some(131_072), [NO, YES, NO],            &[QWEN]),
    row("qwen3.7-max",                      Some(1_000_000),  Some(131_072), [NO, YES, NO],            &[QWEN]),
    row("qwen3.7-plus",                     Some(1_000_000),  Some(131_072), [YES, YES, NO],           &[QWEN]),
    row("qwen3.7-flash",                    Some(1_000_000),  Some(131_072), [YES, YES, NO],           &[QWEN]),
    row("qwen3.6-plus",                     Some(1_000_000),  Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.6-flash",                    Some(1_000_000),  Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.6-max-preview",              Some(262_144),    Some(65_536),  [NO, YES, NO],            &[QWEN]),
    row("qwen3.6-27b",                      Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.6-35b-a3b",                  Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-plus",                     Some(1_000_000),  Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-flash",                    Some(1_000_000),  Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-omni-plus",                Some(262_144),    Some(65_536),  [YES, YES, YES],          &[QWEN]),
    row("qwen3.5-omni-plus-realtime",       Some(262_144),    Some(65_536),  [YES, YES, YES],          &[QWEN]),
    row("qwen3.5-omni-flash",               Some(262_144),    Some(65_536),  [YES, UNSAID, YES],       &[QWEN]),
    row("qwen3.5-omni-flash-realtime",      Some(262_144),    Some(65_536),  [YES, YES, YES],          &[QWEN]),
    row("qwen3.5-397b-a17b",                Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-122b-a10b",                Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-35b-a3b",                  Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3.5-27b",                      Some(262_144),    Some(65_536),  [YES, YES, NO],           &[QWEN]),
    row("qwen3-max",                        Some(262_144),    Some(65_536),  [NO, YES, NO],            &[QWEN]),
    row("qwen3-max-preview",                Some(262_144),    Some(65_536),  [NO, UNSAID, NO],         &[QWEN]),
    row("qwen3-vl-plus",                    Some(262_144),    Some(32_768),  [YES, YES, NO],           &[QWEN]),
    row("qwen3-vl-flash",                   Some(262_144),    Some(32_768),  [YES, YES, NO],           &[QWEN]),
    row("qwen3-omni-flash",                 Some(65_536),     Some(16_384),  [YES, YES, YES],          &[QWEN]),
    row("qwen3-coder-plus",                 Some(1_000_000),  Some(65_536),  [NO, YES, NO],            &[QWEN]),
    row("qwen3-coder-flash",                Some(1_000_000),  Some(65_536),  [NO, YES, NO],            &[QWEN]),
    row("qwen3-coder-480b-a35b-instruct",   Some(262_144),    Some(65_536),  [NO, UNSAID, NO],         &[QWEN]),
    row("qwen3-coder-30b-a3b-instruct",     Some(262_144),    Some(65_536),  [NO, UNSAID, NO],         &[QWEN]),
    row("qwen-plus",                        Some(1_000_000),  Some(32_768),  [NO, YES, NO],            &[QWEN]),
    row("qwen-flash",                       Some(1_000_000),  Some(32_768),  [NO, YES, NO],            &[QWEN_FLASH]),
    row("qwq-plus",                         Some(131_072),    Some(8_192),   [NO, YES, NO],            &[QWEN]),
    row("qwen-max",                         Some(32_768),     None,          [UNSAID, UNSAID, UNSAID], &[QWEN_FAMILIES]),
    row("qwen-turbo",                       Some(131_072),    None,          [UNSAID, UNSAID, UNSAID], &[QWEN_FAMILIES]),
    row("qwen-long",                        Some(10_000_000), None,          [UNSAID, UNSAID, UNSAID], &[QWEN_FAMILIES]),
    row("qwen-vl-max",                      Some(131_072),    None,          [UNSAID, UNSAID, UNSAID], &[QWEN_FAMILIES]),
    row("qwen-vl-plus",                     Some(131_072),    None,          [UNSAID, UNSAID, UNSAID], &[QWEN_FAMILIES]),
    row("qwen-omni-turbo-latest",           Some(32_768),     Some(2_048),   [UNSAID, UNSAID, YES],    &[QWEN]),

    // Moonshot. The first three are names of its subscription for programmers.
    row("k3",                               Some(1_048_576),  None,          [YES, YES, UNSAID],       &[KIMI_CODE]),
    row("kimi-for-coding",                  Some(262_144),    None,          [YES, YES, UNSAID],       &[KIMI_CODE]),
    row("kimi-for-coding-highspeed",        Some(262_144),    None,          [YES, YES, UNSAID],       &[KIMI_CODE]),
    row("kimi-k2.6",                        Some(256_000),    None,          [YES, YES, UNSAID],       &[KIMI_K2_6]),
    row("kimi-k2.5",                        Some(256_000),    None,          [YES, YES, UNSAID],       &[KIMI_K2_5, KIMI_K2]),
    row("kimi-k2-thinking",                 Some(256_000),    None,          [UNSAID, UNSAID, UNSAID], &[KIMI_K2]),
    row("kimi-k2-thinking-turbo",           Some(256_000),    None,          [UNSAID, UNSAID, UNSAID], &[KIMI_K2]),
    row("kimi-k2-turbo-preview",            Some(256_000),    None,          [UNSAID, UNSAID, UNSAID], &[KIMI_K2]),
    row("kimi-k2-0905-preview",             Some(256_000),    None,          [UNSAID, UNSAID, UNSAID], &[KIMI_K2]),
    row("kimi-k2-0711-preview",             Some(128_000),    None,          [UNSAID, UNSAID, UNSAID], &[KIMI_K2_0711]),

    // Zhipu.
    row("glm-5.2",                          Some(1_000_000),  Some(128_000), [UNSAID, YES, UNSAID],    &[GLM_5]),
    row("glm-5",                            Some(200_000),    Some(128_000), [UNSAID, YES, UNSAID],    &[GLM, GLM_TOOLS]),
    row("glm-4.7",                          Some(200_000),    Some(128_000), [NO, YES, NO],            &[GLM_4_7, GLM_TOOLS]),
    row("glm-4.7-flashx",                   Some(200_000),    Some(128_000), [NO, UNSAID, NO],         &[GLM, GLM_4_7]),
    row("glm-4.7-flash",                    Some(200_000),    Some(128_000), [UNSAID, UNSAID, UNSAID], &[GLM]),
    row("glm-4.6",                          Some(200_000),    Some(128_000), [UNSAID, YES, UNSAID],    &[GLM, GLM_TOOLS]),
    row("glm-4.6v",                         Some(128_000),    Some(32_000),  [YES, YES, UNSAID],       &[GLM, GLM_V]),
    row("glm-4.6v-flash",                   None,             None,          [YES, UNSAID, UNSAID],    &[GLM_V]),
    row("glm-4.5",                          Some(128_000),    None,          [UNSAID, YES, UNSAID],    &[GLM_4_5]),
    row("glm-4.5-air",                      Some(128_000),    Some(96_000),  [UNSAID, YES, UNSAID],    &[GLM, GLM_4_5]),
    row("glm-4.5-airx",                     Some(128_000),    Some(96_000),  [UNSAID, UNSAID, UNSAID], &[GLM]),
    row("glm-4.5-flash",                    Some(128_000),    Some(96_000),  [UNSAID, UNSAID, UNSAID], &[GLM]),
    row("glm-4.5v",                         None,             None,          [YES, UNSAID, UNSAID],    &[GLM_V]),
    row("glm-4-long",                       Some(1_000_000),  Some(4_000),   [UNSAID, UNSAID, UNSAID], &[GLM]),
    row("glm-4-flash-250414",               Some(128_000),    Some(16_000),  [UNSAID, YES, UNSAID],    &[GLM]),
    row("glm-4-flashx-250414",              Some(128_000),    Some(16_000),  [UNSAID, UNSAID, UNSAID], &[GLM]),

    // MiniMax.
    row("MiniMax-M3.1-Flash-Preview",       Some(1_000_000),  None,          [YES, YES, UNSAID],       &[MINIMAX_M3_1, MINIMAX_CODE]),
    row("MiniMax-M3",                       Some(1_000_000),  None,          [YES, YES, UNSAID],       &[MINIMAX, MINIMAX_M3]),
    row("MiniMax-M2.7",                     Some(204_800),    None,          [NO, YES, NO],            &[MINIMAX, MINIMAX_CODE]),
    row("MiniMax-M2.7-highspeed",           Some(204_800),    None,          [NO, YES, NO],            &[MINIMAX, MINIMAX_CODE]),
    row("MiniMax-M2.5",                     Some(204_800),    None,          [UNSAID, YES, UNSAID],    &[MINIMAX]),
    row("MiniMax-M2.5-highspeed",           Some(204_800),    None,          [UNSAID, YES, UNSAID],    &[MINIMAX]),
    row("MiniMax-M2.1",                     Some(204_800),    None,          [UNSAID, YES, UNSAID],    &[MINIMAX]),
    row("MiniMax-M2.1-highspeed",           Some(204_800),    None,          [UNSAID, YES, UNSAID],    &[MINIMAX]),
    row("MiniMax-M2",                       Some(204_800),    None,          [UNSAID, YES, UNSAID],    &[MINIMAX]),

    // Mistral. Its documents state no limit of an answer.
    row("mistral-large-4",                  Some(1_000_000),  None,          [YES, YES, NO],           &[page!(mistral "mistral-large-4-0", "2026-10-06")]),
    row("mistral-large-4-0",                Some(1_000_000),  None,          [YES, YES, NO],           &[page!(mistral "mistral-large-4-0", "2026-10-06")]),
    row("mistral-large-2512",               Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-large-3-25-12", "2026-08-12")]),
    row("mistral-large-latest",             Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-large-3-25-12", "2026-08-12")]),
    row("mistral-large-2411",               Some(128_000),    None,          [NO, YES, NO],            &[page!(mistral "mistral-large-2-1-24-11", "2026-06-12")]),
    row("mistral-medium-3.5",               Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-medium-3-5-26-04", "2026-08-11")]),
    row("mistral-medium-3-5",               Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-medium-3-5-26-04", "2026-08-11")]),
    row("mistral-medium-3",                 Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-medium-3-5-26-04", "2026-08-11")]),
    row("mistral-medium-latest",            Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-medium-3-5-26-04", "2026-08-11")]),
    row("mistral-medium-2508",              Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-medium-3-1-25-08", "2026-06-16")]),
    row("mistral-small-2603",               Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-small-4-0-26-03", "2026-08-11")]),
    row("mistral-small-latest",             Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-small-4-0-26-03", "2026-08-11")]),
    row("mistral-small-2506",               Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "mistral-small-3-2-25-06", "2026-08-11")]),
    row("codestral-2508",                   Some(128_000),    None,          [NO, YES, NO],            &[page!(mistral "codestral-25-08", "2026-08-12")]),
    row("codestral-latest",                 Some(128_000),    None,          [NO, YES, NO],            &[page!(mistral "codestral-25-08", "2026-08-12")]),
    row("devstral-2512",                    Some(256_000),    None,          [NO, YES, NO],            &[page!(mistral "devstral-2-25-12", "2026-08-11")]),
    row("devstral-latest",                  Some(256_000),    None,          [NO, YES, NO],            &[page!(mistral "devstral-2-25-12", "2026-08-11")]),
    row("devstral-medium-latest",           Some(256_000),    None,          [NO, YES, NO],            &[page!(mistral "devstral-2-25-12", "2026-08-11")]),
    row("labs-devstral-small-2512",         Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "devstral-small-2-25-12", "2026-08-11")]),
    row("devstral-small-latest",            Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "devstral-small-2-25-12", "2026-08-11")]),
    row("magistral-medium-2509",            Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "magistral-medium-1-2-25-09", "2026-08-11")]),
    row("magistral-medium-latest",          Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "magistral-medium-1-2-25-09", "2026-08-11")]),
    row("magistral-small-2509",             Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "magistral-small-1-2-25-09", "2026-08-11")]),
    row("magistral-small-latest",           Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "magistral-small-1-2-25-09", "2026-08-11")]),
    row("ministral-14b-2512",               Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-14b-25-12", "2026-08-11")]),
    row("ministral-14b-latest",             Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-14b-25-12", "2026-08-11")]),
    row("ministral-8b-2512",                Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-8b-25-12", "2026-08-11")]),
    row("ministral-8b-latest",              Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-8b-25-12", "2026-08-11")]),
    row("ministral-3b-2512",                Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-3b-25-12", "2026-08-11")]),
    row("ministral-3b-latest",              Some(256_000),    None,          [YES, YES, NO],           &[page!(mistral "ministral-3-3b-25-12", "2026-08-11")]),
    row("pixtral-large-2411",               Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "pixtral-large-24-11", "2026-08-11")]),
    row("pixtral-large-latest",             Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "pixtral-large-24-11", "2026-08-11")]),
    row("pixtral-12b-2409",                 Some(128_000),    None,          [YES, YES, NO],           &[page!(mistral "pixtral-12b-24-09", "2026-08-11")]),
    row("open-mistral-nemo-2407",           Some(128_000),    None,          [NO, YES, NO],            &[page!(mistral "mistral-nemo-12b-24-07", "2026-08-11")]),
    row("open-mistral-nemo",                Some(128_000),    None,          [NO, YES, NO],            &[page!(mistral "mistral-nemo-12b-24-07", "2026-08-11")]),
    row("voxtral-small-2507",               Some(32_000),     None,          [NO, YES, YES],           &[page!(mistral "voxtral-small-25-07", "2026-08-11")]),
    row("voxtral-small-latest",             Some(32_000),     None,          [NO, YES, YES],           &[page!(mistral "voxtral-small-25-07", "2026-08-11")]),
    row("voxtral-mini-2507",                Some(32_000),     None,          [NO, NO, YES],            &[page!(mistral "voxtral-mini-25-07", "2026-08-11")]),
    row("voxtral-mini-latest",              Some(32_000),     None,          [NO, NO, YES],            &[page!(mistral "voxtral-mini-25-07", "2026-08-11")]),

    // xAI. Its documents state no limit of an answer.
    row("grok-4.7",                         Some(500_000),    None,          [UNSAID, YES, UNSAID],    &[GROK_4_7]),
    row("grok-4.6",                         Some(500_000),    None,          [YES, YES, NO],           &[page!(grok "grok-4.6", READ)]),
    row("grok-4.5",                         Some(500_000),    None,          [YES, YES, NO],           &[page!(grok "grok-4.5", READ), GROK_4_5]),
    row("grok-4.5-latest",                  Some(500_000),    None,          [YES, YES, NO],           &[page!(grok "grok-4.5", READ), GROK_4_5]),
    row("grok-build-latest",                Some(500_000),    None,          [YES, YES, NO],           &[page!(grok "grok-4.5", READ), GROK_4_5]),
    row("grok-4.3",                         Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.3", READ)]),
    row("grok-4.3-latest",                  Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.3", READ)]),
    row("grok-4.20",                        Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20", READ)]),
    row("grok-4.20-reasoning",              Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20", READ)]),
    row("grok-4.20-0309-reasoning",         Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20", READ)]),
    row("grok-4.20-non-reasoning",          Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20-non-reasoning", READ)]),
    row("grok-4.20-0309-non-reasoning",     Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20-non-reasoning", READ)]),
    row("grok-4.20-multi-agent",            Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20-multi-agent", READ)]),
    row("grok-4.20-multi-agent-0309",       Some(1_000_000),  None,          [YES, YES, NO],           &[page!(grok "grok-4.20-multi-agent", READ)]),

    // Meta. Hosts decide whether they offer the tools that its cards describe.
    row("Llama-4-Maverick-17B-128E-Instruct", Some(1_000_000),  None,          [YES, YES, NO],           &[LLAMA_4, LLAMA_4_PROMPT]),
    row("Llama-4-Scout-17B-16E-Instruct",   Some(10_000_000), None,          [YES, YES, NO],           &[LLAMA_4, LLAMA_4_PROMPT]),
    row("Llama-3.3-70B-Instruct",           Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_3]),
    row("Llama-3.2-90B-Vision-Instruct",    Some(128_000),    None,          [YES, UNSAID, NO],        &[LLAMA_3_2_VISION]),
    row("Llama-3.2-11B-Vision-Instruct",    Some(128_000),    None,          [YES, UNSAID, NO],        &[LLAMA_3_2_VISION]),
    row("Llama-3.2-3B-Instruct",            Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_2]),
    row("Llama-3.2-1B-Instruct",            Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_2]),
    row("Llama-3.1-405B-Instruct",          Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_1]),
    row("Llama-3.1-70B-Instruct",           Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_1]),
    row("Llama-3.1-8B-Instruct",            Some(128_000),    None,          [NO, YES, NO],            &[LLAMA_3_1]),
];
