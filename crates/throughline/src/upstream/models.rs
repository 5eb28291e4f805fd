//! Models that are known by name: how much they read and write, and what they take, in one table with its sources. A figure that
//! is not sure is left out; `[models."name"]` of the configuration says what is not here, or is no longer so.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about a model. `None` = unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// Tokens of prompt and answer together or, where the maker counts so, of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// It sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// It calls tools natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// It hears sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
}

impl ModelFacts {
    /// These facts, with gaps filled from `other`.
    pub fn or(self, other: Self) -> Self {
        Self {
            context_tokens: self.context_tokens.or(other.context_tokens),
            output_tokens: self.output_tokens.or(other.output_tokens),
            vision: self.vision.or(other.vision),
            tools: self.tools.or(other.tools),
            audio: self.audio.or(other.audio),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Its maker's name of it, without a date.
    pub name: &'static str,
    /// The facts.
    pub facts: ModelFacts,
    /// Pages that state them.
    pub sources: &'static [&'static str],
    /// Date of the lookup, as `YYYY-MM-DD`.
    pub as_of: &'static str,
}

/// Dates of the lookups.
const FIRST: &str = "2026-11-23";
const SECOND: &str = "2026-11-25";

const CLAUDE_SONNET_5: &str = "https://platform.claude.com/docs/en/models/sonnet-5/overview";
const CLAUDE_OPUS_5: &str = "https://platform.claude.com/docs/en/models/opus-5/overview";
const CLAUDE_SONNET_4_5: &str = "https://platform.claude.com/docs/en/models/sonnet-4-5/overview";
const GPT_4O: &str = "https://github.com/MicrosoftDocs/azure-ai-docs/pull/544";
const GPT_4_1: &str = "https://vercel.com/ai-gateway/models/gpt-4.1-fast";
const GPT_4_1_NANO: &str = "https://developers.openai.com/api/docs/models/gpt-4.1-nano";
const GPT_AUDIO: &str = "https://developers.openai.com/api/docs/models/gpt-audio.md";
const LIMITS_TABLE: &str =
    "https://docs.uipath.com/autopilot/other/latest/user-guide/supported-models-and-limits";
const GEMINI: &str = "https://ai.google.dev/gemini-api/docs/models";
const DEEPSEEK: &str = "https://api-docs.deepseek.com/zh-cn/quick_start/pricing";
const QWEN3_MAX: &str = "https://vercel.com/ai-gateway/models/qwen3-max.md";
const QWEN3_CODER_PLUS: &str = "https://vercel.com/ai-gateway/models/qwen3-coder-plus/faq";
const QWEN3_6_PLUS: &str = "https://vercel.com/ai-gateway/models/qwen3.6-plus/faq";
const QWEN3_7_MAX: &str = "https://vercel.com/ai-gateway/models/qwen3.7-max/faq";
const KIMI_K2_6: &str = "https://www.chatbase.co/blog/kimi-k2-api";
const KIMI_K2: &str = "https://www.promptfoo.dev/docs/providers/moonshot/";
const GLM_4_5: &str = "https://vercel.com/ai-gateway/models/glm-4.5.md";
const GLM_4_5_TOOLS: &str = "https://vercel.com/ai-gateway/models/glm-4.5/faq";
const GLM_4_6: &str = "https://inference.readthedocs.io/en/v2.10.0/models/builtin/llm/glm-4.6.html";
const GLM_5_3: &str = "https://openrouter.ai/~z-ai/glm-latest/api";
const GROK_4: &str = "https://openrouter.ai/x-ai/grok-4/api";
const GROK_4_FAST: &str = "https://docs.oracle.com/iaas/Content/generative-ai/xai-grok-4-fast.htm";
const GROK_4_FAST_CONTEXT: &str = "https://openrouter.ai/x-ai/grok-4-fast:free/activity";
const MISTRAL_MEDIUM_3_5: &str = "https://vercel.com/ai-gateway/models/mistral-medium-3.5.md";
const MISTRAL_MEDIUM_3_5_INPUT: &str = "https://vercel.com/ai-gateway/models/mistral-medium-3.5/about";
const MISTRAL_LARGE_2411: &str =
    "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/mistral/mistral-large";

/// Words of a page about pictures, tools and sound, in this order.
type Abilities = [Option<bool>; 3];
const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
/// No page of the row says it.
const UNSAID: Option<bool> = None;

const fn row(
    name: &'static str,
    context_tokens: u64,
    output_tokens: Option<u64>,
    [vision, tools, audio]: Abilities,
    sources: &'static [&'static str],
    as_of: &'static str,
) -> KnownModel {
    let facts = ModelFacts { context_tokens: Some(context_tokens), output_tokens, vision, tools, audio };
    KnownModel { name, facts, sources, as_of }
}

/// The table.
pub const KNOWN_MODELS: &[KnownModel] = &[
    row("claude-opus-5", 1_000_000, Some(128_000), [YES, YES, UNSAID], &[CLAUDE_OPUS_5], FIRST),
    row("claude-sonnet-5", 1_000_000, Some(128_000), [YES, YES, UNSAID], &[CLAUDE_SONNET_5], FIRST),
    row("claude-sonnet-4-5", 200_000, Some(64_000), [YES, YES, UNSAID], &[CLAUDE_SONNET_4_5], FIRST),
    row("gpt-4o", 128_000, Some(16_384), [YES, YES, UNSAID], &[GPT_4O], FIRST),
    row("gpt-4o-mini", 128_000, Some(16_384), [YES, YES, UNSAID], &[GPT_4O], FIRST),
    row("gpt-4.1", 1_047_576, Some(32_768), [YES, YES, UNSAID], &[GPT_4_1], FIRST),
    row("gpt-4.1-mini", 1_047_576, Some(32_768), [YES, YES, UNSAID], &[GPT_4_1], FIRST),
    row("gpt-4.1-nano", 1_047_576, Some(32_768), [YES, YES, UNSAID], &[GPT_4_1_NANO], FIRST),
    row("gpt-5", 400_000, Some(128_000), [YES, YES, UNSAID], &[LIMITS_TABLE], FIRST),
    row("gpt-5.1", 400_000, Some(128_000), [YES, YES, UNSAID], &[LIMITS_TABLE], FIRST),
    row("gpt-audio", 128_000, Some(16_384), [NO, UNSAID, YES], &[GPT_AUDIO], SECOND),
    row("gemini-2.5-pro", 1_048_576, Some(65_535), [YES, YES, YES], &[LIMITS_TABLE, GEMINI], SECOND),
    row("gemini-2.5-flash", 1_048_576, Some(65_535), [YES, YES, YES], &[LIMITS_TABLE, GEMINI], SECOND),
    row("deepseek-flash", 1_000_000, Some(384_000), [YES, YES, UNSAID], &[DEEPSEEK], SECOND),
    // The former name of the same.
    row("deepseek-v4-flash", 1_000_000, Some(384_000), [YES, YES, UNSAID], &[DEEPSEEK], SECOND),
    row("deepseek-v4-pro", 1_000_000, Some(384_000), [NO, YES, UNSAID], &[DEEPSEEK], SECOND),
    row("qwen3-max", 262_144, Some(65_536), [UNSAID, YES, UNSAID], &[QWEN3_MAX], SECOND),
    row("qwen3-coder-plus", 1_000_000, None, [UNSAID, YES, UNSAID], &[QWEN3_CODER_PLUS], SECOND),
    row("qwen3.6-plus", 1_000_000, None, [YES, YES, UNSAID], &[QWEN3_6_PLUS], SECOND),
    row("qwen3.7-max", 991_000, None, [NO, YES, NO], &[QWEN3_7_MAX], SECOND),
    row("kimi-k2.6", 262_144, None, [YES, YES, UNSAID], &[KIMI_K2_6], SECOND),
    row("kimi-k2.5", 256_000, None, [UNSAID, UNSAID, UNSAID], &[KIMI_K2], SECOND),
    row("kimi-k2.7-code", 256_000, None, [UNSAID, UNSAID, UNSAID], &[KIMI_K2], SECOND),
    row("glm-4.5", 128_000, Some(96_000), [UNSAID, YES, UNSAID], &[GLM_4_5, GLM_4_5_TOOLS], SECOND),
    row("glm-4.6", 202_752, None, [UNSAID, YES, UNSAID], &[GLM_4_6], SECOND),
    row("glm-5.3", 1_048_576, Some(131_072), [NO, UNSAID, NO], &[GLM_5_3], SECOND),
    row("grok-4", 256_000, None, [YES, YES, UNSAID], &[GROK_4], SECOND),
    row("grok-4-fast", 2_000_000, None, [YES, UNSAID, UNSAID], &[GROK_4_FAST_CONTEXT], SECOND),
    row(
        "grok-4-fast-reasoning",
        2_000_000,
        None,
        [YES, UNSAID, UNSAID],
        &[GROK_4_FAST_CONTEXT, GROK_4_FAST],
        SECOND,
    ),
    row(
        "grok-4-fast-non-reasoning",
        2_000_000,
        None,
        [YES, UNSAID, UNSAID],
        &[GROK_4_FAST_CONTEXT, GROK_4_FAST],
        SECOND,
    ),
    row(
        "mistral-medium-3.5",
        262_144,
        Some(256_000),
        [YES, YES, UNSAID],
        &[MISTRAL_MEDIUM_3_5, MISTRAL_MEDIUM_3_5_INPUT],
        SECOND,
    ),
    row("mistral-large-2411", 128_000, None, [NO, YES, NO], &[MISTRAL_LARGE_2411], SECOND),
];

/// Facts about a model at an upstream: the configuration's for `upstream/model` or `model`, then the table's. A date
/// suffix (`gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929`) and a maker's prefix (`anthropic/…`) are ignored.
pub fn model_facts(configured: &BTreeMap<String, ModelFacts>, upstream: &str, model: &str) -> ModelFacts {
    let bare = strip_date(model.rsplit('/').next().unwrap_or(model));
    let known = KNOWN_MODELS.iter().find(|known| known.name == bare).map(|known| known.facts);
    configured_facts(configured, upstream, model).or(known.unwrap_or_default())
}

/// The configuration's part of [`model_facts`].
pub(super) fn configured_facts(
    configured: &BTreeMap<String, ModelFacts>,
    upstream: &str,
    model: &str,
) -> ModelFacts {
    let facts = |name: &str| configured.get(name).copied().unwrap_or_default();
    facts(&format!("{upstream}/{model}")).or(facts(model))
}

fn strip_date(name: &str) -> &str {
    let ends_with = |shape: &str| {
        name.len() > shape.len()
            && name.bytes().rev().zip(shape.bytes().rev()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                wanted => byte == wanted,
            })
    };
    let date = ["-0000-00-00", "-00000000"].into_iter().find(|shape| ends_with(shape));
    &name[..name.len() - date.map_or(0, str::len)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_a_source_a_date_and_figures_that_can_be() {
        let mut names = BTreeSet::new();
        for KnownModel { name, facts, sources, as_of } in KNOWN_MODELS {
            assert!(names.insert(*name), "{name} is there twice");
            assert!(!sources.is_empty() && sources.iter().all(|page| page.starts_with("https://")), "{name}");
            assert!(as_of.parse::<jiff::civil::Date>().is_ok(), "{name}: {as_of}");
            let context = facts.context_tokens.unwrap();
            assert!(facts.output_tokens.is_none_or(|output| output > 0 && output < context), "{name}");
            assert_eq!(strip_date(name), *name, "a row holds for all dates of a model");
        }
    }

    /// The makers that most people come from have a row each, and some model hears.
    #[test]
    fn the_table_knows_a_model_of_every_large_maker() {
        for maker in ["claude", "gpt", "gemini", "deepseek", "qwen", "kimi", "glm", "grok", "mistral"] {
            assert!(KNOWN_MODELS.iter().any(|known| known.name.starts_with(maker)), "{maker}");
        }
        assert!(KNOWN_MODELS.iter().any(|known| known.facts.audio == Some(true)));
    }

    #[test]
    fn a_model_is_known_whatever_stands_around_its_name_and_the_configuration_knows_better() {
        let context = |configured: &BTreeMap<String, ModelFacts>, upstream: &str, model: &str| {
            model_facts(configured, upstream, model).context_tokens
        };
        let nothing = BTreeMap::new();
        for name in ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"] {
            assert_eq!(context(&nothing, "x", name), Some(200_000), "{name}");
        }
        assert_eq!(context(&nothing, "openai", "gpt-4o-2024-08-06"), Some(128_000));
        for name in ["gpt-4o-audio", "claude-sonnet-4-5-2025092", "", "-20250929", "gpt"] {
            assert_eq!(context(&nothing, "x", name), None, "{name}");
        }
        let of = |tokens| ModelFacts { context_tokens: Some(tokens), ..ModelFacts::default() };
        let configured_facts =
            BTreeMap::from([("here/gpt-4o".to_owned(), of(1)), ("gpt-4o".to_owned(), of(2))]);
        assert_eq!(context(&configured_facts, "here", "gpt-4o"), Some(1));
        assert_eq!(context(&configured_facts, "there", "gpt-4o"), Some(2));
        assert_eq!(
            model_facts(&configured_facts, "there", "gpt-4o").output_tokens,
            Some(16_384),
            "what is not said stays"
        );
    }
}
