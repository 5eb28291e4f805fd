//! Messages of `throughline doctor`, English and Chinese side by side.

use super::ui_text::{UiLanguage, UiText};
use crate::doctor::DoctorArea;
use throughline_engine::{RulePart, UnmatchedRule};
use throughline_tools::process::ControlGroups;

impl UiText {
    pub(crate) fn pick_text(self, english: impl Into<String>, chinese: impl Into<String>) -> String {
        match self.0 {
            UiLanguage::English => english.into(),
            UiLanguage::Chinese => chinese.into(),
        }
    }

    /// Heading of an area.
    pub(crate) fn doctor_area(self, area: DoctorArea) -> String {
        match area {
            DoctorArea::Configuration => self.pick_text("Configuration", "配置"),
            DoctorArea::Upstreams => self.pick_text("Upstreams", "上游"),
            DoctorArea::Tools => self.pick_text("Tools", "工具"),
            DoctorArea::Server => self.pick_text("Server", "服务器"),
            DoctorArea::Sandbox => self.pick_text("Sandbox for tool programs", "工具程序的沙箱"),
            DoctorArea::Terminal => self.pick_text("Terminal", "终端"),
            DoctorArea::Programs => self.pick_text("Common runtimes of tools", "工具常用的运行环境"),
        }
    }

    /// The last line.
    pub(crate) fn doctor_verdict(self, wrong: usize) -> String {
        match wrong {
            0 => self.pick_text("Everything that is configured works.", "所有配置均可正常工作。"),
            1 => self.pick_text("1 configured item does not work.", "有 1 项配置无法正常工作。"),
            wrong => self.pick_text(
                format!("{wrong} configured items do not work."),
                format!("有 {wrong} 项配置无法正常工作。"),
            ),
        }
    }

    pub(crate) fn doctor_file(self, agents: usize, upstreams: usize) -> String {
        self.pick_text(
            format!("agents: {agents}, upstreams: {upstreams}"),
            format!("智能体 {agents} 个，上游 {upstreams} 个"),
        )
    }

    pub(crate) fn doctor_no_file(self) -> String {
        self.pick_text("none here; the built-in demo model answers", "此处没有；将使用内置演示模型")
    }

    pub(crate) fn doctor_agent(self, model: &str, mode: Option<&str>) -> String {
        let mode = mode.unwrap_or("auto");
        self.pick_text(
            format!("uses {model}, tool-calling mode {mode}"),
            format!("使用 {model}，工具调用模式 {mode}"),
        )
    }

    /// A key is missing.
    pub(crate) fn doctor_no_key(self, endpoint: &str, variable: &str) -> String {
        self.pick_text(format!("{endpoint}, {variable} is not set"), format!("{endpoint}，未设置 {variable}"))
    }

    /// The last answer of an upstream to the running server was a failure.
    pub(crate) fn doctor_last_failure(self, at: &str, message: &str) -> String {
        self.pick_text(format!("its last answer, {at}: {message}"), format!("上次应答（{at}）：{message}"))
    }

    /// A key is there.
    pub(crate) fn doctor_key(self, endpoint: &str, variable: &str) -> String {
        self.pick_text(format!("{endpoint}, {variable} is set"), format!("{endpoint}，已设置 {variable}"))
    }

    /// A key is stored.
    pub(crate) fn doctor_stored_key(self, endpoint: &str) -> String {
        self.pick_text(format!("{endpoint}, its key is stored"), format!("{endpoint}，密钥已保存"))
    }

    pub(crate) fn doctor_keyless(self, endpoint: &str) -> String {
        self.pick_text(format!("{endpoint}, without a key"), format!("{endpoint}，不用密钥"))
    }

    /// The demo model.
    pub(crate) fn doctor_demo(self) -> String {
        self.pick_text("built in, no key, no network", "内置，无需密钥，也不联网")
    }

    pub(crate) fn doctor_tools(self, count: usize) -> String {
        match count {
            1 => self.pick_text("1 tool", "1 个工具"),
            count => self.pick_text(format!("{count} tools"), format!("{count} 个工具")),
        }
    }

    /// A switch is about no tool.
    pub(crate) fn doctor_unknown_toggle(self, name: &str, meant: Option<&&str>) -> String {
        let (english, chinese) = match meant {
            Some(meant) => (format!("; did you mean `{meant}`?"), format!("；是否想写 `{meant}`？")),
            None => Default::default(),
        };
        self.pick_text(
            format!("tool_toggles.\"{name}\" has no effect: no tool or group has this name{english}"),
            format!("tool_toggles.\"{name}\" 不起作用：没有这个名称的工具或工具组{chinese}"),
        )
    }

    /// A rule is about no tool.
    pub(crate) fn doctor_unmatched_rule(self, rule: &UnmatchedRule) -> String {
        let number = rule.number;
        let part = match &rule.part {
            RulePart::Tool(pattern) => format!("tool = \"{pattern}\""),
            RulePart::Source(pattern) => format!("source = \"{pattern}\""),
            RulePart::Combination => "tool + source + effect".to_owned(),
            RulePart::RelativeFolder(folder) => {
                let chinese = format!(
                    "策略规则 {number} 不匹配任何绝对路径：`under = \"{folder}\"` 是相对路径，请写完整路径"
                );
                return self.pick_text(format!("policy: {rule}"), chinese);
            }
        };
        let meant =
            rule.suggestions.first().map_or_else(String::new, |name| format!("；是否想写 `{name}`？"));
        self.pick_text(
            format!("policy: {rule}"),
            format!("策略规则 {number} 不匹配任何现有工具：`{part}`{meant}"),
        )
    }

    /// A source does not answer.
    pub(crate) fn doctor_silent(self, seconds: u64) -> String {
        self.pick_text(format!("no answer for {seconds} seconds"), format!("{seconds} 秒内没有任何回应"))
    }

    /// Programs are not supervised.
    pub(crate) fn doctor_no_helper(self, why: &str) -> String {
        self.pick_text(
            format!("programs run unconfined, and detached processes may survive: {why}"),
            format!("程序运行不受限制，脱离的子进程可能残留：{why}"),
        )
    }

    /// Landlock as we want it.
    pub(crate) fn doctor_landlock(self, abi: u32) -> String {
        self.pick_text(
            format!("version {abi}: files, TCP and signals can be confined"),
            format!("版本 {abi}：可限制文件、TCP 与信号"),
        )
    }

    /// An older one.
    pub(crate) fn doctor_old_landlock(self, abi: u32, missing: &str) -> String {
        self.pick_text(
            format!("version {abi}, which cannot confine {missing}"),
            format!("版本 {abi}，无法限制：{missing}"),
        )
    }

    /// None.
    pub(crate) fn doctor_no_landlock(self, why: &str) -> String {
        self.pick_text(
            format!("{why}; programs can read and write what you can"),
            format!("{why}；程序可以读写你能读写的一切"),
        )
    }

    /// Remedy for an old kernel.
    pub(crate) fn doctor_newer_kernel(self) -> String {
        self.pick_text("Linux 6.12 has all of it", "Linux 6.12 具备全部能力")
    }

    pub(crate) fn doctor_enable_landlock(self) -> String {
        self.pick_text(
            "Linux 5.13 or later with `landlock` among the security modules (kernel parameter lsm=landlock,…)",
            "需要 Linux 5.13 以上，且安全模块中包含 landlock（内核参数 lsm=landlock,…）",
        )
    }

    /// Name of the line about what programs start.
    pub(crate) fn doctor_descendants(self) -> String {
        self.pick_text("descendants", "子孙进程")
    }

    /// Processes of a tool end with it.
    pub(crate) fn doctor_supervised(self) -> String {
        self.pick_text("processes that a tool starts end with it", "工具启动的进程会随工具一起结束")
    }

    pub(crate) fn doctor_limits(
        self,
        memory: u64,
        files: u64,
        processes: u64,
        processes_limited: bool,
    ) -> String {
        let english =
            format!("{memory} GiB of memory per process, {files} open files, {processes} more processes");
        let chinese =
            format!("每个进程 {memory} GiB 内存、{files} 个打开的文件，最多再增加 {processes} 个进程");
        if processes_limited {
            self.pick_text(english, chinese)
        } else {
            self.pick_text(
                english + "; the system does not limit processes of root, so Throughline counts them ten times a second",
                chinese + "；系统不限制 root 的进程数，因此由 Throughline 每秒清点十次",
            )
        }
    }

    /// Root, and programs of tools with it.
    pub(crate) fn runs_as_root(self) -> String {
        self.pick_text(
            "running as root: tool programs are root as well, the system does not limit their processes, and without a sandbox they can read everything; set `run_as` in [tools]",
            "正在以 root 运行：工具程序也拥有 root 权限，系统的进程数上限对其无效，没有沙箱时可读取所有文件；请在 [tools] 中设置 `run_as`",
        )
    }

    /// Remedy for running as root.
    pub(crate) fn doctor_run_as(self) -> String {
        self.pick_text(
            "run_as = \"nobody\" in [tools], or better, run everything as a dedicated user (ops/throughline.service)",
            "在 [tools] 中设置 run_as = \"nobody\"，更好的做法是让整个服务以专用用户运行（ops/throughline.service）",
        )
    }

    /// User that programs run as.
    pub(crate) fn doctor_runs_as(self, name: &str) -> String {
        self.pick_text(format!("tool programs run as `{name}`"), format!("工具程序以 `{name}` 的身份运行"))
    }

    /// A group was delegated.
    pub(crate) fn control_groups(self, groups: &ControlGroups) -> String {
        let counted = match (groups.counts_processes, groups.counts_memory) {
            (true, true) => "pids.max, memory.max, cgroup.kill",
            (true, false) => "pids.max, cgroup.kill",
            (false, true) => "memory.max, cgroup.kill",
            (false, false) => "cgroup.kill",
        };
        let folder = groups.folder().display();
        self.pick_text(
            format!("each tool program gets a control group in {folder}: {counted}"),
            format!("每个工具程序在 {folder} 中有各自的控制组：{counted}"),
        )
    }

    pub(crate) fn doctor_control_groups_untested(self) -> String {
        self.pick_text(
            "cgroup.kill was tested on a real kernel; pids.max and memory.max only against a simulated folder",
            "cgroup.kill 已在真实内核上测试；pids.max 与 memory.max 仅在模拟目录上测试过",
        )
    }

    /// None was delegated.
    pub(crate) fn doctor_no_control_groups(self, why: &str) -> String {
        self.pick_text(
            format!("none here ({why}); limits apply per process, and child processes are found and ended one by one"),
            format!("此处没有（{why}）；上限按单个进程计算，子进程逐个查找并结束"),
        )
    }

    /// Command that delegates a control group.
    pub(crate) fn doctor_delegate(self) -> String {
        self.pick_text(
            "set `Delegate=yes` in the systemd unit, as in ops/throughline.service",
            "在 systemd 单元中设置 `Delegate=yes`，参见 ops/throughline.service",
        )
    }

    /// Sockets can be denied to programs.
    pub(crate) fn doctor_sockets(self) -> String {
        self.pick_text(
            "network = \"deny\" closes TCP, UDP and Unix sockets",
            "network = \"deny\" 可关闭 TCP、UDP 与 Unix 套接字",
        )
    }

    /// Sockets cannot be denied to programs.
    pub(crate) fn doctor_no_sockets(self, why: &str) -> String {
        self.pick_text(
            format!("{why}; network = \"deny\" closes TCP alone, if Landlock can"),
            format!("{why}；network = \"deny\" 只能（在 Landlock 支持时）关闭 TCP"),
        )
    }

    /// Permission to create namespaces; informative only, nothing here needs them.
    pub(crate) fn doctor_namespaces(self, allowed: Option<bool>) -> String {
        match allowed {
            Some(true) => self.pick_text("users may create them; not used", "用户可以创建；未使用"),
            Some(false) => self.pick_text("not for users; not needed", "用户不能创建；也不需要"),
            None => self.pick_text("unknown; not needed", "未知；也不需要"),
        }
    }

    /// Few files may be open.
    pub(crate) fn doctor_few_files(self, count: u64) -> String {
        self.pick_text(
            format!("only {count} files may be open; many tools at once may exhaust them"),
            format!("最多只能打开 {count} 个文件，多个工具同时运行时可能不够"),
        )
    }

    /// A terminal that can do everything.
    pub(crate) fn doctor_rich(self, columns: u16, rows: u16) -> String {
        self.pick_text(
            format!("colors and repainting, {columns} × {rows}"),
            format!("支持彩色与重绘，{columns} × {rows}"),
        )
    }

    /// Name of the line about a plain one.
    pub(crate) fn doctor_plain_name(self) -> String {
        self.pick_text("plain text", "纯文本")
    }

    /// Reason why output is plain.
    pub(crate) fn doctor_plain(self) -> String {
        self.pick_text(
            "no terminal, or TERM=dumb or NO_COLOR is set",
            "当前没有终端，或设置了 TERM=dumb 或 NO_COLOR",
        )
    }

    /// A program is missing.
    pub(crate) fn doctor_no_program(self, name: &str) -> String {
        self.pick_text(
            format!("not found; needed only for tools that are started with {name}"),
            format!("未找到；只有用 {name} 启动的工具才需要"),
        )
    }
}
