//! Compressed size of the scripts that a browser fetches: for the chat, and for all views together.
// R: P4

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Before the first message can be sent.
const CHAT_BYTES_MAX: u64 = 130_000;
/// Everything there is.
const ALL_BYTES_MAX: u64 = 220_000;
/// The entry of the page, and the view that it shows first.
const CHAT: [&str; 2] = ["index.html", "src/chat/view.tsx"];

/// Fails if one of them is larger than it may be; else says how large they are.
pub(crate) fn check(dist: &Path) -> Result<String> {
    let text = fs::read_to_string(dist.join("manifest.json")).context("the build has left no manifest")?;
    let manifest: Value = serde_json::from_str(&text).context("the manifest is no JSON")?;
    let of = |files: &BTreeSet<String>| files.iter().map(|file| compressed(dist, file)).sum::<Result<u64>>();
    let (chat, all) = (of(&needed(&manifest, &CHAT)?)?, of(&every(&manifest))?);
    for (what, bytes, max) in [("the chat", chat, CHAT_BYTES_MAX), ("all views", all, ALL_BYTES_MAX)] {
        if bytes > max {
            bail!(
                "the scripts of {what} have {bytes} bytes compressed, of {max}\n  remedy: what is not needed at once belongs behind `import()`"
            );
        }
    }
    Ok(format!("scripts: chat {} kB, all {} kB, compressed", chat.div_ceil(1_000), all.div_ceil(1_000)))
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

fn every(manifest: &Value) -> BTreeSet<String> {
    let chunks = manifest.as_object().into_iter().flatten();
    let files = chunks.filter_map(|(_, chunk)| chunk["file"].as_str()).filter(|file| file.ends_with(".js"));
    files.map(str::to_owned).collect()
}

fn compressed(dist: &Path, file: &str) -> Result<u64> {
    let path = dist.join(format!("{file}.gz"));
    Ok(fs::metadata(&path).with_context(|| format!("{} is not there", path.display()))?.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_fetched_later_does_not_count_for_the_chat() {
        let manifest = json!({
            "index.html": {"file": "a.js", "imports": ["_shared.js"], "dynamicImports": ["src/chat/view.tsx", "x.tsx"]},
            "_shared.js": {"file": "s.js", "imports": ["index.html"]},
            "src/chat/view.tsx": {"file": "c.js", "imports": ["_shared.js"], "css": ["c.css"]},
            "x.tsx": {"file": "x.js"},
            "style.css": {"file": "style.css"},
        });
        let names = |files: BTreeSet<String>| files.into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(names(needed(&manifest, &CHAT).unwrap()), "a.js c.js s.js");
        assert_eq!(names(every(&manifest)), "a.js c.js s.js x.js");
        assert!(needed(&manifest, &["gone.tsx"]).is_err());
    }
}
