//! Finds processes in `/proc` and ends them.
//!
//! Elsewhere than on Linux it finds none: there the process group is all that is known of a child.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The variable that marks a child and, as long as they keep their environment, all that it starts.
pub(super) const MARK: &str = "THROUGHLINE_CHILD";

/// A process as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: i32,
    group: i32,
    state: u8,
}

impl Process {
    /// Dead, and only kept for its parent.
    fn is_gone(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name in parentheses is the program's choice and may hold anything, also parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, group, state })
    }
}

/// Everything that runs, as far as we may see it.
fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| Process::read(Pid::from_raw(name.parse().ok()?)?)).collect()
}

/// The living descendants of these processes, themselves not among them.
fn descendants(all: &[Process], roots: &BTreeSet<i32>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut seen = roots.clone();
    let mut next: Vec<i32> = roots.iter().copied().collect();
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            let raw = child.pid.as_raw_nonzero().get();
            if seen.insert(raw) {
                next.push(raw);
                if !child.is_gone() {
                    found.push(*child);
                }
            }
        }
    }
    found
}

/// The living descendants of one process.
pub(super) fn descendants_of(root: Pid) -> Vec<Process> {
    descendants(&all(), &BTreeSet::from([root.as_raw_nonzero().get()]))
}

/// Kills what descends from a process, not the process itself.
pub(super) fn kill_descendants_of(root: Pid) {
    for process in descendants_of(root) {
        let _ = kill_process(process.pid, Signal::KILL);
    }
}

/// Sends a signal to processes, and to their groups: a group is signalled as a whole, so that nothing in it can fork
/// away in between. `own_group` is spared.
pub(super) fn signal(processes: &[Process], signal: Signal, own_group: i32) {
    let groups: BTreeSet<i32> = processes.iter().map(|process| process.group).collect();
    for group in groups.into_iter().filter(|group| *group != own_group && *group > 1) {
        if let Some(group) = Pid::from_raw(group) {
            let _ = kill_process_group(group, signal);
        }
    }
    for process in processes {
        // It may be gone by now, which is what is wanted.
        let _ = kill_process(process.pid, signal);
    }
}

/// Kills every process that carries the mark, and what descends from such. Answers with how many were found.
pub(super) fn kill_marked(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let carries = |process: &Process| {
        let environment =
            fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let all = all();
    let marked: Vec<Process> =
        all.iter().copied().filter(|process| !process.is_gone() && carries(process)).collect();
    let roots = marked.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
    let further = descendants(&all, &roots);
    for process in marked.iter().chain(&further) {
        let _ = kill_process(process.pid, Signal::KILL);
    }
    marked.len() + further.len()
}
