//! Capabilities of this machine: confining programs, colors, the runtimes of MCP servers.

use super::report::{DoctorArea, DoctorReport, DoctorState};
use crate::messages::UiText;
use crate::terminal::session::{OutputStyle, output_style};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use throughline::config::AppSettings;
use throughline_tools::process::{
    ControlGroups, ExecHelper, ProcessLimits, RunAs, SandboxStatus, SpawnContext, is_root,
};

/// Time limit for a program to print its version.
const VERSION_WAIT: Duration = Duration::from_secs(5);
/// Minimum of open files for many concurrent streams and tools.
const OPEN_FILES_WANTED: u64 = 1_024;
/// Programs that most MCP servers and plugins are started with.
const PROGRAMS: [&str; 6] = ["node", "npm", "npx", "python3", "uvx", "git"];

/// Confinement of tool programs.
pub(crate) async fn sandbox(settings: Option<&AppSettings>, words: UiText, report: &mut DoctorReport) {
    let probe = match ExecHelper::this_program(crate::EXEC) {
        Some(helper) => helper.probe().await,
        None => Err("/proc".to_owned()),
    };
    let probe = match probe {
        Ok(probe) => probe,
        Err(why) => {
            report.add(DoctorArea::Sandbox, DoctorState::Note, "helper", words.doctor_no_helper(&why));
            return;
        }
    };
    match &probe.sandbox {
        SandboxStatus::Landlock { abi, missing } if missing.is_empty() => {
            report.add(DoctorArea::Sandbox, DoctorState::Good, "Landlock", words.doctor_landlock(*abi));
        }
        SandboxStatus::Landlock { abi, missing } => {
            report.add(
                DoctorArea::Sandbox,
                DoctorState::Note,
                "Landlock",
                words.doctor_old_landlock(*abi, &missing.join(", ")),
            );
            report.remedy(words.doctor_newer_kernel());
        }
        SandboxStatus::Unavailable { why } => {
            report.add(DoctorArea::Sandbox, DoctorState::Note, "Landlock", words.doctor_no_landlock(why));
            report.remedy(words.doctor_enable_landlock());
        }
        _ => {}
    }
    match probe.cannot_supervise {
        None => report.add(
            DoctorArea::Sandbox,
            DoctorState::Good,
            words.doctor_descendants(),
            words.doctor_supervised(),
        ),
        Some(why) => report.add(DoctorArea::Sandbox, DoctorState::Note, words.doctor_descendants(), why),
    }
    let limits = ProcessLimits::default();
    let memory = limits.memory_bytes_max >> 30;
    let state = if probe.processes_limited { DoctorState::Good } else { DoctorState::Note };
    let detail =
        words.doctor_limits(memory, limits.open_files_max, limits.processes_max, probe.processes_limited);
    report.add(DoctorArea::Sandbox, state, "rlimits", detail);
    match &probe.cannot_deny_sockets {
        None => report.add(DoctorArea::Sandbox, DoctorState::Good, "seccomp", words.doctor_sockets()),
        Some(why) => {
            report.add(DoctorArea::Sandbox, DoctorState::Note, "seccomp", words.doctor_no_sockets(why))
        }
    }
    control_groups(settings, words, report);
    process_rights(settings, words, report);
    report.add(
        DoctorArea::Sandbox,
        DoctorState::Note,
        "namespaces",
        words.doctor_namespaces(user_namespaces()),
    );
}

/// Control groups that `throughline serve` would find here; creates nothing.
fn control_groups(settings: Option<&AppSettings>, words: UiText, report: &mut DoctorReport) {
    let setting = settings.and_then(|settings| settings.tools.control_groups.as_deref()).unwrap_or("auto");
    let detected = match setting {
        "off" => return,
        "auto" => ControlGroups::current_folder().and_then(|folder| ControlGroups::inspect(&folder)),
        folder => ControlGroups::inspect(Path::new(folder)),
    };
    match detected {
        Ok(groups) => {
            let detail =
                format!("{} · {}", words.control_groups(&groups), words.doctor_control_groups_untested());
            report.add(DoctorArea::Sandbox, DoctorState::Good, "cgroup", detail);
        }
        Err(why) => {
            let state = if setting == "auto" { DoctorState::Note } else { DoctorState::Wrong };
            report.add(DoctorArea::Sandbox, state, "cgroup", words.doctor_no_control_groups(&why));
            report.remedy(words.doctor_delegate());
        }
    }
}

/// Reports the user that programs of tools run as, if relevant.
fn process_rights(settings: Option<&AppSettings>, words: UiText, report: &mut DoctorReport) {
    match settings.and_then(|settings| settings.tools.run_as.as_deref()) {
        Some(name) => match RunAs::from_setting(name) {
            RunAs::Unavailable { why } => report.add(DoctorArea::Sandbox, DoctorState::Wrong, "run_as", why),
            RunAs::CurrentUser | RunAs::User(_) => {
                report.add(DoctorArea::Sandbox, DoctorState::Good, "run_as", words.doctor_runs_as(name));
            }
        },
        None if is_root() => {
            report.add(DoctorArea::Sandbox, DoctorState::Note, "root", words.runs_as_root());
            report.remedy(words.doctor_run_as());
        }
        None => {}
    }
}

/// True if users may create namespaces. `None` = the system does not report it.
fn user_namespaces() -> Option<bool> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let most = number("/proc/sys/user/max_user_namespaces")?;
    let debian = number("/proc/sys/kernel/unprivileged_userns_clone").unwrap_or(1);
    let apparmor = number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").unwrap_or(0);
    Some(most > 0 && debian > 0 && apparmor == 0)
}

/// Resource limits of this process.
pub(crate) fn limits(words: UiText, report: &mut DoctorReport) {
    let Some(open_files) = open_files_max() else { return };
    if open_files < OPEN_FILES_WANTED {
        report.add(DoctorArea::Sandbox, DoctorState::Note, "ulimit", words.doctor_few_files(open_files));
        report.remedy(format!("ulimit -n {OPEN_FILES_WANTED}"));
    }
}

/// The soft limit of this process.
fn open_files_max() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Size, colors and language of the terminal.
pub(crate) fn terminal(words: UiText, report: &mut DoctorReport) {
    let term = std::env::var("TERM").unwrap_or_default();
    match output_style() {
        OutputStyle::Rich => {
            let size = crossterm::terminal::size().unwrap_or((0, 0));
            report.add(DoctorArea::Terminal, DoctorState::Good, term, words.doctor_rich(size.0, size.1));
        }
        OutputStyle::Plain => report.add(
            DoctorArea::Terminal,
            DoctorState::Note,
            words.doctor_plain_name(),
            words.doctor_plain(),
        ),
    }
}

/// Installed programs and their versions.
pub(crate) async fn programs(words: UiText, report: &mut DoctorReport) {
    let surroundings = SpawnContext::of_this_process();
    let versions = PROGRAMS.map(|name| {
        let detected = surroundings.find_program(name).ok();
        async move {
            let path = detected?;
            let mut command = tokio::process::Command::new(&path);
            command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
            let output = tokio::time::timeout(VERSION_WAIT, command.output()).await.ok()?.ok()?;
            let text = String::from_utf8_lossy(&output.stdout);
            Some((text.lines().next().unwrap_or_default().trim().to_owned(), path.display().to_string()))
        }
    });
    let [node, npm, npx, python, uvx, git] = versions;
    let detected = tokio::join!(node, npm, npx, python, uvx, git);
    for (name, detected) in
        PROGRAMS.into_iter().zip([detected.0, detected.1, detected.2, detected.3, detected.4, detected.5])
    {
        match detected {
            Some((version, path)) => {
                report.add(DoctorArea::Programs, DoctorState::Good, name, format!("{version}  {path}"))
            }
            None => report.add(DoctorArea::Programs, DoctorState::Note, name, words.doctor_no_program(name)),
        }
    }
}
