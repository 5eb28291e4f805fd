//! The recipes of ARCHITECTURE.md name every file that a new event, dialect or route changes: the files that
//! mention all of the present ones.

use super::{blocks, read, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Events with names that mean nothing else, as a variant and on the wire.
const EVENTS: [[&str; 2]; 4] = [
    ["ToolRedefined", "tool_redefined"],
    ["BlockSuperseded", "block_superseded"],
    ["SessionStats", "session_stats"],
    ["ToolInputReset", "tool_input_reset"],
];
/// Dialects, as a variant and by name; only where they are listed, not where one is used.
const DIALECTS: [[&str; 2]; 3] = [
    ["Dialect::Cohere", "\"cohere\""],
    ["Dialect::BedrockConverse", "bedrock-converse"],
    ["Dialect::BedrockAnthropic", "bedrock-anthropic"],
];
/// Routes with names that mean nothing else. Rules of the gate are about the first part of a path.
const ROUTES: [[&str; 2]; 3] =
    [["/v1/remembered", "v1_remembered"], ["/v1/decode", "v1_decode"], ["/v1/tickets", "v1_tickets"]];
/// Folders of sources and pages; each file has a path from the root.
const FOLDERS: [&str; 5] = ["crates", "web/client", "web/app", "docs", "xtask/src"];
/// Folders of packages, of results, and of one file per case.
const LEFT_OUT: [&str; 4] = ["node_modules", "target", "dist", "fixtures"];

/// Files that mention each of `things` in one of its forms.
fn files_with_all(things: &[[&str; 2]]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        walk(&root().join(folder), &mut |path| {
            let Ok(text) = std::fs::read_to_string(path) else { return };
            if things.iter().all(|forms| forms.iter().any(|form| text.contains(form))) {
                let path = path.strip_prefix(root()).expect("it is below the root");
                found.insert(path.to_string_lossy().replace('\\', "/"));
            }
        });
    }
    // This file has them in its lists.
    found.remove("crates/cli/tests/it/documents/recipes.rs");
    found
}

fn walk(folder: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_left_out = entry.file_name().to_str().is_some_and(|name| LEFT_OUT.contains(&name));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_left_out => walk(&path, visit),
            Ok(kind) if kind.is_file() => visit(&path),
            _ => {}
        }
    }
}

/// The text between the bold beginnings of two recipes.
fn recipe<'d>(document: &'d str, from: &str, to: &str) -> &'d str {
    let start = document.find(&format!("**{from}**")).unwrap_or_else(|| panic!("no recipe for {from}"));
    let length = document[start..].find(&format!("**{to}**")).unwrap_or_else(|| panic!("no recipe for {to}"));
    &document[start..start + length]
}

/// Files that a recipe names neither by path, nor by its last parts, nor by a folder above.
fn unnamed(recipe: &str, files: &BTreeSet<String>) -> Vec<String> {
    let is_named = |file: &String| {
        let ends = file.match_indices('/').map(|(at, _)| &file[at + 1..]);
        let folders = file.match_indices('/').map(|(at, _)| &file[..=at]);
        [file.as_str()].into_iter().chain(ends).any(|end| recipe.contains(end))
            || folders
                .filter(|folder| folder.matches('/').count() > 2)
                .any(|folder| recipe.contains(&format!("`{folder}`")))
    };
    files.iter().filter(|file| !is_named(file)).cloned().collect()
}

#[test]
fn event_recipe_names_every_file_that_lists_all_events() {
    let document = read("ARCHITECTURE.md");
    let files = files_with_all(&EVENTS);
    assert!(files.len() >= 12 && files.contains("crates/engine/src/fold.rs"), "{files:?}");
    let missing = unnamed(recipe(&document, "an event", "a surface"), &files);
    assert!(missing.is_empty(), "the recipe leaves out {missing:?}");
}

#[test]
fn dialect_recipe_names_every_file_that_lists_all_dialects() {
    let document = read("ARCHITECTURE.md");
    let files = files_with_all(&DIALECTS);
    assert!(files.len() >= 8 && files.contains("crates/wire/src/dialect/mod.rs"), "{files:?}");
    let missing = unnamed(recipe(&document, "a dialect", "an upstream of a known dialect"), &files);
    assert!(missing.is_empty(), "the recipe leaves out {missing:?}");
}

#[test]
fn surface_recipe_names_every_file_that_lists_all_routes() {
    let document = read("ARCHITECTURE.md");
    let files = files_with_all(&ROUTES);
    assert!(
        files.len() >= 4 && files.contains("crates/server/src/request_guard/route_rules.rs"),
        "{files:?}"
    );
    let missing = unnamed(recipe(&document, "a surface", "a quirk"), &files);
    assert!(missing.is_empty(), "the recipe leaves out {missing:?}");
}

/// A renamed file of any kind is reported.
#[test]
fn recipe_paths_exist() {
    let document = read("ARCHITECTURE.md");
    let recipes = recipe(&document, "a dialect", "a limit");
    let paths = recipes.split('`').skip(1).step_by(2);
    let mut checked = 0;
    for path in paths.filter(|path| path.starts_with("crates/") || path.starts_with("web/")) {
        // `fixtures/<name>/` is a placeholder.
        let path = path.split('<').next().unwrap_or_default();
        assert!(root().join(path).exists(), "{path} is not there");
        checked += 1;
    }
    assert!(checked >= 30, "{checked} paths");
}

/// Else the tests above would accept anything.
#[test]
fn file_missing_from_a_recipe_is_detected() {
    let files = BTreeSet::from(["crates/engine/src/fold.rs".to_owned(), "web/client/src/api.ts".to_owned()]);
    assert_eq!(unnamed("its part in `fold.rs` of `crates/server/src/`", &files), ["web/client/src/api.ts"]);
}

/// Files that the contributor's script changes: those of steps 1 to 4.
const CHANGED: [&str; 11] = [
    "crates/cli/src/chat/transcript.rs",
    "crates/cli/src/plain.rs",
    "crates/engine/src/event/mod.rs",
    "crates/engine/src/event/name.rs",
    "crates/engine/src/fold.rs",
    "crates/engine/src/record/mod.rs",
    "crates/engine/src/waterfall.rs",
    "crates/engine/tests/logs/every-kind.jsonl",
    "crates/server/src/projections/chat_completions/mod.rs",
    "crates/throughline/src/driver/append.rs",
    "docs/events.md",
];

/// The script finds its anchors; `cargo xtask verify --only paths` shows that the result builds.
#[cfg(unix)]
#[test]
fn contributor_script_changes_every_listed_file() {
    let page = read("docs/paths.md");
    let script =
        blocks(&page).into_iter().find(|block| block.info == "sh contributor").expect("the script").text;
    let script: Vec<&str> = script.lines().filter(|line| !line.starts_with("cargo ")).collect();
    let copy = tempfile::tempdir().unwrap();
    for file in CHANGED {
        let to = copy.path().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, read(file)).unwrap();
    }
    let mut bash = std::process::Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script.join("\n")]).env("REPO", copy.path());
    let output = bash.output().expect("bash is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in CHANGED {
        let after = std::fs::read_to_string(copy.path().join(file)).unwrap();
        assert_ne!(after, read(file), "{file} is as it was");
    }
    let log = std::fs::read_to_string(copy.path().join("crates/engine/tests/logs/every-kind.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(
        (last["type"].as_str(), last["seq"].as_u64()),
        (Some("remark"), Some(log.lines().count() as u64))
    );
}
