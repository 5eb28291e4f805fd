//! Resources of a process and its sockets, and latencies.

use std::sync::LazyLock;
use std::time::Instant;

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Page size, the unit in which the kernel counts memory of sockets.
static PAGE_BYTES: LazyLock<u64> = LazyLock::new(|| {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    number_behind(&maps, "KernelPageSize:") * 1_024
});

/// Microseconds since the first call.
pub fn micros() -> u64 {
    u64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident, of the process.
    pub process: u64,
    /// TCP memory of the kernel: both ends of every connection are on this machine.
    pub sockets: u64,
}

impl Memory {
    pub fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let kib = number_behind(&status, "VmRSS:");
        let sockets = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
        let tcp = sockets.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
        let pages = number_behind(tcp, "mem ");
        Self { process: kib * 1_024, sockets: pages * *PAGE_BYTES }
    }

    /// The maximum of both, for each figure.
    pub fn or_more(self, other: Self) -> Self {
        Self { process: self.process.max(other.process), sockets: self.sockets.max(other.sockets) }
    }
}

fn number_behind(text: &str, name: &str) -> u64 {
    let rest = text.split_once(name).map(|(_, rest)| rest.trim_start()).unwrap_or_default();
    rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Percentiles of a distribution.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerCent {
    pub p50: f64,
    pub p99: f64,
}

pub fn per_cent(values: &mut [f64]) -> PerCent {
    values.sort_by(f64::total_cmp);
    let at =
        |part: f64| values.get(((values.len() as f64 * part) as usize).min(values.len().saturating_sub(1)));
    PerCent { p50: at(0.5).copied().unwrap_or(0.0), p99: at(0.99).copied().unwrap_or(0.0) }
}

/// Rounds to this many decimals.
pub fn round_to(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}
