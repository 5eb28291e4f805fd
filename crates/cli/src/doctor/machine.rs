//! What this machine can do: confine programs, show colours, run what MCP servers are written in.

use super::report::{Area, Report, State};
use crate::messages::Words;
use crate::terminal::session::{Look, look};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use throughline::config::Settings;
use throughline_tools::process::{
    ControlGroups, Helper, ProcessLimits, RunAs, Sandbox, Surroundings, is_root,
};

/// How long a program may take to say its version.
const VERSION_WAIT: Duration = Duration::from_secs(5);
/// With fewer, many streams and tools at once run out of them.
const OPEN_FILES_WANTED: u64 = 1_024;
/// What MCP servers and plugins are mostly started with, and what it is for.
const PROGRAMS: [&str; 6] = ["node", "npm", "npx", "python3", "uvx", "git"];

/// How programs of tools are confined.
pub async fn sandbox(settings: Option<&Settings>, words: Words, report: &mut Report) {
    let probe = match Helper::this_program(crate::EXEC) {
        Some(helper) => helper.probe().await,
        None => Err("/proc".to_owned()),
    };
    let probe = match probe {
        Ok(probe) => probe,
        Err(why) => {
            report.add(Area::Sandbox, State::Note, "helper", words.doctor_no_helper(&why));
            return;
        }
    };
    match &probe.sandbox {
        Sandbox::Landlock { abi, missing } if missing.is_empty() => {
            report.add(Area::Sandbox, State::Good, "Landlock", words.doctor_landlock(*abi));
        }
        Sandbox::Landlock { abi, missing } => {
            report.add(
                Area::Sandbox,
                State::Note,
                "Landlock",
                words.doctor_old_landlock(*abi, &missing.join(", ")),
            );
            report.remedy(words.doctor_newer_kernel());
        }
        Sandbox::Unavailable { why } => {
            report.add(Area::Sandbox, State::Note, "Landlock", words.doctor_no_landlock(why));
            report.remedy(words.doctor_enable_landlock());
        }
        Sandbox::Off => {}
    }
    match probe.cannot_supervise {
        None => report.add(Area::Sandbox, State::Good, words.doctor_descendants(), words.doctor_supervised()),
        Some(why) => report.add(Area::Sandbox, State::Note, words.doctor_descendants(), why),
    }
    let limits = ProcessLimits::default();
    let memory = limits.memory_bytes_max >> 30;
    let state = if probe.processes_limited { State::Good } else { State::Note };
    let detail =
        words.doctor_limits(memory, limits.open_files_max, limits.processes_max, probe.processes_limited);
    report.add(Area::Sandbox, state, "rlimits", detail);
    match &probe.cannot_deny_sockets {
        None => report.add(Area::Sandbox, State::Good, "seccomp", words.doctor_sockets()),
        Some(why) => report.add(Area::Sandbox, State::Note, "seccomp", words.doctor_no_sockets(why)),
    }
    control_groups(settings, words, report);
    whose_rights(settings, words, report);
    report.add(Area::Sandbox, State::Note, "namespaces", words.doctor_namespaces(user_namespaces()));
}

/// What `throughline serve` would find where we are; nothing is made.
fn control_groups(settings: Option<&Settings>, words: Words, report: &mut Report) {
    let wanted = settings.and_then(|settings| settings.tools.control_groups.as_deref()).unwrap_or("auto");
    let found = match wanted {
        "off" => return,
        "auto" => ControlGroups::folder_of_this_process().and_then(|folder| ControlGroups::look(&folder)),
        folder => ControlGroups::look(Path::new(folder)),
    };
    match found {
        Ok(groups) => {
            let detail =
                format!("{} · {}", words.control_groups(&groups), words.doctor_control_groups_untested());
            report.add(Area::Sandbox, State::Good, "cgroup", detail);
        }
        Err(why) => {
            let state = if wanted == "auto" { State::Note } else { State::Wrong };
            report.add(Area::Sandbox, state, "cgroup", words.doctor_no_control_groups(&why));
            report.remedy(words.doctor_delegate());
        }
    }
}

/// Whose rights programs of tools have, where that needs saying.
fn whose_rights(settings: Option<&Settings>, words: Words, report: &mut Report) {
    match settings.and_then(|settings| settings.tools.run_as.as_deref()) {
        Some(name) => match RunAs::named(name) {
            RunAs::Impossible { why } => report.add(Area::Sandbox, State::Wrong, "run_as", why),
            RunAs::Ourselves | RunAs::User(_) => {
                report.add(Area::Sandbox, State::Good, "run_as", words.doctor_runs_as(name));
            }
        },
        None if is_root() => {
            report.add(Area::Sandbox, State::Note, "root", words.runs_as_root());
            report.remedy(words.doctor_run_as());
        }
        None => {}
    }
}

/// Whether users may make namespaces of their own. `None` = the system does not say.
fn user_namespaces() -> Option<bool> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let most = number("/proc/sys/user/max_user_namespaces")?;
    let debian = number("/proc/sys/kernel/unprivileged_userns_clone").unwrap_or(1);
    let apparmor = number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").unwrap_or(0);
    Some(most > 0 && debian > 0 && apparmor == 0)
}

/// What we may use ourselves.
pub fn limits(words: Words, report: &mut Report) {
    let Some(open_files) = open_files_max() else { return };
    if open_files < OPEN_FILES_WANTED {
        report.add(Area::Sandbox, State::Note, "ulimit", words.doctor_few_files(open_files));
        report.remedy(format!("ulimit -n {OPEN_FILES_WANTED}"));
    }
}

/// The soft limit of this process.
fn open_files_max() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How the chat will look.
pub fn terminal(words: Words, report: &mut Report) {
    let term = std::env::var("TERM").unwrap_or_default();
    match look() {
        Look::Rich => {
            let size = crossterm::terminal::size().unwrap_or((0, 0));
            report.add(Area::Terminal, State::Good, term, words.doctor_rich(size.0, size.1));
        }
        Look::Plain => {
            report.add(Area::Terminal, State::Note, words.doctor_plain_name(), words.doctor_plain())
        }
    }
}

/// Which programs are there, and their versions.
pub async fn programs(words: Words, report: &mut Report) {
    let surroundings = Surroundings::of_this_process();
    let versions = PROGRAMS.map(|name| {
        let found = surroundings.find(name).ok();
        async move {
            let path = found?;
            let mut command = tokio::process::Command::new(&path);
            command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
            let output = tokio::time::timeout(VERSION_WAIT, command.output()).await.ok()?.ok()?;
            let text = String::from_utf8_lossy(&output.stdout);
            Some((text.lines().next().unwrap_or_default().trim().to_owned(), path.display().to_string()))
        }
    });
    let [node, npm, npx, python, uvx, git] = versions;
    let found = tokio::join!(node, npm, npx, python, uvx, git);
    for (name, found) in PROGRAMS.into_iter().zip([found.0, found.1, found.2, found.3, found.4, found.5]) {
        match found {
            Some((version, path)) => {
                report.add(Area::Programs, State::Good, name, format!("{version}  {path}"))
            }
            None => report.add(Area::Programs, State::Note, name, words.doctor_no_program(name)),
        }
    }
}
