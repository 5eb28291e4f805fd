//! `cargo xtask web`: the page, from its sources to the files that the server carries in itself.

mod budget;

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "web",
    about: "Install, check, test and build the page",
    help: "\
Usage: cargo xtask web [build | pictures [SCENE …]]

Needs Node.js 20.19 or later with npm. Installs what `web/package-lock.json` says, checks types, style and tests, builds the
page into `web/dist`, and measures its scripts against the budget. The next build of the server carries it.

  cargo xtask web         all of it
  cargo xtask web build   install and build alone
  cargo xtask web pictures   draw every view and state, in both languages and themes, into docs/pictures; needs Chromium.
                             Look at them before they are committed. SCENE: names of web/e2e/scenes/scenes.ts",
    run,
};

/// Output folder of the build.
const DIST: &str = "web/dist";
/// Names Chromium without windows to the tests of the page.
const HEADLESS_SHELL: &str = "CHROMIUM_HEADLESS_SHELL";
/// Inputs of the build.
const SOURCES: [&str; 11] = [
    "package-lock.json",
    "app/index.html",
    "app/vite.config.ts",
    "app/src",
    "app/public",
    "app/build",
    "client/src",
    "client/react",
    "markdown/src",
    "json/src",
    "avatar/src",
];

fn run(words: Vec<String>) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let figure = check()?.map_err(|why| fault(why, "https://nodejs.org"))?;
            println!("{figure}");
            Ok(())
        }
        ["build"] => build()?.map_err(|why| fault(why, "https://nodejs.org")),
        ["pictures", ref scenes @ ..] => pictures(scenes),
        _ => Err(fault("these words are not understood", "see `cargo xtask web --help`")),
    }
}

/// Runs all checks of the page that need no browser; the inner error is the reason why they cannot run here.
pub(crate) fn check() -> Result<Result<String, String>> {
    if let Err(why) = installed()? {
        return Ok(Err(why));
    }
    npm(&["run", "check"])?;
    npm(&["test"])?;
    npm(&["run", "build"])?;
    budget::check(&folder().join("dist")).map(Ok)
}

/// The page as it is served; inside: why it cannot be built here.
pub(crate) fn build() -> Result<Result<(), String>> {
    if let Err(why) = installed()? {
        return Ok(Err(why));
    }
    npm(&["run", "build"]).map(Ok)
}

/// The page as its sources are now. What `check` has built is not built again: the server would be compiled once more.
pub(crate) fn built() -> Result<Result<(), String>> {
    if is_fresh() { Ok(installed()?) } else { build() }
}

/// True if the page is built and none of its sources is newer.
pub(crate) fn is_fresh() -> bool {
    let built =
        fs::metadata(repository::root().join(DIST).join("index.html")).and_then(|file| file.modified());
    let Ok(built) = built else { return false };
    SOURCES.iter().all(|source| newest(&folder().join(source)).is_none_or(|changed| changed <= built))
}

/// The tests of the page in a browser, against this program; an error is why they cannot be run here.
pub(crate) fn in_browser(throughline: &Path) -> Result<ExternalProgram, String> {
    let chromium = chromium().ok_or("Chromium is not installed (CHROMIUM=<path> names one)")?;
    let run = npm_here().args(["run", "--silent", "e2e"]);
    let run = run.env("THROUGHLINE_BIN", throughline).env("CHROMIUM", chromium);
    Ok(match headless_shell() {
        Some(shell) => run.env(HEADLESS_SHELL, shell),
        None => run,
    })
}

/// Draws the page as the server shows it.
fn pictures(scenes: &[&str]) -> Result<()> {
    build()?.map_err(|why| fault(why, "https://nodejs.org"))?;
    let folder = repository::root().join("docs/pictures");
    let folder = folder.to_string_lossy();
    let words = [&[&*folder], scenes].concat();
    let drawn = script("pictures", &words, &program::throughline()?);
    drawn.map_err(|why| fault(why, "install Chromium and Node.js 20.19 or later"))?.run()
}

/// A script of `web/e2e` against this program; an error is why that cannot be done here.
pub(crate) fn script(name: &str, words: &[&str], throughline: &Path) -> Result<ExternalProgram, String> {
    match installed() {
        Ok(Ok(())) => {}
        Ok(Err(why)) => return Err(why),
        Err(error) => return Err(error.to_string()),
    }
    let chromium = chromium().ok_or("Chromium is not installed (CHROMIUM=<path> names one)")?;
    let run = npm_here().args(["run", "--silent", name, "--workspace", "e2e", "--"]).args(words);
    Ok(run.env("THROUGHLINE_BIN", throughline).env("CHROMIUM", chromium))
}

/// The TypeScript client as it is published, packed into this folder; inside: why it cannot be packed here.
pub(crate) fn pack_client(into: &Path) -> Result<Result<PathBuf, String>> {
    if let Err(why) = installed()? {
        return Ok(Err(why));
    }
    let staged = program::target()?.join("client-package");
    let words = ["run", "--silent", "pack", "--workspace", "client", "--"];
    npm_here().args(words).args([&staged]).run()?;
    fs::create_dir_all(into).with_context(|| format!("{} cannot be made", into.display()))?;
    let pack = npm_here().args(["pack", "--silent", "--pack-destination"]).args([into, &staged]);
    let name = pack.text()?;
    Ok(Ok(into.join(name.lines().last().unwrap_or_default())))
}

/// Runs a script of `web/generate`, which makes types of the API's description; inside: why it cannot run here.
pub(crate) fn generate(script: &str) -> Result<Result<(), String>> {
    if let Err(why) = installed()? {
        return Ok(Err(why));
    }
    npm(&["run", "--silent", script, "--workspace", "generate"]).map(Ok)
}

pub(crate) fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let usual =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    named.into_iter().chain(usual).find(|path| path.exists())
}

/// Chromium without windows, which needs less of the processor: where it is installed, and no other browser is named.
pub(crate) fn headless_shell() -> Option<PathBuf> {
    let usual =
        || std::env::var_os("CHROMIUM").is_none().then(|| PathBuf::from("/usr/bin/chromium-headless-shell"));
    std::env::var_os(HEADLESS_SHELL).map(PathBuf::from).or_else(usual).filter(|path| path.exists())
}

/// The packages of the lockfile; inside: the reason why they are not available.
pub(crate) fn installed() -> Result<Result<(), String>> {
    if !ExternalProgram::new("npm").args(["--version"]).succeeds() {
        return Ok(Err("Node.js with npm is not installed".to_owned()));
    }
    let lock = repository::read("web/package-lock.json")?;
    let done = folder().join("node_modules/.installed-from");
    if fs::read_to_string(&done).is_ok_and(|from| from == lock) {
        return Ok(Ok(()));
    }
    eprintln!("Installing what the page is built with. Once; it takes about half a minute.");
    let words = ["ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
    if let Err(error) = program::attempt("npm", || npm(&words)) {
        // A registry that cannot be reached is nothing that the project could mend; a lockfile that is wrong is.
        let ping = ExternalProgram::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]);
        if ping.succeeds() {
            return Err(error);
        }
        return Ok(Err("npm's registry cannot be reached".to_owned()));
    }
    fs::write(&done, lock).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(Ok(()))
}

fn npm(words: &[&str]) -> Result<()> {
    npm_here().args(words).run_with_tail()
}

fn npm_here() -> ExternalProgram {
    ExternalProgram::new("npm").inside(&folder())
}

fn folder() -> PathBuf {
    repository::root().join("web")
}

/// Time of the latest change of a file, or of any below a folder.
fn newest(path: &Path) -> Option<SystemTime> {
    if path.is_dir() {
        return fs::read_dir(path).ok()?.flatten().filter_map(|entry| newest(&entry.path())).max();
    }
    fs::metadata(path).and_then(|file| file.modified()).ok()
}
