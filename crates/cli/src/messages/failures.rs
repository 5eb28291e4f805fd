//! Failures: what, why, what to do.

use super::ui_text::tr;
use crate::chinese::{config_mistake, config_remedy};
use crate::exit::{CliExit, CliFailure};
use std::fmt;
use std::io;
use std::path::Path;
use throughline::config::{ConfigError, ConfigLocation};

/// The form of every failure.
pub(crate) fn failure(f: &mut fmt::Formatter<'_>, what: &str, why: &str, remedy: &str) -> fmt::Result {
    f.write_str(&tr!("error: {what}", "错误：{what}"))?;
    if !why.is_empty() {
        f.write_str(&tr!("\n  why: {why}", "\n  原因：{why}"))?;
    }
    if !remedy.is_empty() {
        f.write_str(&tr!("\n  try: {remedy}", "\n  可以试试：{remedy}"))?;
    }
    Ok(())
}

/// The configuration is invalid; like a compiler, the error names the position itself.
pub(crate) fn config(error: &ConfigError) -> CliFailure {
    let mut text = format!("{}\n{}", config_mistake(&error.message), location(&error.location));
    if let Some(help) = &error.help {
        text.push_str(&format!("\n{} = {}", error.location.margin(), config_remedy(help)));
    }
    CliFailure::usage(text, "", "")
}

/// Position of the mistake: in a file with its line, else by name.
fn location(location: &ConfigLocation) -> String {
    match location {
        ConfigLocation::Environment { variable } => {
            let margin = location.margin();
            tr!("{margin}--> environment variable {variable}", "{margin}--> 环境变量 {variable}")
        }
        other => other.to_string(),
    }
}

/// `--lang` or its variable has an unknown language.
pub(crate) fn no_such_language(name: &str) -> CliFailure {
    CliFailure::usage(
        tr!("there is no language `{name}`", "不支持语言 `{name}`"),
        "",
        tr!("--lang en, --lang zh, or THROUGHLINE_LANG", "--lang en、--lang zh，或环境变量 THROUGHLINE_LANG"),
    )
}

/// The server that has the store does not answer.
pub(crate) fn server_unreachable(why: &str) -> CliFailure {
    CliFailure::usage(
        tr!("the server does not answer", "服务器没有响应"),
        why,
        tr!(
            "`throughline doctor` checks it; --no-log runs without the server",
            "用 `throughline doctor` 检查；加 --no-log 可不经过服务器"
        ),
    )
}

/// A warning that the conversation continues without being stored.
pub(crate) fn not_stored(failure: &CliFailure) -> String {
    let CliFailure { what, why, remedy, .. } = failure;
    let why = if why.is_empty() { String::new() } else { tr!("\n  why: {why}", "\n  原因：{why}") };
    tr!(
        "⚠ this conversation is not kept: {what}{why}\n  try: {remedy}",
        "⚠ 本次对话不会保存：{what}{why}\n  可以试试：{remedy}"
    )
}

/// Another command has the store open, so this conversation is moved there later.
pub(crate) fn stored_later() -> String {
    tr!(
        "• another chat or ask has the store open: this conversation is in the history when that one has ended",
        "• 另一个 chat 或 ask 正在使用存储：等它结束后，本次对话会出现在历史中"
    )
}

/// The store is in use by a program that does not answer.
pub(crate) fn store_taken(why: &dyn fmt::Display, store: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the store is in use", "存储正被占用"),
        tr!(
            "{store}\n  and the program that has it open does not answer: {why}",
            "{store}\n  占用它的程序没有响应：{why}"
        ),
        tr!("wait until the other one has ended, or --no-log", "等另一个程序结束，或使用 --no-log"),
    )
}

/// A flag that only works where the application runs in this process.
pub(crate) fn flag_not_at_a_server(flag: &str, server: &str) -> CliFailure {
    CliFailure::usage(
        tr!("{flag} cannot be used while a server has the store open", "服务器正在使用存储，不能使用 {flag}"),
        tr!(
            "the server at {server} answers, with its own configuration",
            "由 {server} 上的服务器按它自己的配置回答"
        ),
        tr!("--no-log runs it here, and keeps nothing", "--no-log 在本进程运行，不保存任何内容"),
    )
}

/// `--no-log` with a command that needs stored data.
pub(crate) fn nothing_stored() -> CliFailure {
    CliFailure::usage(
        tr!("nothing of this conversation is kept", "本次对话没有保存"),
        "--no-log",
        tr!("leave --no-log out", "去掉 --no-log"),
    )
}

/// `--continue` without a conversation.
pub(crate) fn nothing_to_continue() -> CliFailure {
    CliFailure::usage(
        tr!("there is no conversation to continue", "没有可以继续的对话"),
        "",
        tr!("leave --continue out to begin one", "去掉 --continue 即可开始新对话"),
    )
}

/// `/retry` before anything was sent.
pub(crate) fn nothing_to_retry() -> CliFailure {
    CliFailure::usage(tr!("there is no message to send again", "没有可以重新发送的消息"), "", "")
}

/// `/save` before anything was sent.
pub(crate) fn nothing_to_save() -> CliFailure {
    CliFailure::usage(tr!("there is nothing to save yet", "还没有可保存的内容"), "", "")
}

/// `/copy` of an answer that terminals do not take.
pub(crate) fn too_long_to_copy(bytes: usize, bytes_max: usize) -> CliFailure {
    CliFailure::usage(
        tr!("the answer is too long for the terminal's clipboard", "回答太长，终端剪贴板放不下"),
        tr!(
            "it has {bytes} bytes; terminals take {bytes_max}",
            "它有 {bytes} 字节；终端最多接受 {bytes_max}"
        ),
        tr!("/save FILE", "/save 文件"),
    )
}

/// `/agent` with an unknown name.
pub(crate) fn no_such_agent(name: &str, known: &[String]) -> CliFailure {
    let known = known.join(", ");
    CliFailure::usage(
        tr!("there is no agent `{name}`", "没有智能体 `{name}`"),
        "",
        tr!("one of {known}", "可用的有：{known}"),
    )
}

/// The text exceeds the limit of a message.
pub(crate) fn too_much_text(from: &str, bytes_max: u64) -> CliFailure {
    let kibibytes = bytes_max >> 10;
    CliFailure::usage(
        tr!("{from} is too long", "{from} 太长"),
        tr!("more than {kibibytes} KiB are not sent in one message", "一条消息最多 {kibibytes} KiB"),
        tr!(
            "send a part of it (head, tail, grep), or let a tool read the file",
            "只发送一部分（head、tail、grep），或让工具读取该文件"
        ),
    )
}

/// The application cannot be built, or a turn not begun.
pub(crate) fn setup(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        error.to_string(),
        "",
        tr!(
            "`throughline upstreams` lists the endpoints and which keys are set",
            "`throughline upstreams` 列出各接口，以及已设置的密钥"
        ),
    )
}

/// A backup cannot be written.
pub(crate) fn no_backup(folder: &Path, why: &dyn fmt::Display) -> CliFailure {
    let folder = folder.display();
    CliFailure::usage(
        tr!("no backup was made in {folder}", "未能备份到 {folder}"),
        why.to_string(),
        tr!(
            "name a new or empty folder on a disk with enough room",
            "请指定新文件夹或空文件夹，磁盘空间要足够"
        ),
    )
}

/// A backup cannot be restored. Nothing has been changed.
pub(crate) fn not_restored(folder: &Path, why: &dyn fmt::Display, remedy: &str) -> CliFailure {
    let folder = folder.display();
    CliFailure::usage(tr!("{folder} was not restored", "未能恢复 {folder}"), why.to_string(), remedy)
}

/// A file of another client lists no MCP servers.
pub(crate) fn no_mcp_servers(file: &Path, why: &str) -> CliFailure {
    let remedy = tr!(
        "the file of Claude is claude_desktop_config.json or .mcp.json, of Cursor .cursor/mcp.json, of VS Code .vscode/mcp.json",
        "Claude 的文件是 claude_desktop_config.json 或 .mcp.json，Cursor 是 .cursor/mcp.json，VS Code 是 .vscode/mcp.json"
    );
    let file = file.display();
    CliFailure::usage(tr!("no MCP servers in {file}", "{file} 中没有 MCP 服务器"), why, remedy)
}

/// The converted servers are no configuration.
pub(crate) fn not_converted(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the servers cannot be written into the configuration", "无法把服务器写入配置"),
        error.to_string(),
        tr!("without --write they are only printed", "不加 --write 时只打印"),
    )
}

/// A configuration file cannot be written.
pub(crate) fn not_written(file: &Path, error: &io::Error) -> CliFailure {
    let file = file.display();
    CliFailure::usage(
        tr!("{file} cannot be written", "无法写入 {file}"),
        error.to_string(),
        tr!("--config names another file", "用 --config 指定另一个文件"),
    )
}

/// `--key-env` with a key. It is not repeated.
pub(crate) fn key_instead_of_variable() -> CliFailure {
    CliFailure::usage(
        tr!(
            "--key-env takes the name of an environment variable, and this looks like a key",
            "--key-env 要的是环境变量的名称，给出的看起来是密钥"
        ),
        "",
        tr!("export MY_API_KEY=… and --key-env MY_API_KEY", "export MY_API_KEY=…，再用 --key-env MY_API_KEY"),
    )
}

/// Standard input or output of `decode` failed.
pub(crate) fn pipe_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("the body could not be read or written", "无法读取输入或写出结果"),
        error.to_string(),
        "",
    )
}

/// Standard input as the name of a text.
pub(crate) fn standard_input() -> String {
    tr!("standard input", "标准输入")
}

/// Standard input cannot be read.
pub(crate) fn input_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("standard input cannot be read", "无法读取标准输入"),
        error.to_string(),
        tr!("is it text in UTF-8?", "它是 UTF-8 文本吗？"),
    )
}

/// Standard output cannot be written.
pub(crate) fn output_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage(tr!("standard output cannot be written", "无法写入标准输出"), error.to_string(), "")
}

/// The terminal cannot be used.
pub(crate) fn terminal_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("the terminal cannot be used", "终端无法使用"),
        error.to_string(),
        "throughline chat --plain",
    )
}

/// Signals cannot be listened to.
pub(crate) fn no_signals(error: &io::Error) -> CliFailure {
    CliFailure::usage(tr!("Ctrl-C cannot be handled", "无法响应 Ctrl-C"), error.to_string(), "")
}

pub(crate) fn no_runtime(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("no threads can be started", "无法启动线程"),
        error.to_string(),
        tr!("is there a limit on processes (ulimit -u)?", "进程数是否受限（ulimit -u）？"),
    )
}

/// The control group that is named cannot be used.
pub(crate) fn no_control_groups(folder: &str, why: &str) -> CliFailure {
    CliFailure::usage(
        tr!("the control group {folder} cannot be used", "控制组 {folder} 无法使用"),
        why.to_owned(),
        tr!(
            "a folder of a cgroup2 hierarchy that is this user's own and empty; control_groups = \"auto\" uses one only where it is",
            "请使用 cgroup2 层级中属于当前用户的空文件夹；control_groups = \"auto\" 只在可用时启用"
        ),
    )
}

/// The prompt is empty.
pub(crate) fn nothing_asked() -> CliFailure {
    CliFailure::usage(
        tr!("there is nothing to ask", "没有要问的内容"),
        tr!("the prompt is empty", "提示词为空"),
        tr!("throughline ask \"What time is it?\"", "throughline ask \"现在几点？\""),
    )
}

/// A picture cannot be sent.
pub(crate) fn no_picture(path: &Path, why: &str) -> CliFailure {
    let path = path.display();
    CliFailure::usage(tr!("{path} cannot be sent as an image", "{path} 不能作为图片发送"), why, "")
}

/// A folder of `[tools.files]` cannot be used.
pub(crate) fn bad_root(folder: &Path, error: &dyn fmt::Display) -> CliFailure {
    let folder = folder.display();
    CliFailure::usage(
        tr!("the folder {folder} cannot be made available to tools", "无法向工具开放文件夹 {folder}"),
        error.to_string(),
        tr!(
            "check `roots` under [tools.files] in throughline.toml",
            "请检查 throughline.toml 中 [tools.files] 的 `roots`"
        ),
    )
}

pub(crate) fn no_such_tool(name: &str, suggestions: &[&str]) -> CliFailure {
    let remedy = match suggestions {
        [] => "throughline tools list".to_owned(),
        names => {
            let names = names.join(", ");
            tr!("{names}, or throughline tools list", "{names}，或 throughline tools list")
        }
    };
    CliFailure::usage(tr!("there is no tool `{name}`", "没有工具 `{name}`"), "", remedy)
}

/// The file of pinned definitions cannot be used.
pub(crate) fn pins(error: &throughline_tools::mcp::PinsError) -> CliFailure {
    CliFailure::usage(
        tr!("the approved tool definitions cannot be read or written", "已批准的工具定义无法读写"),
        error.to_string(),
        tr!(
            "fix the file, or delete it to approve the definitions of MCP servers again",
            "请修复该文件；也可以删除它，重新批准 MCP 服务器的定义"
        ),
    )
}

/// The home folder is unknown.
pub(crate) fn no_data_folder() -> CliFailure {
    let variable = crate::data_dir::DATA_VARIABLE;
    CliFailure::usage(
        tr!("there is no data folder", "没有数据目录"),
        tr!("HOME is not set", "HOME 未设置"),
        tr!("{variable}=FOLDER", "{variable}=文件夹"),
    )
}

/// `tools approve` with a name that has not changed.
pub(crate) fn nothing_to_approve(name: &str, suggestions: &[&str]) -> CliFailure {
    let remedy = match suggestions {
        [] => "throughline tools changes".to_owned(),
        names => {
            let names = names.join(", ");
            tr!("{names}, or throughline tools changes", "{names}，或 throughline tools changes")
        }
    };
    CliFailure::usage(
        tr!("`{name}` has no changed definition to approve", "`{name}` 没有待批准的定义变更"),
        "",
        remedy,
    )
}

pub(crate) fn no_such_protocol(name: &str) -> CliFailure {
    let names = throughline::config::TextProtocolKind::NAMES.join(", ");
    CliFailure::usage(
        tr!("there is no text protocol `{name}`", "没有文本协议 `{name}`"),
        "",
        tr!("--protocol with one of {names}", "--protocol 可用：{names}"),
    )
}

/// The agent that was chosen is not there; the configuration has been read, so this does not occur.
pub(crate) fn no_agent() -> CliFailure {
    CliFailure::usage(
        tr!("there is no agent", "没有智能体"),
        "",
        tr!(
            "--agent NAME, or [agents.default] in throughline.toml",
            "--agent 名称，或 throughline.toml 中的 [agents.default]"
        ),
    )
}

/// A file cannot be read.
pub(crate) fn file_failed(file: &Path, error: &io::Error) -> CliFailure {
    let file = file.display();
    CliFailure::usage(
        tr!("{file} cannot be read", "无法读取 {file}"),
        error.to_string(),
        tr!("is it text in UTF-8?", "它是 UTF-8 文本吗？"),
    )
}

/// Remembered answers cannot be read or written.
pub(crate) fn memory(error: &throughline::approval_store::ApprovalStoreError) -> CliFailure {
    CliFailure::usage(
        error.to_string(),
        "",
        tr!(
            "a denial may be among them, so nothing is run without them: `throughline doctor` looks at the store",
            "其中可能有拒绝，因此读不到就什么也不运行：`throughline doctor` 会检查存储"
        ),
    )
}

/// A store that others keep from being brought up to date.
pub(crate) fn store_not_ready(file: &Path) -> String {
    let file = file.display();
    tr!("{file} is of an earlier release, and in use", "{file} 来自较早的版本，而且正在使用中")
}

/// A permanent approval was not stored.
pub(crate) fn not_remembered(error: &throughline::approval_store::ApprovalStoreError) -> CliFailure {
    let variable = crate::data_dir::DATA_VARIABLE;
    CliFailure::usage(
        tr!("your answer was not remembered: the next turn asks again", "未能记住你的回答：下一轮会再次询问"),
        error.to_string(),
        tr!("{variable}=FOLDER, a writable one", "{variable}=文件夹（须可写）"),
    )
}

/// `tools remembered --forget` with a number that is not there.
pub(crate) fn nothing_remembered(number: u64) -> CliFailure {
    CliFailure::usage(
        tr!("there is no remembered approval {number}", "没有编号为 {number} 的记住的审批"),
        "",
        "throughline tools remembered",
    )
}

/// Arguments of `tools call` are not JSON.
pub(crate) fn arguments_not_json(error: &serde_json::Error) -> CliFailure {
    CliFailure::usage(
        tr!("the arguments are not JSON", "参数不是 JSON"),
        error.to_string(),
        tr!(
            "an object in single quotes: '{{\"city\": \"Paris\"}}'",
            "用单引号括起来的对象：'{{\"city\": \"Paris\"}}'"
        ),
    )
}

/// Arguments do not fit the tool's schema.
pub(crate) fn arguments_refused(name: &str, why: &str) -> CliFailure {
    CliFailure::usage(
        tr!("the arguments do not fit", "参数不符合要求"),
        why,
        format!("throughline tools show {name}"),
    )
}

/// A tool with side effects needs approval, and no person is present.
pub(crate) fn tool_needs_approval(name: &str) -> CliFailure {
    CliFailure {
        exit: CliExit::ToolFailed,
        what: tr!("`{name}` was not run", "`{name}` 没有运行"),
        why: tr!("it has side effects, and there is no terminal to ask on", "它有副作用，又没有终端可以询问"),
        remedy: tr!("--approve runs it without asking", "--approve 不询问直接运行"),
    }
}

/// A tool asks a question, and no person is present.
pub(crate) fn tool_asks_nobody(name: &str, question: &str) -> String {
    tr!(
        "⚠ question of `{name}`: {question}\n  declined: there is no terminal to answer on\n  try: run it in a terminal, without redirecting standard input or error",
        "⚠ `{name}` 提问：{question}\n  已拒绝回答：没有终端可以回答\n  可以试试：在终端里运行，不要重定向标准输入和标准错误"
    )
}

/// The demo model cannot be started.
#[cfg(feature = "demo")]
pub(crate) fn no_demo(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("the demo model cannot be started", "无法启动演示模型"),
        error.to_string(),
        tr!("--model UPSTREAM/MODEL", "--model 上游/模型"),
    )
}

#[cfg(not(feature = "demo"))]
pub(crate) fn without_demo() -> CliFailure {
    CliFailure::usage(
        tr!("no model is chosen", "没有选择模型"),
        tr!("this build has no demo model", "此构建没有演示模型"),
        tr!("--model UPSTREAM/MODEL", "--model 上游/模型"),
    )
}

/// A scenario file cannot be used.
#[cfg(feature = "demo")]
pub(crate) fn bad_script(why: &str) -> CliFailure {
    CliFailure::usage(
        tr!("the scenario cannot be used", "场景文件无法使用"),
        why,
        tr!("`throughline mock --help` has an example", "`throughline mock --help` 有示例"),
    )
}

/// The address is not available.
#[cfg(feature = "demo")]
pub(crate) fn cannot_listen(address: std::net::SocketAddr, error: &io::Error) -> CliFailure {
    CliFailure::usage(
        tr!("cannot listen on {address}", "无法监听 {address}"),
        error.to_string(),
        tr!("another port, or port 0 for any free one", "换一个端口；端口 0 表示任意空闲端口"),
    )
}

/// The mode does not exist.
pub(crate) fn no_such_mode(name: &str) -> CliFailure {
    CliFailure::usage(
        tr!("there is no mode `{name}`", "没有模式 `{name}`"),
        tr!("modes are native, text and auto", "模式有 native、text 和 auto"),
        "/mode text",
    )
}
