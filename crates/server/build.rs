//! Takes the built page (`web/dist`, by `cargo xtask web`) into the program. Without it the program is whole, too: it says
//! how to get the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = crate_folder.join("../../web/dist");
    // The folder is there in every clone, so that a page that comes later is noticed, and nothing is built twice without one.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.join("index.html").exists() {
        collect(&dist, "", &mut files)?;
    }
    files.sort();
    let mut table = String::from("[\n");
    for (path, file) in &files {
        let compressed = |ending: &str| {
            let beside = PathBuf::from(format!("{}.{ending}", file.display()));
            match beside.exists() {
                true => format!("Some(include_bytes!({:?}))", beside),
                false => "None".to_owned(),
            }
        };
        let _ = writeln!(
            table,
            "    Embedded {{ path: {path:?}, plain: include_bytes!({file:?}), br: {}, gzip: {} }},",
            compressed("br"),
            compressed("gz")
        );
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("page.rs"), table)
}

/// Files that are asked for by their path; what is beside them, compressed, is not.
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
