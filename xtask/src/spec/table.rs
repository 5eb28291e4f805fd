//! The table in docs/requirements.md: ids and meanings are written by people, the places by this program.
// R: D3

use super::citation::{Citation, CitationKind};
use crate::fault::fault;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write;

/// When a requirement is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequirementPhase {
    /// In this release.
    Now,
    /// In one to come; what is cited already is shown.
    Later,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) meaning: String,
    pub(crate) phase: RequirementPhase,
    /// The heading above its table, empty for none.
    pub(crate) heading: String,
}

/// Files that are named in a cell before the rest is only counted.
const LINKS_MAX: usize = 6;
/// Characters of their names together: a cell of a document has at most 200, with the count of the rest.
const LINKS_CHARS_MAX: usize = 180;

/// Reads the tables of a section.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>> {
    let mut requirements: Vec<Requirement> = Vec::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
        }
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [id, meaning, when, ..] = cells[..] else { continue };
        if id == "id" || id.starts_with('-') {
            continue;
        }
        let when = match when {
            "now" => RequirementPhase::Now,
            "later" => RequirementPhase::Later,
            _ => return Err(fault(format!("{id}: `{when}` is no time"), "write `now` or `later`")),
        };
        if requirements.iter().any(|one| one.id == id) {
            return Err(fault(format!("{id} is there twice"), "an id has one row"));
        }
        requirements.push(Requirement {
            id: id.to_owned(),
            meaning: meaning.to_owned(),
            phase: when,
            heading: heading.clone(),
        });
    }
    Ok(requirements)
}

/// The section anew, with the places as they are cited today.
pub(crate) fn render(requirements: &[Requirement], citations: &[Citation]) -> String {
    let mut text = String::new();
    let mut heading = None;
    for one in requirements {
        if heading != Some(&one.heading) {
            heading = Some(&one.heading);
            let _ = write!(
                text,
                "\n## {}\n\n| id | meaning | when | code | tests |\n|---|---|---|---|---|\n",
                one.heading
            );
        }
        let when = if one.phase == RequirementPhase::Now { "now" } else { "later" };
        let links_of =
            |kind| citation_links(citations.iter().filter(|cited| cited.id == one.id && cited.kind == kind));
        let _ = writeln!(
            text,
            "| {} | {} | {when} | {} | {} |",
            one.id,
            one.meaning,
            links_of(CitationKind::Code),
            links_of(CitationKind::Test)
        );
    }
    text
}

/// Links to the files, those that cite most often first.
fn citation_links<'a>(citations: impl Iterator<Item = &'a Citation>) -> String {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for citation in citations {
        *files.entry(&citation.path).or_default() += 1;
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(path, count)| (std::cmp::Reverse(*count), *path));
    let mut chars = 0;
    let named = files.iter().take(LINKS_MAX).take_while(|(path, _)| {
        chars += short(path).chars().count() + ", ".len();
        chars <= LINKS_CHARS_MAX
    });
    let mut links: Vec<_> = named.map(|(path, _)| format!("[{}](../{path})", short(path))).collect();
    if files.len() > links.len() {
        links.push(format!("and {} more", files.len() - links.len()));
    }
    links.join(", ")
}

fn short(path: &str) -> String {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    let path = [".rs", ".tsx", ".ts"].iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(path);
    path.replace("/src/", "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: D3
    #[test]
    fn what_is_written_is_read_back() {
        let text = "\n## Wire\n\n| id | meaning | when | code | tests |\n|---|---|---|---|---|\n| W1 | All dialects | now | old | |\n| W2 | SSE | later | | |\n\n## Turn\n\n| id | meaning | when | code | tests |\n|---|---|---|---|---|\n| T1 | One message | now | | |\n";
        let requirements = parse(text).unwrap();
        assert_eq!(requirements.len(), 3);
        assert_eq!(
            (requirements[1].phase, requirements[2].heading.as_str()),
            (RequirementPhase::Later, "Turn")
        );
        let cited = |kind, path: &str| Citation {
            id: "W1".to_owned(),
            kind,
            path: path.to_owned(),
            line: 1,
            item: None,
        };
        let citations = [
            cited(CitationKind::Code, "crates/wire/src/a.rs"),
            cited(CitationKind::Code, "crates/wire/src/b.rs"),
            cited(CitationKind::Code, "crates/wire/src/b.rs"),
            cited(CitationKind::Test, "crates/wire/tests/c.rs"),
        ];
        let written = render(&requirements, &citations);
        assert!(
            written.contains(
                "| W1 | All dialects | now | [wire/b](../crates/wire/src/b.rs), [wire/a](../crates/wire/src/a.rs) | \
                 [wire/tests/c](../crates/wire/tests/c.rs) |"
            ),
            "{written}"
        );
        assert_eq!(parse(&written).unwrap(), requirements);
    }

    #[test]
    fn mistakes_in_the_table_are_named() {
        assert!(parse("| W1 | a | soon | | |").unwrap_err().to_string().contains("soon"));
        assert!(
            parse("| W1 | a | now | | |\n| W1 | b | now | | |").unwrap_err().to_string().contains("twice")
        );
    }
}
