//! Other programs: started, supervised, and reported on when they fail.

use crate::fault::fault;
use crate::repository;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A program that is about to be started, in the repository's root.
pub(crate) struct ExternalProgram {
    command: Command,
    command_line: String,
}

/// Output and exit status of a program.
pub(crate) struct CapturedOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

/// The end of a program that may print nothing for some time only.
pub(crate) enum EndedProgram {
    Exited(ExitStatus),
    /// The program was killed because it was silent.
    Silent,
}

impl ExternalProgram {
    pub(crate) fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(name.as_ref());
        command.current_dir(repository::root());
        Self { command, command_line: name.as_ref().to_string_lossy().into_owned() }
    }

    /// The cargo that started this program, so that the toolchain stays the same.
    pub(crate) fn cargo() -> Self {
        let mut program = Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        program.command_line = "cargo".to_owned();
        program.without_our_package()
    }

    /// Removes the variables that `cargo run` set for this program: build scripts that see them would run
    /// again (ring's), and all dependents would be rebuilt.
    pub(crate) fn without_our_package(mut self) -> Self {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                .iter()
                .any(|own| name.starts_with(own))
            {
                self.command.env_remove(&*name);
            }
        }
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        for word in words {
            self.command_line.push(' ');
            self.command_line.push_str(&word.as_ref().to_string_lossy());
            self.command.arg(word);
        }
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs in this folder instead of the repository's.
    pub(crate) fn inside(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Removes an environment variable.
    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// True if it starts and exits with 0: `probe` for `--version`.
    pub(crate) fn succeeds(mut self) -> bool {
        let status = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs it with this terminal; an error if it fails.
    pub(crate) fn run(mut self) -> Result<()> {
        let status = self.command.status().with_context(|| self.not_started())?;
        if status.success() { Ok(()) } else { Err(self.failed(status)) }
    }

    /// Runs the program and shows its output; if it fails, the error ends with the last lines, so that they
    /// are next to the outcome.
    pub(crate) fn run_with_tail(self) -> Result<()> {
        const TAIL_LINES: usize = 60;
        let mut tail = VecDeque::with_capacity(TAIL_LINES);
        let command_line = self.command_line.clone();
        let status = self.lines(|line| {
            println!("{line}");
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line.to_owned());
        })?;
        if status.success() {
            return Ok(());
        }
        let tail = Vec::from(tail).join("\n    ");
        Err(fault(
            format!("`{command_line}` failed ({status}); its last lines:\n    {tail}"),
            "see what it printed above",
        ))
    }

    /// Becomes that program, so that signals and the terminal are its own. Returns only if it cannot be started.
    pub(crate) fn exec(mut self) -> Result<()> {
        #[cfg(unix)]
        {
            let error = std::os::unix::process::CommandExt::exec(&mut self.command);
            Err(anyhow::Error::new(error).context(self.not_started()))
        }
        #[cfg(not(unix))]
        self.run()
    }

    /// Runs it and keeps what it prints.
    pub(crate) fn output(mut self) -> Result<CapturedOutput> {
        let output = self.command.stdin(Stdio::null()).output().with_context(|| self.not_started())?;
        Ok(CapturedOutput {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status,
        })
    }

    /// Runs the program and returns its standard output, trimmed; an error if it fails.
    pub(crate) fn text(mut self) -> Result<String> {
        self.command.stdin(Stdio::null()).stderr(Stdio::inherit()).stdout(Stdio::piped());
        let output = self.command.output().with_context(|| self.not_started())?;
        if !output.status.success() {
            return Err(self.failed(output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Hands out its standard output line by line while it runs; standard error goes to this terminal.
    pub(crate) fn lines(mut self, mut each: impl FnMut(&str)) -> Result<ExitStatus> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| self.not_started())?;
        if let Some(stdout) = child.stdout.take() {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            // Tests may print anything, so lines are bytes first.
            while reader.read_until(b'\n', &mut line)? > 0 {
                each(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
                line.clear();
            }
        }
        Ok(child.wait()?)
    }

    /// As [`lines`](Self::lines), but a program that is silent for this time is killed. Its last lines are
    /// then the states of its threads, where the system provides them.
    pub(crate) fn lines_within(
        mut self,
        silence_max: Duration,
        mut each: impl FnMut(&str),
    ) -> Result<EndedProgram> {
        /// Children that outlive it may hold its output open.
        const AFTER_EXIT: Duration = Duration::from_secs(2);
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        self.command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| self.not_started())?;
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout?);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).ok()? > 0 {
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                sender.send(text).ok()?;
                line.clear();
            }
            Some(())
        });
        let mut heard_at = Instant::now();
        let mut exited_at = None;
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    each(&line);
                    heard_at = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(EndedProgram::Exited(child.wait()?)),
                Err(RecvTimeoutError::Timeout) => {
                    if exited_at.is_none() && child.try_wait()?.is_some() {
                        exited_at = Some(Instant::now());
                    }
                    if exited_at.is_some_and(|exited_at: Instant| exited_at.elapsed() > AFTER_EXIT) {
                        return Ok(EndedProgram::Exited(child.wait()?));
                    }
                    if exited_at.is_none() && heard_at.elapsed() > silence_max {
                        thread_states(child.id()).iter().for_each(|line| each(line));
                        child.kill()?;
                        child.wait()?;
                        return Ok(EndedProgram::Silent);
                    }
                }
            }
        }
    }

    fn not_started(&self) -> String {
        format!("`{}` could not be started", self.command_line)
    }

    fn failed(&self, status: ExitStatus) -> anyhow::Error {
        fault(format!("`{}` failed ({status})", self.command_line), "see what it printed above")
    }
}

/// Name, state and system call of each thread of a process: whether it works, waits for a lock or for the network. Empty where
/// there is no `/proc`.
fn thread_states(process: u32) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let states = threads.flatten().map(|thread| {
        let read = |file: &str| {
            let text = std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            text.trim().to_owned()
        };
        // After the name, which may contain any character: ` S 1 …`.
        let state = read("stat").rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
        let call = read("syscall").split(' ').next().unwrap_or_default().to_owned();
        format!("thread {}: state {state}, in {} (system call {call})", read("comm"), read("wchan"))
    });
    states.collect()
}

/// An executable that cargo made.
#[derive(Clone)]
pub(crate) struct BuiltExecutable {
    /// Name of its target.
    name: String,
    /// `lib`, `bin`, `example`, `test` or `bench`.
    kind: String,
    pub(crate) is_harness: bool,
    pub(crate) path: PathBuf,
    /// Folder of its crate.
    pub(crate) package_folder: PathBuf,
}

impl BuiltExecutable {
    /// Crate and target: `server::it`; of unit tests `server::lib`.
    pub(crate) fn test_name(&self) -> String {
        let crate_name = self.package_folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{crate_name}::{}", if self.kind == "test" { &self.name } else { &self.kind })
    }

    #[cfg(test)]
    pub(crate) fn for_tests(path: PathBuf, package_folder: PathBuf) -> Self {
        Self { name: String::new(), kind: "test".to_owned(), is_harness: true, path, package_folder }
    }
}

/// Attempts at what a network has a part in, and the pauses between them.
const ATTEMPTS_MAX: usize = 3;
const PAUSES: [Duration; ATTEMPTS_MAX - 1] = [Duration::from_secs(5), Duration::from_secs(20)];

/// Makes up to three attempts at work that needs the network, such as an install.
///
/// # Errors
/// The error of the last attempt.
pub(crate) fn attempt<T>(what: &str, work: impl FnMut() -> Result<T>) -> Result<T> {
    attempt_after(&PAUSES, what, work)
}

fn attempt_after<T>(pauses: &[Duration], what: &str, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for (done, pause) in pauses.iter().enumerate() {
        match work() {
            Ok(made) => return Ok(made),
            Err(error) => {
                let (next, of) = (done + 2, pauses.len() + 1);
                println!("{what}: {error:#}\n{what}: attempt {next} of {of} in {} s", pause.as_secs());
                std::thread::sleep(*pause);
            }
        }
    }
    work()
}

/// Builds one executable with `cargo build` and returns its path.
pub(crate) fn build(words: &[&str]) -> Result<PathBuf> {
    executable(&[&["build"], words].concat())
}

/// Environment variable with the command that proofs measure instead of a new release build: one that is
/// built already, or another one to compare.
const RELEASE: &str = "THROUGHLINE_RELEASE";

/// The command as it is released.
pub(crate) fn release() -> Result<PathBuf> {
    match std::env::var_os(RELEASE) {
        Some(program) => Ok(program.into()),
        None => build(&["--release", "--package", "throughline-cli", "--bin", "throughline"]),
    }
}

/// The executable that this cargo command makes.
pub(crate) fn executable(words: &[&str]) -> Result<PathBuf> {
    let built = executables(ExternalProgram::cargo().args(words))?.pop();
    let built = built.ok_or_else(|| {
        fault(format!("`cargo {}` built no executable", words.join(" ")), "name one that exists")
    })?;
    Ok(built.path)
}

/// Builds and returns all executables of a cargo command, in order of completion.
pub(crate) fn executables(cargo: ExternalProgram) -> Result<Vec<BuiltExecutable>> {
    let mut all = Vec::new();
    let command_line = cargo.command_line.clone();
    let status = cargo.args(["--message-format=json-render-diagnostics"]).lines(|line| {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.extend(message["executable"].as_str().map(|path| BuiltExecutable {
            name: text(&message["target"]["name"]),
            kind: text(&message["target"]["kind"][0]),
            is_harness: message["profile"]["test"] == true,
            path: PathBuf::from(path),
            package_folder:
                PathBuf::from(text(&message["manifest_path"])).with_file_name("").components().collect(),
        }));
    })?;
    if status.success() {
        return Ok(all);
    }
    let remedy =
        "see what cargo printed above; a C compiler (cc) and make are needed besides the Rust toolchain";
    Err(fault(format!("`{command_line}` failed"), remedy))
}

/// A binary or example as the tests of the workspace have built it: building it alone would choose other features of
/// its dependencies, and so build these again.
pub(crate) fn built_by_tests(kind: &str, name: &str) -> Result<PathBuf> {
    let all = executables(ExternalProgram::cargo().args(["test", "--workspace", "--no-run"]))?;
    let found = all.into_iter().find(|built| built.kind == kind && built.name == name && !built.is_harness);
    let remedy = "it has moved: correct the name in xtask";
    Ok(found.ok_or_else(|| fault(format!("the workspace has no {kind} `{name}`"), remedy))?.path)
}

/// The command as its own tests build it, with additional cargo features: a change then rebuilds two crates,
/// and none of other projects.
pub(crate) fn throughline_built_by_tests(features: &[&str]) -> Result<PathBuf> {
    let mut words = vec!["test".to_owned(), "--workspace".to_owned(), "--no-run".to_owned()];
    words.extend(["--test".to_owned(), "crowd".to_owned()]);
    words.extend(features.iter().map(|feature| format!("--features=throughline-cli/{feature}")));
    let all = executables(ExternalProgram::cargo().args(words))?;
    let found = all.into_iter().find(|built| built.kind == "bin" && built.name == "throughline");
    let remedy = "its test `crowd` has moved: correct the name in xtask";
    Ok(found.ok_or_else(|| fault("no test needs the command", remedy))?.path)
}

/// The command, built in the dev profile.
pub(crate) fn throughline() -> Result<PathBuf> {
    build(&["--package", "throughline-cli", "--bin", "throughline"])
}

/// Cargo's target folder.
pub(crate) fn target() -> Result<PathBuf> {
    let text =
        ExternalProgram::cargo().args(["metadata", "--format-version=1", "--no-deps", "--offline"]).text()?;
    let metadata: Value = serde_json::from_str(&text)?;
    let folder = metadata["target_directory"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| fault("cargo does not say where it builds", "see `cargo metadata`"))
}

/// Installs Debian packages as root on a system with apt; otherwise the error gives the command.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let manual_install =
        format!("install {0} (Debian, Ubuntu: `sudo apt-get install {0}`)", packages.join(" "));
    let is_root = ExternalProgram::new("id").args(["-u"]).text().is_ok_and(|id| id == "0");
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        return Err(fault(format!("{} not found", packages.join(", ")), manual_install));
    }
    println!("installing {}", packages.join(" "));
    let apt = |words: &[&str]| {
        ExternalProgram::new("apt-get").args(["-qq"]).args(words).env("DEBIAN_FRONTEND", "noninteractive")
    };
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    let installed = attempt("apt-get", || {
        // Lists may be stale or absent; then the install reports what is missing.
        let _ = apt(&["update"]).run();
        apt(&install).run()
    });
    installed.map_err(|error| fault(error, manual_install))
}

#[cfg(test)]
mod tests {
    use super::attempt_after;
    use anyhow::{Result, bail};
    use std::time::Duration;

    /// An install that fails `failures` times.
    #[track_caller]
    fn check(failures: usize, expected: Result<usize, &str>) {
        let mut done = 0;
        let made = attempt_after(&[Duration::ZERO; 2], "npm ci", || {
            done += 1;
            if done <= failures {
                bail!("npm's registry answers 503 ({done})")
            }
            Ok(done)
        });
        assert_eq!(made.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn failed_install_is_tried_three_times() {
        check(0, Ok(1));
        check(2, Ok(3));
        check(3, Err("npm's registry answers 503 (3)"));
    }
}
