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
    /// Page that states them.
    pub source: &'static str,
    /// Date of the lookup, as `YYYY-MM-DD`.
    pub as_of: &'static str,
}

/// Date of the table's last review.
const AS_OF: &str = "2026-11-23";
const CLAUDE_SONNET_5: &str = "https://platform.claude.com/docs/en/models/sonnet-5/overview";
const CLAUDE_OPUS_5: &str = "https://platform.claude.com/docs/en/models/opus-5/overview";
const CLAUDE_SONNET_4_5: &str = "https://platform.claude.com/docs/en/models/sonnet-4-5/overview";
const GPT_4O: &str = "https://github.com/MicrosoftDocs/azure-ai-docs/pull/544";
const GPT_4_1: &str = "https://vercel.com/ai-gateway/models/gpt-4.1-fast";
const GPT_4_1_NANO: &str = "https://developers.openai.com/api/docs/models/gpt-4.1-nano";
const LIMITS_TABLE: &str =
    "https://docs.uipath.com/autopilot/other/latest/user-guide/supported-models-and-limits";

/// The table.
pub fn all() -> Vec<KnownModel> {
    let row = |name, context, output, source| KnownModel {
        name,
        facts: ModelFacts {
            context_tokens: Some(context),
            output_tokens: Some(output),
            vision: Some(true),
            tools: Some(true),
            audio: None,
        },
        source,
        as_of: AS_OF,
    };
    vec![
        row("claude-opus-5", 1_000_000, 128_000, CLAUDE_OPUS_5),
        row("claude-sonnet-5", 1_000_000, 128_000, CLAUDE_SONNET_5),
        row("claude-sonnet-4-5", 200_000, 64_000, CLAUDE_SONNET_4_5),
        row("gpt-4o", 128_000, 16_384, GPT_4O),
        row("gpt-4o-mini", 128_000, 16_384, GPT_4O),
        row("gpt-4.1", 1_047_576, 32_768, GPT_4_1),
        row("gpt-4.1-mini", 1_047_576, 32_768, GPT_4_1),
        row("gpt-4.1-nano", 1_047_576, 32_768, GPT_4_1_NANO),
        row("gpt-5", 400_000, 128_000, LIMITS_TABLE),
        row("gpt-5.1", 400_000, 128_000, LIMITS_TABLE),
        row("gemini-2.5-pro", 1_048_576, 65_535, LIMITS_TABLE),
        row("gemini-2.5-flash", 1_048_576, 65_535, LIMITS_TABLE),
    ]
}

/// Facts about a model at an upstream: the configuration's for `upstream/model` or `model`, then the table's. A date
/// suffix (`gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929`) and a maker's prefix (`anthropic/…`) are ignored.
pub fn model_facts(configured: &BTreeMap<String, ModelFacts>, upstream: &str, model: &str) -> ModelFacts {
    let configured_facts = |name: &str| configured.get(name).copied().unwrap_or_default();
    let bare = strip_date(model.rsplit('/').next().unwrap_or(model));
    let known = all().into_iter().find(|known| known.name == bare).map(|known| known.facts);
    configured_facts(&format!("{upstream}/{model}")).or(configured_facts(model)).or(known.unwrap_or_default())
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
        for KnownModel { name, facts, source, as_of } in all() {
            assert!(names.insert(name), "{name} is there twice");
            assert!(source.starts_with("https://"), "{name}");
            assert!(as_of.parse::<jiff::civil::Date>().is_ok(), "{name}: {as_of}");
            let (context, output) = (facts.context_tokens.unwrap(), facts.output_tokens.unwrap());
            assert!(output > 0 && output < context, "{name}");
            assert_eq!(strip_date(name), name, "a row holds for all dates of a model");
        }
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
