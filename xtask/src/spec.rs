//! `cargo xtask spec`: requirement -> code -> test, from the `R:` citations in comments.
// R: D3

pub(crate) mod citation;
mod table;

use crate::fault::fault;
use crate::{TaskVerb, generated, repository};
use anyhow::{Result, bail};
use citation::{Citation, CitationKind};
use table::{Requirement, RequirementPhase};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "spec",
    about: "Print requirement -> code -> test, from the citations in comments",
    help: "\
Usage: cargo xtask spec [--check | --write] [ID …]

Comments cite requirements by id, as in `// R: W3, T5`, above or beside what fulfills or proves them. The ids and
their meanings are in docs/requirements.md.

  --check   fail if a requirement of this release lacks code or test, or if an unknown id is cited
  --write   write the columns of docs/requirements.md anew
  ID …      only these, with every place that cites them",
    run,
};

const DOCUMENT: &str = "docs/requirements.md";
const SECTION: &str = "requirements";

fn run(words: Vec<String>) -> Result<()> {
    let (flags, ids): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with('-'));
    match flags.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print(&ids),
        ["--check"] => {
            println!("{}", check()?);
            Ok(())
        }
        ["--write"] => {
            let spec = Spec::read()?;
            let text = table::render(&spec.requirements, &spec.citations);
            let document = repository::read(DOCUMENT)?;
            repository::write(DOCUMENT, &generated::replace(&document, SECTION, &text)?)
        }
        _ => Err(fault("these flags are not understood", "see `cargo xtask spec --help`")),
    }
}

/// Fails on a requirement of this release without code or test, and on unknown ids.
pub(crate) fn check() -> Result<String> {
    let spec = Spec::read()?;
    let problems = wrong(&spec.requirements, &spec.citations);
    if !problems.is_empty() {
        bail!(
            "{}\n  remedy: cite the id where it is fulfilled and where it is proved (`// R: W3`), or set it to `later` in \
             {DOCUMENT}",
            problems.join("\n")
        );
    }
    let now = spec.requirements.iter().filter(|one| one.phase == RequirementPhase::Now).count();
    Ok(format!("{now} requirements of this release, {} citations", spec.citations.len()))
}

struct Spec {
    requirements: Vec<Requirement>,
    citations: Vec<Citation>,
}

impl Spec {
    fn read() -> Result<Self> {
        let document = repository::read(DOCUMENT)?;
        let requirements = table::parse(generated::section(&document, SECTION)?)?;
        let mut citations = Vec::new();
        for folder in ["crates", "xtask", "fuzz"] {
            for path in repository::files(folder, ".rs") {
                citations.extend(citation::in_rust(&path, &repository::read(&path)?));
            }
        }
        for ending in [".ts", ".tsx"] {
            for path in repository::files("web", ending) {
                citations.extend(citation::in_typescript(&path, &repository::read(&path)?));
            }
        }
        for path in repository::files(".", ".md") {
            citations.extend(citation::in_markdown(&path, &repository::read(&path)?));
        }
        Ok(Self { requirements, citations })
    }
}

fn wrong(requirements: &[Requirement], citations: &[Citation]) -> Vec<String> {
    let mut problems = Vec::new();
    for one in requirements.iter().filter(|one| one.phase == RequirementPhase::Now) {
        for (kind, name) in [(CitationKind::Code, "code"), (CitationKind::Test, "test")] {
            if !citations.iter().any(|citation| citation.id == one.id && citation.kind == kind) {
                problems.push(format!("{}: no {name} cites it ({})", one.id, one.meaning));
            }
        }
    }
    for citation in citations {
        if !requirements.iter().any(|one| one.id == citation.id) {
            problems.push(format!(
                "{}:{}: there is no requirement {}",
                citation.path, citation.line, citation.id
            ));
        }
    }
    problems
}

fn print(ids: &[String]) -> Result<()> {
    let spec = Spec::read()?;
    if let Some(id) = ids.iter().find(|id| !spec.requirements.iter().any(|one| one.id == **id)) {
        return Err(fault(format!("there is no requirement `{id}`"), format!("the ids are in {DOCUMENT}")));
    }
    for one in spec.requirements.iter().filter(|one| ids.is_empty() || ids.contains(&one.id)) {
        println!(
            "{} {}{}",
            one.id,
            one.meaning,
            if one.phase == RequirementPhase::Later { " (later)" } else { "" }
        );
        for (kind, name) in [(CitationKind::Code, "code"), (CitationKind::Test, "test")] {
            let cited =
                spec.citations.iter().filter(|citation| citation.id == one.id && citation.kind == kind);
            for citation in cited {
                let item = citation.item.as_deref().map(|item| format!(" {item}")).unwrap_or_default();
                println!("    {name}  {}:{}{item}", citation.path, citation.line);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sources: &[(&str, &str)], expected: &[&str]) {
        let table = "| id | meaning | when | code | tests |\n|---|---|---|---|---|\n| W1 | Dialects | now | | |\n| W2 | SSE | later | | |\n";
        let requirements = table::parse(table).unwrap();
        let citations: Vec<_> =
            sources.iter().flat_map(|(path, text)| citation::in_rust(path, text)).collect();
        let problems = wrong(&requirements, &citations);
        assert_eq!(problems, expected);
    }

    // R: D3
    #[test]
    fn what_lacks_code_or_test_is_named() {
        check(&[], &["W1: no code cites it (Dialects)", "W1: no test cites it (Dialects)"]);
        check(&[("crates/a/src/b.rs", "// R: W1\nfn a() {}")], &["W1: no test cites it (Dialects)"]);
        check(&[("crates/a/tests/b.rs", "// R: W1\nfn a() {}")], &["W1: no code cites it (Dialects)"]);
        check(
            &[(
                "crates/a/src/b.rs",
                "// R: W1\nfn b() {}\n#[cfg(test)]\nmod tests {\n    // R: W1\n    fn a() {}\n}",
            )],
            &[],
        );
    }

    // R: D3
    #[test]
    fn the_page_cites_as_the_crates_do() {
        let found = |path: &str, source: &str| -> Vec<(String, CitationKind, usize)> {
            let all = citation::in_typescript(path, source).into_iter();
            all.map(|citation| (citation.id, citation.kind, citation.line)).collect()
        };
        let of = |id: &str, kind, line| (id.to_owned(), kind, line);
        assert_eq!(
            found("web/app/src/a.tsx", "\n/** A card. R: W1, W2 */\nconst a = \"R: W3\";"),
            [of("W1", CitationKind::Code, 2), of("W2", CitationKind::Code, 2)]
        );
        assert_eq!(found("web/e2e/tests/a.test.ts", "// R: W1\ntest();"), [of("W1", CitationKind::Test, 1)]);
        assert_eq!(found("web/a.ts", "/**\n * It is so. R: W2\n */"), [of("W2", CitationKind::Code, 2)]);
    }

    // R: D3
    #[test]
    fn an_unknown_id_is_named_with_its_place() {
        check(
            &[("crates/a/src/b.rs", "// R: W1\nfn b() {}\n#[cfg(test)] mod t { /* R: W1 */ }\n// R: W77\n")],
            &["crates/a/src/b.rs:4: there is no requirement W77"],
        );
    }
}
