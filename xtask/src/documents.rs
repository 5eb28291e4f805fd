//! The documents for those who carry the project on are there, no link in them leads nowhere, reports name commits of the
//! history, and requirements name tests.

mod commits;
mod requirements;

use crate::repository;
use anyhow::{Result, bail};
use std::path::{Component, Path};

/// Files of every release.
const REQUIRED: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Checks the documents; returns a summary line.
pub(crate) fn check() -> Result<String> {
    let root = repository::root();
    let mut problems: Vec<String> = REQUIRED
        .into_iter()
        .filter(|name| !root.join(name).is_file())
        .map(|name| format!("{name} is missing"))
        .collect();
    let mut valid_links = 0;
    for document in repository::files(".", ".md") {
        for link in links(&repository::read(&document)?) {
            if resolves(&root, &document, &link) {
                valid_links += 1;
            } else {
                problems.push(format!("{document}: `{link}` does not exist"));
            }
        }
    }
    if !problems.is_empty() {
        bail!("{}\n  remedy: write the document, or correct the link", problems.join("\n"));
    }
    let (commits, requirements) = (commits::check()?, requirements::check()?);
    Ok(format!("{} documents, {valid_links} links, {commits}, {requirements} requirements", REQUIRED.len()))
}

/// Targets of links to files of the repository, without fragments; code blocks and code spans left out.
fn links(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let is_in_span = line[..at].matches('`').count() % 2 == 1;
            let Some(end) = line[at + 2..].find(')') else { continue };
            let target = line[at + 2..at + 2 + end].split(['#', ' ']).next().unwrap_or_default();
            let is_outside = target.contains("://") || target.starts_with("mailto:");
            if !is_in_span && !is_outside && !target.is_empty() {
                found.push(target.to_owned());
            }
        }
    }
    found
}

fn resolves(root: &Path, document: &str, link: &str) -> bool {
    path_of(document, link).is_some_and(|path| root.join(path).exists())
}

/// Path from the root of what a link in a document leads to; `None` if that is outside.
fn path_of(document: &str, link: &str) -> Option<String> {
    let folder = Path::new(document).parent()?;
    let mut within: Vec<&str> = Vec::new();
    let path = folder.join(link);
    for part in path.components() {
        match part {
            Component::ParentDir => within.pop().map(drop)?,
            Component::Normal(name) => within.push(name.to_str()?),
            _ => {}
        }
    }
    Some(within.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_found() {
        let document = "[a](b.md#c) [x](https://x.y) [d](#e) `[f](g)` [h](i/j.rs \"title\")\n```\n[k](l)\n```\n[m](../n)";
        assert_eq!(links(document), ["b.md", "i/j.rs", "../n"]);
    }

    #[test]
    fn link_resolves_relative_to_its_document_inside_the_tree() {
        let root = repository::root();
        for (document, link, resolved) in [
            ("docs/a.md", "../Cargo.toml", true),
            ("docs/a.md", "Cargo.toml", false),
            ("a.md", "xtask/src/main.rs", true),
            ("a.md", "xtask/src", true),
            ("a.md", "../Cargo.toml", false),
            ("a.md", "no/such.md", false),
        ] {
            assert_eq!(resolves(&root, document, link), resolved, "{link} in {document}");
        }
    }
}
