//! The command on other platforms: it compiles on each whose standard library and C compiler are available.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// A platform that is not this one.
struct Platform {
    target: &'static str,
    /// The C compiler for it, by the name under which build scripts of cargo find it.
    compiler: &'static str,
    /// The package that has the compiler.
    package: &'static str,
}

const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        compiler: "musl-gcc",
        package: "apt-get install musl-tools",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        compiler: "aarch64-linux-gnu-gcc",
        package: "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    },
    Platform {
        target: "x86_64-pc-windows-gnu",
        compiler: "x86_64-w64-mingw32-gcc",
        package: "apt-get install gcc-mingw-w64-x86-64",
    },
    Platform {
        target: "aarch64-apple-darwin",
        compiler: MACOS,
        package: "pip install cargo-zigbuild ziglang",
    },
];

/// Contains the headers of macOS, and is started instead of cargo.
const MACOS: &str = "cargo-zigbuild";

/// Checks each platform; a platform whose tools are not here is named with what is missing.
pub(crate) fn platforms() -> Result<ProofOutcome> {
    let installed = ExternalProgram::new("rustup").args(["target", "list", "--installed"]).output();
    let Ok(installed) = installed else {
        return Ok(ProofOutcome::Skipped("rustup is not installed".to_owned()));
    };
    let mut checked = Vec::new();
    let mut missing = Vec::new();
    let mut failed = Vec::new();
    for Platform { target, compiler, package } in PLATFORMS {
        if !installed.stdout.lines().any(|line| line == target) {
            missing.push(format!("{target} (rustup target add {target})"));
            continue;
        }
        if !ExternalProgram::new(compiler).args(["--version"]).succeeds() {
            missing.push(format!("{target} ({package})"));
            continue;
        }
        println!("    {target}");
        let cargo = if compiler == MACOS { ExternalProgram::new(compiler) } else { ExternalProgram::cargo() };
        // Nothing of it runs, so it needs no symbols.
        let cargo = cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        match cargo.args(["check", "--package", "throughline-cli", "--target", target]).run() {
            Ok(()) => checked.push(target),
            Err(_) => failed.push(target),
        }
    }
    let mut figure = format!("compiled: {}", checked.join(", "));
    if !missing.is_empty() {
        figure += &format!("; not built here: {}", missing.join(", "));
    }
    if !failed.is_empty() {
        bail!("does not compile: {}; {figure}", failed.join(", "));
    }
    Ok(if checked.is_empty() { ProofOutcome::Skipped(figure) } else { ProofOutcome::Holds(figure) })
}
