//! Tests against other people's programs, from their public packages: installed once, pinned, and run by tests of ours.

use super::{CheckOutcome, report::TestReport};
use crate::program::{self, ExternalProgram};
use crate::{repository, web};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Packages that a file of tests needs.
pub(crate) struct TestPackages {
    what: &'static str,
    /// Folder of the repository that pins their versions.
    pins: &'static str,
    /// Where they are installed, under cargo's target folder.
    folder_name: &'static str,
    /// Names that folder to the tests. Empty: another check runs them.
    pub(crate) variable: &'static str,
    /// The files of tests.
    tests: &'static [&'static str],
    /// A package that is asked for to see whether PyPI is there.
    on_pypi: &'static str,
}

/// Real MCP servers and the protocol's conformance suite.
pub(crate) const MCP: TestPackages = TestPackages {
    what: "MCP servers",
    pins: "crates/tools/tests/mcp",
    folder_name: "mcp",
    variable: "THROUGHLINE_MCP_SERVERS",
    tests: &["mcp_servers"],
    on_pypi: "mcp-server-time",
};

/// OpenAI's and other clients of the server, and what checks and runs our own.
pub(crate) const CLIENTS: TestPackages = TestPackages {
    what: "clients",
    pins: "clients",
    folder_name: "clients",
    variable: "THROUGHLINE_CLIENTS",
    tests: &["clients", "typescript", "client_package"],
    on_pypi: "openai",
};

const FILES: [&str; 3] = ["package.json", "package-lock.json", "requirements.txt"];

/// A second release of Node, for the client as it is published; the first is among the clients.
const NODE_24: &str = "node@24.9.0";

/// `check` of the clients, with our own as it is published.
pub(crate) fn check_clients() -> Result<CheckOutcome> {
    let mut skipped = Vec::new();
    let mut path = |what: &str, made: Result<PathBuf, String>| {
        made.unwrap_or_else(|why| {
            skipped.push(format!("{what}: {why}"));
            // Empty: it was said.
            PathBuf::new()
        })
    };
    let packed = path("the client as it is published", web::pack_client(&program::target()?.join("client"))?);
    let node = path("Node 24", node_24()?);
    let variables = [("THROUGHLINE_CLIENT_PACKAGE", packed), ("THROUGHLINE_NODE_24", node)];
    let mut outcome = check_with(&CLIENTS, &variables)?;
    if let CheckOutcome::Tests(report) = &mut outcome {
        report.skipped.extend(skipped);
    }
    Ok(outcome)
}

/// Node 24, installed once; inside: why it cannot be had.
fn node_24() -> Result<Result<PathBuf, String>> {
    let folder = program::target()?.join("node24");
    let node = folder.join("node_modules/.bin/node");
    if ExternalProgram::new(&node).args(["--version"]).succeeds() {
        return Ok(Ok(node));
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let words =
        ["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-timeout=60000", "--prefix"];
    let install = ExternalProgram::new("npm").args(words).args([folder.as_os_str(), NODE_24.as_ref()]);
    Ok(if install.succeeds() { Ok(node) } else { Err(format!("npm cannot install {NODE_24}")) })
}

pub(crate) fn check(packages: &TestPackages) -> Result<CheckOutcome> {
    check_with(packages, &[])
}

fn check_with(packages: &TestPackages, variables: &[(&str, PathBuf)]) -> Result<CheckOutcome> {
    let folder = match installed(packages)? {
        Ok(folder) => folder,
        Err(why) => return Ok(CheckOutcome::Skipped(why)),
    };
    let mut report = TestReport::default();
    // Of the whole workspace, so that the same features are chosen and nothing is built twice.
    let tests = packages.tests.iter().flat_map(|test| ["--test", test]);
    let words =
        ["test", "--workspace", "--no-fail-fast"].into_iter().chain(tests).chain(["--", "--show-output"]);
    let mut tests = ExternalProgram::cargo().args(words).env(packages.variable, &folder);
    for (name, path) in variables {
        tests = tests.env(name, path);
    }
    let status = tests.lines(|line| {
        if report.take(line) {
            println!("{line}");
        }
    })?;
    report.is_success = status.success();
    Ok(CheckOutcome::Tests(report))
}

/// The folder of the packages, or why they cannot be had.
fn installed(packages: &TestPackages) -> Result<Result<PathBuf, String>> {
    let folder = program::target()?.join(packages.folder_name);
    let done = folder.join("installed");
    let pinned = pins(packages.pins)?;
    if fs::read_to_string(&done).is_ok_and(|installed| installed == pinned) {
        return Ok(Ok(folder));
    }
    for (program, package) in [("npm", "Node.js with npm"), ("python3", "Python 3 with venv")] {
        if !ExternalProgram::new(program).args(["--version"]).succeeds() {
            return Ok(Err(format!("{package} is not installed")));
        }
    }
    println!("installing {} into {}", packages.what, folder.display());
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for file in FILES {
        fs::copy(repository::root().join(packages.pins).join(file), folder.join(file))
            .with_context(|| format!("{}/{file} cannot be copied", packages.pins))?;
    }
    let path = |part: &str| folder.join(part).to_string_lossy().into_owned();
    let (folder_text, venv, pip) = (path(""), path("venv"), path("venv/bin/pip"));
    let npm = ["ci", "--prefix", &folder_text, "--no-audit", "--no-fund", "--loglevel=error"];
    // Its own waits, 10 s and more between attempts, are too long where there is no network.
    let pip_timeout =
        ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000", "--fetch-timeout=60000"];
    let quiet = ["--quiet", "--disable-pip-version-check"];
    let npm_is_there =
        ExternalProgram::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]);
    let pypi_is_there = ExternalProgram::new(&pip).args(["index", "versions", packages.on_pypi]).args(quiet);
    let steps = [
        (ExternalProgram::new("npm").args(npm).args(pip_timeout), Some(npm_is_there)),
        (ExternalProgram::new("python3").args(["-m", "venv", &venv]), None),
        (
            ExternalProgram::new(&pip).args(["install", "-r", &path("requirements.txt")]).args(quiet),
            Some(pypi_is_there),
        ),
    ];
    for (step, registry) in steps {
        let Err(error) = step.run() else { continue };
        // A registry that cannot be reached is nothing that the project could mend; a pin that is wrong is.
        if registry.is_some_and(ExternalProgram::succeeds) {
            return Err(error);
        }
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default();
        return Ok(Err(format!("the packages cannot be installed, see above: {why}")));
    }
    fs::write(&done, pinned).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(Ok(folder))
}

fn pins(folder: &str) -> Result<String> {
    let read = |file: &&str| {
        fs::read_to_string(repository::root().join(folder).join(file))
            .with_context(|| format!("{folder}/{file} cannot be read"))
    };
    Ok(FILES.iter().map(read).collect::<Result<Vec<_>>>()?.concat())
}
