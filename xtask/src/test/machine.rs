//! The machine of a run: the versions of what it has, and whether it had time for the run.

use crate::program::ExternalProgram;
use crate::repository::{self, ProcessorTicks};
use crate::web;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Minimum delay of a short sleep that counts as a lack of processor time.
const HOLE_MIN: Duration = Duration::from_millis(500);

/// Versions of the programs that checks run, those that are there.
pub(crate) fn versions() -> Vec<String> {
    let server = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let initdb = server.map(|entry| entry.path().join("bin/initdb")).max();
    let programs: [Option<PathBuf>; 7] = [
        Some("rustc".into()),
        Some("node".into()),
        Some("npm".into()),
        Some("python3".into()),
        web::chromium(),
        web::headless_shell(),
        initdb,
    ];
    programs.into_iter().flatten().filter_map(|program| version(&program)).collect()
}

fn version(program: &Path) -> Option<String> {
    let output = ExternalProgram::new(program).args(["--version"]).output().ok()?;
    let line = output.stdout.lines().next().map(str::trim).filter(|line| !line.is_empty())?;
    let name = program.file_name()?.to_string_lossy();
    // Node and npm print a number alone.
    Some(if line.chars().any(|c| c == ' ') { line.to_owned() } else { format!("{name} {line}") })
}

/// Demand for the processors during a run, and times without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MachineStrain {
    /// The highest load average over a minute; on Linux.
    load_max: Option<f64>,
    ticks: ProcessorTicks,
    holes: usize,
    longest_hole: Duration,
}

impl MachineStrain {
    pub(crate) fn add(&mut self, other: &Self) {
        self.load_max = self.load_max.into_iter().chain(other.load_max).reduce(f64::max);
        self.ticks.stolen += other.ticks.stolen;
        self.ticks.idle += other.ticks.idle;
        self.ticks.all += other.ticks.all;
        self.holes += other.holes;
        self.longest_hole = self.longest_hole.max(other.longest_hole);
    }

    fn slept(&mut self, slept: Duration) {
        let late = slept.saturating_sub(LOOK_EVERY);
        if late > HOLE_MIN {
            self.holes += 1;
            self.longest_hole = self.longest_hole.max(late);
        }
    }
}

impl fmt::Display for MachineStrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(load) = self.load_max {
            write!(f, "load up to {load:.1}, ")?;
        }
        if let Some((busy, stolen)) = self.ticks.busy_percent().zip(self.ticks.stolen_percent()) {
            write!(f, "busy {busy:.0} %, steal {stolen:.1} %, ")?;
        }
        match self.holes {
            0 => write!(f, "no hole over {} ms", HOLE_MIN.as_millis()),
            holes => write!(
                f,
                "holes over {} ms: {holes}, the longest {} ms",
                HOLE_MIN.as_millis(),
                self.longest_hole.as_millis()
            ),
        }
    }
}

/// Watches the machine until the program ends.
pub(crate) struct MachineWatch {
    strain: Arc<Mutex<MachineStrain>>,
    ticks: ProcessorTicks,
}

impl MachineWatch {
    pub(crate) fn start() -> Self {
        let strain = Arc::new(Mutex::new(MachineStrain::default()));
        let watched = Arc::downgrade(&strain);
        std::thread::spawn(move || {
            while let Some(strain) = watched.upgrade() {
                let asleep_at = Instant::now();
                drop(strain.lock().map(|mut strain| {
                    strain.add(&MachineStrain {
                        load_max: repository::load().and_then(|load| load.parse().ok()),
                        ..MachineStrain::default()
                    });
                }));
                std::thread::sleep(LOOK_EVERY);
                strain.lock().unwrap_or_else(PoisonError::into_inner).slept(asleep_at.elapsed());
            }
        });
        Self { strain, ticks: ProcessorTicks::now().unwrap_or_default() }
    }

    /// The strain since the last call.
    pub(crate) fn lap(&mut self) -> MachineStrain {
        let mut strain = std::mem::take(&mut *self.strain.lock().unwrap_or_else(PoisonError::into_inner));
        let now = ProcessorTicks::now().unwrap_or_default();
        strain.ticks = now.since(self.ticks);
        self.ticks = now;
        strain
    }
}

#[cfg(test)]
mod tests {
    use super::{MachineStrain, MachineWatch, ProcessorTicks};
    use std::time::Duration;

    #[track_caller]
    fn check(slept_ms: &[u64], ticks: ProcessorTicks, load_max: Option<f64>, expected: &str) {
        let mut strain = MachineStrain { load_max, ticks, ..MachineStrain::default() };
        slept_ms.iter().for_each(|&slept| strain.slept(Duration::from_millis(slept)));
        assert_eq!(strain.to_string(), expected);
    }

    #[test]
    fn strain_names_load_steal_and_holes() {
        check(&[100, 600], ProcessorTicks::default(), None, "no hole over 500 ms");
        check(
            &[101, 912, 2_100, 130],
            ProcessorTicks { stolen: 25, idle: 500, all: 2_000 },
            Some(3.12),
            "load up to 3.1, busy 75 %, steal 1.2 %, holes over 500 ms: 2, the longest 2000 ms",
        );
    }

    #[test]
    fn strain_of_two_checks_adds_up() {
        let strain = |load, holes, ms| MachineStrain {
            load_max: Some(load),
            ticks: ProcessorTicks { stolen: 1, idle: 10, all: 100 },
            holes,
            longest_hole: Duration::from_millis(ms),
        };
        let mut total = strain(2.5, 1, 900);
        total.add(&strain(1.5, 2, 700));
        let ticks = ProcessorTicks { stolen: 2, idle: 20, all: 200 };
        let expected = MachineStrain { ticks, ..strain(2.5, 3, 900) };
        assert_eq!(total, expected);
    }

    #[test]
    fn lap_begins_where_the_last_one_ended() {
        let mut watch = MachineWatch::start();
        let begin = watch.ticks;
        let laps = [watch.lap(), watch.lap()];
        let ticks: u64 = laps.iter().map(|lap| lap.ticks.all).sum();
        assert_eq!(ticks, watch.ticks.since(begin).all);
    }
}
