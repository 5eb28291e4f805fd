//! Built-in models: context length, answer length and inputs, in one table with its sources. An uncertain
//! figure is left out; `[models."name"]` of the configuration adds or overrides facts.

mod facts;
mod table;
#[cfg(test)]
mod tests;

pub use facts::ModelFacts;
pub use table::{KNOWN_MODELS, KnownModel, ModelDocument};

use std::collections::BTreeMap;

/// Facts about a model at an upstream: the configuration's for `upstream/model` or `model`, then the table's. For the table, case,
/// a maker's prefix (`anthropic/…`) and a date suffix (`gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929`) are ignored.
pub fn model_facts(configured: &BTreeMap<String, ModelFacts>, upstream: &str, model: &str) -> ModelFacts {
    let known = known_model(model).map(|known| known.facts);
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

/// The row of a model. A name without a version (`qwen-plus`) refers to changing models, so its row does not
/// apply to a dated name.
fn known_model(model: &str) -> Option<&'static KnownModel> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let row = |name: &str| KNOWN_MODELS.iter().find(|known| known.name.eq_ignore_ascii_case(name));
    let bare = strip_date(name);
    let has_version = bare.bytes().any(|byte| byte.is_ascii_digit());
    row(name).or_else(|| has_version.then(|| row(bare))?)
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
