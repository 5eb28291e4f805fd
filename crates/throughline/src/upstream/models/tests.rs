use super::*;
use jiff::civil::Date;
use std::collections::BTreeSet;
use table::READ;

/// Sites of makers. Aggregators, gateways and hosts of other makers' models must not be added.
const MAKERS: [&str; 20] = [
    "https://developers.openai.com/",
    "https://platform.claude.com/",
    "https://docs.claude.com/",
    "https://github.com/anthropics/",
    "https://ai.google.dev/",
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/",
    "https://api-docs.deepseek.com/",
    "https://github.com/deepseek-ai/",
    "https://github.com/modelstudioai/",
    "https://platform.kimi.com/",
    "https://platform.moonshot.cn/",
    "https://github.com/MoonshotAI/",
    "https://docs.bigmodel.cn/",
    "https://docs.z.ai/",
    "https://github.com/zai-org/",
    "https://platform.minimax.io/",
    "https://github.com/MiniMax-AI/",
    "https://github.com/mistralai/",
    "https://docs.x.ai/",
    "https://github.com/meta-llama/",
];

#[test]
fn every_model_row_has_dated_documents_and_valid_figures() {
    let date = |text: &str| text.parse::<Date>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut names = BTreeSet::new();
    for KnownModel { name, facts, documents } in KNOWN_MODELS {
        assert!(names.insert(name.to_ascii_lowercase()), "{name} is there twice");
        assert!(!documents.is_empty(), "{name}");
        for ModelDocument { url, dated } in *documents {
            assert!(MAKERS.iter().any(|maker| url.starts_with(maker)), "{name}: {url} is not its maker's");
            assert!(date(dated) <= date(READ), "{name}: {url} is of {dated}");
        }
        let least = |tokens: Option<u64>| tokens.is_none_or(|tokens| tokens >= 1_000);
        assert!(least(facts.context_tokens) && least(facts.output_tokens), "{name}");
        if let (Some(context), Some(output)) = (facts.context_tokens, facts.output_tokens) {
            assert!(output <= context, "{name}");
        }
        assert_ne!(*facts, ModelFacts::default(), "{name}: a row says something");
    }
}

/// A row holds for all dates of a model. A date that differs has a separate row.
#[test]
fn dated_model_row_differs_from_the_undated_row() {
    for KnownModel { name, facts, .. } in KNOWN_MODELS {
        let bare = strip_date(name);
        if bare != *name {
            let others = known_model(bare).unwrap_or_else(|| panic!("{bare} has no row"));
            assert_ne!(others.facts, *facts, "{name}");
        }
    }
}

#[test]
fn model_table_covers_the_large_model_families() {
    assert!(KNOWN_MODELS.len() >= 60);
    for family in [
        "claude", "gpt-5", "gpt-oss", "gemini", "deepseek", "qwen", "kimi", "glm", "minimax", "mistral",
        "grok", "llama",
    ] {
        let is_one = |known: &&KnownModel| known.name.to_ascii_lowercase().starts_with(family);
        assert!(KNOWN_MODELS.iter().filter(is_one).count() >= 2, "{family}");
    }
    assert!(KNOWN_MODELS.iter().any(|known| known.facts.audio == Some(true)));
}

#[test]
fn model_lookup_ignores_affixes_and_prefers_configuration() {
    let context = |configured: &BTreeMap<String, ModelFacts>, upstream: &str, model: &str| {
        model_facts(configured, upstream, model).context_tokens
    };
    let nothing = BTreeMap::new();
    for (names, tokens) in [
        (["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"], 200_000),
        (["Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct"], 128_000),
        (["gpt-oss-120b", "openai/gpt-oss-120b", "OPENAI/GPT-OSS-120B"], 131_072),
        (["MiniMax-M2.5", "minimax/minimax-m2.5", "MiniMaxAI/MiniMax-M2.5"], 204_800),
        (["gpt-4o", "gpt-4o-2024-08-06", "GPT-4o"], 128_000),
    ] {
        for name in names {
            assert_eq!(context(&nothing, "x", name), Some(tokens), "{name}");
        }
    }
    for name in ["gpt-4o-audio", "claude-sonnet-4-5-2025092", "", "-20250929", "gpt", "gpt-oss-120b:free"] {
        assert_eq!(model_facts(&nothing, "x", name), ModelFacts::default(), "{name}");
    }
    let of = |tokens| ModelFacts { context_tokens: Some(tokens), ..ModelFacts::default() };
    let configured_facts = BTreeMap::from([("here/gpt-4o".to_owned(), of(1)), ("gpt-4o".to_owned(), of(2))]);
    assert_eq!(context(&configured_facts, "here", "gpt-4o"), Some(1));
    assert_eq!(context(&configured_facts, "there", "gpt-4o"), Some(2));
    let facts = model_facts(&configured_facts, "there", "gpt-4o");
    assert_eq!(facts.output_tokens, Some(16_384), "what is not said stays");
}

#[test]
fn dated_model_has_separate_facts_where_they_differ() {
    let facts = |name: &str| model_facts(&BTreeMap::new(), "x", name);
    assert_eq!(facts("gpt-4o-2024-11-20").output_tokens, Some(16_384));
    assert_eq!(facts("gpt-4o-2024-05-13").output_tokens, None, "the first one writes less");
    assert_eq!(facts("qwen-plus").context_tokens, Some(1_000_000));
    assert_eq!(facts("qwen-plus-2025-01-12"), ModelFacts::default(), "its name moved on since");
    assert_eq!(facts("qwen3-max-2025-09-23").context_tokens, Some(262_144));
}
