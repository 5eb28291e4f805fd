//! `throughline serve` as a process, for suites that talk to it from outside, and the Python packages that these suites are.

use crate::program::{self, ExternalProgram};
use crate::{fault::fault, repository};
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server, which ends with this value.
pub(crate) struct ServeProcess {
    child: Child,
    /// `127.0.0.1:12345`
    pub(crate) address: String,
    /// The key of the first start.
    pub(crate) key: String,
    _stdout: BufReader<ChildStdout>,
}

impl ServeProcess {
    /// Starts it with the demo model.
    pub(crate) fn start(throughline: &Path, folder: &Path, configuration: &str) -> Result<Self> {
        Self::start_with(throughline, folder, configuration, &["--model", "demo", "--demo-tools"], &[])
    }

    /// Starts the server with an empty store in this folder, which is recreated, and waits until it is ready.
    pub(crate) fn start_with(
        throughline: &Path,
        folder: &Path,
        configuration: &str,
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let file = folder.join("throughline.toml");
        fs::write(&file, configuration).with_context(|| format!("{} cannot be written", file.display()))?;
        let log = folder.join("log");
        let log = fs::File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let mut command = Command::new(throughline);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("THROUGHLINE_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(folder)
            .env("LC_ALL", "C.UTF-8")
            .env("THROUGHLINE_DATA", folder.join("data"))
            .envs(variables.iter().copied())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().context("`throughline serve` could not be started")?;
        let stdout = child.stdout.take().context("a pipe of its own")?;
        let mut serving =
            Self { child, address: String::new(), key: String::new(), _stdout: BufReader::new(stdout) };
        serving.read_greeting(folder)?;
        Ok(serving)
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads address and key from the server's greeting.
    fn read_greeting(&mut self, folder: &Path) -> Result<()> {
        let mut line = String::new();
        // The address of the documentation is the last of the greeting.
        while !line.trim_end().ends_with("/docs") {
            line.clear();
            if self._stdout.read_line(&mut line)? == 0 {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(fault(format!("`throughline serve` ended:\n{log}"), "see what it says"));
            }
            let word =
                |text: &str, end: &[char]| text.split(end).next().unwrap_or_default().trim().to_owned();
            if let Some((_, rest)) = line.split_once("http://") {
                self.address = word(rest, &['/', '#']);
            }
            if let Some(key) = line.split_whitespace().find(|word| word.starts_with("tl_")) {
                // It occurs in commands, too, in quotes.
                self.key = key.trim_end_matches('"').to_owned();
            }
        }
        Ok(())
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // The process may have exited already, which the suite has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The packages of a pinned list, in a folder under cargo's target folder.
///
/// # Errors
/// The outer error: a pin is wrong. The inner one: the reason why they are not available on this machine.
pub(crate) fn packages(
    pins: &str,
    folder_name: &str,
    probe: &str,
    pip: impl Fn() -> ExternalProgram,
) -> Result<std::result::Result<PathBuf, String>> {
    let folder = program::target()?.join(folder_name);
    let (done, pinned) = (folder.join("installed"), repository::read(pins)?);
    if fs::read_to_string(&done).is_ok_and(|installed| installed == pinned) {
        return Ok(Ok(folder));
    }
    println!("installing {pins} into {}", folder.display());
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let (list, library) = (repository::root().join(pins), folder.join("lib"));
    // The list is complete, so what it names is all that is installed.
    let words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"];
    let install =
        pip().args(words).args(["--target".as_ref(), library.as_os_str(), "-r".as_ref(), list.as_os_str()]);
    if let Err(error) = install.run() {
        // A registry that cannot be reached is nothing that the project could mend; a pin that is wrong is.
        let download_args = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"];
        let is_there =
            pip().args(download_args).args([folder.join("probe").as_os_str(), probe.as_ref()]).succeeds();
        if is_there {
            return Err(error);
        }
        return Ok(Err("the packages cannot be installed: PyPI is not there".to_owned()));
    }
    fs::write(&done, pinned).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(Ok(folder))
}
