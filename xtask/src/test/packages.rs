//! Tests against third-party programs, from their public packages: installed once, pinned, and run by our
//! tests.

use super::{CheckOutcome, programs::TestPrograms};
use crate::program::{self, ExternalProgram};
use crate::{repository, web};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Packages that a module of tests needs.
pub(crate) struct TestPackages {
    what: &'static str,
    /// Folder of the repository that pins their versions.
    pins: &'static str,
    /// Folder of the installed packages, under cargo's target folder.
    folder_name: &'static str,
    /// Names that folder to the tests. Empty: another check runs them.
    pub(crate) variable: &'static str,
    /// The modules of tests.
    tests: &'static [&'static str],
    /// A package that is requested to check that PyPI is reachable.
    on_pypi: &'static str,
}

/// Real MCP servers and the protocol's conformance suite.
pub(crate) const MCP: TestPackages = TestPackages {
    what: "MCP servers",
    pins: "crates/tools/tests/mcp",
    folder_name: "mcp",
    variable: "THROUGHLINE_MCP_SERVERS",
    tests: &["tools::mcp_servers"],
    on_pypi: "mcp-server-time",
};

/// OpenAI's and other clients of the server, and what checks and runs our own.
pub(crate) const CLIENTS: TestPackages = TestPackages {
    what: "clients",
    pins: "clients",
    folder_name: "clients",
    variable: "THROUGHLINE_CLIENTS",
    tests: &["server::clients", "cli::typescript", "cli::client_package"],
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
            // Empty: the reason was printed.
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

/// Node 24, installed once; inside: the reason why it is not available.
pub(super) fn node_24() -> Result<Result<PathBuf, String>> {
    let folder = program::target()?.join("node24");
    let node = folder.join("node_modules/.bin/node");
    if ExternalProgram::new(&node).args(["--version"]).succeeds() {
        return Ok(Ok(node));
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let words = [
        "install",
        "--prefer-offline",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--fetch-timeout=60000",
        "--prefix",
    ];
    let install =
        || ExternalProgram::new("npm").args(words).args([folder.as_os_str(), NODE_24.as_ref()]).run();
    Ok(program::attempt("npm", install).map(|()| node).map_err(|_| format!("npm cannot install {NODE_24}")))
}

pub(crate) fn check(packages: &TestPackages) -> Result<CheckOutcome> {
    check_with(packages, &[])
}

fn check_with(packages: &TestPackages, variables: &[(&str, PathBuf)]) -> Result<CheckOutcome> {
    let folder = match installed(packages)? {
        Ok(folder) => folder,
        Err(why) => return Ok(CheckOutcome::Skipped(why)),
    };
    let named = variables.iter().map(|(name, path)| (*name, path.clone().into()));
    let variables = [(packages.variable, folder.into())].into_iter().chain(named).collect();
    TestPrograms { modules: packages.tests, variables }.run().map(CheckOutcome::Tests)
}

/// The folder of the packages, or the reason why they are not available.
pub(crate) fn installed(packages: &TestPackages) -> Result<Result<PathBuf, String>> {
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
    let npm =
        ["ci", "--prefix", &folder_text, "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
    // Its own delays, 10 s and more between attempts, are too long without a network.
    let npm_timeouts =
        ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000", "--fetch-timeout=60000"];
    let quiet = ["--quiet", "--disable-pip-version-check"];
    let npm_is_there: &dyn Fn() -> bool = &|| {
        ExternalProgram::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]).succeeds()
    };
    let pypi_is_there: &dyn Fn() -> bool =
        &|| ExternalProgram::new(&pip).args(["index", "versions", packages.on_pypi]).args(quiet).succeeds();
    let list = path("requirements.txt");
    let install_npm = || ExternalProgram::new("npm").args(npm).args(npm_timeouts).run();
    let install_venv = || ExternalProgram::new("python3").args(["-m", "venv", &venv]).run();
    let install_pip = || ExternalProgram::new(&pip).args(["install", "-r", &list]).args(quiet).run();
    let installed = program::attempt("npm", install_npm)
        .map_err(|error| (error, Some(npm_is_there)))
        .and_then(|()| install_venv().map_err(|error| (error, None)))
        .and_then(|()| program::attempt("pip", install_pip).map_err(|error| (error, Some(pypi_is_there))));
    if let Err((error, registry_is_there)) = installed {
        // A registry that cannot be reached is nothing that the project could mend; a pin that is wrong is.
        if registry_is_there.is_some_and(|is_there| is_there()) {
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
