//! Finds processes in `/proc` and ends them.
//!
//! On systems other than Linux it finds none: there only the process group of a child is known.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// Variable that marks a child and all its descendants that inherit the environment.
pub(super) const MARK_VARIABLE: &str = "THROUGHLINE_CHILD";

/// A process as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessEntry {
    pub(super) pid: Pid,
    parent: i32,
    group: i32,
    state: u8,
    threads: u32,
}

impl ProcessEntry {
    /// True for a dead process that its parent has not reaped yet. One whose first thread has ended looks
    /// dead, but its other threads run on.
    fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name in parentheses is the program's choice and may hold anything, also parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // The twentieth field of proc_pid_stat(5), of which five are read.
        let threads = fields.nth(14)?.parse().ok()?;
        Some(Self { pid, parent, group, state, threads })
    }
}

/// All running processes that are visible to us.
fn all_processes() -> Vec<ProcessEntry> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| ProcessEntry::read(Pid::from_raw(name.parse().ok()?)?)).collect()
}

/// The living descendants of these processes, themselves not among them.
fn descendants(all: &[ProcessEntry], roots: &BTreeSet<i32>) -> Vec<ProcessEntry> {
    let mut children: BTreeMap<i32, Vec<ProcessEntry>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut living = Vec::new();
    let mut seen = roots.clone();
    let mut next: Vec<i32> = roots.iter().copied().collect();
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            let raw = child.pid.as_raw_nonzero().get();
            if seen.insert(raw) {
                next.push(raw);
                if !child.is_dead() {
                    living.push(*child);
                }
            }
        }
    }
    living
}

/// The living descendants of one process.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the supervisor needs Linux"))]
pub(super) fn descendants_of(root: Pid) -> Vec<ProcessEntry> {
    descendants(&all_processes(), &BTreeSet::from([root.as_raw_nonzero().get()]))
}

/// Scope of signals: a signal to a whole group leaves its processes no moment to fork.
#[derive(Clone, Copy, Debug)]
pub(super) enum GroupScope {
    /// All but our own: the family is the only one in its session.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the supervisor needs Linux"))]
    All { own: i32 },
    /// No group signals: other processes are in the session, and the child could have joined their groups.
    Skip,
}

/// Sends a signal to processes, and to their groups.
pub(super) fn send_signal(processes: &[ProcessEntry], signal: Signal, groups: GroupScope) {
    if let GroupScope::All { own } = groups {
        let groups: BTreeSet<i32> = processes.iter().map(|process| process.group).collect();
        for group in groups.into_iter().filter(|group| *group != own && *group > 1) {
            if let Some(group) = Pid::from_raw(group) {
                let _ = kill_process_group(group, signal);
            }
        }
    }
    for process in processes {
        // The process may have ended already, which is fine.
        let _ = kill_process(process.pid, signal);
    }
}

/// The living processes that carry the mark, and what descends from such.
fn marked_processes(mark: &str) -> Vec<ProcessEntry> {
    let wanted = format!("{MARK_VARIABLE}={mark}");
    let carries = |process: &ProcessEntry| {
        let environment =
            fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let all = all_processes();
    let mut marked: Vec<ProcessEntry> =
        all.iter().copied().filter(|process| !process.is_dead() && carries(process)).collect();
    let roots = marked.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
    marked.extend(descendants(&all, &roots));
    marked
}

/// After this many rounds that each found a new process, all known ones are killed: waiting for a round
/// without a new one would fill the machine with stopped processes.
const STOP_ROUNDS_MAX: u32 = 50;

/// Ends a family that may fork faster than it can be listed: everybody is stopped first, and keeps the room of one more.
#[derive(Debug, Default)]
pub(super) struct ProcessKiller {
    stopped: BTreeSet<i32>,
    rounds: u32,
}

impl ProcessKiller {
    /// Handles the processes found in one round. A stopped process cannot fork, so after a round without a
    /// new one all are known, and are killed.
    pub(super) fn kill_round(&mut self, processes: &[ProcessEntry], groups: GroupScope) {
        send_signal(processes, Signal::STOP, groups);
        let now: BTreeSet<i32> = processes.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
        self.rounds += 1;
        if now.is_subset(&self.stopped) || self.rounds > STOP_ROUNDS_MAX {
            send_signal(processes, Signal::KILL, groups);
        }
        self.stopped = now;
    }
}

/// Pause between two rounds: short at first, long when only the kernel can hold a process so long.
pub(super) fn round_pause(round: u32) -> Duration {
    if round < 500 { Duration::from_millis(4) } else { Duration::from_millis(250) }
}

/// Hunts what carries the mark, until nothing does. Blocks.
pub(super) fn kill_marked(mark: &str) {
    let mut killer = ProcessKiller::default();
    for round in 0.. {
        let processes = marked_processes(mark);
        if processes.is_empty() {
            return;
        }
        killer.kill_round(&processes, GroupScope::Skip);
        std::thread::sleep(round_pause(round));
    }
}
