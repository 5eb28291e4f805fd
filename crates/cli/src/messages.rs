//! All messages of the command, in one place, so that tone and correctness can be reviewed together.
//!
//! English and Chinese are next to each other: in `tr!` where a sentence is made, in [`UiText`] for the chat.
//! Help is English here; its Chinese is in the module `chinese`.

mod asking_texts;
mod connect;
mod doctor;
mod failures;
mod help;
mod history_texts;
mod inspection_texts;
#[cfg(feature = "demo")]
mod mock_texts;
mod question_texts;
mod reason_texts;
mod say_texts;
mod serve;
mod tool_texts;
mod ui_text;

pub(crate) use asking_texts::*;
pub(crate) use failures::*;
pub(crate) use help::*;
pub(crate) use history_texts::*;
pub(crate) use inspection_texts::*;
#[cfg(feature = "demo")]
pub(crate) use mock_texts::*;
pub(crate) use reason_texts::*;
pub(crate) use say_texts::*;
pub(crate) use serve::*;
pub(crate) use tool_texts::*;
use ui_text::tr;
pub(crate) use ui_text::{UiLanguage, UiText};

/// Standard input is a terminal where a response body was expected.
pub(crate) fn decode_reads_stdin() -> String {
    tr!(
        "reading a response body from standard input; end it with Ctrl-D (usually: throughline decode --api API < body)",
        "正在从标准输入读取响应体，按 Ctrl-D 结束（通常用法：throughline decode --api API < body）"
    )
}

/// Heading of the upstreams of the configuration.
pub(crate) fn upstreams_configured() -> String {
    tr!("configured", "已配置")
}

/// Heading of those known by name.
pub(crate) fn upstreams_known() -> String {
    tr!("known by name", "可直接按名称使用")
}

/// The key of an upstream was stored by `connect`.
pub(crate) fn key_is_stored() -> String {
    tr!("✔ stored", "✔ 已保存")
}

/// The variable that holds the key of an upstream is missing.
pub(crate) fn variable_not_set(variable: &str) -> String {
    tr!("{variable} is not set", "未设置 {variable}")
}

/// The upstream runs without a key.
pub(crate) fn no_key_needed() -> String {
    tr!("no key needed", "不需要密钥")
}

/// Usage of `--upstream`.
pub(crate) fn upstreams_use() -> String {
    tr!(
        "\nconnect one: throughline connect NAME      use one: throughline chat --model NAME/MODEL\n",
        "\n连接：throughline connect 名称      使用：throughline chat --model 名称/模型\n"
    )
}

/// `tools changes` with nothing to show.
pub(crate) fn no_changes() -> String {
    tr!("no definitions of MCP tools have changed\n", "MCP 工具的定义没有变更\n")
}

/// Below the differences.
pub(crate) fn changes_legend() -> String {
    tr!(
        "\n- approved, + current; off until you approve: throughline tools approve NAME\n",
        "\n- 已批准的，+ 现在的；批准前不可用：throughline tools approve 名称\n"
    )
}

/// Below what was agreed to.
pub(crate) fn approved() -> String {
    tr!(
        "approved; a running program uses it the next time it starts or connects\n",
        "已批准；正在运行的程序会在下次启动或连接时使用\n"
    )
}

/// Maximum length of a fault that precedes requested output, in characters.
const FAULT_CHARS_MAX: usize = 240;

/// A fault of a source of tools.
pub(crate) fn source_fault(fault: &throughline_tools::SourceFault) -> String {
    let tool = fault.tool.as_ref().map(|tool| format!(" · {tool}")).unwrap_or_default();
    let mut lines = fault.message.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_suffix(". Its output:").unwrap_or(first);
    let first = crate::chinese::source_text(first);
    let mut line: String = first.chars().take(FAULT_CHARS_MAX).collect();
    let is_cut = line.len() < first.len();
    if is_cut {
        line.push('…');
    }
    let more = if is_cut || lines.next().is_some() || fault.remedy.is_some() {
        tr!(" · for details: throughline doctor", " · 详情：throughline doctor")
    } else {
        String::new()
    };
    format!("⚠ {}{tool}: {line}{more}", fault.source)
}

/// A source that has not answered in time.
pub(crate) fn silent_source(source: &str, limit: std::time::Duration) -> String {
    let seconds = limit.as_secs();
    tr!(
        "⚠ {source}: no answer after {seconds} s; its tools are not listed",
        "⚠ {source}：{seconds} 秒内没有响应；未列出它的工具"
    )
}

/// Legend of the marks in the list of tools.
pub(crate) fn tools_legend(agent: &str) -> String {
    tr!(
        "\n✔ offered to the agent `{agent}`; runs, asks first or denied: what its rules say of a call, as far as the\n  arguments do not decide\n",
        "\n✔ 提供给智能体 `{agent}`；直接执行、先询问或禁止：按规则对调用的处理，取决于参数的除外\n"
    )
}

/// A question about one tool on the command line, answered by a line.
pub(crate) fn approval_prompt(words: UiText, tool: &str, arguments: &str) -> String {
    let indented: String = arguments.lines().map(|line| format!("  {line}\n")).collect();
    format!("{} {tool}\n{indented}[y/N] ", words.allow_question())
}
