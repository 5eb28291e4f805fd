//! Embeds the built page (`web/dist`, by `cargo xtask web`) in the program; a packed crate has it in `page`.
//! Without it the program is complete except for the page, and serves instructions to get it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // A packed crate has the files in `page`, since it contains nothing outside its own folder.
    let built = crate_folder.join("../../web/dist");
    let dist = if built.is_dir() { built } else { crate_folder.join("page") };
    // The folder is there in every clone, so that a page that comes later is noticed, and nothing is built twice without one.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.join("index.html").exists() {
        collect(&dist, "", &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // Copies: the page may be built anew while the program is compiled.
    let copies = out.join("page");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir(&copies)?;
    let mut table = String::from("[\n");
    for (n, (path, file)) in files.iter().enumerate() {
        let copied = |ending: &str| -> io::Result<Option<PathBuf>> {
            let from = PathBuf::from(format!("{}{ending}", file.display()));
            let to = copies.join(format!("{n}{ending}"));
            Ok(if from.exists() { fs::copy(from, &to).map(|_| Some(to))? } else { None })
        };
        let plain = copied("")?.unwrap_or_default();
        let compressed = |ending: &str| -> io::Result<String> {
            Ok(copied(ending)?
                .map_or_else(|| "None".to_owned(), |file| format!("Some(include_bytes!({file:?}))")))
        };
        let _ = writeln!(
            table,
            "    EmbeddedFile {{ path: {path:?}, plain: include_bytes!({plain:?}), br: {}, gzip: {} }},",
            compressed(".br")?,
            compressed(".gz")?
        );
    }
    table.push_str("]\n");
    fs::write(out.join("page.rs"), table)
}

/// Files that are requested by path, without their compressed forms.
fn collect(folder: &Path, under: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{under}/{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else if !name.ends_with(".br")
            && !name.ends_with(".gz")
            && !name.starts_with('.')
            && name != "manifest.json"
        {
            files.push((path, entry.path().canonicalize()?));
        }
    }
    Ok(())
}
