//! Compressed size of the page's downloads: of the chat, and of each part that is loaded on demand.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A part that is loaded on demand. Its size is that of the scripts that it needs and the chat does not.
struct Part {
    name: &'static str,
    /// Entry in the manifest of the build.
    entry: &'static str,
    bytes_max: u64,
}

const fn part(name: &'static str, entry: &'static str, bytes_max: u64) -> Part {
    Part { name, entry, bytes_max }
}

/// Maximum size of the scripts before the first message can be sent, in bytes.
const CHAT_BYTES_MAX: u64 = 130_000;
/// The entry of the page, and the view that it shows first.
const CHAT: [&str; 2] = ["index.html", "src/chat/view.tsx"];
const PARTS: [Part; 23] = [
    // Loaded as soon as the chat is shown.
    part("answers", "src/chat/answers.tsx", 40_000),
    part("maths", "src/chat/blocks/maths/mathml.ts", 65_000),
    part("frames", "src/chat/blocks/frame.tsx", 2_000),
    part("conversations", "src/chat/conversations/sidebar.tsx", 18_000),
    // With the list, which is there whenever they are.
    part("menu of a conversation", "src/chat/conversations/menu.tsx", 22_000),
    part("folder and tags", "src/chat/conversations/filing.tsx", 19_000),
    part("settings", "src/settings/view.tsx", 10_000),
    // These two with what draws answers.
    part("exported document", "src/sharing/document.tsx", 32_000),
    part("shared conversation", "src/sharing/view.tsx", 28_000),
    part("agents", "src/agents/view.tsx", 24_000),
    part("connecting a model", "src/connect/dialog.tsx", 8_000),
    part("history", "src/history/view.tsx", 21_000),
    // These three with the list of turns, which counts here, too.
    part("calls of the history", "src/history/calls-view.tsx", 33_000),
    part("a turn of the history", "src/history/turn-detail.tsx", 27_000),
    part("two turns", "src/history/compare.tsx", 29_000),
    // A part of the settings, whose own script counts here, too.
    part("people", "src/settings/people.tsx", 17_000),
    // Most of it draws only the rows that are on the screen; the history has that, too.
    part("large values", "src/shared/call-card/large.tsx", 13_000),
    part("metrics", "src/metrics/view.tsx", 8_000),
    // The form of the tester, for an approval whose arguments are edited.
    part("form of arguments", "src/chat/card/arguments-form.tsx", 9_000),
    part("tester", "src/tester/view.tsx", 18_000),
    part("recorded streams", "src/tester/recorded.tsx", 20_000),
    part("avatar", "../avatar/src/index.ts", 10_000),
    part("Chinese", "src/i18n/zh.ts", 14_000),
];
/// Maximum size of every other part, such as a dialog or a form, in bytes.
const OTHER_BYTES_MAX: u64 = 6_000;
/// Documents for untrusted content, which are whole in themselves.
const DOCUMENTS: [(&str, u64); 2] = [("frames/diagram.html", 800_000), ("frames/preview.html", 2_000)];

/// Fails if a part exceeds its limit; returns a summary.
pub(crate) fn check(dist: &Path) -> Result<String> {
    let text = fs::read_to_string(dist.join("manifest.json")).context("the build has left no manifest")?;
    let manifest: Value = serde_json::from_str(&text).context("the manifest is no JSON")?;
    let mut sizes = Vec::new();
    for (name, files, bytes_max) in parts(&manifest)? {
        let bytes = files.iter().map(|file| compressed(dist, file)).sum::<Result<u64>>()?;
        if bytes > bytes_max {
            bail!(
                "{name} has {bytes} bytes compressed, of {bytes_max}\n  remedy: what is not needed at once belongs behind `import()`; the limits are in xtask/src/web/budget.rs"
            );
        }
        sizes.push(format!("{name} {}", bytes.div_ceil(1_000)));
    }
    Ok(format!("kB compressed: {}", sizes.join(", ")))
}

/// Name, files and limit of everything that is loaded on demand.
fn parts(manifest: &Value) -> Result<Vec<(String, BTreeSet<String>, u64)>> {
    let chat = needed(manifest, &CHAT)?;
    let mut parts = Vec::new();
    for Part { name, entry, bytes_max } in &PARTS {
        let own = needed(manifest, &[entry])?.difference(&chat).cloned().collect();
        parts.push(((*name).to_owned(), own, *bytes_max));
    }
    let known = |name: &str| CHAT.contains(&name) || PARTS.iter().any(|part| part.entry == name);
    let chunks = manifest.as_object().into_iter().flatten();
    for (name, _) in chunks.filter(|(name, chunk)| chunk["isDynamicEntry"] == true && !known(name)) {
        let own = needed(manifest, &[name])?.difference(&chat).cloned().collect();
        parts.push((name.clone(), own, OTHER_BYTES_MAX));
    }
    let documents = DOCUMENTS.map(|(file, max)| (file.to_owned(), BTreeSet::from([file.to_owned()]), max));
    parts.extend(documents);
    parts.insert(0, ("the chat".to_owned(), chat, CHAT_BYTES_MAX));
    Ok(parts)
}

/// The scripts that these entries cannot do without.
fn needed(manifest: &Value, entries: &[&str]) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut open: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let chunk =
            manifest.get(&name).with_context(|| format!("the build has no {name}: correct its name here"))?;
        files.extend(chunk["file"].as_str().filter(|file| file.ends_with(".js")).map(str::to_owned));
        let imports = chunk["imports"].as_array().into_iter().flatten();
        open.extend(imports.filter_map(|import| import.as_str()).map(str::to_owned));
    }
    Ok(files)
}

fn compressed(dist: &Path, file: &str) -> Result<u64> {
    let path = dist.join(format!("{file}.gz"));
    Ok(fs::metadata(&path).with_context(|| format!("{} is not there", path.display()))?.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A build with all named parts, and a dialog.
    fn manifest() -> Value {
        let mut manifest = json!({
            "index.html": {"file": "a.js", "imports": ["_shared.js"], "dynamicImports": ["src/chat/view.tsx", "x.tsx"]},
            "_shared.js": {"file": "s.js", "imports": ["index.html"]},
            "src/chat/view.tsx": {"file": "c.js", "imports": ["_shared.js"], "css": ["c.css"], "isDynamicEntry": true},
            "x.tsx": {"file": "x.js", "isDynamicEntry": true, "imports": ["_shared.js"]},
            "style.css": {"file": "style.css"},
        });
        for (at, Part { entry, .. }) in PARTS.iter().enumerate() {
            let chunk =
                json!({"file": format!("part{at}.js"), "isDynamicEntry": true, "imports": ["_shared.js"]});
            manifest[*entry] = chunk;
        }
        manifest
    }

    #[test]
    fn each_part_has_a_limit_and_excludes_chat_files() {
        let parts = parts(&manifest()).unwrap();
        let names = |files: &BTreeSet<String>| files.iter().cloned().collect::<Vec<_>>().join(" ");
        let found = |name: &str| {
            let (_, files, max) = parts.iter().find(|(one, ..)| one == name).unwrap();
            (names(files), *max)
        };
        assert_eq!(found("the chat"), ("a.js c.js s.js".to_owned(), CHAT_BYTES_MAX));
        assert_eq!(found("maths"), ("part1.js".to_owned(), 65_000));
        assert_eq!(found("x.tsx"), ("x.js".to_owned(), OTHER_BYTES_MAX));
        assert_eq!(found("frames/diagram.html").1, 800_000);
        assert_eq!(parts.len(), 1 + PARTS.len() + 1 + DOCUMENTS.len());
    }

    #[test]
    fn missing_part_is_named() {
        let mut manifest = manifest();
        manifest.as_object_mut().unwrap().remove("src/history/view.tsx");
        let error = parts(&manifest).unwrap_err().to_string();
        assert!(error.contains("src/history/view.tsx"), "{error}");
    }
}
