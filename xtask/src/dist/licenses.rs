//! The licenses of everything that the program contains: crates that it is linked with, and packages in its page.

use crate::fault::fault;
use crate::program::ExternalProgram;
use crate::repository;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Licenses that let us hand the program on; of a package with a choice, one of them is enough.
const ACCEPTED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];
/// Beginnings of the names of license files, in capitals.
const FILE_NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// C code that a crate contains under a separate license, by its folder in the crate.
const BROUGHT_ALONG: &str = "jemalloc";
/// The page's stylesheet begins with the base styles of this one, which it needs only to be built.
const IN_THE_STYLESHEET: &str = "tailwindcss";

/// A third-party package.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: String,
    repository: String,
    folder: PathBuf,
}

/// The whole document.
pub(crate) fn text(target: &str) -> Result<String> {
    let (crates, packages) = (crates(target)?, packages()?);
    let mut text = "Throughline contains software of others, under the licenses below. Texts that several packages share\n\
                    word for word stand here once.\n"
        .to_owned();
    for (title, list) in [("Rust crates", &crates), ("npm packages in the page", &packages)] {
        let _ = write!(text, "\n{title}\n{}\n\n", "=".repeat(title.len()));
        for package in list {
            if !is_accepted(&package.license) {
                return Err(fault(
                    format!("{} {} is under `{}`", package.name, package.version, package.license),
                    "use another package, or add the license to xtask/src/dist/licenses.rs once somebody has read it",
                ));
            }
            let _ = writeln!(text, "{} {}: {}", package.name, package.version, package.license);
        }
    }
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in crates.iter().chain(&packages) {
        let mut found = texts_in(&package.folder)?;
        let brought_along = package.folder.join(BROUGHT_ALONG);
        if brought_along.is_dir() {
            found.extend(texts_in(&brought_along)?);
        }
        if found.is_empty() {
            without.push(package);
        }
        for license in found {
            texts.entry(license).or_default().insert(format!("{} {}", package.name, package.version));
        }
    }
    if !without.is_empty() {
        text += "\nPackages that carry no text of their license\n============================================\n\n";
    }
    for package in without {
        let _ = writeln!(
            text,
            "{} {}: {}, {}",
            package.name, package.version, package.license, package.repository
        );
    }
    for (license, packages) in texts {
        let packages = packages.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\n{}\n{packages}\n{}\n\n{license}\n", "=".repeat(80), "=".repeat(80));
    }
    Ok(text)
}

/// True if an SPDX expression can be fulfilled: of `OR` one side, of `AND` both.
fn is_accepted(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], " ").replace('/', " OR ");
    // `(A OR B) AND C` is read as `A OR (B AND C)`, so each alternative must be accepted by itself: stricter,
    // never looser.
    let accepted = |term: &str| ACCEPTED.contains(&term.split(" WITH ").next().unwrap_or_default().trim());
    expression.split(" AND ").all(|part| part.split(" OR ").any(accepted))
}

/// Crates that the program is linked with on this platform, with the features that users get.
fn crates(target: &str) -> Result<Vec<Package>> {
    let words =
        ["tree", "--package", "throughline-cli", "--edges", "normal", "--prefix", "none", "--target", target];
    let tree = ExternalProgram::cargo().args(words).args(["--no-dedupe", "--format", "{p}"]).text()?;
    let linked: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let words = ["metadata", "--format-version=1", "--filter-platform", target];
    let metadata: Value = serde_json::from_str(&ExternalProgram::cargo().args(words).text()?)?;
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<Package> = all
        .iter()
        // Without a source it is ours.
        .filter(|package| package["source"].is_string())
        .map(|package| Package {
            name: string(&package["name"]),
            version: string(&package["version"]),
            license: string(&package["license"]),
            repository: string(&package["repository"]),
            folder: Path::new(&string(&package["manifest_path"]))
                .parent()
                .unwrap_or(Path::new(""))
                .to_owned(),
        })
        .filter(|package| linked.contains(&(&package.name, &package.version)))
        .collect();
    found.sort();
    Ok(found)
}

/// The packages in the page: the dependencies of `web/app` and of theirs, as the lock file has them.
fn packages() -> Result<Vec<Package>> {
    let lock: Value = serde_json::from_str(&repository::read("web/package-lock.json")?)?;
    let locked = &lock["packages"];
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![(String::new(), IN_THE_STYLESHEET.to_owned())];
    waiting.extend(dependencies(&locked["app"]).map(|name| (String::new(), name)));
    while let Some((within, name)) = waiting.pop() {
        // Node's lookup: next to the dependent package, then further out.
        let inner = format!("{within}/node_modules/{name}");
        let path = if locked[inner.as_str()].is_object() { inner } else { format!("node_modules/{name}") };
        if !seen.insert(path.clone()) {
            continue;
        }
        let mut package = &locked[path.as_str()];
        if package["link"] == true {
            // A package of the workspace, with its own dependencies.
            package = &locked[package["resolved"].as_str().unwrap_or_default()];
        } else {
            found.insert(Package {
                version: package["version"].as_str().unwrap_or_default().to_owned(),
                license: package["license"].as_str().unwrap_or_default().to_owned(),
                repository: format!("https://www.npmjs.com/package/{name}"),
                folder: repository::root().join("web").join(&path),
                name,
            });
        }
        waiting.extend(dependencies(package).map(|name| (path.clone(), name)));
    }
    Ok(found.into_iter().collect())
}

fn dependencies(package: &Value) -> impl Iterator<Item = String> + use<> {
    let names = package["dependencies"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
    names.unwrap_or_default().into_iter()
}

/// Texts of the licenses in a package's folder.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if FILE_NAMES.iter().any(|begin| name.starts_with(begin)) && entry.path().is_file() {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n");
            texts.push(text.trim_end().to_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn license_or_accepts_one_part_and_license_and_needs_all() {
        for accepted in [
            "MIT",
            "MIT/Apache-2.0",
            "Unlicense OR MIT",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0 OR MIT",
        ] {
            assert!(is_accepted(accepted), "{accepted}");
        }
        for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND OpenSSL", "SSPL-1.0"] {
            assert!(!is_accepted(refused), "{refused}");
        }
    }
}
