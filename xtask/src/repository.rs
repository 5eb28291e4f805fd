//! Root, commit and machine of this repository.

use crate::program::ExternalProgram;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // Set by cargo at run time: the program is not rebuilt when the sources have moved together with
    // `target`.
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = xtask.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    xtask.parent().unwrap_or(&xtask).to_owned()
}

/// The shared test vectors, if `THROUGHLINE_VECTORS` names them.
pub(crate) fn vectors() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("THROUGHLINE_VECTORS")?);
    folder.is_dir().then_some(folder)
}

/// Text of a file, by its path from the root.
pub(crate) fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("{path} cannot be read"))
}

/// Writes a file, by its path from the root.
pub(crate) fn write(path: &str, text: &str) -> Result<()> {
    fs::write(root().join(path), text).with_context(|| format!("{path} cannot be written"))
}

/// Files below a folder whose names end so, as paths from the root with `/`, sorted.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.to_string_lossy().ends_with(ending)
                && let Ok(path) = path.strip_prefix(&root)
            {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// Short hash of the commit, with `+` if the work tree differs from it.
pub(crate) fn commit() -> String {
    let git = |words: &[&str]| ExternalProgram::new("git").args(words).output();
    let Ok(hash) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "unknown".to_owned() };
    if !hash.status.success() {
        return "unknown".to_owned();
    }
    // The reports that proofs write are no change of what was proved.
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"]);
    let mark = if changed.is_ok_and(|changed| changed.stdout.trim().is_empty()) { "" } else { "+" };
    format!("{}{mark}", hash.stdout.trim())
}

/// Today, in UTC.
pub(crate) fn date() -> String {
    date_of(days())
}

/// Days from 1970-01-01 to today, in UTC.
pub(crate) fn days() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() / 86_400)
}

/// The date that many days after 1970-01-01.
pub(crate) fn date_of(days: u64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Days since 1970-01-01 as year, month and day of the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years that begin in March put the leap day last (Hinnant, "chrono-compatible low-level date algorithms").
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// Cores, processor, memory and compiler, in a line.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let field = |path: &str, key: &str| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let mut parts = vec![format!("{cores} cores")];
    parts.extend(field("/proc/cpuinfo", "model name"));
    let memory =
        field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    parts.extend(memory.map(|kilobytes| format!("{} GiB", (kilobytes + (1 << 19)) >> 20)));
    parts.push(std::env::consts::OS.to_owned());
    parts.extend(ExternalProgram::new("rustc").args(["--version"]).text());
    parts.join(", ")
}

/// Load average of the last minute, where the system reports it.
pub(crate) fn load() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(str::to_owned)
}

/// Share of the machine that was free for a measurement.
pub(crate) struct MachineLoad {
    load: String,
    ticks: Option<ProcessorTicks>,
}

impl MachineLoad {
    pub(crate) fn now() -> Self {
        Self { load: load().unwrap_or_default(), ticks: ProcessorTicks::now() }
    }

    /// The sentence for a report that ends now.
    pub(crate) fn sentence_until_now(&self) -> String {
        let now = Self::now();
        let mut sentence = format!("load average {} before and {} after", self.load, now.load);
        if let Some(percent) =
            self.ticks.zip(now.ticks).and_then(|(then, now)| now.since(then).stolen_percent())
        {
            sentence +=
                &format!(", {percent:.1} % of the processors' time given to other machines on the same host");
        }
        sentence
    }
}

/// Time of all processors, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTicks {
    /// Given to other machines on the same host.
    pub(crate) stolen: u64,
    pub(crate) idle: u64,
    pub(crate) all: u64,
}

impl ProcessorTicks {
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line of `/proc/stat` (proc(5)).
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = fields.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // The time of guests is in the first two already.
        let [_, _, _, idle, iowait, _, _, stolen, ..] = ticks[..] else { return None };
        Some(Self { stolen, idle: idle + iowait, all: ticks.iter().take(8).sum() })
    }

    pub(crate) fn since(self, then: Self) -> Self {
        Self {
            stolen: self.stolen.saturating_sub(then.stolen),
            idle: self.idle.saturating_sub(then.idle),
            all: self.all.saturating_sub(then.all),
        }
    }

    pub(crate) fn stolen_percent(self) -> Option<f64> {
        self.percent(self.stolen)
    }

    pub(crate) fn busy_percent(self) -> Option<f64> {
        self.percent(self.all.saturating_sub(self.idle))
    }

    fn percent(self, ticks: u64) -> Option<f64> {
        (self.all > 0).then(|| ticks as f64 / self.all as f64 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ProcessorTicks, civil};

    #[test]
    fn stolen_processor_time_is_parsed() {
        for (stat, read) in [
            (
                "cpu  100 20 30 800 5 0 15 30 7 3\ncpu0 1 2\n",
                Some(ProcessorTicks { stolen: 30, idle: 805, all: 1_000 }),
            ),
            ("cpu  100 20\n", None),
            ("intr 5\n", None),
            ("", None),
        ] {
            assert_eq!(ProcessorTicks::parse(stat), read, "{stat:?}");
        }
    }

    #[test]
    fn days_become_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_454, (2026, 1, 1)),
            (20_778, (2026, 11, 21)),
        ] {
            assert_eq!(civil(days), date, "day {days}");
        }
    }
}
