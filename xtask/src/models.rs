//! `cargo xtask models`: lists documents of the table of known models that are due to be read again.

use crate::fault::fault;
use crate::{TaskVerb, repository};
use anyhow::Result;
use std::collections::BTreeSet;

/// The type that the table is made of.
#[path = "../../crates/throughline/src/upstream/models/facts.rs"]
#[allow(dead_code, unreachable_pub)]
mod facts;
/// The table itself. A dependency on its crate would build the whole library first.
#[path = "../../crates/throughline/src/upstream/models/table.rs"]
#[allow(dead_code, unreachable_pub)]
mod table;

use facts::ModelFacts;
use table::{KNOWN_MODELS, KnownModel, ModelDocument};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "models",
    about: "List known models whose documents are older than a year",
    help: "\
Usage: cargo xtask models

Reads crates/throughline/src/upstream/models/table.rs and lists each model with a document that is more than 365 days older
than today: name, date, address. Fails if there are any. No other task runs it, since what it finds comes with time.",
    run,
};

const DOCUMENT_DAYS_MAX: u64 = 365;

fn run(words: Vec<String>) -> Result<()> {
    if !words.is_empty() {
        return Err(fault("`models` has no flags", "see `cargo xtask models --help`"));
    }
    let today = repository::days();
    let (old, limit) = (old_documents(KNOWN_MODELS, today), oldest(today));
    if old.is_empty() {
        println!("{} models, none with a document from before {limit}", KNOWN_MODELS.len());
        return Ok(());
    }
    for (name, ModelDocument { url, dated }) in &old {
        println!("{name:36} {dated}  {url}");
    }
    let models: BTreeSet<_> = old.iter().map(|(name, _)| name).collect();
    Err(fault(
        format!("{} of {} models have a document from before {limit}", models.len(), KNOWN_MODELS.len()),
        "read these or newer ones, and correct their rows in crates/throughline/src/upstream/models/table.rs",
    ))
}

/// The first date that is not too old on this day, which is counted from 1970-01-01.
fn oldest(today: u64) -> String {
    repository::date_of(today.saturating_sub(DOCUMENT_DAYS_MAX))
}

/// Documents that are too old on this day, with the model of each.
fn old_documents(models: &[KnownModel], today: u64) -> Vec<(&'static str, &'static ModelDocument)> {
    let oldest = oldest(today);
    let documents =
        models.iter().flat_map(|known| known.documents.iter().map(|document| (known.name, document)));
    // Dates written so are in the order of time.
    documents.filter(|(_, document)| document.dated < oldest.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29.
    const TODAY: u64 = 20_786;

    const fn of(dated: &'static str) -> ModelDocument {
        ModelDocument { url: "https://example.com", dated }
    }

    #[test]
    fn document_is_old_after_a_year() {
        assert_eq!((repository::date_of(TODAY), oldest(TODAY)), ("2026-11-29".into(), "2025-11-29".into()));
        let model = |name, documents| KnownModel { name, facts: ModelFacts::default(), documents };
        let models = [
            model("new", const { &[of("2026-11-29")] }),
            model("a year", const { &[of("2025-11-29")] }),
            model("a year and a day", const { &[of("2025-11-28")] }),
            model("in part", const { &[of("2026-02-01"), of("2024-07-23")] }),
        ];
        let found = |today| -> Vec<_> {
            old_documents(&models, today).into_iter().map(|(name, document)| (name, document.dated)).collect()
        };
        assert_eq!(found(TODAY), [("a year and a day", "2025-11-28"), ("in part", "2024-07-23")]);
        assert_eq!(found(0), []);
    }

    #[test]
    fn known_models_include_gpt_4o() {
        assert!(KNOWN_MODELS.iter().any(|known| known.name == "gpt-4o"));
    }
}
