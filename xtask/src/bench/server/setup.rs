//! Setup of the server benchmark: a copy of the shared bench, built, with the peers that can be installed.

use crate::fault::fault;
use crate::program::ExternalProgram;
use crate::repository;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The loopback model server, the load generator, and the floors.
const PROGRAMS: [&str; 3] = ["upstream", "load", "relay"];
/// Python packages of the peers.
const PYTHON: [&str; 7] =
    ["openai", "litellm[proxy]", "pydantic-ai-slim[openai]", "fastapi", "uvicorn", "httpx", "uvloop"];

/// The copy. Honors the variables of the bench's own scripts: `BIN` and `PY` name what is built already.
pub(crate) struct BenchSetup {
    pub(crate) folder: PathBuf,
    bin: PathBuf,
    python: PathBuf,
    /// Targets of `scripts/part2.py` that can be started here.
    pub(crate) peers: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerSelection {
    Wanted,
    Unwanted,
}

impl BenchSetup {
    /// Makes the copy, builds and installs. `None`: the shared bench is missing.
    pub(crate) fn prepare(peers: PeerSelection) -> Result<Option<Self>> {
        let Some(shared) = repository::vectors().map(|vectors| vectors.join("bench")) else {
            println!("skipped: THROUGHLINE_VECTORS is not set");
            return Ok(None);
        };
        if !shared.is_dir() {
            println!("skipped: there is no bench in THROUGHLINE_VECTORS");
            return Ok(None);
        }
        if !ExternalProgram::new("taskset").args(["--version"]).succeeds()
            || !python().args(["--version"]).succeeds()
        {
            return Err(fault(
                "the shared bench needs taskset and python3",
                "install util-linux and python3; both are Linux tools of every distribution",
            ));
        }
        let folder = target().join("bench-server");
        copy(&shared, &folder).with_context(|| format!("{} cannot be copied", shared.display()))?;
        let bin = match std::env::var_os("BIN") {
            Some(bin) => PathBuf::from(bin),
            None => build(&folder)?,
        };
        let mut ground = Self { python: PathBuf::from("python3"), bin, peers: Vec::new(), folder };
        if peers == PeerSelection::Wanted {
            ground.install_python();
            ground.install_node();
            if ExternalProgram::new("ultrafast-gateway").args(["--version"]).succeeds() {
                ground.peers.push("ultrafast-gateway")
            } else {
                println!("  skipped: ultrafast-gateway is not on PATH (cargo install ultrafast-gateway)")
            }
        }
        Ok(Some(ground))
    }

    /// `upstream`, `load` or `relay`.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// `scripts/part2.py`, which starts targets one after another and measures each.
    pub(crate) fn part2(&self, out: &Path, targets: &[&str], scenarios: &str) -> ExternalProgram {
        ExternalProgram::new("python3")
            .args(["scripts/part2.py".into(), OsString::from(out)])
            .args(["--targets", &targets.join(","), "--scen", scenarios])
            .inside(&self.folder)
            .env("BIN", &self.bin)
            .env("PY", &self.python)
            .env("UP_PORT", super::UPSTREAM_PORT.to_string())
    }

    fn install_python(&mut self) {
        let from_environment = std::env::var_os("PY").map(PathBuf::from);
        let own = self.folder.join(".venv/bin/python");
        let ready = |python: &Path| {
            ExternalProgram::new(python).args(["-c", "import pydantic_ai, litellm, uvicorn"]).succeeds()
        };
        let found = from_environment.into_iter().chain([own.clone()]).find(|python| ready(python));
        let found = found.or_else(|| {
            println!("  installing LiteLLM and pydantic-ai");
            let is_created = python().args(["-m", "venv", ".venv"]).inside(&self.folder).succeeds();
            let words = [&["-m", "pip", "install", "--quiet"], &PYTHON[..]].concat();
            let installed =
                is_created && ExternalProgram::new(&own).args(words).inside(&self.folder).succeeds();
            (installed && ready(&own)).then_some(own)
        });
        match found {
            Some(python) => {
                self.python = python;
                self.peers.extend(["pydantic-ai", "litellm"]);
            }
            None => println!("  skipped: LiteLLM and pydantic-ai could not be installed with pip"),
        }
    }

    fn install_node(&mut self) {
        let js = self.folder.join("js");
        let is_installed = || js.join("node_modules/ai/package.json").exists();
        if !is_installed() {
            println!("  installing the AI SDK");
            ExternalProgram::new("npm").args(["install", "--no-audit", "--no-fund"]).inside(&js).succeeds();
        }
        if is_installed() && ExternalProgram::new("node").args(["--version"]).succeeds() {
            self.peers.push("ai-sdk")
        } else {
            println!("  skipped: the AI SDK's server needs node and npm")
        }
    }
}

fn python() -> ExternalProgram {
    ExternalProgram::new("python3")
}

fn build(folder: &Path) -> Result<PathBuf> {
    for program in PROGRAMS {
        // Each alone, as its README requires: together they would unify features and measure something else.
        ExternalProgram::cargo()
            .args(["build", "--release", "--quiet", "--package", program])
            .inside(folder)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .run()?;
    }
    Ok(folder.join("target/release"))
}

/// Target folder of this workspace.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository::root().join("target"), PathBuf::from)
}

/// Copies a folder over another, without what was built or installed in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if ["target", "node_modules", ".venv", "results"].iter().any(|is_created| name == *is_created) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(&name));
        if from.is_dir() {
            copy(&from, &to)?;
        } else if fs::read(&from)? != fs::read(&to).unwrap_or_default() {
            // The content alone: what is shared may be read-only.
            fs::write(&to, fs::read(&from)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_skips_build_output_and_keeps_installed_packages() {
        let root = std::env::temp_dir().join(format!("throughline-xtask-copy-{}", std::process::id()));
        let (from, to) = (root.join("from"), root.join("to"));
        for file in ["a.py", "js/b.mjs", "target/release/x", "js/node_modules/y"] {
            let path = from.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        fs::create_dir_all(to.join("js/node_modules")).unwrap();
        fs::write(to.join("js/node_modules/z"), "installed").unwrap();
        copy(&from, &to).unwrap();
        fs::write(from.join("a.py"), "newer").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a.py")).unwrap(), "newer");
        assert!(to.join("js/b.mjs").exists() && to.join("js/node_modules/z").exists());
        assert!(!to.join("target").exists() && !to.join("js/node_modules/y").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
