//! `cargo xtask fuzz`: libFuzzer on stable Rust.
//!
//! libFuzzer only needs the compiler's coverage pass, so there is no nightly and no cargo-fuzz. The crate
//! `fuzz/` is a separate workspace, since its flags differ.

mod seeds;

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "fuzz",
    about: "Fuzz the framer, the arguments reader, call assembly and every dialect",
    help: "\
Usage: cargo xtask fuzz [--target T,…] [--runs N]

  --target T   one or several of the programs in fuzz/src/bin (default: all, two at a time)
  --runs N     executions of each (default 10000000)

Needs a C++ compiler for libFuzzer itself. Begins with the fixtures and, if THROUGHLINE_VECTORS names it, the shared
corpus; what it learns stays in fuzz/corpus. Inputs that crash, hang or need too much memory go to
crates/wire/tests/crashes/<target>/, where the test `fuzz_regressions` runs them from then on.",
    run,
};

/// Longer inputs find nothing more: the limits of the targets are about this.
const INPUT_BYTES_MAX: u32 = 1024;
/// Timeout of one input, in seconds.
const TIMEOUT_SECONDS: u32 = 10;
const MEMORY_MIB_MAX: u32 = 2048;
/// Number of targets that run in parallel.
const PARALLEL_TARGETS: usize = 2;

/// Coverage as libFuzzer wants it. `--target` goes with it, so that build scripts stay as they are.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing";

pub(crate) struct FuzzResult {
    pub(crate) target: String,
    pub(crate) executions: u64,
    pub(crate) executions_per_second: u64,
    pub(crate) memory_mib: u64,
    /// Names of the inputs that broke it.
    pub(crate) crashes: Vec<String>,
}

impl FuzzResult {
    fn describe(&self) -> String {
        let Self { target, executions, executions_per_second, memory_mib, crashes } = self;
        format!(
            "{target}: {executions} executions, {executions_per_second}/s, {memory_mib} MiB, {} crashes",
            crashes.len()
        )
    }
}

fn run(words: Vec<String>) -> Result<()> {
    let (mut targets, mut runs) = (Vec::new(), 10_000_000);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        match word.as_str() {
            "--target" => targets.extend(value.split(',').map(str::to_owned)),
            "--runs" => {
                runs = value.replace('_', "").parse().with_context(|| format!("`{value}` is no number"))?
            }
            _ => {
                return Err(fault(format!("`{word}` is no flag of `fuzz`"), "see `cargo xtask fuzz --help`"));
            }
        }
    }
    let fuzzed = fuzz(&targets, runs)?;
    for one in &fuzzed {
        println!("{}", one.describe());
    }
    match fuzzed.iter().map(|one| one.crashes.len()).sum() {
        0 => Ok(()),
        crashes => bail!(
            "{crashes} inputs broke a target\n  remedy: they are in crates/wire/tests/crashes; \
             `cargo test -p throughline-wire --test it fuzz_regressions` shows each"
        ),
    }
}

/// Fuzzes these targets, all if none is named.
pub(crate) fn fuzz(wanted: &[String], runs: u64) -> Result<Vec<FuzzResult>> {
    let all = targets();
    if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
        return Err(fault(format!("`{name}` is no fuzz target"), format!("one of: {}", all.join(", "))));
    }
    let wanted = if wanted.is_empty() { all } else { wanted.to_vec() };
    let programs = build()?;
    let queue = Mutex::new(wanted.into_iter().rev().collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_TARGETS {
            scope.spawn(|| {
                while let Some(target) = next_target(&queue) {
                    println!("  {target}: {runs} executions");
                    let fuzzed = fuzz_target(&programs, &target, runs);
                    if let Ok(fuzzed) = &fuzzed {
                        println!("  {}", fuzzed.describe());
                    }
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(fuzzed);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut fuzzed = done.into_iter().collect::<Result<Vec<_>>>()?;
    fuzzed.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(fuzzed)
}

fn next_target(queue: &Mutex<Vec<String>>) -> Option<String> {
    queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
}

fn targets() -> Vec<String> {
    let files = repository::files("fuzz/src/bin", ".rs");
    files.iter().filter_map(|path| Path::new(path).file_stem()?.to_str().map(str::to_owned)).collect()
}

/// Builds all targets; returns their folder.
fn build() -> Result<PathBuf> {
    if !ExternalProgram::new("c++").args(["--version"]).succeeds() {
        program::install(&["g++"])?;
    }
    let version = ExternalProgram::new("rustc").args(["-vV"]).text()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let folder = repository::root().join("fuzz/target");
    ExternalProgram::cargo()
        .args([
            "build",
            "--release",
            "--bins",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target",
            host,
            "--target-dir",
        ])
        .args([&folder])
        .env("RUSTFLAGS", FLAGS)
        // It would come before RUSTFLAGS.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .run()?;
    Ok(folder.join(host).join("release"))
}

fn fuzz_target(programs: &Path, target: &str, runs: u64) -> Result<FuzzResult> {
    let root = repository::root();
    let [learned, initial, artifacts] =
        ["corpus", "seeds", "artifacts"].map(|kind| root.join("fuzz").join(kind).join(target));
    for folder in [&learned, &initial, &artifacts] {
        fs::create_dir_all(folder)?;
    }
    seeds::write(target, &initial)?;
    let started = Instant::now();
    let output = ExternalProgram::new(programs.join(target))
        .args([
            format!("-runs={runs}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
            format!("-timeout={TIMEOUT_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".to_owned(),
        ])
        .args([learned, initial])
        .output()?;
    let crashes = save_crashes(target, &artifacts)?;
    if !output.status.success() {
        let tail: Vec<_> = output.stderr.lines().rev().take(40).collect();
        eprintln!("{target}:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        if crashes.is_empty() {
            bail!(
                "the fuzz target `{target}` ended with {}\n  remedy: see what it printed above",
                output.status
            );
        }
    }
    let executions = statistic(&output.stderr, "number_of_executed_units").unwrap_or(0);
    Ok(FuzzResult {
        target: target.to_owned(),
        executions,
        // libFuzzer counts whole seconds only.
        executions_per_second: (executions as f64 / started.elapsed().as_secs_f64()) as u64,
        memory_mib: statistic(&output.stderr, "peak_rss_mb").unwrap_or(0),
        crashes,
    })
}

/// `stat::name: value` of libFuzzer's last lines.
fn statistic(report: &str, name: &str) -> Option<u64> {
    report.lines().find_map(|line| {
        let (key, value) = line.strip_prefix("stat::")?.split_once(':')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

/// Moves what broke a target to the fixtures of the normal tests.
fn save_crashes(target: &str, artifacts: &Path) -> Result<Vec<String>> {
    let mut saved = Vec::new();
    for entry in fs::read_dir(artifacts)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !["crash-", "timeout-", "oom-", "leak-"].iter().any(|kind| name.starts_with(kind)) {
            continue;
        }
        let folder = repository::root().join("crates/wire/tests/crashes").join(target);
        fs::create_dir_all(&folder)?;
        fs::copy(entry.path(), folder.join(&name))?;
        fs::remove_file(entry.path())?;
        saved.push(name);
    }
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libfuzzer_statistics_are_parsed() {
        let report = "Done 10 runs\nstat::number_of_executed_units: 10\nstat::peak_rss_mb:     119000\n";
        assert_eq!(statistic(report, "number_of_executed_units"), Some(10));
        assert_eq!(statistic(report, "peak_rss_mb"), Some(119_000));
        assert_eq!(statistic(report, "new_units_added"), None);
    }

    #[test]
    fn every_parser_has_a_fuzz_target() {
        let targets = targets();
        for name in [
            "sse",
            "arguments",
            "assembly",
            "leaked",
            "text_protocol",
            "openai_chat",
            "openai_responses",
            "anthropic",
            "gemini",
            "ollama",
            "cohere",
            "bedrock_converse",
            "bedrock_anthropic",
        ] {
            assert!(targets.iter().any(|target| target == name), "{name}");
        }
    }
}
