//! Our crates as cargo packs them for its registry: each one whole, and the server with the page in it.

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::verify::serving::ServeProcess;
use crate::{repository, web};
use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Limits on the size of a packed crate; the second one with the page in it.
const CRATE_BYTES_MAX: u64 = 512 << 10;
const CRATE_WITH_PAGE_BYTES_MAX: u64 = 5 << 20;
/// The crate that embeds the page, and the one that people install.
const SERVER: &str = "throughline-server";
const COMMAND: &str = "throughline-cli";
/// Files that each packed crate has.
const FILES: [&str; 3] = ["Cargo.toml", "README.md", "src"];
/// Files that each packed crate has as the repository has them.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// The page in the packed server: a copy of `web/dist` for as long as cargo packs.
const PACKED_PAGE: &str = "crates/server/page";

/// A crate that is published.
struct PackedCrate {
    name: String,
    /// Folder with the unpacked content.
    folder: PathBuf,
    bytes: u64,
}

/// Packs and unpacks all crates; what they weigh, and why the page could not be looked for, if so.
pub(crate) fn check() -> Result<(String, Option<String>)> {
    let page = web::built()?;
    let crates = packed()?;
    for packed in &crates {
        let with_page = packed.name == SERVER;
        let limit = if with_page { CRATE_WITH_PAGE_BYTES_MAX } else { CRATE_BYTES_MAX };
        if packed.bytes > limit {
            return Err(fault(
                format!("{} is packed into {} bytes, more than {limit}", packed.name, packed.bytes),
                "leave out what its users do not need: `include` in its Cargo.toml",
            ));
        }
        if let Some(missing) = FILES.iter().find(|file| !packed.folder.join(file).exists()) {
            return Err(fault(
                format!("{missing} is not in the packed {}", packed.name),
                "see `include` in its Cargo.toml",
            ));
        }
        for license in LICENSES {
            let content = fs::read(packed.folder.join(license)).unwrap_or_default();
            if content != fs::read(repository::root().join(license))? {
                return Err(fault(
                    format!("{license} in the packed {} is not the repository's", packed.name),
                    format!("copy {license} into the crate's folder"),
                ));
            }
        }
        if with_page && page.is_ok() {
            embeds_the_page(&packed.folder)?;
        }
    }
    let bytes: u64 = crates.iter().map(|packed| packed.bytes).sum();
    Ok((format!("{} crates, {} KiB", crates.len(), bytes >> 10), page.err()))
}

/// Tests `cargo install` of the packed command, with our other crates as packed, and the page that it serves.
pub(crate) fn install() -> Result<std::result::Result<String, String>> {
    if let Err(why) = web::built()? {
        return Ok(Err(why));
    }
    let crates = packed()?;
    let folder = program::target()?.join("packed");
    let (root, target) = (folder.join("installed"), folder.join("target"));
    let command = crates.iter().find(|packed| packed.name == COMMAND);
    let command = command.ok_or_else(|| fault(format!("there is no {COMMAND}"), "see the workspace"))?;
    let mut cargo = ExternalProgram::cargo()
        .args(["install", "--debug", "--force", "--no-track", "--path"])
        .args([&command.folder])
        .args(["--root".as_ref(), root.as_os_str(), "--target-dir".as_ref(), target.as_os_str()]);
    // Built once and deleted.
    cargo = cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    // The registry does not have them yet.
    for packed in crates.iter().filter(|packed| packed.name != COMMAND) {
        let patch = format!("patch.crates-io.{}.path={:?}", packed.name, packed.folder.display().to_string());
        cargo = cargo.args(["--config", &patch]);
    }
    cargo.run()?;
    let installed = root.join("bin/throughline");
    let server = ServeProcess::start(&installed, &folder.join("serving"), "")?;
    let page = ExternalProgram::new("curl").args(["-fsS", &format!("http://{}/", server.address)]).text()?;
    if !page.contains("/assets/") {
        bail!("the installed program serves no page: {page}");
    }
    Ok(Ok(format!("{} crates packed; the installed command serves its page", crates.len())))
}

/// The page inside the server's folder, where cargo packs it. Removed when dropped.
struct PageCopy(PathBuf);

impl PageCopy {
    fn new() -> Result<Self> {
        let root = repository::root();
        let copy = Self(root.join(PACKED_PAGE));
        // Another run may have been killed.
        let _ = fs::remove_dir_all(&copy.0);
        for file in repository::files("web/dist", "") {
            let to = copy.0.join(file.trim_start_matches("web/dist/"));
            fs::create_dir_all(to.parent().unwrap_or(&copy.0))?;
            fs::copy(root.join(&file), to)?;
        }
        Ok(copy)
    }
}

impl Drop for PageCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Packs every crate that is published, and unpacks it under cargo's target folder.
fn packed() -> Result<Vec<PackedCrate>> {
    let metadata =
        ExternalProgram::cargo().args(["metadata", "--format-version=1", "--no-deps", "--offline"]).text()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    // An empty list of registries is `publish = false`.
    let published: Vec<&Value> = packages
        .iter()
        .filter(|package| package["publish"].as_array().is_none_or(|list| !list.is_empty()))
        .collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for package in &published {
        for field in ["description", "license", "repository", "readme"] {
            if text(&package[field]).is_empty() {
                let name = text(&package["name"]);
                return Err(fault(
                    format!("{name} has no `{field}`"),
                    "the registry shows it: its Cargo.toml",
                ));
            }
        }
    }
    // Without a build, so uncommitted changes do no harm; the registry is only needed for crates outside the
    // lock file.
    let words = [
        "package",
        "--workspace",
        "--exclude",
        "xtask",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
        "--offline",
    ];
    let page = PageCopy::new()?;
    let output = ExternalProgram::cargo().args(words).output()?;
    drop(page);
    if !output.status.success() {
        return Err(fault(format!("the crates cannot be packed:\n{}", output.stderr), "see what cargo says"));
    }
    let target = program::target()?;
    let crates = published.iter().map(|package| {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let file = target.join("package").join(format!("{name}-{version}.crate"));
        let packed = fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let folder = target.join("packed").join(format!("{name}-{version}"));
        let _ = fs::remove_dir_all(&folder);
        tar::Archive::new(GzDecoder::new(&*packed)).unpack(target.join("packed"))?;
        Ok(PackedCrate { name, folder, bytes: packed.len() as u64 })
    });
    crates.collect()
}

/// Runs the build script of the packed server: what it embeds is the page as it is built.
fn embeds_the_page(server: &Path) -> Result<()> {
    let dist = repository::root().join("web/dist");
    let (script, out) = (server.join("build-script"), server.join("out"));
    let compile = ["--edition=2024", "-Awarnings", "-o"];
    ExternalProgram::new("rustc").args(compile).args([&script, &server.join("build.rs")]).run()?;
    fs::create_dir_all(&out)?;
    let built =
        ExternalProgram::new(&script).env("CARGO_MANIFEST_DIR", server).env("OUT_DIR", &out).output()?;
    let table = fs::read_to_string(out.join("page.rs")).unwrap_or_default();
    if !built.status.success() || !table.contains("\"/index.html\"") {
        return Err(fault(
            format!("the packed server embeds no page: {}", built.stderr),
            "`include` in its Cargo.toml names `page`",
        ));
    }
    for file in repository::files("web/dist", "") {
        let inside = file.trim_start_matches("web/dist/");
        if !inside.starts_with('.')
            && fs::read(dist.join(inside))? != fs::read(server.join("page").join(inside))?
        {
            bail!("{inside} of the packed page is not that of web/dist");
        }
    }
    Ok(())
}
