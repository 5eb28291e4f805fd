//! Control groups (version 2), where one was delegated to us: each program gets a subgroup in which its
//! processes and memory are bounded together, and which the kernel kills with one write.
//!
//! Never changes a group that has other processes.

use super::limits::ProcessLimits;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Subgroup of this process: a group with subgroups may hold no processes itself.
const OWN_GROUP: &str = "throughline";
/// In front of the names of the groups of programs.
const PROGRAM_PREFIX: &str = "program-";

/// A group that was delegated to us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroups {
    folder: PathBuf,
    /// True if `pids.max` counts in it.
    pub counts_processes: bool,
    /// True if `memory.max` counts in it.
    pub counts_memory: bool,
}

impl ControlGroups {
    /// Group of this process, if no other process is in it.
    ///
    /// # Errors
    ///
    /// The reason why no group can be used.
    pub fn of_this_process() -> Result<Self, String> {
        Self::claim(&Self::current_folder()?)
    }

    /// Folder of the group of this process.
    ///
    /// # Errors
    ///
    /// The process is in no group of version 2.
    pub fn current_folder() -> Result<PathBuf, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let hierarchy = cgroup2_mount(&read("/proc/self/mountinfo")?)
            .ok_or("no hierarchy of version 2 is mounted (cgroup2)")?;
        let text = read("/proc/self/cgroup")?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or("this process is in no group of version 2")?;
        Ok(hierarchy.join(own))
    }

    /// Checks that a group could be [claimed](Self::claim), without changing anything.
    ///
    /// # Errors
    /// The obstacle.
    pub fn inspect(folder: &Path) -> Result<Self, String> {
        let shown = folder.display();
        if !folder.join("cgroup.events").exists() {
            return Err(format!("{shown} is the root control group, and none was delegated"));
        }
        let members = folder.join("cgroup.procs");
        let text = fs::read_to_string(&members).map_err(|error| format!("{shown}: {error}"))?;
        let own_pid = std::process::id().to_string();
        if text.lines().any(|pid| pid != own_pid) {
            return Err(format!("other programs run in {shown}: it is not delegated to this one"));
        }
        fs::OpenOptions::new()
            .write(true)
            .open(&members)
            .map_err(|error| format!("{shown} was not delegated to this user: {error}"))?;
        let offered = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        let counts = |controller: &str| offered.split_whitespace().any(|offered| offered == controller);
        Ok(Self {
            folder: folder.to_owned(),
            counts_processes: counts("pids"),
            counts_memory: counts("memory"),
        })
    }

    /// Takes over a group: `folder` is its path in the real hierarchy or in one that looks like it. If this
    /// process is in it, it moves to a subgroup.
    ///
    /// # Errors
    ///
    /// The group belongs to the system, has other processes, or cannot be written.
    pub fn claim(folder: &Path) -> Result<Self, String> {
        // Moved already, by us or by `DelegateSubgroup=` of systemd.
        let is_own = folder.file_name().is_some_and(|name| name == OWN_GROUP);
        let folder = folder.parent().filter(|_| is_own).unwrap_or(folder);
        let inspected = Self::inspect(folder)?;
        let at = |name: &str| folder.join(name);
        let denied =
            |error: io::Error| format!("{} was not delegated to this user: {error}", folder.display());
        // The only process left in it is this one.
        if !fs::read_to_string(at("cgroup.procs")).map_err(denied)?.is_empty() {
            create_folder(&at(OWN_GROUP)).map_err(denied)?;
            fs::write(at(OWN_GROUP).join("cgroup.procs"), std::process::id().to_string()).map_err(denied)?;
        }
        let counts = |offered: bool, controller: &str| {
            offered && fs::write(at("cgroup.subtree_control"), format!("+{controller}")).is_ok()
        };
        let groups = Self {
            counts_processes: counts(inspected.counts_processes, "pids"),
            counts_memory: counts(inspected.counts_memory, "memory"),
            ..inspected
        };
        groups.probe().map_err(denied)?;
        groups.kill_leftovers();
        Ok(groups)
    }

    /// Folder of the programs' groups.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that groups can be made here at all.
    fn probe(&self) -> io::Result<()> {
        let probe = self.folder.join(format!("{PROGRAM_PREFIX}probe"));
        create_folder(&probe)?;
        fs::remove_dir(probe)
    }

    /// Kills the leftovers of an earlier server that was killed together with its supervisors.
    fn kill_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Some(mark) = name.to_str().and_then(|name| name.strip_prefix(PROGRAM_PREFIX)) {
                let group = self.program_group(mark);
                group.kill();
                group.remove();
            }
        }
    }

    pub(super) fn program_group(&self, mark: &str) -> ProgramGroup {
        ProgramGroup { folder: self.folder.join(format!("{PROGRAM_PREFIX}{mark}")), groups: self.clone() }
    }
}

/// The group of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramGroup {
    folder: PathBuf,
    groups: ControlGroups,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the supervisor needs Linux"))]
impl ProgramGroup {
    /// Makes it, with its limits.
    pub(super) fn create(&self, limits: &ProcessLimits) -> io::Result<()> {
        create_folder(&self.folder)?;
        let write = |name: &str, value: u64| fs::write(self.folder.join(name), value.to_string());
        if self.groups.counts_processes {
            write("pids.max", limits.processes_max)?;
        }
        if self.groups.counts_memory {
            write("memory.max", limits.memory_bytes_max)?;
            // Memory that is moved to a disk is memory, too; and half a program is of no use. Kernels may lack both.
            let _ = write("memory.swap.max", 0);
            let _ = write("memory.oom.group", 1);
        }
        Ok(())
    }

    pub(super) fn counts_processes(&self) -> bool {
        self.groups.counts_processes
    }

    /// Moves this process into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), std::process::id().to_string())
    }

    /// Kills every process in the group, including those forked in the meantime. Kernels before 5.14 cannot;
    /// then the processes are found and killed one by one.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// Removes the group once it is empty. A group that still has processes stays, and the next server ends
    /// them.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.folder);
    }

    /// True if a process in it was killed because memory was at its limit.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.event_occurred("memory.events", "oom_kill")
    }

    /// True if a process was not started because there were too many.
    pub(super) fn ran_out_of_processes(&self) -> bool {
        self.event_occurred("pids.events", "max")
    }

    fn event_occurred(&self, file: &str, name: &str) -> bool {
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// `25 30 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw`: the fifth field, where the type is the first after ` - `.
fn cgroup2_mount(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_v2 = after.split(' ').next() == Some("cgroup2");
        before.split(' ').nth(4).filter(|_| is_v2).map(PathBuf::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a delegated group.
    fn fake(controllers: &str, members: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("cgroup.events", "populated 1\nfrozen 0\n");
        write("cgroup.controllers", controllers);
        write("cgroup.procs", members);
        write("cgroup.subtree_control", "");
        folder
    }

    fn read(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap_or_default()
    }

    #[test]
    fn delegated_cgroup_is_claimed_and_limits_are_written() {
        let own_pid = format!("{}\n", std::process::id());
        let tree = fake("cpuset cpu io memory pids\n", &own_pid);
        let groups = ControlGroups::claim(tree.path()).unwrap();
        assert!(groups.counts_processes && groups.counts_memory);
        assert_eq!(read(tree.path(), "throughline/cgroup.procs"), own_pid.trim());
        assert_eq!(read(tree.path(), "cgroup.subtree_control"), "+memory");
        let program = groups.program_group("7");
        program.create(&ProcessLimits::default()).unwrap();
        assert_eq!(read(&program.folder, "pids.max"), "512");
        assert_eq!(read(&program.folder, "memory.max"), (4_u64 << 30).to_string());
        assert_eq!(read(&program.folder, "memory.oom.group"), "1");
        program.enter().unwrap();
        program.kill();
        assert_eq!(read(&program.folder, "cgroup.procs"), own_pid.trim());
        assert_eq!(read(&program.folder, "cgroup.kill"), "1");
        assert!(!program.ran_out_of_memory() && !program.ran_out_of_processes());
        fs::write(program.folder.join("memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
        fs::write(program.folder.join("pids.events"), "max 3\n").unwrap();
        assert!(program.ran_out_of_memory() && program.ran_out_of_processes());
        // The next server finds the same folder, with itself in the subgroup already, and the leftovers.
        fs::write(tree.path().join("cgroup.procs"), "").unwrap();
        fs::remove_file(program.folder.join("cgroup.kill")).unwrap();
        assert_eq!(ControlGroups::claim(&tree.path().join("throughline")).unwrap(), groups);
        assert_eq!(read(&program.folder, "cgroup.kill"), "1");
    }

    #[test]
    fn claim_refuses_foreign_cgroups_and_notes_missing_controllers() {
        let tree = fake("memory pids", "1\n2\n");
        let why = ControlGroups::claim(tree.path()).unwrap_err();
        assert!(why.contains("other programs run in"), "{why}");
        assert!(!tree.path().join("throughline").exists());

        let tree = fake("hugetlb", "");
        let groups = ControlGroups::claim(tree.path()).unwrap();
        assert!(!groups.counts_processes && !groups.counts_memory);
        groups.program_group("1").create(&ProcessLimits::default()).unwrap();
        assert!(!tree.path().join("program-1/pids.max").exists());

        let root = tempfile::tempdir().unwrap();
        let why = ControlGroups::claim(root.path()).unwrap_err();
        assert!(why.contains("the root control group"), "{why}");
    }

    #[test]
    fn cgroup2_mount_is_found_in_hybrid_hierarchies() {
        let hybrid = "40 39 0:36 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      41 39 0:37 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroup2_mount(hybrid), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(cgroup2_mount("40 39 0:36 / /a rw - tmpfs cgroup2 rw\n"), None);
    }
}
