//! What clients are made of, from public registries: pinned in `clients/matrix`, installed under cargo's target folder.

use super::expected::{Client, Start};
use crate::program::{self, Program};
use crate::repository;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

pub const SOURCES: &str = "clients/matrix";

/// A client that can be started.
pub struct Installed {
    pub program: PathBuf,
    /// The script, if the program is one that runs scripts.
    pub script: Option<PathBuf>,
    /// The folder of npm's packages.
    pub packages: PathBuf,
}

/// Installs what a client needs.
///
/// # Errors
/// The outer one: a pin is wrong. The inner one: why it cannot be had on this machine.
pub fn installed(client: &Client) -> Result<std::result::Result<Installed, String>> {
    let sources = repository::root().join(SOURCES);
    let node = folder("node")?;
    let script = |of: &str, name: &str| Some(sources.join(of).join(name));
    let python3 = || PathBuf::from("python3");
    let here = |program, script, packages| Installed { program, script, packages };
    Ok(match client.start {
        Start::Python { pins, script: name } => environment(pins)?
            .map(|folder| here(folder.join("bin/python"), script("python", name), node.clone())),
        Start::Node { script: name } => npm("node")?
            .map(|folder| here(folder.join("node_modules/.bin/node"), script("node", name), folder)),
        Start::Program { script: name } => match has_python() {
            Ok(()) => npm("programs")?.map(|folder| here(python3(), script("python", name), folder)),
            Err(why) => Err(why),
        },
        Start::Plain { script: name } => {
            has_python().map(|()| here(python3(), script("python", name), node.clone()))
        }
        Start::Rust => built(&sources.join("rust"))?.map(|program| here(program, None, node.clone())),
    })
}

fn folder(name: &str) -> Result<PathBuf> {
    Ok(program::target()?.join("client-matrix").join(name))
}

fn has_python() -> std::result::Result<(), String> {
    let works = Program::new("python3").args(["-m", "pip", "--version"]).works();
    if works { Ok(()) } else { Err("Python 3 with pip is not installed".to_owned()) }
}

/// An environment of Python with exactly the packages of a list.
fn environment(pins: &str) -> Result<std::result::Result<PathBuf, String>> {
    if let Err(why) = has_python() {
        return Ok(Err(why));
    }
    let (folder, list) = (folder(pins)?, format!("{SOURCES}/python/{pins}.txt"));
    let wanted = repository::read(&list)?;
    once(&folder, &wanted, || {
        let (place, python) = (text(&folder), text(&folder.join("bin/python")));
        let list = text(&repository::root().join(&list));
        let quiet = ["--quiet", "--disable-pip-version-check"];
        Program::new("python3").args(["-m", "venv", "--clear", "--without-pip", &place]).run()?;
        // The list is complete, so what it names is all that is installed.
        let pip = Program::new("python3").args(["-m", "pip", "--python", &python, "install", "--no-deps"]);
        match pip.args(quiet).args(["-r", &list]).run() {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let probe = ["-m", "pip", "download", "--no-deps", "--dest", &place, "six==1.17.0"];
                unless_absent(error, Program::new("python3").args(probe).args(quiet).works(), "PyPI")
            }
        }
    })
}

/// A folder of npm's packages.
fn npm(name: &str) -> Result<std::result::Result<PathBuf, String>> {
    if !Program::new("npm").args(["--version"]).works() {
        return Ok(Err("Node.js with npm is not installed".to_owned()));
    }
    let (folder, pins) = (folder(name)?, format!("{SOURCES}/{name}"));
    // Without a lock: packages that need nothing but their own builds for a platform, each pinned by them.
    let is_locked = repository::root().join(&pins).join("package-lock.json").exists();
    let (files, verb): (&[&str], &[&str]) = if is_locked {
        (&["package.json", "package-lock.json"], &["ci"])
    } else {
        (&["package.json"], &["install", "--no-package-lock"])
    };
    let wanted =
        files.iter().map(|file| repository::read(&format!("{pins}/{file}"))).collect::<Result<String>>();
    once(&folder, &wanted?, || {
        for file in files {
            fs::copy(repository::root().join(&pins).join(file), folder.join(file))
                .with_context(|| format!("{pins}/{file} cannot be copied"))?;
        }
        let words = ["--prefix", &text(&folder), "--no-audit", "--no-fund", "--loglevel=error"];
        match Program::new("npm").args(verb).args(words).run() {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let ping = Program::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]);
                unless_absent(error, ping.works(), "the npm registry")
            }
        }
    })
}

/// The program of a crate outside of the workspace.
fn built(source: &Path) -> Result<std::result::Result<PathBuf, String>> {
    let manifest = text(&source.join("Cargo.toml"));
    if !Program::cargo().args(["fetch", "--quiet", "--locked", "--manifest-path", &manifest]).works() {
        return Ok(Err("its crates cannot be fetched".to_owned()));
    }
    let target = folder("rust")?;
    let words =
        ["build", "--quiet", "--locked", "--manifest-path", &manifest, "--target-dir", &text(&target)];
    Program::cargo().args(words).run()?;
    Ok(Ok(target.join("debug/async-openai-client")))
}

/// Installs into this folder unless that has been done with the same pins.
fn once(
    folder: &Path,
    wanted: &str,
    install: impl FnOnce() -> Result<std::result::Result<(), String>>,
) -> Result<std::result::Result<PathBuf, String>> {
    let done = folder.join("installed");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(Ok(folder.to_owned()));
    }
    println!("installing into {}", folder.display());
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    if let Err(why) = install()? {
        return Ok(Err(why));
    }
    fs::write(&done, wanted).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(Ok(folder.to_owned()))
}

/// A registry that cannot be reached is nothing that the project could mend; a pin that is wrong is.
fn unless_absent(
    error: anyhow::Error,
    is_there: bool,
    registry: &str,
) -> Result<std::result::Result<(), String>> {
    if is_there {
        Err(error)
    } else {
        Ok(Err(format!("the packages cannot be installed: {registry} is not there")))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
