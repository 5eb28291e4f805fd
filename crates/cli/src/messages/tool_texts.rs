//! Output of `tools show` and `tools call`.

use super::UiText;
use super::ui_text::{UiLanguage, tr, words};
use crate::exit::{CliExit, CliFailure};
use std::fmt::Display;

words! {
    tool_effect: "effect", "副作用";
    tool_source: "source", "来源";
    tool_callable: "callable", "可调用";
    tool_wire_name: "on wire", "传输名称";
    tool_runs_where: "runs", "运行";
    tool_arguments: "arguments", "参数";
    callable_by_models: "by models: yes", "模型：可以";
    callable_by_nobody: "by models: no", "模型：不可以";
}

/// Says that a tool runs on this machine, with its time limit.
pub(crate) fn tool_runs_here(limit: &str) -> String {
    tr!("here, for at most {limit}", "在本机，最长 {limit}")
}

/// Says that a tool runs on a client, with its time limit.
pub(crate) fn tool_runs_at_a_client(limit: &str) -> String {
    tr!("in a connected page or app, for at most {limit}", "在已连接的页面或应用中，最长 {limit}")
}

/// `tools call`: it failed.
pub(crate) fn tool_failed(elapsed: &str, why: &str) -> String {
    tr!("✘ failed after {elapsed}: {why}", "✘ {elapsed} 后失败：{why}")
}

/// `tools call`: it was stopped at its limit.
pub(crate) fn tool_timed_out(limit: &str) -> String {
    tr!("✘ stopped at its limit of {limit}", "✘ 到达 {limit} 的时限，已停止")
}

/// `tools call`: the outcome is unknown, and it may have had effects.
pub(crate) fn tool_end_unknown(elapsed: &str, why: Option<&str>) -> String {
    let why_en = why.map_or_else(String::new, |why| format!(": {why}"));
    let why_zh = why.map_or_else(String::new, |why| format!("：{why}"));
    tr!(
        "‽ what became of it after {elapsed} is not known, and it may have had effects{why_en}",
        "‽ {elapsed} 后结果未知，可能已经产生影响{why_zh}"
    )
}

/// `tools call`: a person stopped it.
pub(crate) fn tool_stopped(elapsed: &str) -> String {
    tr!("⊘ stopped after {elapsed}", "⊘ {elapsed} 后已停止")
}

/// `tools call`: it was not started.
pub(crate) fn tool_not_started(why: &dyn Display) -> String {
    tr!("○ not started: {why}", "○ 没有启动：{why}")
}

/// The tool runs on a client, and none is connected.
pub(crate) fn no_client_for_tool() -> String {
    tr!("no connected page or app can run it", "没有能运行它的已连接页面或应用")
}

/// A rule of the agent denies the call, and no consent changes that.
pub(crate) fn tool_denied_by_rule(name: &str, agent: &str, rule: &str, reason: &str) -> CliFailure {
    let why = if reason.is_empty() { rule.to_owned() } else { format!("{reason} ({rule})") };
    CliFailure {
        exit: CliExit::ToolFailed,
        what: tr!(
            "`{name}` was not run: a rule of the agent `{agent}` denies it",
            "`{name}` 没有运行：智能体 `{agent}` 的规则禁止它"
        ),
        why,
        remedy: tr!(
            "--agent with another agent, or change its rules in throughline.toml",
            "用 --agent 选择另一个智能体，或修改 throughline.toml 中它的规则"
        ),
    }
}
