//! Packages of the clients, from public registries: pinned in `clients/matrix`, installed under cargo's target folder.

use super::expected::{ClientStart, MatrixClient};
use crate::program::{self, ExternalProgram};
use crate::repository;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const SOURCES: &str = "clients/matrix";

/// A client that can be started.
pub(crate) struct InstalledClient {
    pub(crate) program: PathBuf,
    /// The script, if the program is one that runs scripts.
    pub(crate) script: Option<PathBuf>,
    /// The folder of npm's packages.
    pub(crate) packages: PathBuf,
}

/// Installs what a client needs.
///
/// # Errors
/// The outer error: a pin is wrong. The inner one: the reason why it is not available on this machine.
pub(crate) fn installed(client: &MatrixClient) -> Result<std::result::Result<InstalledClient, String>> {
    let sources = repository::root().join(SOURCES);
    let node = folder("node")?;
    let script = |of: &str, name: &str| Some(sources.join(of).join(name));
    let python3 = || PathBuf::from("python3");
    let installed_client = |program, script, packages| InstalledClient { program, script, packages };
    Ok(match client.start {
        ClientStart::Python { pins, script: name } => environment(pins)?
            .map(|folder| installed_client(folder.join("bin/python"), script("python", name), node.clone())),
        ClientStart::Node { script: name } => npm("node")?.map(|folder| {
            installed_client(folder.join("node_modules/.bin/node"), script("node", name), folder)
        }),
        ClientStart::Program { script: name } => match has_python() {
            Ok(()) => {
                npm("programs")?.map(|folder| installed_client(python3(), script("python", name), folder))
            }
            Err(why) => Err(why),
        },
        ClientStart::Plain { script: name } => {
            has_python().map(|()| installed_client(python3(), script("python", name), node.clone()))
        }
        ClientStart::Rust => {
            built(&sources.join("rust"))?.map(|program| installed_client(program, None, node.clone()))
        }
    })
}

fn folder(name: &str) -> Result<PathBuf> {
    Ok(program::target()?.join("client-matrix").join(name))
}

fn has_python() -> std::result::Result<(), String> {
    let works = ExternalProgram::new("python3").args(["-m", "pip", "--version"]).succeeds();
    if works { Ok(()) } else { Err("Python 3 with pip is not installed".to_owned()) }
}

/// An environment of Python with exactly the packages of a list.
fn environment(pins: &str) -> Result<std::result::Result<PathBuf, String>> {
    if let Err(why) = has_python() {
        return Ok(Err(why));
    }
    let (folder, list) = (folder(pins)?, format!("{SOURCES}/python/{pins}.txt"));
    let pinned = repository::read(&list)?;
    install_once(&folder, &pinned, || {
        let (folder_text, python) = (text(&folder), text(&folder.join("bin/python")));
        let list = text(&repository::root().join(&list));
        let quiet = ["--quiet", "--disable-pip-version-check"];
        ExternalProgram::new("python3")
            .args(["-m", "venv", "--clear", "--without-pip", &folder_text])
            .run()?;
        // The list is complete, so what it names is all that is installed.
        let words = ["-m", "pip", "--python", &python, "install", "--no-deps", "-r", &list];
        match program::attempt("pip", || ExternalProgram::new("python3").args(words).args(quiet).run()) {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let probe = ["-m", "pip", "download", "--no-deps", "--dest", &folder_text, "six==1.17.0"];
                unless_registry_down(
                    error,
                    ExternalProgram::new("python3").args(probe).args(quiet).succeeds(),
                    "PyPI",
                )
            }
        }
    })
}

/// A folder of npm's packages.
fn npm(name: &str) -> Result<std::result::Result<PathBuf, String>> {
    if !ExternalProgram::new("npm").args(["--version"]).succeeds() {
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
    let pinned =
        files.iter().map(|file| repository::read(&format!("{pins}/{file}"))).collect::<Result<String>>();
    install_once(&folder, &pinned?, || {
        for file in files {
            fs::copy(repository::root().join(&pins).join(file), folder.join(file))
                .with_context(|| format!("{pins}/{file} cannot be copied"))?;
        }
        let words =
            ["--prefix", &text(&folder), "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
        match program::attempt("npm", || ExternalProgram::new("npm").args(verb).args(words).run()) {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let ping =
                    ExternalProgram::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]);
                unless_registry_down(error, ping.succeeds(), "the npm registry")
            }
        }
    })
}

/// The program of a crate outside of the workspace.
fn built(source: &Path) -> Result<std::result::Result<PathBuf, String>> {
    let manifest = text(&source.join("Cargo.toml"));
    if !ExternalProgram::cargo()
        .args(["fetch", "--quiet", "--locked", "--manifest-path", &manifest])
        .succeeds()
    {
        return Ok(Err("its crates cannot be fetched".to_owned()));
    }
    let target = folder("rust")?;
    let words =
        ["build", "--quiet", "--locked", "--manifest-path", &manifest, "--target-dir", &text(&target)];
    ExternalProgram::cargo().args(words).run()?;
    Ok(Ok(target.join("debug/async-openai-client")))
}

/// Installs into this folder unless that has been done with the same pins.
fn install_once(
    folder: &Path,
    pinned: &str,
    install: impl FnOnce() -> Result<std::result::Result<(), String>>,
) -> Result<std::result::Result<PathBuf, String>> {
    let done = folder.join("installed");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == pinned) {
        return Ok(Ok(folder.to_owned()));
    }
    println!("installing into {}", folder.display());
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    if let Err(why) = install()? {
        return Ok(Err(why));
    }
    fs::write(&done, pinned).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(Ok(folder.to_owned()))
}

/// A registry that cannot be reached is nothing that the project could mend; a pin that is wrong is.
fn unless_registry_down(
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
