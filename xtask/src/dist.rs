//! `cargo xtask dist`: builds the archives for download.

mod archive;
mod licenses;

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository, web};
use anyhow::{Context, Result};
use archive::{Entry, Kind};
use flate2::Compression;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "dist",
    about: "Pack the command for release: an archive for this platform with its checksum",
    help: "\
Usage: cargo xtask dist [--profile NAME] [--target TRIPLE]

Builds the page and `throughline`, and writes target/dist/throughline-<version>-<target>.tar.gz with the program, licenses (also of
everything that it contains), documents, completions, manual pages and `ops/`; the TypeScript client as npm packs it; and
SHA256SUMS of both.
Times and order of the archive depend only on the commit, so the same program gives the same archive.

  --profile NAME    of cargo (default: release)
  --target TRIPLE   another platform that this machine can run; its standard library and C compiler must be installed",
    run,
};

const FOLDER: &str = "dist";
const CHECKSUMS: &str = "SHA256SUMS";
/// Files of the repository that go into the archive unchanged.
const FILES: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// Files of `ops/` that work without a clone.
const OPERATIONS: [&str; 4] = ["alerts.yml", "grafana.json", "throughline.service", "throughline.toml"];
/// Shells with the files that their completions are read from.
const SHELLS: [(&str, &str); 3] =
    [("bash", "throughline.bash"), ("zsh", "_throughline"), ("fish", "throughline.fish")];

pub(crate) struct DistOptions {
    profile: String,
    target: Option<String>,
}

impl DistOptions {
    /// Options for this platform, with a program that cargo built in the dev profile.
    pub(crate) fn for_tests() -> Self {
        Self { profile: "dev".to_owned(), target: None }
    }

    /// Compression of the archive. A program with the symbols of the dev profile has hundreds of megabytes,
    /// and is not distributed.
    fn compression(&self) -> Compression {
        if self.profile == "release" { Compression::best() } else { Compression::fast() }
    }
}

fn run(words: Vec<String>) -> Result<()> {
    let options = parse(words)?;
    web::built()?.map_err(|why| fault(why, "the released program contains the page: https://nodejs.org"))?;
    let mut words = vec!["--package", "throughline-cli", "--bin", "throughline", "--locked"];
    words.extend(["--profile", &options.profile]);
    words.extend(options.target.iter().flat_map(|target| ["--target", target.as_str()]));
    let built = program::build(&words)?;
    // Before the checksums are written.
    let client = web::pack_client(&program::target()?.join(FOLDER))?;
    let archive = assemble(&built, &options)?;
    println!("{}", shown(&client.map_err(|why| fault(why, "https://nodejs.org"))?));
    println!("{}", shown(&archive));
    println!("{}", shown(&archive.with_file_name(CHECKSUMS)));
    Ok(())
}

fn parse(words: Vec<String>) -> Result<DistOptions> {
    let mut options = DistOptions { profile: "release".to_owned(), target: None };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--profile", Some(name)) => options.profile = name,
            ("--target", Some(triple)) => options.target = Some(triple),
            _ => return Err(fault(format!("`{word}` is not understood"), "see `cargo xtask dist --help`")),
        }
    }
    Ok(options)
}

/// Packs this program; the archive's path.
pub(crate) fn assemble(program: &Path, options: &DistOptions) -> Result<PathBuf> {
    let target = options.target.clone().map_or_else(host, Ok)?;
    let version = version(program)?;
    let name = format!("throughline-{version}-{target}");
    let mut entries =
        vec![Entry { name: "throughline".to_owned(), kind: Kind::Program, bytes: fs::read(program)? }];
    for path in FILES {
        entries.push(Entry::text(path, repository::read(path)?));
    }
    for file in OPERATIONS {
        entries.push(Entry::text(format!("ops/{file}"), repository::read(&format!("ops/{file}"))?));
    }
    for path in repository::files("docs", "") {
        let bytes =
            fs::read(repository::root().join(&path)).with_context(|| format!("{path} cannot be read"))?;
        entries.push(Entry { name: path, kind: Kind::Data, bytes });
    }
    for (shell, file) in SHELLS {
        let script = ExternalProgram::new(program).args(["completions", shell]).text()?;
        entries.push(Entry::text(format!("completions/{file}"), script + "\n"));
    }
    entries.extend(manual_pages(program)?);
    entries.push(Entry::text("THIRD-PARTY.txt", licenses::text(&target)?));
    let folder = program::target()?.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let archive = folder.join(format!("{name}.tar.gz"));
    let packed = archive::pack(&name, entries, commit_time()?, options.compression())?;
    fs::write(&archive, packed).with_context(|| format!("{} cannot be written", archive.display()))?;
    write_checksums(&folder)?;
    Ok(archive)
}

fn manual_pages(program: &Path) -> Result<Vec<Entry>> {
    let folder = program::target()?.join("man");
    // Pages of commands that are no more must not stay.
    let _ = fs::remove_dir_all(&folder);
    ExternalProgram::new(program).args(["man"]).args([&folder]).run()?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.push(Entry::text(format!("man/man1/{name}"), fs::read_to_string(entry.path())?));
    }
    Ok(pages)
}

/// Writes checksums of all archives in the folder, in the format of `sha256sum --check`.
fn write_checksums(folder: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != CHECKSUMS {
            let hash = Sha256::digest(fs::read(entry.path())?);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            lines.push((name.clone(), format!("{hash}  {name}\n")));
        }
    }
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    let path = folder.join(CHECKSUMS);
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The version that the program gives.
fn version(program: &Path) -> Result<String> {
    let text = ExternalProgram::new(program).args(["--version"]).text()?;
    let version = text.split_whitespace().nth(1).map(str::to_owned);
    version.ok_or_else(|| fault(format!("`{text}` names no version"), "see crates/cli/src/args.rs"))
}

/// The platform that this compiler builds for.
fn host() -> Result<String> {
    let text = ExternalProgram::new("rustc").args(["-vV"]).text()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned);
    host.ok_or_else(|| fault("rustc does not name its platform", "see `rustc -vV`"))
}

/// Seconds since 1970 of the commit, which are the times in the archive; SOURCE_DATE_EPOCH instead, where it is set.
fn commit_time() -> Result<u64> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = match given {
        Some(text) => text,
        None => ExternalProgram::new("git").args(["log", "-1", "--format=%ct"]).text()?,
    };
    text.trim().parse().with_context(|| format!("`{text}` is no time of a commit"))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(repository::root()).unwrap_or(path).display().to_string()
}
